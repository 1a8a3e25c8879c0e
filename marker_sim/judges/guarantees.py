"""The table of guarantees. docs/guarantees.md explains them.

A guarantee is a row here and its judge; the exception that its violation raises is made of the row (violations.py).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from marker_sim.errors import UsageError
from marker_sim.judges.findings import Judge
from marker_sim.judges.store.durability import (
    acked_marker_survives,
    exists_is_durable,
    flushed_before_ack,
    rewrite_atomic,
)
from marker_sim.judges.store.exactness import exact_set, one_creator
from marker_sim.judges.store.hostile import hostile_input_refused
from marker_sim.judges.store.layout import bounded_files, hdfs_falls_back, type_recorded
from marker_sim.judges.store.listing import delete_complete, readable_while_written
from marker_sim.judges.store.serving import every_request_answered, isolation
from marker_sim.judges.write_path.commits import marker_before_data, reconcile_exact
from marker_sim.judges.write_path.leftovers import markers_last, no_late_write, no_residue
from marker_sim.judges.write_path.progress import writes_go_on
from marker_sim.judges.write_path.rollbacks import rollback_complete, rollback_first, rollback_retryable
from marker_sim.judges.write_path.rows import rows_survive


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """One promise.

    id: its name in files.
    slug: its name on the command line.
    sentence: quoted by every violation.
    judge: of histories that record the steps of the write path, None for G21, which is judged over a pair of them, and
        for those of several writers and of what becomes of tables; `black_box.JUDGES` has those of histories without
        recorded steps.
    judged_least: how often it must have been judged in a run of its mode and storage; None where not every run has a
        case.
    """

    id: str
    slug: str
    sentence: str
    judge: Judge | None = None
    judged_least: float | None = None


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        id="G1",
        slug="flushed-before-ack",
        sentence='At the moment a create is answered "created", its marker is in storage.',
        judge=flushed_before_ack,
        judged_least=4.0,
    ),
    Guarantee(
        id="G2",
        slug="exists-is-durable",
        sentence='At the moment a create is answered "exists", the marker it names is in storage.',
        judge=exists_is_durable,
        judged_least=0.4,
    ),
    Guarantee(
        id="G3",
        slug="acked-marker-survives",
        sentence="An answered marker stays in storage until deletion of its marker directory is requested: crashes,"
        " restarts, duplicates, pauses and a second server do not remove it.",
        judge=acked_marker_survives,
        judged_least=5.0,
    ),
    Guarantee(
        id="G4",
        slug="exact-set",
        sentence="Storage and every listing contain only names that were requested in that directory, and in the end"
        " storage contains every answered name, byte for byte: none merged, split or renamed.",
        judge=exact_set,
        judged_least=5.0,
    ),
    Guarantee(
        id="G5",
        slug="one-creator",
        sentence='While no two servers serve a directory, at most one request is answered "created" for a name, its'
        ' resend gets the same answer from the same server life, and the only request is not answered "exists".',
        judge=one_creator,
    ),
    Guarantee(
        id="G6",
        slug="every-request-answered",
        sentence="Once the faults are over, a request that reached a live server over a whole connection is answered"
        " within the bound, new creates succeed in every batch file, and no server exits by itself.",
        judge=every_request_answered,
    ),
    Guarantee(
        id="G7",
        slug="isolation",
        sentence="Failures in one marker directory neither fail requests for another nor delay them by more than the"
        " storage time-out.",
        judge=isolation,
    ),
    Guarantee(
        id="G8",
        slug="bounded-files",
        sentence="Timeline-server markers fill at most num_threads marker files and one type file; direct markers"
        " are exactly one empty file each, under the partition path they name.",
        judge=bounded_files,
        judged_least=0.5,
    ),
    Guarantee(
        id="G9",
        slug="type-recorded",
        sentence="As long as a directory has a marker file and no deletion of it has begun, its type file says that it"
        " is batched.",
        judge=type_recorded,
    ),
    Guarantee(
        id="G10",
        slug="delete-complete",
        sentence="After a deletion is answered, only names whose create was open when the deletion was invoked, or"
        " came later, are stored or listed; the others do not return by themselves, and a directory without"
        " any files is not reported to exist. A deletion of stored markers fails only under faults, or when it meets"
        " other requests.",
        judge=delete_complete,
        judged_least=0.4,
    ),
    Guarantee(
        id="G11",
        slug="readable-while-written",
        sentence="A listing contains every marker answered before it was invoked, and a directory with such a marker is"
        " reported to exist; both fail only under faults.",
        judge=readable_while_written,
        judged_least=0.7,
    ),
    Guarantee(
        id="G12",
        slug="hostile-input-refused",
        sentence="A malformed or hostile request is refused with an error and changes nothing.",
        judge=hostile_input_refused,
        judged_least=0.02,
    ),
    Guarantee(
        id="G13",
        slug="marker-before-data",
        sentence="Before a write first touches one of its data files, a marker that names the file has been stored.",
        judge=marker_before_data,
        judged_least=1.0,
    ),
    Guarantee(
        id="G14",
        slug="reconcile-exact",
        sentence="A completed commit names files that exist and continue to exist, of one attempt for each task; every"
        " other data file that the instant had when finalize listed its markers is gone by then.",
        judge=reconcile_exact,
        judged_least=0.2,
    ),
    Guarantee(
        id="G15",
        slug="rollback-complete",
        sentence="After a rollback no data file is left that its instant had when the markers were listed, and the"
        " rollback removed or changed nothing that is committed.",
        judge=rollback_complete,
        judged_least=0.04,
    ),
    Guarantee(
        id="G16",
        slug="rollback-retryable",
        sentence="A rollback that was interrupted anywhere can be run again and has the same result.",
        judge=rollback_retryable,
        judged_least=0.01,
    ),
    Guarantee(
        id="G17",
        slug="markers-last",
        sentence="Markers are not deleted before their instant is committed, or the data files that they name are"
        " deleted.",
        judge=markers_last,
        judged_least=0.25,
    ),
    Guarantee(
        id="G18",
        slug="no-residue",
        sentence="When an instant is finished and its attempts have ended, the next write without a fault leaves"
        " nothing of its marker directory, and a write without a fault leaves nothing of its own.",
        judge=no_residue,
        judged_least=0.15,
    ),
    Guarantee(
        id="G19",
        slug="rollback-first",
        sentence="A write touches data only after every instant that was left behind when it began is rolled back.",
        judge=rollback_first,
        judged_least=0.04,
    ),
    Guarantee(
        id="G20",
        slug="no-late-write",
        sentence="Once finalize or a rollback has listed an instant's markers, no data file of the instant is written.",
        judge=no_late_write,
        judged_least=1.0,
    ),
    Guarantee(
        id="G21",
        slug="modes-agree",
        sentence="Direct and timeline-server markers give the same table: the same data paths without faults, the same"
        " rows with faults whenever every write completed.",
    ),
    Guarantee(
        id="G22",
        slug="hdfs-falls-back",
        sentence="Timeline-server markers requested on a storage that does not support them become direct markers, and"
        " the implementation says so; elsewhere they are what was requested.",
        judge=hdfs_falls_back,
    ),
    Guarantee(
        id="G23",
        slug="rewrite-atomic",
        sentence="No reader of storage sees an answered marker missing, not even while its file is being rewritten.",
        judge=rewrite_atomic,
        judged_least=5.0,
    ),
    Guarantee(
        id="G24",
        slug="rows-survive",
        sentence="A reader of the completed commits finds the rows of every completed write, each key as its last"
        " write left it.",
        judge=rows_survive,
        judged_least=1.0,
    ),
    Guarantee(
        id="G25",
        slug="writes-go-on",
        sentence="A write without faults completes; a driver ends by itself, or hangs, only when its faults explain"
        " it; after the last fault the next write completes within its bound.",
        judge=writes_go_on,
        judged_least=0.3,
    ),
    Guarantee(
        id="G26",
        slug="no-lost-commit",
        sentence="Of several writers of a table none deletes what a completed instant of another consists of, and of"
        " two that write one file group at the same time at most one completes.",
    ),
    Guarantee(
        id="G27",
        slug="conflict-detected",
        sentence="With early conflict detection no two instants that both had a marker of one file group complete, and"
        " with its strategy of transactions no two live ones have one unless one is refused for it before its commit.",
    ),
    Guarantee(
        id="G28",
        slug="conflict-real",
        sentence="A writer is refused only for a file group that another one writes that lives or has completed, and"
        " of the writers in conflict one is not refused.",
    ),
    Guarantee(
        id="G29",
        slug="one-rollback",
        sentence="An instant is rolled back once and by one plan, by another writer only when its heartbeat has ended"
        " and never when it is completed, and a writer that rolls back finishes.",
    ),
    Guarantee(
        id="G30",
        slug="leftovers-stay-unseen",
        sentence="What a failed write left in storage never becomes a row that a reader sees, and no row of a completed"
        " write is lost or doubled, whatever happens to the table later.",
    ),
    Guarantee(
        id="G31",
        slug="records-are-true",
        sentence="Records of commits, rollbacks, cleans and restores can be read and say what happened: what they name"
        " as written is stored, what they name as deleted is gone, and nothing else was deleted.",
    ),
    Guarantee(
        id="G32",
        slug="metadata-is-true",
        sentence="The metadata table lists the files that are stored, those of instants that are not completed aside.",
    ),
)

BY_ID: dict[str, Guarantee] = {guarantee.id: guarantee for guarantee in GUARANTEES}
ALL: frozenset[str] = frozenset(BY_ID)


def parse_guarantees(text: str) -> frozenset[str]:
    """The ids in a comma-separated list of ids and slugs ("G1,exact-set"); UsageError says what is accepted."""
    known = {word.lower(): guarantee.id for guarantee in GUARANTEES for word in (guarantee.id, guarantee.slug)}
    words = [word.strip() for word in text.split(",") if word.strip()]
    accepted = ", ".join(f"{guarantee.id} ({guarantee.slug})" for guarantee in GUARANTEES)
    if not words:
        raise UsageError(f"no guarantee was given; write a comma-separated list of: {accepted}")
    for word in words:
        if word.lower() not in known:
            near = difflib.get_close_matches(word.lower(), known, n=1)
            hint = f"; did you mean {known[near[0]]}?" if near else ""
            raise UsageError(f"{word!r} is no guarantee{hint} Accepted: {accepted}")
    return frozenset(known[word.lower()] for word in words)

"""The table of guarantees: number, slug and the sentence that every violation quotes. docs/guarantees.md explains each.

A guarantee is added here, gets a judge in `marker_sim.judges` and an exception in `marker_sim.judges.violations`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from marker_sim.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """One promise: `id` in files, `slug` on the command line and in code, `sentence` in every violation."""

    id: str
    slug: str
    sentence: str


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        id="G1",
        slug="flushed-before-ack",
        sentence='At the moment a create is answered "created", its marker is in storage.',
    ),
    Guarantee(
        id="G2",
        slug="exists-is-durable",
        sentence='At the moment a create is answered "exists", the marker it names is in storage.',
    ),
    Guarantee(
        id="G3",
        slug="acked-marker-survives",
        sentence="A marker that was answered stays in storage until somebody asks to delete its marker directory:"
        " crashes, restarts, duplicates, pauses and a second server do not remove it.",
    ),
    Guarantee(
        id="G4",
        slug="exact-set",
        sentence="Storage and every listing hold only names that were asked for in that directory, and storage ends"
        " with every answered name, byte for byte: none merged, split or renamed.",
    ),
    Guarantee(
        id="G5",
        slug="one-creator",
        sentence='While no two servers serve a directory, at most one request is told "created" for a name, and its'
        " resend hears the same from the same server life.",
    ),
    Guarantee(
        id="G6",
        slug="every-request-answered",
        sentence="Once the faults are over, a request that reached a live server over a whole connection is answered"
        " within the bound, new creates succeed in every batch file, and no server exits by itself.",
    ),
    Guarantee(
        id="G7",
        slug="isolation",
        sentence="Trouble in one marker directory neither fails requests for another nor holds them up for longer"
        " than the storage time-out.",
    ),
    Guarantee(
        id="G8",
        slug="bounded-files",
        sentence="Timeline-server markers fill at most num_threads marker files and one type file; direct markers"
        " are exactly one empty file each, under the partition path they name.",
    ),
    Guarantee(
        id="G9",
        slug="type-recorded",
        sentence="As long as a directory has a marker file and nobody began to delete it, its type file says that it"
        " is batched.",
    ),
    Guarantee(
        id="G10",
        slug="delete-complete",
        sentence="After a deletion is answered, only names whose create was open when the deletion was invoked, or"
        " came later, are stored or listed; the others do not return by themselves, and a directory of which nothing is"
        " left is not said to exist.",
    ),
    Guarantee(
        id="G11",
        slug="readable-while-written",
        sentence="A listing holds every marker answered before it was invoked; it is never short, and it fails only"
        " under faults. A directory with such a marker is said to exist.",
    ),
    Guarantee(
        id="G12",
        slug="hostile-input-refused",
        sentence="A malformed or hostile request is refused with an error and changes nothing.",
    ),
    Guarantee(
        id="G13",
        slug="marker-before-data",
        sentence="Before a write first touches one of its data files, a marker that names the file has been stored.",
    ),
    Guarantee(
        id="G14",
        slug="reconcile-exact",
        sentence="A completed commit names files that are there and stay there, one attempt's for each task; every"
        " other data file that the instant had when finalize listed its markers is gone by then.",
    ),
    Guarantee(
        id="G15",
        slug="rollback-complete",
        sentence="After a rollback no data file is left that its instant had when the markers were listed, and nothing"
        " that is committed was removed or changed by it.",
    ),
    Guarantee(
        id="G16",
        slug="rollback-retryable",
        sentence="A rollback that was cut short anywhere can be run again and comes to the same end.",
    ),
    Guarantee(
        id="G17",
        slug="markers-last",
        sentence="Nobody deletes markers before their instant is committed, or the data files that they name are"
        " deleted.",
    ),
    Guarantee(
        id="G18",
        slug="no-residue",
        sentence="When an instant is over and its attempts have acted for the last time, the next undisturbed write"
        " leaves nothing of its marker directory.",
    ),
    Guarantee(
        id="G19",
        slug="rollback-first",
        sentence="A write touches data only after every instant that was left behind when it began is rolled back.",
    ),
    Guarantee(
        id="G20",
        slug="no-late-write",
        sentence="Once finalize or a rollback has listed an instant's markers, none of its data files comes into"
        " storage.",
    ),
    Guarantee(
        id="G21",
        slug="modes-agree",
        sentence="Direct and timeline-server markers lead to the same table: the same data paths without faults, the"
        " same rows with faults whenever every write completed.",
    ),
    Guarantee(
        id="G22",
        slug="hdfs-falls-back",
        sentence="Timeline-server markers asked for on a storage that cannot carry them become direct markers, and"
        " the implementation says so.",
    ),
    Guarantee(
        id="G23",
        slug="rewrite-atomic",
        sentence="No reader of storage sees an answered marker missing, not even while its file is being rewritten.",
    ),
    Guarantee(
        id="G24",
        slug="rows-survive",
        sentence="Whoever reads the completed commits finds the rows of every completed write, each key as its last"
        " write left it.",
    ),
    Guarantee(
        id="G25",
        slug="writes-go-on",
        sentence="A write that no fault touches completes; a driver ends by itself, or hangs, only when its faults"
        " explain it; after the last fault the next write completes within its bound.",
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

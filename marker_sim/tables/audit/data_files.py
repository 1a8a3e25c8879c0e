"""Rules about data files: which stored ones no commit names, which named ones are missing or cut short. Pure.

The owner of a file is the instant in its name. Where that is the instant of the base file below a log file
(`tables/instants.py`), it is the instant in the header of the log file's first block.

    stored, and no completed commit names it
      owner completed      damage: its commit names other files
      owner rolled back    damage: the rollback left it; a log file of layout 1 is made invisible by a command block
      owner pending        belongs to the pending instant
      owner unknown        damage where the timeline reaches back to it, else undecided
    named, and not stored
      latest file slice    damage, also where a record says that it was deleted: none may. Not where the slice is not
                           certain, for its commit is archived or a later one cannot be read, nor in a metadata table
      saved                damage: a savepoint keeps it, and no clean may delete it
      deleted by record    a clean, rollback or restore names it in its plan or its record
      older                damage where its commit is active and every record of a clean is readable, else undecided
    stored and shorter than its commit says: damage
    stored, and of a group that an archived commit replaced: damage, readers see the group again
    stored, and of a group of which the same commit names another stored base file: damage
    committed, and made of an older base file than another commit's before it: damage, that commit's rows are left out
    committed, and made of a newer base file: damage, readers see that one
    stored in a partition without .hoodie_partition_metadata: damage, also where a metadata table lists the files, which
    is built anew by listing
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from marker_sim.tables.audit.at_rest import TableAtRest
from marker_sim.tables.audit.findings import Level, TableFinding, damage
from marker_sim.tables.instants import Claim, Instants
from marker_sim.tables.sources import StoredFile
from marker_sim.timeline import PARTITION_METADATA, UNDOING, DataFile, parse_table_file

FOREIGN = "foreign-file"
_SHOWN = 20


@dataclass(slots=True)
class JudgedFiles:
    """The result of judging data files.

    pending: stored files of pending instants.
    undecided: paths by kind and by the reason why they cannot be decided; also those without a name of Hudi's.
    """

    findings: list[TableFinding] = field(default_factory=list)
    pending: dict[str, list[StoredFile]] = field(default_factory=dict)
    undecided: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def doubt(self, kind: str, reason: str, path: str) -> None:
        """Add a file that cannot be decided."""
        self.undecided.setdefault((kind, reason), []).append(path)


def judge_files(table: TableAtRest) -> JudgedFiles:
    """Judge the stored files, and what commits say of files."""
    result = JudgedFiles()
    claims = table.instants.claims
    for path, file in table.stored.items():
        claim = claims.get(path)
        if claim is None:
            _judge_unnamed(table, file, result)
        elif file.size < claim.size or (file.size == 0 and claim.size != 0 and not path.endswith(".cdc")):
            result.findings.append(_short(file, claim))
    settled = {path: claim for path, claim in claims.items() if claim.instant in table.settled}
    for path in sorted(settled.keys() - table.stored.keys()):
        _judge_missing(table, path, settled[path], result)
    known = {path: claim for path, claim in settled.items() if path in table.stored}
    if not table.metadata:  # It has neither twins nor replaced groups, and needs no metadata of partitions.
        _judge_groups(table.instants, known, result)
        _judge_merges(table.instants, result)
        _judge_partitions(table, known, result)
    return result


def _judge_groups(instants: Instants, stored: Mapping[str, Claim], result: JudgedFiles) -> None:
    """Judge the groups of committed files that are stored."""
    bases: dict[DataFile, list[str]] = {}
    for path, claim in stored.items():
        file = claim.file
        if file is None:
            continue
        if not file.log:
            bases.setdefault(file, []).append(path)
        entries = instants.replacing(file)  # Readers know only of active ones.
        if entries and all(entry.archived for entry in entries) and instants.is_current(file):
            message = f"Readers see the file again: {entries[-1].instant}, which replaced its group, was archived."
            proof = (f"{entries[-1].action} {entries[-1].instant}: {entries[-1].path}",)
            result.findings.append(damage("replaced-group-visible", claim.instant, path, message, proof))
    for twins in bases.values():
        if len(twins) > 1:
            path, *others = sorted(twins)
            instant = stored[path].instant
            message = f"The commit {instant} names {len(twins)} base files of one file group; readers see one of them."
            result.findings.append(damage("group-named-twice", instant, path, message, others))


def _judge_merges(instants: Instants, result: JudgedFiles) -> None:
    """Judge from what committed base files were made: the newest one of their group before them, and no newer one.

    A clustering that keeps the id of a group has no rows of its own.
    """
    bases: dict[tuple[str, str], dict[str, str]] = {}
    for path, claim in instants.claims.items():
        if claim.file is not None and not claim.file.log:
            bases.setdefault(claim.file[:2], {})[claim.file.instant] = path
    merged = {path: base for entry in instants.committed.values() for path, base in entry.numbers("merged").items()}
    for group in bases.values():
        order = sorted(group)
        for instant, path in group.items():
            base = merged.get(path, "")
            if not base.isdecimal():
                continue
            for other in order[bisect_right(order, base) : bisect_left(order, instant)]:
                message = f"It was made of the group's file of {base}, so readers miss the rows that {other} wrote."
                _left_out(instants, path, group[other], message, result)
            if base > instant and base in group:
                message = f"It was made of the group's newer file of {base}, so readers miss the rows that it has."
                _left_out(instants, path, group[base], message, result)


def _left_out(instants: Instants, path: str, other: str, message: str, result: JudgedFiles) -> None:
    claim, entry = instants.claims[path], instants.committed[instants.claims[other].instant]
    if entry.action != "replacecommit":
        proof = f"{entry.action} {entry.instant}: {other}"
        result.findings.append(damage("lost-update", claim.instant, path, message, (proof,)))


def _judge_partitions(table: TableAtRest, stored: Mapping[str, Claim], result: JudgedFiles) -> None:
    """Judge partitions by their metadata, without which readers that list a table take a folder for none.

    Those of other writers' files (which end in the id of their group) have none.
    """
    lost: dict[str, list[str]] = {}
    for path, claim in stored.items():
        file = claim.file
        if file and file.partition not in table.described and not path.endswith(file.file_id):
            lost.setdefault(file.partition, []).append(path)
    for partition, paths in lost.items():
        message = f"The partition {partition or 'of the table'} has {len(paths)} committed files and no metadata."
        path = f"{partition}/{PARTITION_METADATA}".lstrip("/")
        result.findings.append(damage("no-partition-metadata", "", path, message, sorted(paths)[:_SHOWN]))


def _short(file: StoredFile, claim: Claim) -> TableFinding:
    said = f"of {claim.size:,} bytes" if claim.size > 0 else "of a size it does not say"
    message = f"The file has {file.size:,} bytes; the commit {claim.instant} wrote one {said}."
    evidence = (f"stored: {file.size} bytes", f"commit {claim.instant}: {claim.size} bytes")
    return damage("short-file", claim.instant, file.path, message, evidence)


def _judge_unnamed(table: TableAtRest, file: StoredFile, result: JudgedFiles) -> None:
    instants, path = table.instants, file.path
    name = parse_table_file(path)
    if name is None:
        result.doubt(FOREIGN, "", path)
        return
    if path in instants.saying("appended"):
        return
    bears_base = instants.bears_base(name)
    if bears_base and (table.metadata or path in instants.saying("undone")):
        return
    owner = table.owner(path) if bears_base else name.instant
    if owner is None:
        result.doubt("unnamed-data-file", "the log file cannot be read", path)
        return
    if owner == "":  # It has no readable block; a writer creates the file before its first block.
        message = "The log file has no whole block and no commit names it; it holds no rows."
        found = damage("unnamed-data-file", name.instant, path, message, (f"stored: {file.size} bytes",))
        result.findings.append(replace(found, level=Level.NOTE))
        return
    beside = any(entry.instant == owner for entry in instants.saying("beside").get(path, ()))
    if beside or (table.metadata and name.log):
        return
    _judge_owner(table, file, name, owner, result)


def _judge_owner(table: TableAtRest, file: StoredFile, name: DataFile, owner: str, result: JudgedFiles) -> None:
    """Judge a file that no commit names, by what became of the instant that wrote it."""
    instants, path = table.instants, file.path
    kind = "unnamed-data-file"
    if owner in instants.unfinished:
        result.pending.setdefault(owner, []).append(file)
        return
    if owner in instants.unread:
        result.doubt(kind, f"the completed commit {owner} cannot be read", path)
        return
    if owner in instants.completed:
        entries = instants.completed[owner]
        if name.log and all(entry.action in UNDOING for entry in entries):
            return
        message = f"The {entries[0].action} {owner} completed and does not name the file."
        proof = f"{entries[0].action} {owner}: {entries[0].path}"
    elif owner in instants.rolled_back:
        rollback = instants.rolled_back[owner]
        if instants.bears_base(name) and name[:2] in instants.command_groups:
            return
        kind = "rollback-left-files"
        message = f"The instant {owner} was rolled back by {rollback.instant}, and its file is still there."
        proof = f"{rollback.action} {rollback.instant}: {rollback.path}"
    elif instants.covers(owner):
        message = f"No instant {owner} is on the timeline, which reaches back to {instants.first}."
        proof = f"timeline from {instants.first}"
    else:
        since = f"begins at {instants.first}" if instants.first else "has no entry that can be read"
        result.doubt(kind, f"their instants are older than the timeline, which {since}", path)
        return
    result.findings.append(damage(kind, owner, path, message, (proof, f"stored: {file.size} bytes")))


def _judge_missing(table: TableAtRest, path: str, claim: Claim, result: JudgedFiles) -> None:
    instants, file = table.instants, claim.file
    if file is None or (table.metadata and file.partition not in table.enabled):
        return
    records = instants.deleting(path)
    if any(not entry.archived for entry in instants.saying("saved").get(path, ())):
        _missing(path, claim, "a savepoint keeps it", result)
    elif records:  # They acquit themselves where nothing proves that they must not have deleted the file.
        record = records[-1]
        if not table.metadata and instants.convicts(claim):
            said = "says that it deleted it" if record.done else "plans to delete it"
            why = f"it is in the latest file slice of its group, although the {record.action} {record.instant} {said}"
            _missing(path, claim, why, result, f"{record.action} {record.instant}: {record.path}")
    elif instants.is_needed(file) and (not claim.archived or not instants.archive_error):
        _missing(path, claim, "it is in the latest file slice of its group, and nothing deleted it", result)
    elif table.metadata:
        return
    elif claim.archived or instants.hides_cleans:
        why = instants.hides_cleans or "their commits are archived and records of cleans may be gone"
        result.doubt("missing-file", f"older file slices: {why}", path)
    else:
        _missing(path, claim, "no clean, rollback or restore names it", result)


def _missing(path: str, claim: Claim, why: str, result: JudgedFiles, *proof: str) -> None:
    message = f"The commit {claim.instant} names the file, and it is not there: {why}."
    proof = (f"commit {claim.instant}: {claim.size} bytes", *proof)
    result.findings.append(damage("missing-file", claim.instant, path, message, proof))

"""Rules about instants: entries that are empty, unreadable, stuck or begun to be rolled back; marker directories. Pure.

A pending instant is normal while its writer lives. It counts as stuck when nothing of it changed for `stuck_after_s`:
no entry, marker, data file or heartbeat. A requested table service waits for its turn and is never stuck. A pending
write that a later commit overtook without a heartbeat of its own is undecided: with one writer it would be rolled back.

Hudi deletes a marker directory once its instant is completed or rolled back. Batched markers are read by the strictest
release: each line of MARKERS<n> ends in a newline and is one marker name, MARKERS.type says TIMELINE_SERVER_BASED.
Without that file a rollback treats the directory as one of direct markers, finds none and deletes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from marker_sim.names import TYPE_BATCHED, TYPE_FILE, check_marker_name, is_marker_name, marker_file_index
from marker_sim.tables.audit.at_rest import TableAtRest
from marker_sim.tables.audit.findings import Level, TableFinding, damage
from marker_sim.tables.entries import TableEntry
from marker_sim.tables.instants import Instants
from marker_sim.tables.parts import MarkerDirectoryContent
from marker_sim.timeline import UNDOING, WRITES, parse_table_file

_HEARTBEAT_LIVE_S = 300.0
_SERVICES = frozenset({"compaction", "logcompaction", "clustering", "clean", "indexing", "replacecommit"})
_SHOWN = 20
_LINES_SHOWN = 5
FRESH_S = 60.0
_BOTH_KINDS = (
    "Copy the directory before the next write: it has direct markers as well, and whatever MARKERS.type says, a"
    " rollback reads only one of the two kinds."
)
_GLUED = re.compile(r"\.marker\.(?:CREATE|MERGE|APPEND)(?!\Z)")


def judge_entries(instants: Instants) -> list[TableFinding]:
    """Entries that are empty or cannot be read, and those that contradict each other.

    An archived one without content is no damage of the table's files. A rollback that began before its instant was
    completed is none either: a compaction that is rolled back goes on later.
    """
    found = []
    for instant, undoing in instants.rolled_back.items():
        commit = instants.committed.get(instant)
        plain = (
            commit
            and not commit.archived
            and not any(e.instant == instant and e.action not in WRITES for e in instants.entries)
        )
        if commit and "" < commit.completion < max(undoing.instant, undoing.completion if plain else ""):
            message = f"The {commit.action} {instant} is completed, and {undoing.instant} says that it undid it later."
            proof = (f"{undoing.action} {undoing.instant}: {undoing.path}",)
            found.append(_finding("rolled-back-commit", Level.DAMAGE, commit, message, proof))
    for entry in instants.entries:
        needless = not entry.done and entry.instant not in instants.unfinished
        if not entry.error or entry.archived or needless:
            continue
        kind, said = "unreadable-instant", f"{entry.state} {entry.action} cannot be read: {entry.error}"
        if entry.done and entry.size == 0:
            kind, said = "empty-completed-instant", f"completed {entry.action} is empty"
        found.append(_finding(kind, Level.DAMAGE, entry, f"The {said}."))
    if instants.archive_error:
        found.append(
            TableFinding(
                kind="unreadable-archive",
                level=Level.UNDECIDED,
                message=f"A part of the archived timeline cannot be read: {instants.archive_error}.",
            )
        )
    return found


def judge_unmarked(table: TableAtRest) -> list[TableFinding]:
    """Files of pending writes that no marker names; the markers were listed after the files.

    A marker is durable before its data file is made. Log files of layout 1 are left out: old releases mark them by
    other names.
    """
    found = []
    instants = table.instants
    over = {target for each in instants.unfinished.values() for entry in each for target in entry.of("rolled-back")}
    for instant, files in sorted(table.files.items()):
        marked = set(table.targets(instant))
        for file in files:
            name = parse_table_file(file.path)
            if instant in over or file.path in marked or name is None or (name.log and instants.layout == 1):
                continue
            message = f"The instant {instant} is pending, and no marker of it names the file it wrote."
            proof = (f"marked files: {len(marked)}", f"stored: {file.size} bytes")
            found.append(damage("unmarked-data-file", instant, file.path, message, proof))
    return found


def judge_pending(table: TableAtRest) -> list[TableFinding]:
    """Instants that are not completed, and what a rollback would delete of them."""
    found: list[TableFinding] = []
    for instant, entries in sorted(table.instants.unfinished.items()):
        entry = next((each for each in entries if each.state == "inflight"), entries[0])
        found += _compaction(table, entries)
        if entry.action in UNDOING:
            found.append(_rollback(table, entry, entries))
            continue
        if entry.state != "inflight" and entry.action in _SERVICES and instant not in table.files:
            continue  # A table service that waits for its turn.
        level, why = _level(table, entry)
        marked = table.targets(instant)
        undone = [path for path in marked if path in table.stored]
        left = sorted({file.path for file in table.files.get(instant, ())} - set(marked))
        lines = [f"would undo {path}" for path in undone[:_SHOWN]] + [f"would leave {path}" for path in left[:_SHOWN]]
        message = f"The {entry.action} {instant} is {entry.state} and not completed; {why}."
        undoing = [e.instant for e in table.instants.saying("rolled-back").get(instant, ()) if e.done]
        if undoing:
            message += f" The rollback {undoing[-1]} of it is completed, and left it on the timeline."
        if entry.action != "clean":
            message += f" Of its stored files a rollback by its markers would undo {len(undone)} and leave {len(left)}."
        found.append(_finding("pending-instant", level, entry, message, lines))
    return found


def _compaction(table: TableAtRest, entries: list[TableEntry]) -> Iterable[TableFinding]:
    """A pending compaction whose base files are not there; one that a commit names is missing, which is said of it."""
    for entry in entries:
        lost = [
            path
            for path in entry.of("needs")
            if path not in table.stored and path not in table.instants.claims
            if (file := parse_table_file(path)) is not None and file.instant in table.settled
        ]
        if lost:
            message = f"The {entry.action} {entry.instant} reads {len(lost)} base files that are not there."
            yield _finding("compaction-input-missing", Level.DAMAGE, entry, message, lost[:_SHOWN])


def _level(table: TableAtRest, entry: TableEntry) -> tuple[Level, str]:
    """The level of a pending instant, and the reason for it."""
    instant, now_s, stuck_after_s = entry.instant, table.now_s, table.stuck_after_s
    beat = table.heartbeats.get(instant)
    if beat is not None and now_s - beat.modified_s < min(_HEARTBEAT_LIVE_S, stuck_after_s):
        return Level.NOTE, "its heartbeat is fresh"
    idle_s = table.idle_s(instant)
    idle = _span(idle_s)
    if idle_s >= stuck_after_s:
        return Level.DAMAGE, f"nothing of it has changed for {idle}"
    last = max(table.instants.committed, default="")
    if entry.action in WRITES and last > instant and beat is None:
        return Level.UNDECIDED, f"it last changed {idle} ago, has no heartbeat, and {last} was committed after it"
    return Level.NOTE, f"it last changed {idle} ago, so its writer may be at work"


def _rollback(table: TableAtRest, entry: TableEntry, entries: list[TableEntry]) -> TableFinding:
    aims = sorted({target for each in entries for target in each.of("rolled-back")})
    there = [path for each in entries for path in each.of("will-delete") if path in table.stored]
    idle_s = table.idle_s(entry.instant)
    level = Level.DAMAGE if idle_s >= table.stuck_after_s else Level.NOTE
    message = (
        f"The {entry.action} {entry.instant}{' of ' + ', '.join(aims) if aims else ''} is {entry.state}; it last"
        f" changed {_span(idle_s)} ago, and {len(there)} files of its plan are still there."
    )
    return _finding("unfinished-rollback", level, entry, message, there[:_SHOWN])


def _finding(kind: str, level: Level, action: TableEntry, message: str, evidence: Iterable[str] = ()) -> TableFinding:
    return TableFinding(
        kind=kind,
        level=level,
        instant=action.instant,
        path=action.path,
        message=message,
        evidence=(f"{action.state} {action.action}, {action.size} bytes", *evidence),
    )


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def judge_directory(table: TableAtRest, directory: MarkerDirectoryContent) -> list[TableFinding]:
    """Everything about one marker directory."""
    found = _leftover(table, directory)
    batched = {name: content for name, content in directory.batches.items() if marker_file_index(name) is not None}
    kind = directory.batches.get(TYPE_FILE)
    if batched and (kind is None or kind.strip() != TYPE_BATCHED):
        said = "is missing" if kind is None else "is empty" if not kind else f"says {kind[:40]!r}"
        message = f"{len(batched)} batched marker files are there and MARKERS.type {said}."
        path = f"{directory.path}/{TYPE_FILE}"
        finding = damage("no-type-file", directory.instant, path, message, sorted(batched)[:_LINES_SHOWN])
        direct = any(is_marker_name(name) for name in directory.files)
        found.append(replace(finding, advice=_BOTH_KINDS if direct else ""))
    for name in sorted(batched):
        found += _judge_batch(directory, name, batched[name])
    return found


def _leftover(table: TableAtRest, directory: MarkerDirectoryContent) -> list[TableFinding]:
    instants, instant = table.instants, directory.instant
    if instant in instants.unfinished or not instant.isdigit():
        return []
    action = instants.ended(instant)
    if action is None:
        said, since = "is not on the timeline", max((f.modified_s for f in directory.files.values()), default=0.0)
    else:
        own = action.instant == instant
        said, since = f"{action.action} completed" if own else f"was rolled back by {action.instant}", action.modified_s
    fresh = table.now_s - since < FRESH_S
    level = Level.UNDECIDED if fresh else Level.DAMAGE
    also = "; that was less than a minute ago, so its writer may be deleting it" if fresh else ""
    message = f"The instant {instant} {said}, and its marker directory is still there{also}."
    proof = (f"{len(directory.files)} files", *sorted(directory.files)[:_LINES_SHOWN])
    kind, path = "leftover-marker-directory", directory.path
    return [TableFinding(kind=kind, level=level, instant=instant, path=path, message=message, evidence=proof)]


def _judge_batch(directory: MarkerDirectoryContent, name: str, content: bytes) -> list[TableFinding]:
    def wrong(message: str, *lines: str, kind: str = "marker-file-unreadable") -> TableFinding:
        return damage(kind, directory.instant, f"{directory.path}/{name}", message, lines[:_LINES_SHOWN])

    if not content:
        return [wrong("The marker file is empty.")]
    try:
        *lines, rest = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        return [wrong(f"It is no UTF-8 from byte {error.start} on.")]
    found = []
    if rest:
        found.append(wrong("Its last line has no end: the write of the file was cut off.", rest[:200]))
    glued = [line for line in (*lines, rest) if _GLUED.search(line)]
    if glued:
        commas = " joined by commas" if all("," in line for line in glued) else ""
        message = f"Lines with more than one marker name{commas}: {len(glued)}."
        found.append(wrong(message, *(line[:300] for line in glued), kind="glued-marker-names"))
    refused = [reason for line in lines if not _GLUED.search(line) and (reason := _refusal(line))]
    if refused:
        found.append(wrong(f"Lines that are no marker names: {len(refused)}.", *refused))
    return found


def _refusal(line: str) -> str:
    try:
        check_marker_name(line)
    except ValueError as error:
        return f"{line[:100]!r}: {error}"
    return ""

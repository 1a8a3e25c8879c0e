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
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from marker_sim.names import TYPE_BATCHED, TYPE_FILE, check_marker_name, marker_file_index
from marker_sim.tables.audit.claims import AuditedInstants
from marker_sim.tables.audit.findings import Level, TableFinding, damage
from marker_sim.tables.entries import TableEntry
from marker_sim.tables.parts import MarkerDirectoryContent
from marker_sim.tables.sources import StoredFile
from marker_sim.timeline import UNDOING, WRITES, parse_table_file

_HEARTBEAT_LIVE_S = 300.0
_SERVICES = frozenset({"compaction", "logcompaction", "clustering", "clean", "indexing", "replacecommit"})
_SHOWN = 20
_LINES_SHOWN = 5
FRESH_S = 60.0
_GLUED = re.compile(r"\.marker\.(?:CREATE|MERGE|APPEND)(?!\Z)")


class PendingEvidence(NamedTuple):
    """The files, markers and heartbeats stored for pending instants.

    files: data files that no commit names, by instant; markers: directories by instant; heartbeats: files by instant.
    stored: sizes of those files by path that markers or plans of pending instants name.
    """

    files: Mapping[str, list[StoredFile]]
    markers: Mapping[str, MarkerDirectoryContent]
    heartbeats: Mapping[str, StoredFile]
    stored: Mapping[str, int]


def wanted_of(instants: AuditedInstants, markers: Mapping[str, MarkerDirectoryContent]) -> frozenset[str]:
    """The files that markers and plans of pending instants name."""
    names = {
        path for actions in instants.unfinished.values() for action in actions for path in action.of("will-delete")
    }
    for instant, directory in markers.items():
        if instant in instants.unfinished:
            names.update(directory.targets)
    return frozenset(names)


def judge_entries(instants: AuditedInstants) -> list[TableFinding]:
    """Entries that are empty or cannot be read. An archived one without content is no damage of the table's files."""
    found = []
    for action in instants.entries:
        needless = action.state != "completed" and action.instant not in instants.unfinished
        if not action.error or action.archived or needless:
            continue
        if action.state == "completed" and action.size == 0:
            found.append(
                _finding("empty-completed-instant", Level.DAMAGE, action, f"The completed {action.action} is empty.")
            )
        else:
            message = f"The {action.state} {action.action} cannot be read: {action.error}."
            found.append(_finding("unreadable-instant", Level.DAMAGE, action, message))
    if instants.archive_error:
        found.append(
            TableFinding(
                kind="unreadable-archive",
                level=Level.UNDECIDED,
                message=f"A part of the archived timeline cannot be read: {instants.archive_error}.",
            )
        )
    return found


def judge_unmarked(instants: AuditedInstants, evidence: PendingEvidence) -> list[TableFinding]:
    """Files of pending writes that no marker names; the markers were listed after the files.

    A marker is durable before its data file is made. Log files of layout 1 are left out: old releases mark them by
    other names.
    """
    found = []
    over = {target for each in instants.unfinished.values() for action in each for target in action.of("rolled-back")}
    for instant, files in sorted(evidence.files.items()):
        directory = evidence.markers.get(instant)
        marked = set(directory.targets) if directory is not None else set()
        for file in files:
            name = parse_table_file(file.path)
            if instant in over or file.path in marked or name is None or (name.log and instants.layout == 1):
                continue
            message = f"The instant {instant} is pending, and no marker of it names the file it wrote."
            proof = (f"marked files: {len(marked)}", f"stored: {file.size} bytes")
            found.append(damage("unmarked-data-file", instant, file.path, message, proof))
    return found


def judge_pending(
    instants: AuditedInstants, evidence: PendingEvidence, now_s: float, stuck_after_s: float
) -> list[TableFinding]:
    """Instants that are not completed, and what a rollback would delete of them."""
    found = []
    for instant, actions in sorted(instants.unfinished.items()):
        states = {action.state for action in actions}
        action = next((a for a in actions if a.state == "inflight"), actions[0])
        idle_s = now_s - _last_activity(instant, actions, evidence)
        if action.action in UNDOING:
            found.append(_rollback(instants, action, actions, evidence, idle_s, stuck_after_s))
            continue
        if "inflight" not in states and action.action in _SERVICES and action.instant not in evidence.files:
            continue  # A table service that waits for its turn.
        level, why = _level(instants, instant, action, evidence, idle_s, now_s, stuck_after_s)
        lost, left, lines = _of_rollback(instant, evidence)
        message = f"The {action.action} {instant} is {action.state} and not completed; {why}."
        if action.action != "clean":
            message += f" Of its stored files a rollback by its markers would undo {lost} and leave {left}."
        found.append(_finding("pending-instant", level, action, message, lines))
    return found


def _level(
    instants: AuditedInstants, instant: str, action: TableEntry, evidence: PendingEvidence, idle_s: float, now_s: float,
    stuck_after_s: float,
) -> tuple[Level, str]:  # fmt: skip
    beat = evidence.heartbeats.get(instant)
    if beat is not None and now_s - beat.modified_s < min(_HEARTBEAT_LIVE_S, stuck_after_s):
        return Level.NOTE, "its heartbeat is fresh"
    idle = _span(idle_s)
    if idle_s >= stuck_after_s:
        return Level.DAMAGE, f"nothing of it has changed for {idle}"
    later = [key for key in instants.committed if key > instant]
    if action.action in WRITES and later and beat is None:
        return Level.UNDECIDED, f"it last changed {idle} ago, has no heartbeat, and {max(later)} was committed after it"
    return Level.NOTE, f"it last changed {idle} ago, so its writer may be at work"


def _rollback(
    instants: AuditedInstants, action: TableEntry, actions: list[TableEntry], evidence: PendingEvidence,
    idle_s: float, stuck_after_s: float,
) -> TableFinding:  # fmt: skip
    aims = sorted({target for each in actions for target in each.of("rolled-back")})
    there = [path for each in actions for path in each.of("will-delete") if path in evidence.stored]
    level = Level.DAMAGE if idle_s >= stuck_after_s else Level.NOTE
    message = (
        f"The {action.action} {action.instant}{' of ' + ', '.join(aims) if aims else ''} is {action.state}; it last"
        f" changed {_span(idle_s)} ago, and {len(there)} files of its plan are still there."
    )
    return _finding("unfinished-rollback", level, action, message, there[:_SHOWN])


def _of_rollback(instant: str, evidence: PendingEvidence) -> tuple[int, int, list[str]]:
    """The numbers of stored files that a rollback by markers would delete and leave, and some of them as lines."""
    directory = evidence.markers.get(instant)
    marked = directory.targets if directory is not None else []
    there = [path for path in marked if path in evidence.stored]
    own = {file.path for file in evidence.files.get(instant, ())}
    left = sorted(own - set(marked))
    lines = [f"would undo {path}" for path in there[:_SHOWN]] + [f"would leave {path}" for path in left[:_SHOWN]]
    return len(there), len(left), lines


def _last_activity(instant: str, actions: Iterable[TableEntry], evidence: PendingEvidence) -> float:
    times = [action.modified_s for action in actions]
    times += [file.modified_s for file in evidence.files.get(instant, ())]
    if instant in evidence.markers:
        times += [file.modified_s for file in evidence.markers[instant].files.values()]
    if instant in evidence.heartbeats:
        times.append(evidence.heartbeats[instant].modified_s)
    return max(times, default=0.0)


def _finding(kind: str, level: Level, action: TableEntry, message: str, evidence: Iterable[str] = ()) -> TableFinding:
    return TableFinding(
        kind=kind, level=level, instant=action.instant, path=action.path, message=message,
        evidence=(f"{action.state} {action.action}, {action.size} bytes", *evidence),
    )  # fmt: skip


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def judge_directory(directory: MarkerDirectoryContent, instants: AuditedInstants, now_s: float) -> list[TableFinding]:
    """Everything about one marker directory."""
    found = list(_leftover(directory, instants, now_s))
    batched = {name: content for name, content in directory.batches.items() if marker_file_index(name) is not None}
    kind = directory.batches.get(TYPE_FILE)
    if batched and (kind is None or kind.strip() != TYPE_BATCHED):
        said = "is missing" if kind is None else "is empty" if not kind else f"says {kind[:40]!r}"
        message = f"{len(batched)} batched marker files are there and MARKERS.type {said}."
        path = f"{directory.path}/{TYPE_FILE}"
        found.append(damage("no-type-file", directory.instant, path, message, sorted(batched)[:_LINES_SHOWN]))
    for name in sorted(batched):
        found += _judge_batch(directory, name, batched[name])
    return found


def _leftover(directory: MarkerDirectoryContent, instants: AuditedInstants, now_s: float) -> list[TableFinding]:
    instant = directory.instant
    if instant in instants.unfinished or not instant.isdigit():
        return []
    if instant in instants.completed:
        action = instants.completed[instant][0]
        said, since = f"{action.action} completed", action.modified_s
    elif instant in instants.rolled_back:
        action = instants.rolled_back[instant]
        said, since = f"was rolled back by {action.instant}", action.modified_s
    else:
        said, since = "is not on the timeline", max((f.modified_s for f in directory.files.values()), default=0.0)
    fresh = now_s - since < FRESH_S
    level = Level.UNDECIDED if fresh else Level.DAMAGE
    also = "; that was less than a minute ago, so its writer may be deleting it" if fresh else ""
    message = f"The instant {instant} {said}, and its marker directory is still there{also}."
    proof = (f"{len(directory.files)} files", *sorted(directory.files)[:_LINES_SHOWN])
    kind, path = "leftover-marker-directory", directory.path
    return [TableFinding(kind=kind, level=level, instant=instant, path=path, message=message, evidence=proof)]


def _judge_batch(directory: MarkerDirectoryContent, name: str, content: bytes) -> list[TableFinding]:
    instant, path = directory.instant, f"{directory.path}/{name}"
    if not content:
        return [damage("marker-file-unreadable", instant, path, "The marker file is empty.", ())]
    found = []
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return [damage("marker-file-unreadable", instant, path, f"It is no UTF-8 from byte {error.start} on.", ())]
    *lines, rest = text.split("\n")
    if rest:
        message = "Its last line has no end: the write of the file was cut off."
        found.append(damage("marker-file-unreadable", instant, path, message, [rest[:200]]))
    glued = [line for line in (*lines, rest) if _GLUED.search(line)]
    if glued:
        commas = " joined by commas" if all("," in line for line in glued) else ""
        message = f"Lines with more than one marker name{commas}: {len(glued)}."
        found.append(
            damage("glued-marker-names", instant, path, message, [line[:300] for line in glued[:_LINES_SHOWN]])
        )
    wrong = [reason for line in lines if not _GLUED.search(line) and (reason := _refusal(line))]
    if wrong:
        message = f"Lines that are no marker names: {len(wrong)}."
        found.append(damage("marker-file-unreadable", instant, path, message, wrong[:_LINES_SHOWN]))
    return found


def _refusal(line: str) -> str:
    try:
        check_marker_name(line)
    except ValueError as error:
        return f"{line[:100]!r}: {error}"
    return ""

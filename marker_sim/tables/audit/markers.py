"""Rules about marker directories: whether they should be there, and whether a rollback could read them. Pure.

Hudi deletes a marker directory once its instant is completed or rolled back. Batched markers are read by the strictest
release: each line of MARKERS<n> ends in a newline and is one marker name, MARKERS.type says TIMELINE_SERVER_BASED.
Without that file a rollback treats the directory as one of direct markers, finds none and deletes nothing.
"""

from __future__ import annotations

import re

from marker_sim.names import TYPE_BATCHED, TYPE_FILE, check_marker_name, marker_file_index
from marker_sim.tables.audit.claims import AuditedInstants
from marker_sim.tables.audit.findings import Level, TableFinding, damage
from marker_sim.tables.parts import MarkerDirectoryContent

FRESH_S = 60.0
_SHOWN = 5
_GLUED = re.compile(r"\.marker\.(?:CREATE|MERGE|APPEND)(?!\Z)")


def judge_directory(directory: MarkerDirectoryContent, instants: AuditedInstants, now_s: float) -> list[TableFinding]:
    """Everything about one marker directory."""
    found = list(_leftover(directory, instants, now_s))
    batched = {name: content for name, content in directory.batches.items() if marker_file_index(name) is not None}
    kind = directory.batches.get(TYPE_FILE)
    if batched and (kind is None or kind.strip() != TYPE_BATCHED):
        said = "is missing" if kind is None else "is empty" if not kind else f"says {kind[:40]!r}"
        message = f"{len(batched)} batched marker files are there and MARKERS.type {said}."
        path = f"{directory.path}/{TYPE_FILE}"
        found.append(damage("no-type-file", directory.instant, path, message, sorted(batched)[:_SHOWN]))
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
    proof = (f"{len(directory.files)} files", *sorted(directory.files)[:_SHOWN])
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
        found.append(damage("glued-marker-names", instant, path, message, [line[:300] for line in glued[:_SHOWN]]))
    wrong = [reason for line in lines if not _GLUED.search(line) and (reason := _refusal(line))]
    if wrong:
        message = f"Lines that are no marker names: {len(wrong)}."
        found.append(damage("marker-file-unreadable", instant, path, message, wrong[:_SHOWN]))
    return found


def _refusal(line: str) -> str:
    try:
        check_marker_name(line)
    except ValueError as error:
        return f"{line[:100]!r}: {error}"
    return ""

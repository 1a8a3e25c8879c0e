"""The content of storage and the answered names, for each moment of a picture.

Files come from storage effects where those were recorded, otherwise from the kit's own reads: then a file is known as
it was read last. Names are those with an answer to a client; judges know by intervals when each was stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from marker_sim.history import Event
from marker_sim.history.index.calls import Directory
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import directory_of, present
from marker_sim.names import TEMP, decode_names, marker_file_index
from marker_sim.report.words import clipped, printable

FILES_MAX = 300
NAMES_IN_FILE_MAX = 40
NAMES_MAX = 150
_PATH_MAX = 200
UNKNOWN = -1
_AUDITED = ("entry", "data-file", "marker-file")


def stored_files(index: HistoryIndex, shown: Sequence[int]) -> dict[str, Any]:
    """The files that the shown events change, with all their states.

    paths and names: by number.
    states: [moment, path, content]. The content is None for gone, else [bytes, or None for unknown; names, or None
        where the file holds none; how many; whether it is being written in place].
    others: [moment, files that are not distinguished].
    """
    effects = index.header.witness == "effects"
    kept = set(shown)
    tracked = _tracked(index.events, shown, effects)
    names: dict[str, int] = {}
    states: list[list[Any]] = []
    before: dict[str, Any] = {}
    waiting: dict[str, tuple[bytes | int | None, bool]] = {}
    present: set[str] = set()
    others: list[list[int]] = []
    audit: set[str] = set()
    for event in index.events:
        if event.index in kept and waiting:
            for path, (content, writing) in waiting.items():
                _state(states, before, names, event.index - 1, tracked[path], path, content, writing)
            waiting.clear()
        for path, content, writing in _changes(event, effects, audit, before):
            if path in tracked:
                if event.index in kept:
                    _state(states, before, names, event.index, tracked[path], path, content, writing)
                else:
                    waiting[path] = (content, writing)
            elif content is None:
                present.discard(path)
            else:
                present.add(path)
        if event.index in kept and (not others or others[-1][1] != len(present)):
            others.append([event.index, len(present)])
    return {
        "paths": [clipped(path, _PATH_MAX) for path in tracked],
        "groups": [_group(path) for path in tracked],
        "states": states,
        "names": list(names),
        "others": others if len(others) > 1 or (others and others[0][1]) else [],
    }


def _tracked(events: Sequence[Event], shown: Sequence[int], effects: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for number in shown:
        for path, _, _ in _changes(events[number], effects, set(), {}):
            if len(found) < FILES_MAX:
                found.setdefault(path, len(found))
    return found


def _changes(
    event: Event, effects: bool, audit: set[str], before: dict[str, Any]
) -> list[tuple[str, bytes | int | None, bool]]:
    """The files that an event shows changed: path, content or size (None: removed), whether it is being written."""
    path, value, operation = event.path, event.value, event.operation
    if event.kind == "effect" and path is not None:
        content = value if isinstance(value, bytes) else None
        return [(path, content, operation in ("overwrite-begin", "overwrite-piece"))]
    if event.kind != "observe":
        return []
    if operation == "file" and path is not None and not effects:
        return [(path, value if isinstance(value, bytes) else None, False)]
    if operation == "audit" and value == "begin":
        audit.clear()
    elif operation in _AUDITED and path is not None:
        whole = path if path.startswith(f"{event.table}/") else f"{event.table}/{path}"
        audit.add(whole)
        return [(whole, value if isinstance(value, int) else UNKNOWN, False)]
    elif operation == "audit" and value == "end":
        gone = [known for known in before if known not in audit and known.startswith(f"{event.table}/")]
        return [(known, None, False) for known in gone if before[known] is not None]
    return []


def _state(
    states: list[list[Any]],
    before: dict[str, Any],
    names: dict[str, int],
    moment: int,
    number: int,
    path: str,
    content: bytes | int | None,
    writing: bool,
) -> None:
    """Add a state if it differs from the previous one."""
    told: list[Any] | None = None
    if content is not None:
        size = len(content) if isinstance(content, bytes) else None if content == UNKNOWN else content
        held: list[str] | None = None
        if (
            isinstance(content, bytes)
            and _group(path) == "marker"
            and marker_file_index(path.rpartition("/")[2]) is not None
        ):
            held = list(decode_names(content))
        ids = (
            None
            if held is None
            else [names.setdefault(clipped(name, _PATH_MAX), len(names)) for name in held[:NAMES_IN_FILE_MAX]]
        )
        told = [size, ids, len(held or ()), writing]
    if path not in before or before[path] != told:
        states.append([moment, number, told])
    before[path] = told


def _group(path: str) -> str:
    """The type of a file in Hudi: file of a marker directory, timeline entry, or data file."""
    if directory_of(path) is not None:
        return "marker"
    return "timeline" if "/.hoodie/" in path else "data"


def answered_names(
    index: HistoryIndex, shown: Sequence[int], concerned: Sequence[int], evidence: Sequence[int]
) -> list[dict[str, Any]]:
    """The markers of the given invocations and answers, those of the evidence first.

    Only data that decides for a shown moment is kept. answers: [moment, answer]. deleted: when deletion of the
    directory was requested. stored: [from, to, from, to, ...]. seen: when storage was read, empty where every effect is
    known.
    """
    proofs = set(evidence)
    places: dict[tuple[str, str], bool] = {}
    for number in sorted(concerned, key=lambda one: (one not in proofs, one)):
        event = index.events[number]
        if event.operation == "create" and event.path is not None:
            places.setdefault((f"{event.table}{TEMP}{event.instant}", event.path), number in proofs)
    chosen = dict(list(places.items())[:NAMES_MAX])
    answers: dict[tuple[str, str], list[tuple[int, str]]] = {place: [] for place in chosen}
    for directory in sorted({path for path, _ in chosen}):
        calls = index.directories.get(directory, Directory(directory)).answers
        for call in calls:
            if (directory, call.name) in answers:
                answers[directory, call.name].append((call.done, printable(str(call.value))))
    found = []
    for (directory, name), proof in chosen.items():
        home = index.rest.homes.get(directory)
        known = index.directories.get(directory)
        seen = [] if home is None else _deciding(home.seen, shown)
        said = dict(answers[directory, name])
        found.append(
            {
                "directory": clipped(directory, _PATH_MAX),
                "name": clipped(name, _PATH_MAX),
                "proof": proof,
                "answers": [[at, said[at]] for at in _deciding(sorted(said), shown)],
                "deleted": [] if known is None else _deciding([d.invoke for d in known.deletions], shown),
                "stored": [] if home is None else _changes_of(home.spans.get(name), seen if index.reads else shown),
                "seen": seen,
            }
        )
    return found


def _deciding(moments: Sequence[int], shown: Sequence[int]) -> list[int]:
    """Of sorted moments, those that are the last one up to a shown event."""
    last = (bisect_right(moments, number) - 1 for number in shown)
    return [moments[at] for at in dict.fromkeys(last) if at >= 0]


def _changes_of(span: list[int] | None, moments: Sequence[int]) -> list[int]:
    """The given moments at which a name changes between stored and not stored."""
    held, found = False, []
    for moment in moments:
        if (present(span, moment) is not None) != held:
            held = not held
            found.append(moment)
    return found

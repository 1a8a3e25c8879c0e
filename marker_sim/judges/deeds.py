"""What an event did, in words: who, to which file, and during which call or step. The end of a breach's sentence.

An event that only shows a state, such as a reading of storage, did nothing and has no words.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.faults import FaultKind
from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import directory_of
from marker_sim.names import TEMP, legible

_TIMELINE = TEMP.removesuffix(".temp/")
_KIT = "another program (the kit)"
_FAULTS = {
    "kill": "{0} was killed at {1}",
    "torn-write": "{0} was killed at {1}, in the middle of a write",
    "orphaned-request": "{0} died at {1}, with a request to storage under way",
    "power-loss": "{0} lost power at {1}, and with it what it had not synced",
    "pause": "{0} was paused at {1}",
    "overload": "{0} became slow at {1}",
    "second-server": "a second server, {0}, started at {1}",
    "zombie": "the driver gave up an attempt of {0} at {1}, which went on later",
    "directory-removed": "another program removed the directory at {1}",
    "damage": "the type file was damaged at {1}",
}
_OF_FAMILY = {
    "storage": "{2} in a storage call of {0} at {1}",
    "wire": "{2} of a request of {0} at {1}",
    "proxy": "{2} on connections of {0} at {1}",
}
_FAMILIES = {kind.value: kind.row.family for kind in FaultKind}


def told(view: HistoryIndex, named: Iterable[int], fault: int | None) -> str:
    """What events did, in their order, and the fault under which they did it: the end of a sentence."""
    found = sorted({index for index in named if 0 <= index < view.end})
    clauses = [words for index in found if (words := _words(view, view.events[index]))]
    under = "" if fault is None or fault in found else _words(view, view.events[fault])
    return "".join(f"; {clause}" for clause in clauses) + (f" (fault: {under})" if under else "")


def _words(view: HistoryIndex, event: Event) -> str:
    at, path = f"event {event.index}", event.path or ""
    if event.kind == "fault":
        words = _FAULTS.get(event.operation) or _OF_FAMILY.get(_FAMILIES.get(event.operation, ""), "{2} of {0} at {1}")
        return words.format(event.process, at, event.operation)
    if event.kind == "effect" and (directory_of(path) is not None or _TIMELINE not in path):
        who = _KIT if event.process == "kit" else event.process
        return f"{who} {_did(view, event)} at {at}{_during(view, event)}"
    if event.kind == "observe" and event.operation == "started":
        return f"{event.process} started at {at}"
    asked = event.kind == "invoke" and event.operation == "delete"
    return f"{event.process} asked for the deletion at {at}{_during(view, event)}" if asked else ""


def _did(view: HistoryIndex, event: Event) -> str:
    path = event.path or ""
    file = legible(path.rpartition("/")[2])
    if event.value is None:
        return f"removed {file}"
    home = view.rest.homes.get(directory_of(path) or "")
    lost = sum(event.index in life[1::2] for life in home.spans.values()) if home else 0
    without = f" without {lost} of its names" if lost else ""
    return f"wrote {file}{without}{'' if event.operation == 'put' else ' in place'}"


def _during(view: HistoryIndex, event: Event) -> str:
    """The call or step in which a process did something: the deletion, else the step of a driver, else an attempt."""
    index, process = event.index, event.process
    home = directory_of(event.path or "") if event.kind == "effect" else f"{event.table}{TEMP}{event.instant}"
    if event.kind == "effect" and event.value is None:
        for directory in view.directories.values():
            for call in directory.deletes:
                if call.invoke < index < call.done and view.served_by(call) == process:
                    own = directory.path == home
                    which = "that directory" if own else f"another directory, {directory.path}"
                    return f", during the deletion of {which} (event {call.invoke})"
    if not view.steps:
        return ""
    step = view.writes.acting(process, index)
    attempts = (each for each in view.writes.of("attempt") if each.process == process and each.surrounds(index))
    step = next(attempts, None) if step is None else step
    if step is None:
        return ""
    of = "its attempt" if step.operation == "attempt" else f"the {step.operation} of {step.table}/{step.instant}"
    return f", during {of} (event {step.invoke})"

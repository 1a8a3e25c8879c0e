"""What a breach says, checked against the events of its history by a fold of its own, which no judge uses.

`untrue(history, breach)` names each claim that the history does not bear out: events that are named and not shown as
evidence, markers said never to have been stored that an effect stored, kills that were none, and causes without what
they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from marker_sim.faults import FAULT_CLASS
from marker_sim.history import Event, History
from marker_sim.judges import Breach
from marker_sim.names import data_path, legible

WORD_MAX = 240
_EVENT = re.compile(r"\b(?:events?|at) (\d+)\b(?! (?:ms|s)\b)")
_STORED = re.compile(r"(?<!gone )(?<!not )\bstored at event (\d+)")
_GONE = re.compile(r"(?:gone from|no longer stored from|removed at) event (\d+)")
_KILLED = re.compile(r"was killed at event (\d+)")
_SILENT = re.compile(r"(\S+) answered nothing (?:after event (\d+)|since its start)")
_LISTED = re.compile(r"markers were listed at event (\d+)")
_DID = re.compile(
    r"; ([^;]+?) (removed|wrote) (\S+)(?: in place)?(?: without (?:this name(?: and \d+ more)?|\d+ of its names))?"
    r" at event (\d+)"
)
_IN_CALL = re.compile(r"(\S+) removed \S+ at event (\d+), during the deletion of .+? \(event (\d+)\)")
_FAULT = re.compile(r"\(fault: .*? at event (\d+)")
_HARM = re.compile(r"(?:no longer stored in .*? from|, answered at) event (\d+)")
_FILES = re.compile(r"MARKERS\d+$")
_NEVER = ("nor at any other time", "at no time")
_FAULTS = {"put-failed": "storage", "exists-after-failed-flush": "storage", "after-failed-flush": "storage"}


def holds(event: Event, directory: str, name: str) -> bool | None:
    """Whether a file in a marker directory holds a name after an effect or a read; None for any other event."""
    if event.path is None or not event.path.startswith(f"{directory}/"):
        return None
    if event.path == f"{directory}/{name}":
        return event.value is not None
    if not _FILES.match(event.path[len(directory) + 1 :]):
        return None
    content = event.value if isinstance(event.value, bytes) else b""
    return name.encode("utf-8", "surrogateescape") in content.split(b"\n")[:-1]


def life(history: History, directory: str, name: str) -> Iterator[tuple[int, str]]:
    """When a name came to storage and when it went, by the first file that held it and the last that did."""
    files: set[str] = set()
    for event in history.events:
        if event.kind != "effect" and event.operation not in ("file", "raw-file"):
            continue
        held = holds(event, directory, name)
        if held and event.path not in files:
            files.add(str(event.path))
            if len(files) == 1:
                yield event.index, "stored"
        elif held is False and event.path in files:
            files.discard(str(event.path))
            if not files:
                yield event.index, "gone"


def create_of(history: History, breach: Breach) -> tuple[str, str] | None:
    """The marker directory and the name of the create that a breach is about: the first one among its evidence."""
    calls = (history.events[index] for index in breach.evidence)
    create = next((e for e in calls if e.kind == "invoke" and e.operation == "create"), None)
    return (f"{create.table}/.hoodie/.temp/{create.instant}", create.path or "") if create else None


def _begin_of_rewrite(history: History, end: int) -> int:
    """Where the rewrite in place began that an event ends: its file is judged at rest, so what it took is gone then."""
    last = history.events[end]
    begins = (e for e in history.events[:end] if e.path == last.path and e.operation == "overwrite-begin")
    return max((e.index for e in begins), default=end) if last.operation.startswith("overwrite") else end


def untrue(history: History, breach: Breach) -> list[str]:
    """What a breach claims and its history does not show; empty when all of it stands."""
    message, events = breach.message, history.events
    wrong = [f"event {n} is not evidence" for n in map(int, _EVENT.findall(message)) if n not in breach.evidence]
    wrong += ["a word of more than a line"] * any(len(word) > WORD_MAX for word in message.split())
    for number in map(int, _KILLED.findall(message)):
        if events[number].kind != "fault" or events[number].operation not in ("kill", "torn-write"):
            wrong.append(f"no server was killed at event {number}")
    wrong += _of_others(events, breach)
    about = create_of(history, breach)
    lives = list(life(history, *about)) if about else []
    if any(word in message for word in _NEVER) and lives:
        wrong.append(f"it was stored: {lives}")
    effects = history.header.witness == "effects" and history.header.layout == "hudi"
    told = message.partition("; event ")[0]  # What comes after it is about another name.
    if about and effects and any(legible(repr(name)) in told for name in (about[1], data_path(about[1]))):
        moved = dict(lives)
        for n in map(int, _STORED.findall(message)):
            if moved.get(n) != "stored":
                wrong.append(f"event {n} did not store it: {lives}")
        for n in map(int, _GONE.findall(message)):
            if "gone" not in (moved.get(n), moved.get(_begin_of_rewrite(history, n))):
                wrong.append(f"event {n} did not remove it: {lives}")
    return wrong + list(_cause(history, breach, about))


def _of_others(events: Sequence[Event], breach: Breach) -> Iterator[str]:
    """What is said of servers and listings and did not happen."""
    arrived = {event.caused_by: event.process for event in events if event.operation == "arrived"}
    for process, since in _SILENT.findall(breach.message):
        later = (e for e in events[: max(breach.evidence)] if e.kind == "ok" and e.index > int(since or 0))
        yield from (f"{process} answered at event {e.index}" for e in later if arrived.get(e.caused_by) == process)
    for listed in map(int, _LISTED.findall(breach.message)):
        ended = next((e.kind for e in events if e.caused_by == listed and e.kind in ("ok", "info", "fail")), "")
        if events[listed].kind == "invoke" and not ended:
            yield f"the listing of event {listed} never ended"
    for process, at, call in _IN_CALL.findall(breach.message):
        if arrived.get(int(call), events[int(call)].process) != process or not int(call) < int(at):
            yield f"the deletion of event {call} was asked of {arrived.get(int(call))}"
    for who, how, file, at in _DID.findall(breach.message):
        event = events[int(at)]
        own = event.kind == "effect" and who in (event.process, "another program (the kit)")
        if not own or (event.value is None) != (how == "removed") or not legible(event.path or "").endswith(file[-20:]):
            yield f"event {at} is not that {who} {how} {file}"
    for at in map(int, _FAULT.findall(breach.message)):
        if events[at].kind != "fault" and events[at].operation != "started":
            yield f"event {at} is no fault"
        if (harm := _HARM.search(breach.message)) and at > int(harm[1]):
            yield f"the fault of event {at} came after the harm of event {harm[1]}"


def _cause(history: History, breach: Breach, about: tuple[str, str] | None) -> Iterator[str]:
    """What the word for the cause stands for and the history up to the breach does not have."""
    before = [event for event in history.events if event.index <= max(breach.evidence, default=0)]
    faults = {event.operation for event in before if event.kind == "fault"}
    classes = {FAULT_CLASS.get(kind) for kind in faults}
    cause = breach.cause
    if cause in _FAULTS and _FAULTS[cause] not in classes:
        yield f"{cause} without a fault of storage"
    if cause == "lost-at-kill" and not faults & {"kill", "torn-write"}:
        yield "lost-at-kill without a kill"
    if cause == "after-deletion" and not any(e.operation == "delete" and e.kind == "invoke" for e in before):
        yield "after-deletion without a deletion"
    if cause == "another-server" and sum(e.operation in ("started", "second-server") for e in before) < 2:
        yield "another-server with only one"
    if cause == "file-cut" and not _cut(before, about[0] if about else ""):
        yield "file-cut, and no file was ever shorter or torn"
    if about and history.header.witness == "effects" and cause == "never-stored":
        stored = [at for at, how in life(history, *about) if how == "stored" and at <= max(breach.evidence)]
        answer = next((e.index for e in before if e.caused_by in breach.evidence and e.kind == "ok"), 0)
        if any(at < answer for at in stored):
            yield f"never-stored, and it was stored at {stored}"


def _cut(events: list[Event], directory: str) -> bool:
    """Whether a marker file of a directory became shorter, or does not end with its line."""
    known: dict[str, bytes] = {}
    for event in events:
        path = event.path or ""
        if not path.startswith(directory) or not _FILES.search(path) or not isinstance(event.value, bytes):
            continue
        before, now = known.get(path), event.value
        known[path] = now
        if not now.endswith(b"\n") or (before is not None and len(now) < len(before) and before.startswith(now)):
            return True
    return False

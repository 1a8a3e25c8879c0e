"""The evidence of a violation as steps: what each event means as a sentence, with its number and time behind.

A sentence is never cut. Changes of storage and faults have the words of the violation (judges/findings.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.findings import change_of, deed_of, harm_in, named_events, names_lost
from marker_sim.names import TEMP, decode_names, legible, marker_file_index
from marker_sim.report.words import printable

NAMES_SAID_MAX = 3
# What a client asks for, and what a process of the write path does: sentences have different verbs for the two.
_ASKED = {
    "create": "marker {name}",
    "hostile": "a hostile marker, {name}",
    "list": "the list of {directory}",
    "list-data": "the data files of {directory}",
    "list-log": "the log files of {directory}",
    "exists": "the existence of {directory}",
    "delete": "the deletion of {directory}",
}
_DONE = {
    "begin": "the opening of a write of {table}",
    "write": "a write of {table}",
    "attempt": "an attempt to write {name}",
    "rollback": "the rollback of {table}/{instant}",
    "sweep": "the removal of what {table}/{instant} left",
    "finalize": "the finalize of {table}/{instant}",
    "commit": "the commit of {table}/{instant}",
}
_VERBS = {
    True: {
        "invoke": "{who} asked for {what}{where}",
        "ok": "{who} was answered {answer} for {what}",
        "fail": "{who} got an error for {what}{why}",
        "info": "{who} did not learn what became of {what}{why}",
    },
    False: {
        "invoke": "{who} began {what}",
        "ok": "{who} ended {what}",
        "fail": "{who} failed in {what}{why}",
        "info": "what became of {what} by {who} is unknown{why}",
    },
}
_SEEN = {
    "started": "{who} started",
    "exited": "{who} exited{why}",
    "arrived": "a request reached {who}",
    "mode": "{who} chose {answer} markers",
    "phase": "the phase {answer} of the run began",
    "snapshot": "{who} had read the directory {path}{holds}{why}",
    "file": "{who} read {path}{holds}",
    "raw-file": "{who} read {path}{holds}",
    "rows": "{who} read the rows of {table}{holds}{why}",
    "entry": "{who} read the timeline entry {path}{why}",
    "data-file": "{who} saw the data file {path}",
    "marker-file": "{who} saw the marker file {path}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStep:
    """One event of the evidence.

    text: a sentence without its number. when: the time since the begin of the run, with its unit.
    harm: what it did to a file, if the violation names it as what did the harm; else "".
    """

    index: int
    text: str
    when: str
    harm: str


def steps_of(view: HistoryIndex, evidence: Sequence[int], message: str) -> tuple[EvidenceStep, ...]:
    """A step for each event of the evidence, in its order; message: the sentence of the violation.

    The harm is the change of storage, or the answer, of which the sentence says so. Where it does not, of the changes
    that it names, those did the harm that took names away; if none did, all.
    """
    events, harm = view.events, harm_in(message)
    changes = {n for n in named_events(message) if n < len(events) and events[n].kind == "effect"}
    harms = {n for n in changes if names_lost(view, events[n])} or changes
    if harm is not None and harm < len(events) and events[harm].kind in ("effect", "ok"):
        harms = {harm}
    return tuple(
        EvidenceStep(
            index=index,
            text=printable(sentence_of(view, events[index], message)),
            when=time_text(events[index].time_ns),
            harm=printable(_harm_of(view, events[index], message)) if index in harms else "",
        )
        for index in dict.fromkeys(evidence)
        if 0 <= index < len(events)
    )


def time_text(time_ns: int) -> str:
    """A time with its unit: milliseconds, and from 10 s on seconds."""
    return f"{time_ns / 1e9:.2f} s" if time_ns >= 10_000_000_000 else f"{time_ns / 1e6:.1f} ms"


def _harm_of(view: HistoryIndex, event: Event, message: str) -> str:
    return change_of(view, event, message) if event.kind == "effect" else f"answered {_answer(event)}"


def sentence_of(view: HistoryIndex, event: Event, message: str = "") -> str:
    """One event of any kind as a sentence, without its number; message: the sentence of the violation."""
    who = "the kit" if event.process == "kit" else event.process
    if event.kind in ("effect", "fault") and (deed := deed_of(view, event, message)):
        settings = f" ({event.error})" if event.error and f"({event.error})" not in deed else ""
        over = "the end of: " if event.kind == "fault" and event.value == "end" else ""
        return over + deed.replace(f" at event {event.index}", "", 1) + settings
    path = legible(event.path or "")
    if event.kind == "effect":
        return f"{who} {'removed' if event.value is None else 'wrote'} {path}"
    asked = event.operation in _ASKED
    form = _SEEN.get(event.operation, "{who}: {what}{holds}{why}") if event.kind == "observe" else ""
    directory = f"{event.table}{TEMP}{event.instant}"
    words = (
        (_ASKED if asked else _DONE)
        .get(event.operation, "{operation} {path}")
        .format(
            name=_name(view, event),
            directory=directory,
            table=event.table,
            instant=event.instant,
            operation=event.operation,
            path=path,
        )
    )
    return (form or _VERBS[asked][event.kind]).format(
        who=who,
        path=path,
        table=event.table,
        what=words.strip(),
        where={"create": f" in {directory}", "hostile": f" in {path}"}.get(event.operation, ""),
        answer=_answer(event),
        holds=_held(event),
        why=f": {event.error}" if event.error else "",
    )


def _name(view: HistoryIndex, event: Event) -> str:
    """The marker that a call names; a hostile request has it as its value, and the directory as its path."""
    if event.operation != "hostile":
        return legible(repr(event.path or ""))
    known = event.caused_by is not None and event.kind != "invoke" and event.caused_by < view.end
    name = view.events[event.caused_by or 0].value if known else event.value
    return legible(name if isinstance(name, str) and name[:1] in ("'", '"') else repr(name))


def _answer(event: Event) -> str:
    match event.value:
        case bool():
            return "yes" if event.value else "no"
        case tuple() as names:
            few = f": {', '.join(legible(repr(name)) for name in names)}" if 0 < len(names) <= NAMES_SAID_MAX else ""
            return f"{len(names):,} name{'' if len(names) == 1 else 's'}{few}"
        case None:
            return "an answer"
    return f'"{legible(str(event.value))}"' if event.kind == "ok" else str(event.value)


def _held(event: Event) -> str:
    """What a reader of the kit found, as the end of a sentence."""
    match event.value:
        case bytes() as content:
            if marker_file_index((event.path or "").rpartition("/")[2]) is None:
                return f": {len(content):,} bytes"
            count = len(decode_names(content))
            return f": {count:,} name{'' if count == 1 else 's'}"
        case tuple() as found:
            return f": {len(found):,}"
        case None:
            return ": it was not there" if event.operation.endswith("file") else ""
    return f": {event.value}"

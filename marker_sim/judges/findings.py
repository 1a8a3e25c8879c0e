"""The result of a judge: one finding for each guarantee, with the breaches that prove it. Data first, prose second.

A judge says what happened to what. By what is said here, of each event that the judge names: who, to which file, during
which call or step. An event that only shows a state, such as a reading of storage, did nothing and has no words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from marker_sim.faults import FaultKind
from marker_sim.faults.row import READS
from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import directory_of
from marker_sim.history.index.write_path import Key
from marker_sim.judges.causes import BEFORE_ITS_END, HARMLESS, Causes
from marker_sim.names import TEMP, checksum_file, legible

UNEXPLAINED = "unexplained"
IMPACT = "impact: "  # How a message begins that first says whom the breach harms, and when.
OUTCOMES = {"ok": "well", "fail": "without effect", "info": "with an unknown outcome"}
_NAMED = re.compile(r"\bevent (\d{1,18})\b")
_HARM = re.compile(
    r"(?:\b(?:gone|no longer stored in .*?) from|\ba reader at|, answered at|was answered (?:True|False) at"
    r"|^two requests were answered .*: event \d{1,18}(?: \(.*?\))? and)"
    r" event (\d{1,18})\b"
)
_ANSWER = re.compile(r"was answered .{6,9} at event (\d{1,18}) and is not stored")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_TIMELINE = TEMP.removesuffix(".temp/")
_KIT = "another program (the kit)"
_FAULTS = {
    "kill": "{0} was killed at {1}",
    "torn-write": "{0} was killed at {1}, in the middle of a write",
    "orphaned-request": "{0} died at {1}, with a request to storage under way",
    "power-loss": "{0} lost power at {1}, and with it what it had not synced",
    "restart": "{0} was restarted at {1}",
    "pause": "{0} was paused at {1}",
    "overload": "{0} became slow at {1}",
    "second-server": "a second server, {0}, started at {1}",
    "zombie": "the driver gave up an attempt of {0} at {1}, which went on later",
    "directory-removed": "another program removed the directory at {1}",
    "damage": "the type file was damaged at {1}",
}
_OF_FAMILY = {
    "storage": "{2} in a storage call of {0} at {1}{3}",
    "call": "{2} in {4} by {0} at {1}",
    "wire": "{2} of a request of {0} at {1}",
    "proxy": "{2} on connections of {0} at {1}",
}
_FAMILIES = {kind.value: kind.row.family for kind in FaultKind}


def by_number(guarantees: Iterable[str]) -> list[str]:
    """Ids of guarantees, each once, in the order of their numbers."""
    return sorted(set(guarantees), key=lambda guarantee: int(guarantee[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One proof that a guarantee was broken.

    evidence: indices of the events that prove it, ascending.
    under: the class of `faults.FAULT_CLASSES` that was active or, when none was, the most likely one before; "none"
        when the run had no fault until then.
    cause: one word that follows from the history alone (causes.py), never from the name of the system.
    """

    message: str
    evidence: tuple[int, ...]
    under: str
    cause: str = UNEXPLAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one judge for one history.

    judged: how many cases were decided; with 0 and no breach the history shows nothing about the guarantee.
    undecided: why the history cannot decide the guarantee as a whole, "" when it can; breaches count in any case.
    eligible: for flushed-before-ack, how many answers there were; `judged` of them were read in time.
    excused: by name, sorted, how often each excuse decided: without it there would be a breach or, where that cannot be
        known, one more case would be judged (docs/honesty.md has the names).
    """

    guarantee: str
    applicable: bool = True
    judged: int = 0
    breaches: tuple[Breach, ...] = ()
    undecided: str = ""
    eligible: int = 0
    excused: tuple[tuple[str, int], ...] = ()


Judge = Callable[[HistoryIndex], Finding]


class Inquiry:
    """What a judge finds in one history; the fields are those of its `Finding`."""

    def __init__(self, view: HistoryIndex) -> None:
        self.view = view
        self.applicable = True
        self.judged = 0
        self.eligible = 0
        self.undecided = ""
        self.breaches: list[Breach] = []

    @cached_property
    def causes(self) -> Causes:
        """The causes of breaches in this history."""
        return Causes(self.view)

    def breach(
        self,
        message: str,
        evidence: Iterable[int],
        directory: str | None = None,
        cause: str = UNEXPLAINED,
        also: Iterable[int | None] = (),
    ) -> None:
        """Add the breach that `breach_of` makes of this."""
        self.breaches.append(breach_of(self.view, message, evidence, directory, cause, also))

    def about(self, key: Key, message: str, *evidence: int, also: Iterable[int | None] = ()) -> None:
        """Add a breach about an instant, counted also under faults of its table and marker directory."""
        text = f"{'/'.join(filter(None, key))}: {message}"
        self.breach(text, evidence, f"{key[0]}{TEMP}{key[1]}", also=also)

    def sort(self, begin: int = 0) -> None:
        """Order the breaches, or the later ones from a number on, by their evidence."""
        self.breaches[begin:] = sorted(self.breaches[begin:], key=lambda breach: (breach.evidence, breach.message))

    def finding(self, guarantee: str) -> Finding:
        """The result of the judge."""
        return Finding(
            guarantee=guarantee,
            applicable=self.applicable,
            judged=self.judged,
            breaches=tuple(self.breaches),
            undecided=self.undecided,
            eligible=self.eligible,
        )


def judge_of(guarantee: str) -> Callable[[Callable[[Inquiry], object]], Judge]:
    """Makes the judge of a guarantee of a check that fills an inquiry."""

    def made(check: Callable[[Inquiry], object]) -> Judge:
        def judged(view: HistoryIndex) -> Finding:
            case = Inquiry(view)
            check(case)
            return case.finding(guarantee)

        return judged

    return made


def breach_of(
    view: HistoryIndex,
    message: str,
    evidence: Iterable[int],
    directory: str | None = None,
    cause: str = UNEXPLAINED,
    also: Iterable[int | None] = (),
) -> Breach:
    """A breach proven by events and counted under the faults between them.

    A judge says what happened to what; by what is added here, of each event that the message names and of the fault
    that is the likeliest reason, which may be of another class than the one it is counted under. They are evidence too,
    and so are the last fault of that class and the answers to the invocations in it.
    also: further events to show, which do not count for the time; None and events after the end are left out.
    """
    proof = sorted({index for index in evidence if 0 <= index < view.end})
    low, high = (proof[0], proof[-1]) if proof else (0, view.end)
    under, counted = view.blamed(low, high, directory)
    fault = _fault_behind(view, message, low, high, directory)
    message += _deeds(view, named_events(message), fault, message)
    shown = {*proof, *also, *named_events(message)}
    shown |= {fault, counted, *(view.answers.get(index) for index in shown if index is not None)}
    evidence = tuple(sorted(index for index in shown if index is not None and index < view.end))
    return Breach(message=legible(message), evidence=evidence, under=under, cause=cause)


def next_answer(view: HistoryIndex, directory: str, at: int, name: str = "") -> tuple[int, ...]:
    """The first create of a directory answered after an event, else the last before it, with its answer.

    Where none was answered, one that failed or is open; empty where there is none. name: creates of a part of this name
    or of a longer one are preferred.
    """
    known = view.directories.get(directory)
    calls = (known.answers or known.creates) if known else []
    named = known.creates if known and name else []
    calls = [call for call in named if call.name and (call.name in name or name in call.name)] or calls
    return next((call[:2] for call in calls if call.done > at), calls[-1][:2] if calls else ())


def _deeds(view: HistoryIndex, named: Iterable[int], fault: int | None, said: str) -> str:
    """The end of a sentence: what each event did, in order, and under which fault.

    said: the sentence until then, the clauses of which are not repeated.
    """
    found = sorted({index for index in named if 0 <= index < view.end})
    clauses = [words for index in found if (words := deed_of(view, view.events[index], said)) not in said]
    under = "" if fault is None or fault in found else deed_of(view, view.events[fault])
    return "".join(f"; {clause}" for clause in clauses) + (f" (fault: {under})" if under else "")


def split_impact(message: str) -> tuple[str, str]:
    """The impact that a message begins with, "" for none, and what else it says."""
    impact, _, rest = message.removeprefix(IMPACT).partition("; ")
    return (impact, rest) if message.startswith(IMPACT) else ("", message)


def named_events(message: str) -> tuple[int, ...]:
    """The indices of the events that a sentence about a violation names, in its order."""
    return tuple(map(int, _NAMED.findall(message)))


def harm_in(message: str) -> int | None:
    """The first event of which a sentence says that it did the harm: it took a name away, or is the wrong answer."""
    return min(map(int, _HARM.findall(message)), default=None)


def _fault_behind(view: HistoryIndex, said: str, low: int, high: int, directory: str | None) -> int | None:
    """The fault to name: none that begins after the harm, and first one that met what did it, or answered wrongly.

    A permitted deletion did no harm; what was said of the name after it did. After a loss of power, or with two live
    servers, the fault must have met the request that did it.
    """
    harm, known, answer = harm_in(said), view.directories.get(directory or ""), _ANSWER.search(said)
    if harm is not None and (harm > high or (known is not None and known.disturbed(harm, harm))):
        harm = None
    at = int(answer[1]) if harm is None and answer else harm
    own = None if at is None else _own_fault(view, view.events[at], said, directory)
    under, last = view.blamed(low, high, directory) if harm is None else view.blamed(min(low, harm), harm, directory)
    if own is None or at is None or under not in ("power-loss", "second-server") or known is None:
        return last if own is None else own
    calls = (call for call in (*known.creates, *known.listings, *known.others) if call.invoke < own and at <= call.done)
    return own if any(view.served_by(call) == view.events[own].process for call in calls) else last


def _own_fault(view: HistoryIndex, harm: Event, said: str, directory: str | None) -> int | None:
    """The last fault of storage that a process met before a harm that it did, at the file that it changed, its
    checksums or its directory: since it last changed the file before, or during the request that it answered wrongly.

    The file of a wrong answer is the one whose change the sentence names, or else any of the directory.
    """
    asked = view.events[harm.caused_by or 0] if harm.kind == "ok" else None
    life = view.lives.get(view.arrived.get(asked.index, asked.caused_by or 0)) if asked else None
    process = harm.process if life is None else life.process
    changed = [view.events[index] for index in named_events(said) if index < view.end] if asked else [harm]
    paths = {event.path for event in changed if event.path and (event.kind == "effect" or not asked)}
    near = paths | {checksum_file(path) for path in paths} | {directory_of(path) for path in paths}
    met = [
        fault.begin
        for fault in view.faults
        if fault.storage
        and fault.kind not in HARMLESS
        and fault.process == process
        and fault.begin <= harm.index
        and ((fault.path or "").rstrip("/") in near if near else fault.home == (directory or ""))
    ]
    changes = (
        event.index
        for event in view.events[min(met, default=harm.index) : harm.index]
        if event.kind == "effect"
        and event.process == process
        and event.operation not in BEFORE_ITS_END
        and (event.path in paths if paths else directory_of(event.path or "") == directory)
    )
    since = min(max(changes, default=-1), asked.index if asked else harm.index)
    return max((begin for begin in met if begin > since), default=None)


def deed_of(view: HistoryIndex, event: Event, said: str = "") -> str:
    """The clause that says what an event did, with "at event N" in it; "" for one that only shows a state.

    said: the sentence that it belongs to, whose first clause may name a marker that the event took away.
    """
    at, path = f"event {event.index}", event.path or ""
    if event.kind == "fault":
        family, call = _FAMILIES.get(event.operation, ""), event.error or ""
        of_call = "call" if family == "storage" and call else family
        words = _FAULTS.get(event.operation) or _OF_FAMILY.get(of_call, "{2} of {0} at {1}")
        file = legible(path.rstrip("/") if call == "list" else path.rpartition("/")[2])
        which = f"a {'read' if call in READS else 'write'} ({call})" + (f" of {file}" if file else "")
        return words.format(event.process, at, event.operation, f", on {file}" if file else "", which)
    if event.kind == "effect" and (directory_of(path) is not None or _TIMELINE not in path):
        who = _KIT if event.process == "kit" else event.process
        return f"{who} {change_of(view, event, said)} at {at}{_during(view, event)}"
    if event.kind == "observe" and event.operation == "started":
        return f"{event.process} started at {at}"
    asked = event.kind == "invoke" and event.operation == "delete"
    return f"{event.process} asked for the deletion at {at}{_during(view, event)}" if asked else ""


def names_lost(view: HistoryIndex, event: Event) -> list[str]:
    """The markers that are no longer stored from an event on, in any order."""
    home = view.rest.homes.get(directory_of(event.path or "") or "")
    return [name for name, life in home.spans.items() if event.index in life[1::2]] if home else []


def change_of(view: HistoryIndex, event: Event, said: str = "") -> str:
    """What an effect on storage did to which file: "wrote MARKERS0 without 2 of its names"; said: as of `deed_of`."""
    file = legible((event.path or "").rpartition("/")[2])
    if event.value is None:
        return f"removed {file}"
    lost = names_lost(view, event)
    about = _QUOTED.findall(said.partition("; ")[0])
    if any(repr(name) in about or repr(view.names_data(name)[1]) in about for name in lost):
        without = " without this name" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
    else:
        without = f" without {len(lost)} of its names" if lost else ""
    return f"wrote {file}{'' if event.operation == 'put' else ' in place'}{without}"


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
    step = view.writes.acting(process, index) or view.writes.attempting(process, index)
    if step is None:
        return ""
    of = "its attempt" if step.operation == "attempt" else f"the {step.operation} of {step.table}/{step.instant}"
    return f", during {of} (event {step.invoke})"

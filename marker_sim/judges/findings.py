"""The result of a judge: one finding for each guarantee, with the breaches that prove it. Data first, prose second."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.deeds import told
from marker_sim.names import legible

UNEXPLAINED = "unexplained"
_NAMED = re.compile(r"\bevent (\d{1,18})\b")


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
    applicable: bool
    judged: int = 0
    breaches: tuple[Breach, ...] = ()
    undecided: str = ""
    eligible: int = 0
    excused: tuple[tuple[str, int], ...] = ()


def breach_of(
    view: HistoryIndex,
    message: str,
    evidence: Iterable[int],
    directory: str | None = None,
    cause: str = UNEXPLAINED,
    also: Iterable[int | None] = (),
) -> Breach:
    """A breach proven by events and counted under the faults between them.

    A judge says what happened to what; by what is added here (deeds.py), of each event that the message names and of
    the last fault that it is counted under. They are evidence too, and so are the answers to the invocations in it.
    also: further events to show, which do not count for the time; None and events after the end are left out.
    """
    proof = sorted({index for index in evidence if 0 <= index < view.end})
    low, high = (proof[0], proof[-1]) if proof else (0, view.end)
    under, fault = view.blamed(low, high, directory)
    named = map(int, _NAMED.findall(message))
    message += told(view, named, fault)
    shown = {*proof, *also, *map(int, _NAMED.findall(message))}
    shown |= {fault, *(view.answers.get(index) for index in shown if index is not None)}
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

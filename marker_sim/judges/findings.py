"""What a judge returns: one finding for each guarantee, with the breaches that prove it. Data first, prose second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marker_sim.history.index.history_index import HistoryIndex

UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One proof that a guarantee was broken.

    evidence: indices of the events that prove it, ascending. under: the class of `faults.FAULT_CLASSES` that was
    active or, when none was, the most telling one that came before; "none" when the run had no fault until then.
    cause: what the evidence shows of how it came about (causes.py), one word for each; of a system it knows nothing.
    """

    message: str
    evidence: tuple[int, ...]
    under: str
    cause: str = UNEXPLAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one judge found in one history.

    judged: how many things were decided; with 0 and no breach the history says nothing about the guarantee.
    undecided: why the history cannot decide the guarantee as a whole, "" when it can; breaches count all the same.
    eligible: for flushed-before-ack, how many answers there were, of which `judged` were looked at in time.
    excused: by name, sorted, how often each excuse decided: without it there would be a breach or, where nobody can say
        whether there would, one thing more would be judged (docs/honesty.md has the names).
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
    """A breach that is proven by events, counted under the faults of the time between them.

    The answers to the invocations among the events are evidence too, and the last fault that it is counted under.
    also: what a reader wants to see besides, at whatever time it happened.
    """
    proof = sorted({index for index in evidence if 0 <= index < view.end})
    low, high = (proof[0], proof[-1]) if proof else (0, view.end)
    under, fault = view.blamed(low, high, directory)
    shown = {index for index in (*proof, *map(view.answers.get, proof), *also, fault) if index is not None}
    return Breach(message=message, evidence=tuple(sorted(shown)), under=under, cause=cause)

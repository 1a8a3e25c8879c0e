"""Every order of the steps of a few writers that can end differently, each once: dynamic partial-order reduction.

    a run, its writers one after the other ─► races: two steps of different writers that touch the same thing, whose
    second could have come before the first ─► for each, a branch: what was done before the first, what the second
    comes after but for the first and what comes after that, then the second

Two orders are one when swapping neighbours that do not depend on each other makes one of them the other. What a step
touches is known only when it was made, so orders become known as runs end: source sets, with sleep sets until a race is
turned (Abdulla, Aronis, Jonsson, Sagonas, "Optimal dynamic partial order reduction", POPL 2014). Of two writers none
sleeps any more then, and no order is run twice; of more some are.

A run must do the same when its writers have the turn in the same order. One that did not is made once more, and then
counted: what lies behind its branch stays unknown. Branches may be run in any order, and several at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from marker_sim.worlds.interceptor import StorageCall


class OrderedStep(NamedTuple):
    """One step of a writer.

    name: what it does, without what differs between runs that do the same.
    looks, changes: what its end depends on, and what of others depends on it. Two that change the same and do not look
    at it, as the entries of a folder, do not depend on each other.
    gives: of these, what others could not touch before, as a lock that is released: no order has the other one first.
    call: by which whoever runs it finds it again.
    """

    writer: str
    name: str
    looks: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    call: StorageCall | None = None

    def meets(self, later: OrderedStep) -> frozenset[str]:
        """What one of two steps changes and the other looks at: if anything, their order matters."""
        return (self.changes & later.looks) | (self.looks & later.changes)


# By writer, its step at a place between steps: the turn was given for it there, or leads to nothing new.
_Node = dict[str, OrderedStep]


@dataclass(frozen=True, slots=True, eq=False)
class OpenOrder:
    """An order to run: some steps as they were, then one writer, who keeps the turn until it has to give it.

    steps: as an earlier run made them. due: what each writer did next there. writer: "" for the first run, in which
    everybody is free.
    """

    steps: tuple[OrderedStep, ...] = ()
    due: tuple[OrderedStep, ...] = ()
    writer: str = ""
    _nodes: tuple[_Node, ...] = ()


@dataclass(slots=True)
class PartialOrders:
    """The orders of one program: which is next, and what is known of all.

    known: orders that were run, or are to be. run: those that were. strayed: those whose run, twice, did not do what
    was done before its branch.
    """

    known: int = 1
    run: int = 0
    strayed: int = 0
    _tried: set[OpenOrder] = field(default_factory=set)
    _open: list[OpenOrder] = field(default_factory=lambda: [OpenOrder(_nodes=({},))])

    @property
    def left(self) -> int:
        """Orders that are known and were not run to their end."""
        return self.known - self.run - self.strayed

    @property
    def complete(self) -> bool:
        """Whether every order was run."""
        return not self.left and not self.strayed

    def pick(self) -> OpenOrder | None:
        """The next order, the newest first, which keeps few open; None while none is known."""
        return self._open.pop() if self._open else None

    def learn(self, branch: OpenOrder, steps: Sequence[OrderedStep]) -> None:
        """Take in the steps of the run of a branch, of all writers in their order."""
        common = len(branch.steps)
        names = [(step.writer, step.name) for step in steps[:common]]
        led = steps[common].writer if len(steps) > common else None
        if names != [(step.writer, step.name) for step in branch.steps] or branch.writer not in ("", led):
            if branch in self._tried:
                self.strayed += 1
            else:
                self._tried.add(branch)
                self._open.append(branch)
            return
        self.run += 1
        nodes = list(branch._nodes)
        for step in steps[common:]:
            nodes[-1][step.writer] = step
            nodes.append({})
        self._branch(steps, nodes)

    def _branch(self, steps: Sequence[OrderedStep], nodes: Sequence[_Node]) -> None:
        """Add a branch for each race that has none."""
        pasts = list[set[int]]()  # Of each step, itself and what comes before it in every order equal to this one.
        for second, step in enumerate(steps):
            own = next((pasts[n] for n in reversed(range(second)) if steps[n].writer == step.writer), set[int]())
            met = [n for n in range(second) if n not in own and steps[n].meets(step)]
            pasts.append({second}.union(own, *(pasts[n] for n in met)))
            for first in reversed(met):
                if steps[first].meets(step) - steps[first].gives:
                    needed = [n for n in sorted(pasts[second]) if n > first and first not in pasts[n]]
                    self._turn(steps, [*range(first), *needed, second], nodes[: first + 1])

    def _turn(self, steps: Sequence[OrderedStep], order: Sequence[int], nodes: Sequence[_Node]) -> None:
        """Add the branch of a race, unless those known lead to its orders. order: of steps, turned, to the second."""
        first = len(nodes) - 1
        turned = [steps[number] for number in order]
        later = turned[first:]
        begin = {
            step.writer
            for number, step in enumerate(later)
            if not any(each.writer == step.writer or each.meets(step) for each in later[:number])
        }
        if not begin.isdisjoint(nodes[-1]):
            return
        nodes = list(nodes)
        for step in later:
            sleeps = {writer: own for writer, own in nodes[-1].items() if not own.meets(step)}
            nodes[-1][step.writer] = step
            nodes.append(sleeps)
        due = dict[str, OrderedStep]()
        for number, step in enumerate(steps):
            if number not in order[:-1]:
                due.setdefault(step.writer, step)
        self._open.append(OpenOrder(tuple(turned[:-1]), tuple(due.values()), turned[-1].writer, tuple(nodes[:-1])))
        self.known += 1

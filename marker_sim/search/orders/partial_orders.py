"""Every order of the steps of a few writers that can end differently, each once: dynamic partial-order reduction.

    a run, its writers one after the other ─► races: two steps of different writers that touch the same thing, and that
    no step between them orders ─► for each, a branch: what was done before the first of them, then the other writer

Two orders are one when swapping neighbours that do not depend on each other makes one of them the other. What a step
touches is known only when it was made, so orders become known as runs end: source sets with sleep sets (Abdulla,
Aronis, Jonsson, Sagonas, "Optimal dynamic partial order reduction", POPL 2014). With two writers whose turn is kept
after a branch until they have to give it, no order is run twice; with more a few are, which `again` counts.

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
    gives: of these, what others could not touch before, as a lock that is released: no order has them the other way.
    call: by which whoever runs it finds it again. death: whether it ends another writer, before a change of it.
    """

    writer: str
    name: str
    looks: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    call: StorageCall | None = None
    death: bool = False

    def meets(self, later: OrderedStep) -> frozenset[str]:
        """What one of two steps changes and the other looks at: if anything, their order matters."""
        return (self.changes & later.looks) | (self.looks & later.changes)


@dataclass(slots=True, eq=False)
class _Node:
    """A place between steps. given: who has the turn there, in the order in which that was decided, and what it does;
    sleeps: the next steps of writers whose turn here leads to nothing new.
    """

    sleeps: dict[str, OrderedStep]
    given: dict[str, OrderedStep] = field(default_factory=dict)


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

    run: orders that were run. again: of these, those equal to another one. strayed: branches whose run, twice, did not
    do what was done before it.
    """

    run: int = 0
    again: int = 0
    strayed: int = 0
    _under_way: int = 0
    _tried: set[OpenOrder] = field(default_factory=set)
    _open: list[OpenOrder] = field(default_factory=lambda: [OpenOrder(_nodes=(_Node({}),))])

    @property
    def left(self) -> int:
        """Orders that are known and were not run to their end."""
        return len(self._open) + self._under_way

    @property
    def complete(self) -> bool:
        """Whether every order was run."""
        return not self.left and not self.strayed

    def pick(self) -> OpenOrder | None:
        """The next order, the newest first, which keeps few open; None while none is known."""
        if not self._open:
            return None
        self._under_way += 1
        return self._open.pop()

    def learn(self, branch: OpenOrder, steps: Sequence[OrderedStep]) -> None:
        """Take in the steps of the run of a branch, of all writers in their order."""
        self._under_way -= 1
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
        nodes, end = list(branch._nodes), len(steps)
        for number in range(common, len(steps)):
            step, here = steps[number], nodes[number]
            if step.writer in here.sleeps:
                self.again += 1
                self._wake(steps, number, nodes)
                end = number
                break
            asleep = dict(here.sleeps)
            for writer, own in here.given.items():
                if writer == step.writer:
                    break
                asleep[writer] = own
            here.given[step.writer] = step
            nodes.append(_Node({writer: own for writer, own in asleep.items() if not own.meets(step)}))
        self._branch(steps, common, end, nodes)

    def _wake(self, steps: Sequence[OrderedStep], number: int, nodes: Sequence[_Node]) -> None:
        """Add a branch for somebody who could go on where a writer went on that should have slept; a death there
        is equal to one before the change that the writer made when it went on.
        """
        seen, held, touched = set(nodes[number].sleeps), set[str](), set[str]()
        for step in steps[number:]:
            if step.writer not in seen and not held & (step.looks | step.changes) and not step.death:
                self._add(steps, number, nodes, step.writer)
                return
            held |= step.gives - touched
            touched |= step.looks | step.changes
            seen.add(step.writer)

    def _add(self, steps: Sequence[OrderedStep], number: int, nodes: Sequence[_Node], writer: str) -> None:
        due = dict[str, OrderedStep]()
        for step in steps[number:]:
            due.setdefault(step.writer, step)
        nodes[number].given[writer] = due[writer]
        self._open.append(OpenOrder(tuple(steps[:number]), tuple(due.values()), writer, tuple(nodes[: number + 1])))

    def _branch(self, steps: Sequence[OrderedStep], common: int, end: int, nodes: Sequence[_Node]) -> None:
        """Add a branch for each race whose second step is new and before an end."""
        past = _pasts(steps)
        for second in range(common, end):
            for first in _races(steps, past, second):
                node, starts = nodes[first], _starts(steps, past, first, second)
                if any(writer in node.given or writer in node.sleeps for writer in starts):
                    continue
                writer = steps[second].writer if steps[second].writer in starts else starts[0]
                self._add(steps, first, nodes, writer)


def _pasts(steps: Sequence[OrderedStep]) -> list[dict[str, int]]:
    """By step, the number of its last step of each writer that it comes after in every order equal to this one."""
    found: list[dict[str, int]] = []
    last, own = dict[str, int](), dict[str, list[int]]()
    for number, step in enumerate(steps):
        past = dict(found[last[step.writer]]) if step.writer in last else {}
        for writer, theirs in own.items():
            if writer == step.writer:
                continue
            for earlier in reversed(theirs):
                if earlier <= past.get(writer, -1):
                    break
                if steps[earlier].meets(step):
                    _join(past, found[earlier])
                    break
        past[step.writer] = number
        found.append(past)
        last[step.writer] = number
        own.setdefault(step.writer, []).append(number)
    return found


def _join(past: dict[str, int], other: dict[str, int]) -> None:
    for writer, number in other.items():
        past[writer] = max(number, past.get(writer, -1))


def _races(steps: Sequence[OrderedStep], past: Sequence[dict[str, int]], second: int) -> list[int]:
    """The last step of each other writer that could have come after this one and did not."""
    step, found = steps[second], list[int]()
    before = next((n for n in range(second - 1, -1, -1) if steps[n].writer == step.writer), None)
    known = past[before] if before is not None else {}
    for writer in sorted({each.writer for each in steps[:second]} - {step.writer}):
        for first in range(second - 1, known.get(writer, -1), -1):
            if steps[first].writer == writer and steps[first].meets(step) - steps[first].gives - step.gives:
                theirs = (last for other, last in past[second].items() if other not in (writer, step.writer))
                if not any(past[last].get(writer, -1) >= first for last in theirs):  # Else others are between.
                    found.append(first)
                break
    return found


def _starts(steps: Sequence[OrderedStep], past: Sequence[dict[str, int]], first: int, second: int) -> list[str]:
    """The writers with whom the turned race can begin: of what does not come after its first step, whatever comes after
    nothing else of that.
    """
    inner = [n for n in range(first + 1, second) if past[n].get(steps[first].writer, -1) < first]
    seen, found = set[str](), list[str]()
    for number in (*inner, second):
        writer = steps[number].writer
        if writer not in seen and all(past[number].get(other, -1) <= first for other in seen):
            found.append(writer)
        seen.add(writer)
    return found

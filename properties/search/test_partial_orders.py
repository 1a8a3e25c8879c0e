"""The orders that the search runs against all interleavings of small programs, each of which is run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import pytest

from properties.faces.search import OpenOrder, OrderedStep, PartialOrders

# What a writer does: an operation and a name; `look` gets what is there, `set` puts what it was given.
Running = Generator[tuple[str, str, int], int, None]
Program = Callable[[], Running]
LOCK, UNLOCK = ("lock", "L", 0), ("unlock", "L", 0)


@dataclass
class Toy:
    """Some writers under way, of which one makes a step at a time."""

    programs: dict[str, Program]
    values: Counter[str] = field(default_factory=Counter)
    holder: str | None = None
    done: list[OrderedStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.running = {writer: program() for writer, program in self.programs.items()}
        self.due = {writer: next(running, None) for writer, running in self.running.items()}

    def free(self) -> list[str]:
        """Who can make a step, in order."""
        return [w for w, due in self.due.items() if due is not None and not (due[0] == "lock" and self.holder)]

    def go(self, writer: str) -> None:
        due = self.due[writer]
        assert due is not None and writer in self.free()
        operation, name, value = due
        seen = self.values[name]
        if operation == "set":
            self.values[name] = value
        elif operation != "look":
            self.holder = writer if operation == "lock" else None
        touched = frozenset({name})
        changes = frozenset[str]() if operation == "look" else touched
        gives = touched if operation == "unlock" else frozenset()
        self.done.append(OrderedStep(writer, f"{operation} {name}", touched, changes, gives))
        running = self.running[writer]
        try:
            self.due[writer] = running.send(seen)
        except StopIteration:
            self.due[writer] = None

    def go_on(self, writer: str) -> None:
        """To the end: a writer keeps the turn until it cannot go on, then the next one has it."""
        ring = list(self.programs)
        while free := self.free():
            while writer not in free:
                writer = ring[(ring.index(writer) + 1) % len(ring)]
            self.go(writer)


def order_of(steps: Sequence[OrderedStep]) -> frozenset[object]:
    """What is the same of two orders that are one: of each pair of steps that touch one thing, which comes first."""
    numbers, placed = Counter[str](), []
    for step in steps:
        numbers[step.writer] += 1
        placed.append((step, (step.writer, numbers[step.writer], step.name)))
    pairs = set()
    for n, (first, one) in enumerate(placed):
        for second, two in placed[n + 1 :]:
            looking = first.name.startswith("look") and second.name.startswith("look")
            if first.writer != second.writer and first.name.split()[1] == second.name.split()[1] and not looking:
                pairs.add((one, two))
    return frozenset(pairs) | {one for _, one in placed}


def all_orders(programs: dict[str, Program]) -> dict[frozenset[object], Counter[str]]:
    """Each order of all interleavings, with the values at its end."""
    found: dict[frozenset[object], Counter[str]] = {}
    left: list[tuple[str, ...]] = [()]
    while left:
        chosen = left.pop()
        toy = Toy(programs)
        for writer in chosen:
            toy.go(writer)
        if free := toy.free():
            left += [(*chosen, writer) for writer in free]
        else:
            found[order_of(toy.done)] = toy.values
    return found


def played(programs: dict[str, Program], branch: OpenOrder) -> Toy:
    toy = Toy(programs)
    for step in branch.steps:
        toy.go(step.writer)
    toy.go_on(branch.writer or next(iter(programs)))
    return toy


def searched(programs: dict[str, Program], at_once: int = 1) -> tuple[PartialOrders, Counter[frozenset[object]]]:
    """The search to its end, with how often it ran each order. at_once: how many branches are under way."""
    orders, seen = PartialOrders(), Counter[frozenset[object]]()
    rng = random.Random(1)
    under_way: list[OpenOrder] = []
    while True:
        while len(under_way) < at_once and (branch := orders.pick()) is not None:
            under_way.append(branch)
        if not under_way:
            return orders, seen
        branch = under_way.pop(rng.randrange(len(under_way)))
        toy = played(programs, branch)
        seen[order_of(toy.done)] += 1
        orders.learn(branch, toy.done)


def drawn(rng: random.Random, steps: int, names: str, *, locks: bool) -> Program:
    """A program whose later steps may depend on what it saw."""
    ops = [(rng.choice(("look", "set")), rng.choice(names), rng.randint(1, 3)) for _ in range(steps)]
    branch = rng.random() < 0.5
    begin, end = sorted(rng.sample(range(steps + 1), 2)) if locks else (-1, -1)

    def program() -> Running:
        saw = 0
        for number, (operation, name, value) in enumerate(ops):
            if number == begin:
                yield LOCK
            elif number == end:
                yield UNLOCK
            turned = branch and saw % 2 and operation == "set"
            got = yield operation, names[0] if turned else name, value
            saw = got or saw
        if end == steps:
            yield UNLOCK

    return program


@pytest.mark.parametrize("writers", [2, 3])
@pytest.mark.parametrize("locks", [False, True])
@pytest.mark.parametrize("at_once", [1, 3])
def test_every_order_of_small_programs_is_run(writers: int, locks: bool, at_once: int) -> None:
    rng = random.Random(f"{writers} {locks}")
    runs, again, least = 0, 0, 0
    for _ in range(60 if writers == 2 else 25):
        programs = {f"w{n}": drawn(rng, 4 if writers == 2 else 2, "abc", locks=locks) for n in range(writers)}
        expected = all_orders(programs)
        orders, seen = searched(programs, at_once)
        assert seen.keys() == expected.keys()
        assert orders.complete and not orders.strayed and orders.run == orders.known == seen.total()
        runs, again, least = runs + seen.total(), again + seen.total() - len(seen), least + len(expected)
    assert runs >= least > 100
    if writers == 2:
        assert again == 0
    else:
        assert again < least / 4


def test_independent_writers_have_one_order_and_a_lock_makes_two() -> None:
    def alone(name: str) -> Program:
        def sets() -> Running:
            for number in range(5):
                yield "set", name, number

        return sets

    orders, seen = searched({"w0": alone("a"), "w1": alone("b")})
    assert orders.run == len(seen) == 1

    def locked() -> Running:
        yield LOCK
        yield "look", "a", 0
        yield "set", "a", 1
        yield "set", "a", 2
        yield UNLOCK

    orders, seen = searched({"w0": locked, "w1": locked})
    assert orders.run == len(seen) == 2


def test_a_lost_update_is_found_and_a_lock_avoids_it() -> None:
    def adds() -> Running:
        for name in "xyz":
            yield "set", f"{name}{id(adds)}", 1
        seen = yield "look", "sum", 0
        yield "set", "sum", seen + 1

    def locked() -> Running:
        yield LOCK
        yield from adds()
        yield UNLOCK

    for program, sums in ((adds, {1, 2}), (locked, {2})):
        programs = {"w0": program, "w1": program}
        orders, found = PartialOrders(), set()
        while (branch := orders.pick()) is not None:
            toy = played(programs, branch)
            found.add(toy.values["sum"])
            orders.learn(branch, toy.done)
        assert found == sums and orders.complete


def test_a_run_that_does_not_do_what_was_done_before_is_counted_and_the_search_is_not_complete() -> None:
    def sets() -> Running:
        yield "set", "a", 1
        yield "set", "b", 1

    programs = {"w0": sets, "w1": sets}
    orders = PartialOrders()
    first = orders.pick()
    assert first is not None
    orders.learn(first, played(programs, first).done)
    second = orders.pick()
    assert second is not None and orders.left >= 1
    for _ in range(2):
        orders.learn(second, played(programs, first).done)
        assert orders.run == 1 and not orders.complete
    assert orders.strayed == 1
    while (branch := orders.pick()) is not None:
        orders.learn(branch, played(programs, branch).done)
    assert not orders.complete

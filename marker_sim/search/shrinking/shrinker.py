"""Shrinks a failing plan: fewer operations and faults, then fewer threads, directories, delays and odd values.

Greedy and bounded: every candidate is run, a smaller one is kept if the same guarantee still breaks, and the whole ends
after `runs_max` runs or `budget_s` seconds, whichever comes first. Passes, repeated until none finds a smaller plan:

    crowds        of very many operations one or two alone, all of them at once, halves of them
    faults        all but one, halves, quarters ... single ones
    places        faults of very long plans at sites instead of steps
    miniatures    one to three tasks, or one or two operations, from the smallest on, with one or two of the faults
    writes, ops   chunks of writes, tasks, clients, operations; single ones with other latencies or a wait instead
    two at once   any two entries together, when few are left: perhaps neither can be removed alone
    actors        two clients become one
    steps         each fault earlier
    lasting       one fault that lasts for several that refuse calls of one actor
    kinds         a plain kill for a request under way, an error for a time-out, as the row says
    values        each field as by default or a smaller number: latencies, threads, durations, names, a table

Faults are keyed by steps or by arrivals at a site; both change when operations are removed, so each removal is tried
again with earlier faults. A fault at a site stays one, for it reads as a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from marker_sim.errors import HarnessError
from marker_sim.plan import Plan
from marker_sim.search.shrinking import RUNS_MAX, SMALL
from marker_sim.search.shrinking.candidates import (
    Path,
    Variants,
    at_earlier_steps,
    at_sites,
    earlier,
    lasting,
    miniatures,
    miniatures_of_two,
    of_plainer_kinds,
    part_at,
    parts_of_a_crowd,
    renamed,
    simpler,
    simpler_at_once,
    with_part,
    without,
    without_faults,
    without_two,
)
from marker_sim.search.shrinking.jobs import are_jobs
from marker_sim.search.shrinking.jobs import smaller as smaller_jobs

Fails = Callable[[Plan], bool]
Watch = Callable[[Plan, bool], None]  # Receives each plan that was tried, and whether it failed.
DELAYS_MS = (5, 12, 25, 50, 62, 75, 100)
JITTERS = range(6)
# By how much earlier faults are tried when an operation, a write or a task is gone.
STEPS_OF_AN_OP = (1, 2, 3, 4, 6, 8, 12)
STEPS_OF_A_WRITE = (6, 9, 11, 12, 13, 14, 15, 16, 18, 20, 24, 30, 40)
STEPS_OF_A_TASK = (1, 2, 3, 4, 5, 6, 8)
BUDGET_S = 10.0
LEAST = 30  # Number of workloads of one or two operations that are tried before a crowd is made smaller.
CROWD = 24  # Plans with more operations are first tried in parts.
FEW_OPS = 16  # Up to this number of operations, faults are tried at earlier steps when one is removed.
FEW = 9  # Up to this number of entries, any two are removed together as well.
MINIATURES = 3  # Miniatures get this part (one third) of the rest of the budget.
SCANNED = 6  # Largest plan whose faults are tried at every earlier step.


class _Spent(Exception):
    """The end of the budget; the smallest plan found so far is the result."""


class _Shrinker:
    def __init__(self, plan: Plan, fails: Fails, runs_max: int, budget_s: float, simulated: bool) -> None:
        self.best = plan
        self._simulated = simulated
        self._fails = fails
        self._left = runs_max
        self._deadline = time.monotonic() + budget_s
        self._seen: set[Plan] = set()

    def attempt(self, candidate: Plan) -> bool:
        """Keep a candidate if it still fails; True when it does."""
        if candidate == self.best or candidate in self._seen:
            return False
        if self._left <= 0 or time.monotonic() > self._deadline:
            raise _Spent
        self._left -= 1
        self._seen.add(candidate)
        try:
            failed = self._fails(candidate)
        except HarnessError:  # If the code under test hangs on a smaller plan, the failure stays as it is.
            return False
        if failed:
            self.best = candidate
        return failed

    def run(self) -> Plan:
        try:
            if are_jobs(self.best):
                while any(map(self.attempt, smaller_jobs(self.best))):
                    continue
                return self.best
            while True:
                before = self.best
                self._thin_a_crowd()
                self._remove_faults()
                if self._simulated and len(self.best.ops) > CROWD:
                    # A late step is another call as soon as anything is removed.
                    self._vary(at_sites)
                if self.best.writes:
                    self._miniature(miniatures)
                self._remove_writes()
                self._remove_clients()
                self._cut(("ops",), self._attempt_without)
                self._remove_two()
                self._merge_actors()
                self._vary(at_earlier_steps)
                any(map(self.attempt, lasting(self.best)))
                self._vary(of_plainer_kinds)
                for candidate in simpler_at_once(self.best):
                    self.attempt(candidate)
                self._vary(simpler)
                if self.best == before:
                    self._miniature(miniatures)
                    self._miniature(miniatures_of_two)
                if self.best == before:
                    return self.best
        except _Spent:
            return self.best

    def _vary(self, variants: Callable[[Plan], Variants]) -> None:
        """Replace each part by the first of its variants with which the plan still fails."""
        for path, values in list(variants(self.best)):
            for value in values:
                candidate = with_part(self.best, path, value)
                if candidate == self.best or self.attempt(candidate):
                    break

    def _cut(self, path: Path, attempt_without: Callable[[int, int], bool]) -> None:
        """Remove entries of one part in chunks of halving size."""
        size = max(1, len(part_at(self.best, path)) // 2)
        while size:
            start = 0
            while start < len(part_at(self.best, path)):
                if not attempt_without(start, size):
                    start += size
            size //= 2

    def _attempt_without(self, start: int, size: int) -> bool:
        """Try a plan without some operations; with one client in real time, faults keep their places in it."""
        fewer = without(self.best, ("ops",), start, size)
        if self._alone:
            gone = (min(size, max(0, fault.n - start)) for fault in fewer.faults)
            moved = tuple(fault.at(max(1, fault.n - less)) for fault, less in zip(fewer.faults, gone, strict=True))
            return self.attempt(replace(fewer, faults=moved))
        if size > 1:
            return self._attempt_scaled(fewer)
        return self._attempt_variants(fewer) or self._wait_instead(start)

    @property
    def _alone(self) -> bool:
        """Whether a single client makes one call after the other in real time, where latencies cannot be chosen."""
        return not self._simulated and len({op.actor for op in self.best.ops}) == 1 == max(
            op.copies for op in self.best.ops
        )

    def _thin_a_crowd(self) -> None:
        """Try the smallest workloads first, each of which costs a hundredth of the plan; then halves."""
        crowded = self._simulated and len(self.best.ops) > CROWD
        if any(map(self.attempt, islice(miniatures(replace(self.best, faults=())), LEAST if crowded else 0))):
            return
        while len(self.best.ops) > CROWD and any(map(self._attempt_scaled, parts_of_a_crowd(self.best))):
            continue

    def _remove_clients(self) -> None:
        clients = sorted({op.actor for op in self.best.ops})
        size = len(clients) // 2
        while size:
            for start in reversed(range(0, len(clients), size)):
                gone = clients[start : start + size]
                ops = tuple(op for op in self.best.ops if op.actor not in gone)
                if self._attempt_scaled(replace(self.best, ops=ops)):
                    del clients[start : start + size]
            size //= 2

    def _remove_writes(self) -> None:
        """Remove whole writes, then tasks of each."""
        self._cut(("writes",), self._earlier_without(("writes",), STEPS_OF_A_WRITE))
        for number in range(len(self.best.writes)):
            tasks: Path = ("writes", number, "tasks")
            self._cut(tasks, self._earlier_without(tasks, STEPS_OF_A_TASK))

    def _earlier_without(self, path: Path, by: tuple[int, ...]) -> Callable[[int, int], bool]:
        return lambda start, size: self._attempt_earlier(without(self.best, path, start, size), by)

    def _attempt_earlier(self, candidate: Plan, by: tuple[int, ...]) -> bool:
        return self.attempt(candidate) or any(map(self.attempt, earlier(candidate, by)))

    def _attempt_scaled(self, candidate: Plan) -> bool:
        """Also try with earlier faults, in proportion: fewer operations make fewer steps, and late faults never arm."""
        return self.attempt(candidate) or self.attempt(candidate.earlier_by(self.best))

    def _wait_instead(self, position: int) -> bool:
        """Replace an operation by a wait of about its duration before the client's next one."""
        ops = self.best.ops
        followers = (n for n in range(position + 1, len(ops)) if ops[n].actor == ops[position].actor)
        follower = next(followers, None)
        if follower is None or len(ops) > CROWD or not self._simulated:
            return False
        path, fewer = ("ops", follower - 1, "after_ms"), without(self.best, ("ops",), position)
        waits_ms = (ops[follower].after_ms + delay_ms for delay_ms in DELAYS_MS)
        return any(self.attempt(with_part(fewer, path, wait_ms)) for wait_ms in waits_ms)

    def _attempt_variants(self, candidate: Plan) -> bool:
        """Also try with other latencies, for the remaining entries to occur together, and with earlier faults."""
        few, latencies = len(self.best.ops), JITTERS if self._simulated else ()
        return (
            self.attempt(candidate)
            or (few <= CROWD and any(self.attempt(replace(candidate, jitter=jitter)) for jitter in latencies))
            or (few <= FEW_OPS and self._attempt_earlier(candidate, STEPS_OF_AN_OP))
        )

    def _remove_faults(self) -> None:
        for fault in self.best.faults if len(self.best.faults) > 2 else ():
            if self.attempt(replace(self.best, faults=(fault,))):
                break
        self._cut(("faults",), lambda start, size: any(map(self.attempt, without_faults(self.best, start, size))))

    def _miniature(self, find: Callable[[Plan], Iterator[Plan]]) -> None:
        """Try miniatures, smallest first, with only a part of the remaining budget: often none of them fails."""
        if not self._simulated or self.best.entries <= SMALL or (self.best.writes and self.best.ops):
            return
        runs, now = self._left - self._left // MINIATURES, time.monotonic()
        until = now + (self._deadline - now) / MINIATURES
        entries = self.best.entries
        for small in find(self.best):
            if self._left <= runs or time.monotonic() > until:
                return
            if small.entries < entries and self.attempt(small):
                return

    def _remove_two(self) -> None:
        """Remove pairs of entries: an operation and the fault that it needs, or two that need each other."""
        entries = len(self.best.ops) + len(self.best.faults)
        while 2 < entries <= FEW and any(map(self._attempt_scanned, without_two(self.best))):
            entries = len(self.best.ops) + len(self.best.faults)

    def _attempt_scanned(self, candidate: Plan) -> bool:
        """Try a small plan also with one of its faults at every earlier step."""
        return self.attempt(candidate) or any(
            self.attempt(with_part(candidate, ("faults", position), fault.at(step)))
            for position, fault in enumerate(candidate.faults if candidate.entries <= SCANNED else ())
            for step in range(1, fault.n)
        )

    def _merge_actors(self) -> None:
        clients = sorted({op.actor for op in self.best.ops})
        for gone in reversed(clients):
            # With very many clients, only the first few are tried: where these fail, the others do too.
            some = clients[: min(clients.index(gone), FEW)]
            any(self.attempt(renamed(self.best, gone, stays)) for stays in some)


def shrink(
    plan: Plan,
    fails: Fails,
    runs_max: int = RUNS_MAX,
    budget_s: float = BUDGET_S,
    simulated: bool = True,
) -> Plan:
    """The smallest plan found for which `fails` was true; `plan` itself must fail. HarnessError counts as false.

    simulated: whether a run costs milliseconds and its latencies can be chosen; else neither many small workloads nor
        latencies are tried.
    """
    return _Shrinker(plan, fails, runs_max, budget_s, simulated).run()

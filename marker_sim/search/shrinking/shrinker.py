"""Shrinks a failing plan: fewer operations and faults, then fewer threads, directories, delays and odd values.

Greedy and bounded: every candidate is run, a smaller one is kept if the same guarantee still breaks, and the whole ends
after `runs_max` runs or `budget_s` seconds, whichever comes first. Passes, repeated until none finds a smaller plan:

    crowds        of very many operations one or two alone, all of them at once, halves of them
    faults        all but one, halves, quarters ... single ones
    places        faults of very long plans at sites instead of steps
    miniatures    one to three tasks, or one or two operations, from the smallest on, with one or two of the faults
    writes, ops   chunks of clients, then of operations, then single entries with other latencies or a wait instead
    two at once   any two entries together, when few are left: perhaps neither can be removed alone
    actors        two clients become one
    steps         each fault earlier
    lasting       one fault that lasts for several that refuse calls of one actor
    kinds         a plain kill for a request under way, an error for a time-out, as the row says
    values        latencies, threads, directories, durations, names, what a table is

Faults are keyed by steps or by arrivals at a site; both change when operations are removed, so each removal is tried
again with earlier faults. A fault at a site stays one, for it reads as a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault
from marker_sim.plan import Op, Plan
from marker_sim.search.shrinking.by_history import in_used_directories
from marker_sim.search.shrinking.candidates import (
    at_sites,
    earlier,
    fewer_tasks,
    fewer_writes,
    lasting,
    miniatures_of_operations,
    miniatures_of_two,
    miniatures_of_writes,
    parts_of_a_crowd,
    renamed,
    simpler_writes,
    with_fault,
    without_faults,
    without_two,
)
from marker_sim.search.shrinking.jobs import are_jobs
from marker_sim.search.shrinking.jobs import smaller as smaller_jobs

Fails = Callable[[Plan], bool]
Watch = Callable[[Plan, bool], None]  # Receives each plan that was tried, and whether it failed.
RUNS_MAX = 4_000
DELAYS_MS = (5, 12, 25, 50, 62, 75, 100)
BUDGET_S = 10.0
LEAST = 30  # Number of workloads of one or two operations that are tried before a crowd is made smaller.
CROWD = 24  # Plans with more operations are first tried in parts.
FEW = 9  # Up to this number of entries, any two are removed together as well.
MINIATURES = 3  # Miniatures get this part (one third) of the rest of the budget.
SMALL = 3  # No miniatures for plans with at most this many entries.
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
                self._name_places()
                self._miniature(miniatures_of_writes)
                self._remove_writes()
                self._remove_ops()
                self._remove_two()
                self._merge_actors()
                self._vary_faults(_earlier)
                any(map(self.attempt, lasting(self.best)))
                self._vary_faults(lambda fault: map(fault.of_kind, fault.kind.simpler))
                self._simplify()
                if self.best == before:
                    self._miniature(miniatures_of_operations)
                    self._miniature(miniatures_of_two)
                if self.best == before:
                    return self.best
        except _Spent:
            return self.best

    def _remove_ops(self) -> None:
        """Remove clients, then operations, in chunks of halving size."""
        self._remove_clients()
        size = max(1, len(self.best.ops) // 2)
        while size:
            start = 0
            while start < len(self.best.ops):
                if not self._attempt_without(start, size) and not (size == 1 and self._wait_instead(start)):
                    start += size
            size //= 2

    def _attempt_without(self, start: int, size: int) -> bool:
        """Try a plan without some operations; with one client in real time, faults keep their places in it."""
        ops = self.best.ops
        fewer = replace(self.best, ops=ops[:start] + ops[start + size :])
        if self._alone:
            gone = (min(size, max(0, fault.n - start)) for fault in fewer.faults)
            moved = tuple(fault.at(max(1, fault.n - less)) for fault, less in zip(fewer.faults, gone, strict=True))
            return self.attempt(replace(fewer, faults=moved))
        return self._attempt_variants(fewer) if size == 1 else self._attempt_scaled(fewer)

    @property
    def _alone(self) -> bool:
        """Whether a single client makes one call after the other in real time, where latencies cannot be chosen."""
        return not self._simulated and len({op.actor for op in self.best.ops}) == 1 == max(
            op.copies for op in self.best.ops
        )

    def _thin_a_crowd(self) -> None:
        """Try the smallest workloads first, each of which costs a hundredth of the plan; then halves."""
        crowded = self._simulated and len(self.best.ops) > CROWD
        least = islice(miniatures_of_operations(replace(self.best, faults=())), LEAST if crowded else 0)
        if any(map(self.attempt, least)):
            return
        while len(self.best.ops) > CROWD and any(map(self._attempt_scaled, parts_of_a_crowd(self.best))):
            continue

    def _name_places(self) -> None:
        """Move a crowd's faults from steps to sites: a late step is another call as soon as anything is removed."""
        if self._simulated and len(self.best.ops) > CROWD:
            for fault in self.best.faults:
                any(self.attempt(replace(self.best, faults=faults)) for faults in at_sites(self.best.faults, fault))

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
        """Remove whole writes, then tasks; begin again whenever one could be removed."""
        for fewer in (fewer_writes, fewer_tasks):
            while any(self._attempt_earlier(candidate, by) for candidate, by in fewer(self.best)):
                continue

    def _attempt_earlier(self, candidate: Plan, by: tuple[int, ...]) -> bool:
        return self.attempt(candidate) or any(self.attempt(sooner) for sooner in earlier(candidate, by))

    def _attempt_scaled(self, candidate: Plan) -> bool:
        """Also try with earlier faults, in proportion: fewer operations make fewer steps, and late faults never arm."""
        return self.attempt(candidate) or self.attempt(candidate.earlier_by(self.best))

    def _wait_instead(self, position: int) -> bool:
        """Replace an operation by a wait of about its duration before the client's next one."""
        ops = self.best.ops
        actor = ops[position].actor
        follower = next((n for n in range(position + 1, len(ops)) if ops[n].actor == actor), None)
        if follower is None or len(ops) > 24:
            return False
        for delay_ms in DELAYS_MS if self._simulated else ():
            waiting = replace(ops[follower], after_ms=ops[follower].after_ms + delay_ms)
            changed = (*ops[:position], *ops[position + 1 : follower], waiting, *ops[follower + 1 :])
            if self.attempt(replace(self.best, ops=changed)):
                return True
        return False

    def _attempt_variants(self, candidate: Plan) -> bool:
        if self.attempt(candidate):
            return True
        if len(self.best.ops) > 24:
            return False
        # The remaining entries may need other latencies to occur together.
        if self._simulated and any(self.attempt(replace(candidate, jitter=jitter)) for jitter in range(6)):
            return True
        # Fewer operations, fewer steps before the fault.
        sooner = (tuple(f.at(max(1, f.n - less)) for f in candidate.faults) for less in (1, 2, 3, 4, 6, 8, 12))
        few = len(self.best.ops) <= 16 and bool(candidate.faults)
        return few and any(self.attempt(replace(candidate, faults=faults)) for faults in sooner)

    def _remove_faults(self) -> None:
        for fault in self.best.faults if len(self.best.faults) > 2 else ():
            if self.attempt(replace(self.best, faults=(fault,))):
                break
        size = max(1, len(self.best.faults) // 2)
        while size:
            start = 0
            while start < len(self.best.faults):
                fewer = without_faults(self.best, start, size)
                if not any(self.attempt(candidate) for candidate in fewer):
                    start += size
            size //= 2

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
        while 2 < entries <= FEW and any(self._attempt_scanned(candidate) for candidate in without_two(self.best)):
            entries = len(self.best.ops) + len(self.best.faults)

    def _attempt_scanned(self, candidate: Plan) -> bool:
        """Try a small plan also with one of its faults at every earlier step."""
        return self.attempt(candidate) or any(
            self.attempt(with_fault(candidate, position, fault.at(step)))
            for position, fault in enumerate(candidate.faults if candidate.entries <= SCANNED else ())
            for step in range(1, fault.n)
        )

    def _merge_actors(self) -> None:
        clients = sorted({op.actor for op in self.best.ops})
        for gone in reversed(clients):
            # With very many clients, only the first few are tried: where these fail, the others do too.
            for stays in clients[: min(clients.index(gone), FEW)]:
                if self.attempt(renamed(self.best, gone, stays)):
                    break

    def _vary_faults(self, variants: Callable[[Fault], Iterable[Fault]]) -> None:
        """Replace each fault by the first of its variants with which the plan still fails."""
        for position in range(len(self.best.faults)):
            made = variants(self.best.faults[position])
            any(self.attempt(with_fault(self.best, position, fault)) for fault in made)

    def _simplify(self) -> None:
        for candidate in self._simpler():
            self.attempt(candidate)
        for position in range(len(self.best.faults)):
            for name in self.best.faults[position].settable:
                fault = self.best.faults[position]
                less = (fault.but(**{name: value}) for value in fault.less(name))
                any(self.attempt(with_fault(self.best, position, each)) for each in less)
        while self.best.writes and any(self.attempt(candidate) for candidate in simpler_writes(self.best)):
            continue
        for position in range(len(self.best.ops)):
            for change in _simpler_op(self.best.ops[position], position):
                ops = self.best.ops
                self.attempt(replace(self.best, ops=(*ops[:position], change(ops[position]), *ops[position + 1 :])))

    def _simpler(self) -> Iterator[Plan]:
        yield replace(self.best, jitter=0)
        for threads in (1, 2):
            if threads < self.best.num_threads:
                yield replace(self.best, num_threads=threads)
        yield replace(self.best, interval_ms=50)
        yield replace(self.best, restart_threads=0)
        yield replace(self.best, ops=tuple(replace(op, after_ms=0) for op in self.best.ops))
        yield replace(self.best, ops=tuple(replace(op, server=0) for op in self.best.ops))
        yield replace(self.best, ops=tuple(replace(op, form="") for op in self.best.ops))
        if self.best.ops:
            yield in_used_directories(self.best)


def _earlier(fault: Fault) -> Iterator[Fault]:
    """The fault at some earlier steps, the first one first."""
    n = fault.n
    return (fault.at(step) for step in sorted({1, n // 4, n // 2, n - 8, n - 3, n - 1}) if 0 < step < n)


def _simpler_op(op: Op, position: int) -> Iterator[Callable[[Op], Op]]:
    if op.after_ms:
        yield lambda o: replace(o, after_ms=0)
        yield lambda o: replace(o, after_ms=o.after_ms // 2)
    if op.server:
        yield lambda o: replace(o, server=0)
    if op.spelled and op.kind != "hostile":  # Written as usual, such a directory need not be refused.
        yield lambda o: replace(o, spelled="")
    if op.form:
        yield lambda o: replace(o, form="")
    for fewer in sorted({1, 2, op.copies // 4, op.copies // 2, op.copies * 3 // 4} - {0}):
        if fewer < op.copies:
            yield partial(_of_fewer, copies=fewer)
    if op.apart_ms:
        yield lambda o: replace(o, apart_ms=0)
    if op.request:
        yield lambda o: replace(o, request="")
    if op.kind == "create" and len(op.name) > len("p/a0.marker.CREATE"):
        yield lambda o: replace(o, name=f"a{position}.marker.CREATE")
        yield lambda o: replace(o, name=f"p/a{position}.marker.CREATE")


def _of_fewer(op: Op, copies: int) -> Op:
    return replace(op, copies=min(op.copies, copies))


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

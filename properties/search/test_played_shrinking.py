"""A plan made small where runs come out differently: what counts is how often the smaller one fails."""

from __future__ import annotations

import threading
import time
from argparse import Namespace
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from marker_sim.campaign import played_runs
from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import History
from marker_sim.plan import Op, Plan
from marker_sim.system import reference
from properties.faces.campaign import PlayedRuns, PlayedShrinker, SearchState, SmallPlan, broken_in, share_of
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.outcome import NO_TIME, Failure, Kind
from properties.faces.worlds import SparkRun, run

PROFILE = load_profile("reference")
MUTANT = load_mutant(find_mutant("leading-slash"))
PLAN = Plan(
    mode="timeline",
    storage="local",
    num_threads=1,
    ops=tuple(
        Op(actor="executor-0", kind=kind, name="a.marker.CREATE" if kind == "create" else "")
        for kind in ("create", "list", "exists", "list", "list")
    ),
)


def over(plan: Plan, history: History, cut: bool = False) -> SparkRun:
    return SparkRun(history=history, plan=plan, counts={}, cut=cut)


class Server:
    """Breaks its promise whenever it is asked for enough, and in some of the first runs of each smaller plan."""

    def __init__(self, enough: int, lucky: int) -> None:
        self._enough = enough
        self._lucky = lucky
        self._runs: Counter[Plan] = Counter()
        self._lock = threading.Lock()

    def again(self, plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
        with self._lock:
            self._runs[plan] += 1
            broken = plan.entries >= self._enough or self._runs[plan] <= self._lucky
        return over(plan, run(plan, MUTANT if broken else reference()))


@pytest.mark.parametrize(("lucky", "entries"), [(0, 4), (2, 4), (40, 1)])
def test_the_result_is_the_smallest_plan_that_fails_nearly_always(lucky: int, entries: int) -> None:
    found = broken_in(run(PLAN, MUTANT), PLAN, PROFILE)
    kind, broken = next((kind, each) for kind, each in found.items() if kind[0] == "G4")
    made = PlayedShrinker(Server(4, lucky).again, PROFILE).shrink(kind, [broken], time.monotonic() + 60)
    assert (made.plan.entries, made.failed, made.runs) == (entries, 10, 10)


def test_a_smaller_plan_that_breaks_it_by_another_cause_does_not_count_where_one_was_asked_for() -> None:
    found = broken_in(run(PLAN, MUTANT), PLAN, PROFILE)
    kind, broken = next((kind, each) for kind, each in found.items() if kind[0] == "G4")
    for cause, entries in ((kind.cause, 1), ("no-text", PLAN.entries)):
        shrinker = PlayedShrinker(Server(0, 0).again, PROFILE, cause=cause)
        made = shrinker.shrink(kind, [broken], time.monotonic() + 60)
        assert made.plan.entries == entries and (made.failed == made.runs) is (entries == 1)


class Slow:
    """A faulty system whose runs take a second of a clock that the test has, and are cut when their time is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.begun: list[float] = []
        self._lock = threading.Lock()
        monkeypatch.setattr("marker_sim.campaign.played_shrinking.time.monotonic", lambda: self.now)

    def again(self, plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
        with self._lock:
            self.begun.append(self.now)
            self.now = min(self.now + RUN_S, until)
            cut = self.now >= until
        return over(plan, run(plan, MUTANT), cut)


RUN_S = 1.0


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.5, 3.0, 4.5, 9.5, 40.0])
def test_a_run_that_the_time_cut_short_is_not_counted(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Slow(monkeypatch)
    kind, broken = next(
        (kind, each) for kind, each in broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items() if kind[0] == "G4"
    )
    made = PlayedShrinker(clock.again, PROFILE).shrink(kind, [broken], seconds)
    assert made.failed == made.runs, "each run that was not cut broke the guarantee"
    assert (made.told is None) == (made.runs == 0) and made.sentence == (
        f"breaks in {made.runs} of {made.runs} runs" if made.runs else ""
    )
    assert clock.now <= seconds
    assert made.stopped == ("" if seconds == 40.0 else NO_TIME)
    if made.runs == 0:
        assert made.plan == PLAN, "a plan of which nothing was seen takes no other's place"


RACE_RUNS = 8


def test_a_race_of_two_requests_is_found_in_a_plan_of_many_tables_within_a_few_runs() -> None:
    """As a real server is seen: the tables of its histories lie in a folder of the run, its processes have lives."""
    defect, begun, lock = load_mutant(find_mutant("two-creators")), [0], threading.Lock()
    history = run(LARGE, defect)
    seen = tuple(
        event._replace(process=event.process.replace("#", "."), table=event.table and f"run/{event.table}")
        for event in history.events
    )
    kind, broken = next((kind, each) for kind, each in broken_in(history, LARGE, PROFILE).items() if kind[0] == "G5")

    def again(plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
        with lock:
            begun[0] += 1
            spent = begun[0] > RACE_RUNS
        return over(plan, run(plan, defect), spent)

    large = replace(broken, history=replace(history, events=seen))
    made = PlayedShrinker(again, PROFILE).shrink(kind, [large], time.monotonic() + 60)
    assert LARGE.entries > 200 and made.plan.entries <= 6 and made.failed == made.runs == 4


def _large() -> Plan:
    """Sixteen marker directories, in one of which two clients ask for one name at once."""
    ops = [
        Op(
            actor=f"executor-{number % 24}", kind="list" if number % 64 >= 48 else "create", directory=number % 16,
            name="" if number % 64 >= 48 else f"p/f{number}.marker.CREATE", after_ms=number % 5,
        )
        for number in range(240)
    ]  # fmt: skip
    near = [Op(actor="executor-26", kind="create", directory=5, name=f"p/near{n}.marker.CREATE") for n in range(12)]
    twice = Op(actor="driver", kind="create", directory=5, name="p/twice.marker.CREATE", after_ms=100)
    return Plan(
        mode="timeline", storage="local",
        directories=tuple(f"{table}/.hoodie/.temp/{number:03}" for table in "abcd" for number in range(4)),
        ops=(*ops, *near, twice, replace(twice, actor="executor-30", after_ms=101)),
        faults=tuple(Fault.of(FaultKind.REPLY_LOST, actor, Step(2)) for actor in ("executor-3", "executor-26")),
    )  # fmt: skip


LARGE = _large()


def test_the_last_runs_end_with_probes_once_where_the_evidence_needs_none() -> None:
    kind, broken = next(
        (kind, each) for kind, each in broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items() if kind[0] == "G4"
    )
    probed = []

    def again(plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
        probed.append(probing)
        return over(plan, run(plan, MUTANT))

    unprobed = tuple(i for i in broken.breach.evidence if "probe" not in broken.history.events[i].process)
    own = replace(broken, breach=replace(broken.breach, evidence=unprobed))
    PlayedShrinker(again, PROFILE).shrink(kind, [own], time.monotonic() + 60)
    assert probed[-2:] == [True, True] and not any(probed[-10:-2])


def test_a_run_that_the_kit_could_not_complete_is_not_counted_as_a_promise_kept() -> None:
    kind, broken = next(iter(broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items()))
    made = PlayedShrinker(_fails_to_start, PROFILE).shrink(kind, [broken], time.monotonic() + 5)
    assert (made.plan, made.told, made.runs, made.sentence) == (PLAN, None, 0, "")


def _fails_to_start(plan: Plan, until: float, fresh: bool, probing: bool) -> SparkRun:
    raise HarnessError("no server")


def test_what_waits_for_answers_gets_most_of_the_time_wherever_it_comes() -> None:
    lost, waits = Kind("G1", "timeline", "local", ""), Kind("G6", "timeline", "local", "")
    assert share_of(waits, []) == share_of(lost, []) == 1
    assert share_of(waits, [lost]) == share_of(lost, [lost]) == 1 - share_of(lost, [waits]) > 0.5


def test_a_small_plan_gives_way_to_a_smaller_one_alone() -> None:
    kind, broken = next(iter(broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items()))
    shorter = replace(broken, plan=replace(PLAN, ops=PLAN.ops[:2]))
    state = SearchState(request=cast(Any, None), progress=print, found={kind: broken})
    for each, kept in ((broken, broken), (shorter, shorter), (broken, shorter)):
        state.keep(kind, each)
        assert state.found[kind].plan == kept.plan


@pytest.mark.parametrize("first", ["none", "storage"])
def test_what_needs_no_fault_is_not_told_by_a_smaller_plan_with_one(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    kind, broken = next(iter(broken_in(run(PLAN, MUTANT), PLAN, PROFILE).items()))
    other = "storage" if first == "none" else "none"
    both = [replace(broken, breach=replace(broken.breach, under=under)) for under in (first, other)]
    given: list[Failure] = []

    class Shrinker:
        def __init__(self, *_: object) -> None:
            pass

        def shrink(self, _: Kind, seen: list[Failure], *__: object) -> SmallPlan:
            given.extend(seen)
            return SmallPlan(plan=PLAN, broken={}, told=None, failed=0, runs=0)

    monkeypatch.setattr(played_runs, "PlayedShrinker", Shrinker)
    request = Namespace(shrinking=True, seen={}, profile=PROFILE, budget_s=60.0, runs=9)
    made = PlayedRuns(SearchState(request=cast(Any, request), progress=print, found={kind: both[0]}))
    made._runs, made._broken = cast(Any, Namespace(again=None, at_once=1)), {kind: both}
    made.shrink()
    assert given == (both[:1] if first == "none" else both)

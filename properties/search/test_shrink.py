"""Failing plans become small, never by more runs or seconds than were given, and nothing that is left can be spared."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from marker_sim.campaign import planned_runs, simulated_failure
from marker_sim.faults import Fault, FaultKind, FaultSettings, Site, Step
from marker_sim.loading import load_system
from marker_sim.plan import Op, Plan, Task, Write
from properties.breaking import fails_with
from properties.faces.campaign import Piece, SearchState, Swarm, explore, make_small
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.search import Fails, make_plan, make_write_plan, shrink, without_one
from properties.faces.surroundings import TaskPool
from properties.faces.targets import CampaignRequest, parse_target
from properties.volume import CI_ONLY

# Mutants that needed from three to twenty-nine entries before the shrinker had all of its passes.
# With the seed of the plan that showed each last, where the search begins.
HARD = {
    "ghost-put": 248,
    "short-list": 286,
    "exists-while-flushing": 4,
    "unconditional-replace": 0,
    "untyped-directory-is-direct": 24,
    "read-error-is-empty": 146,
    "missing-file-breaks-rollback": 5,
    "rollback-not-retried": 12,
}
# A local disk has no fault that lasts while somebody reads: four are what a driver needs to give up, beside two writes.
ENTRIES_MAX = {"s3": 5, "local": 6}
PLACES = [(mode, storage) for storage in ("s3", "local") for mode in ("timeline", "direct")]


def first_failure(name: str) -> tuple[Plan, Fails]:
    """The first plan of the swarm that shows a mutant, and the check whether another one does."""
    mutant = find_mutant(name)
    fails = fails_with(mutant.kills, load_mutant(mutant), load_profile("reference"))
    make = make_write_plan if mutant.of_writes else make_plan
    for seed in (HARD[name], *range(2_000)):
        plan = make(seed, *PLACES[seed % len(PLACES)])
        if fails(plan):
            return plan, fails
    raise AssertionError(f"{name} survives the swarm")


# The slowest of them takes as long as all others.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=CI_ONLY if name == "read-error-is-empty" else ()) for name in HARD]
)
def test_no_entry_of_a_shrunk_plan_can_be_removed(name: str) -> None:
    plan, fails = first_failure(name)
    small = shrink(plan, fails, runs_max=4_000, budget_s=60.0)
    assert fails(small) and small.entries <= ENTRIES_MAX[small.storage] < plan.entries, small
    for less in without_one(small):
        assert not fails(less), f"{less} still fails"


@pytest.mark.parametrize("runs_max", [0, 1, 7, 40])
def test_a_budget_of_runs_is_never_exceeded(runs_max: int) -> None:
    plan, fails = first_failure("rollback-not-retried")
    runs = []

    def counted(candidate: Plan) -> bool:
        runs.append(candidate)
        return fails(candidate)

    small = shrink(plan, counted, runs_max=runs_max)
    assert len(runs) <= runs_max
    assert fails(small), "whatever the budget was, the result still fails"


def test_a_budget_of_seconds_is_exceeded_by_one_run_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_write_plan(3, "timeline", "s3")
    clock = [0.0]
    monkeypatch.setattr("marker_sim.search.shrinking.shrinker.time.monotonic", lambda: clock[0])

    def slow(candidate: Plan) -> bool:
        clock[0] += 1.0
        return False

    for budget_s in (0.0, 1.0, 7.5):
        clock[0] = 0.0
        assert shrink(plan, slow, budget_s=budget_s) == plan
        assert clock[0] <= budget_s + 1.0


def test_a_crowd_becomes_as_many_as_are_needed_within_fifty_runs() -> None:
    ops = tuple(Op(actor=f"executor-{n}", kind="create", name=f"p/{n}.marker.CREATE", after_ms=n) for n in range(200))
    faults = (Fault.of(FaultKind.SERVER_ERROR, "server", Step(300)),)
    small = shrink(Plan(ops=ops, faults=faults, jitter=7), lambda plan: len(plan.ops) >= 30, runs_max=50)
    assert (len(small.ops), small.faults, small.jitter) == (30, (), 0)


def test_a_step_far_into_a_long_plan_becomes_a_place() -> None:
    ops = tuple(Op(actor="driver", kind="create", name=f"p/{n}.parquet.marker.CREATE") for n in range(60))
    fault = Fault.of(FaultKind.TIMEOUT_LATE, "server", Step(120))

    def fails(candidate: Plan) -> bool:
        """The step is that call in the whole plan only; the place is the same in all."""
        if not candidate.ops or not candidate.faults:
            return False
        (hit,) = candidate.faults
        return hit.site == "server: batch file put" or (not hit.site and hit.n == 2 * len(candidate.ops) == 120)

    small = shrink(Plan(ops=ops, faults=(fault,)), fails)
    assert small.entries == 2 and small.faults[0].site == "server: batch file put"


def test_refusals_of_one_call_become_one_fault_that_lasts() -> None:
    faults = tuple(Fault.of(FaultKind.SERVER_ERROR, "server", Step(step)) for step in (2, 3, 4, 5))
    op = Op(actor="executor-0", kind="create", name="p/a.parquet.marker.CREATE")

    def fails(candidate: Plan) -> bool:
        return sum(f.settings.calls for f in candidate.faults) >= 4

    small = shrink(Plan(ops=(op,), faults=faults), fails)
    assert [(f.kind, f.settings.calls) for f in small.faults] == [(FaultKind.THROTTLED, 4)]


def test_what_is_left_of_faults_at_one_site_moves_up() -> None:
    site = "server: directory listed"
    faults = tuple(Fault.of(FaultKind.IO_ERROR, "server", Site(site, step)) for step in range(1, 8))
    op = Op(actor="executor-0", kind="create", name="p/a.parquet.marker.CREATE")

    def fails(candidate: Plan) -> bool:
        """Four in a row: a process that was refused at the first is refused three times more."""
        steps = [fault.n for fault in candidate.faults]
        first = 1 + sum(step in (1, 2, 3) for step in steps if len(steps) > 4)
        return all(first + n in steps for n in range(4))

    assert [fault.n for fault in shrink(Plan(ops=(op,), storage="local", faults=faults), fails).faults] == [
        1,
        2,
        3,
        4,
    ]


def test_two_clients_become_one_and_a_request_under_way_a_plain_kill() -> None:
    ops = tuple(Op(actor=f"executor-{n}", kind="create", name=f"p/{n}.parquet.marker.CREATE") for n in range(6))
    fault = Fault.of(FaultKind.ORPHANED, "executor-3", Step(9), restart_ms=400, late_ms=900)
    plan = Plan(ops=ops, faults=(fault,), jitter=7)

    def fails(candidate: Plan) -> bool:
        kinds = {fault.kind for fault in candidate.faults}
        return len(candidate.ops) >= 2 and bool(kinds & {FaultKind.KILL, FaultKind.ORPHANED})

    small = shrink(plan, fails)
    assert len({op.actor for op in small.ops}) == 1 and len(small.ops) == 2
    assert small.jitter == 0
    assert [(f.kind, f.n, f.settings) for f in small.faults] == [(FaultKind.KILL, 1, FaultSettings())]


def test_entries_that_can_only_go_together_go_together() -> None:
    ops = tuple(
        Op(actor="driver", kind=kind, name="p/a.parquet.marker.CREATE") for kind in ("create", "list", "delete")
    )

    def fails(candidate: Plan) -> bool:
        kinds = {op.kind for op in candidate.ops}
        return "list" in kinds and ("create" in kinds) == ("delete" in kinds)

    assert [op.kind for op in shrink(Plan(ops=ops), fails).ops] == ["list"]


def test_a_fault_at_a_site_stays_there_and_strikes_earlier() -> None:
    site = "driver: rollback requested"
    fault = Fault.of(FaultKind.KILL, "driver", Site(site, 5), restart_ms=30)
    plan = Plan(
        directories=(), writes=tuple(Write(tasks=(Task(), Task(group="f1"))) for _ in range(4)), faults=(fault,)
    )
    small = shrink(plan, lambda p: any(f.site == site for f in p.faults))
    assert small.faults == (fault.at(1).but(restart_ms=0),) and small.entries == 1


@pytest.mark.parametrize(
    ("name", "cause", "entries", "last"),
    [("no-last-line-end", "file-cut", 0, 0), ("parent-directories-accepted", "no-clear-answer", 1, 13),
     ("known-by-its-end", "another-server", 2, 190)],
)  # fmt: skip
def test_an_entry_that_only_names_the_cause_is_not_kept(name: str, cause: str, entries: int, last: int) -> None:
    mutant, profile = find_mutant(name), load_profile("reference")
    system = load_mutant(mutant)
    by_cause = fails_with(mutant.kills, system, profile, cause)
    seeds = (last, *range(400))  # The one that showed it last comes first.
    plan = next(plan for seed in seeds if by_cause(plan := make_plan(seed, *PLACES[seed % len(PLACES)])))
    small = make_small(plan, system, mutant.kills, profile, cause, 60.0)
    assert small.entries <= entries, small
    assert fails_with(mutant.kills, system, profile)(small)


TWO_DEFECTS = """
from marker_sim.markers.store import Created
from marker_sim.names import data_path, is_append
from marker_sim.seams import Condition, StorageError

class Two:
    def __init__(self, context):
        self.storage, self.prefix = context.storage, f"{context.directory}/"
    def create(self, name):
        if name.startswith("odd"):
            return Created.CREATED
        try:
            self.storage.put(self.prefix + name, b"", Condition.IF_ABSENT)
        except StorageError:
            pass
        return Created.CREATED
    def list_all(self):
        return tuple(path.removeprefix(self.prefix) for path in self.storage.list(self.prefix))
    def list_data_paths(self):
        return tuple({data_path(name) for name in self.list_all() if not is_append(name)})
    def list_log_paths(self):
        return tuple({data_path(name) for name in self.list_all() if is_append(name)})
    def exists(self):
        return bool(self.list_all())
    def delete(self):
        paths = self.storage.list(self.prefix)
        for path in paths:
            self.storage.delete(path)
        return bool(paths)
"""


def test_one_defect_does_not_become_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways to lose a marker in one class: a put that failed, and a name that is never stored."""
    (tmp_path / "two_defects_for_test.py").write_text(TWO_DEFECTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    system, profile = load_system("two_defects_for_test:Two"), load_profile("reference")
    ops = tuple(
        Op(actor="executor-0", kind="create", name=f"{name}.parquet.marker.CREATE", after_ms=50)
        for name in ("odd", "a", "b", "odd", "c")
    )
    faults = tuple(Fault.of(FaultKind.SERVER_ERROR, "executor-0", Step(step)) for step in (2, 3, 4, 5))
    plan = Plan(mode="direct", storage="s3", ops=ops, faults=faults)
    for cause in ("put-failed", "never-stored"):
        small = make_small(plan, system, "G1", profile, cause, 60.0)
        assert [op.name.startswith("odd") for op in small.ops] == [cause == "never-stored"], small
        assert bool(small.faults) == (cause == "put-failed")
        assert fails_with("G1", system, profile, cause)(small)


@pytest.mark.parametrize("jobs", [1, 2])
def test_shrinking_ends_with_the_budget_or_soon_after_a_search_that_used_it_up(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, lines = list[float](), list[str]()

    def slow(*_: object, budget_s: float, **__: object) -> None:
        given.append(budget_s)
        time.sleep(budget_s)

    monkeypatch.setattr(simulated_failure, "smaller", slow)
    monkeypatch.setattr(planned_runs, "SHRINK_MIN_S", 1.0)
    monkeypatch.setattr(planned_runs, "workers", lambda _, jobs, do: TaskPool(do))  # All of it in this process.
    target = parse_target("mutant:ack-before-flush")
    request = CampaignRequest(
        target=target, modes=("timeline",), storages=("s3",), seed=1, profile=load_profile("reference"), budget_s=0.01,
        jobs=jobs,
    )  # fmt: skip
    system = target.load()
    assert system is not None
    search = SearchState(request=request, progress=lines.append)
    with planned_runs.PlannedRuns(search, system) as runs:
        search.add(explore(Piece(settings=runs._settings, first=0, count=48), Swarm(system, runs._settings)))
        assert len({kind.guarantee for kind in search.found}) > 2, "several failures share the time"
        runs.shrink()
    assert 0.0 < sum(given) <= 1.0 and all(0.0 < each < 1.0 for each in given)
    first = f"shrinking {next(iter(search.found)).guarantee} (1 of "
    assert lines[0].startswith(first) and len(lines) == len(given)
    assert all(f" ({n + 1} of " in line for n, line in enumerate(lines[:3]))

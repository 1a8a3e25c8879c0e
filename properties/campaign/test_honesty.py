"""A campaign says what it did not meet, where faults struck, and that too little happened; a quiet one never holds."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import takewhile
from math import exp, inf, lgamma, log
from pathlib import Path

import pytest

from marker_sim.faults import Fault, FaultKind, Step, drawable
from marker_sim.judges import judge
from marker_sim.loading import load_system
from marker_sim.plan import MODES, PLACES, STORAGES, Op, Plan, Task, Write
from marker_sim.seams import Conflicted, StorageFailed
from marker_sim.system import System, reference
from properties.correct import hex_names
from properties.faces.campaign import (
    CHANGED,
    FAULT_ONE_IN,
    GOALS,
    LAID_OUT,
    LOOK_EVERY,
    PHASES,
    RUNS_LEAST,
    SURE,
    THRESHOLDS,
    WRITES_EVERY,
    PlannedRuns,
    SearchState,
    below_thresholds,
    differ_elsewhere,
    digest,
    execute,
    fault_rows,
    reached,
    run_campaign,
    too_few,
    why_not,
)
from properties.faces.judges import load_profile
from properties.faces.markers import Context, Created, Rejected
from properties.faces.outcome import Campaign, CoverageGap, PhaseWalk, Statistics
from properties.faces.report import judge_campaign
from properties.faces.search import make_plan, make_write_plan
from properties.faces.targets import CampaignRequest, parse_target
from properties.volume import CI_ONLY

NAME = "p/f_0-0-0_001.parquet.marker.CREATE"
SEEDS = 25


@pytest.fixture(scope="module")
def statistics() -> Statistics:
    """The first runs of a campaign over everything, all of them looked at."""
    counted = Statistics()
    for seed in range(SEEDS):
        for pair in PLACES:
            for make in (make_plan, make_write_plan):
                history, _ = execute(make(seed, *pair), reference())
                counted.add(history, judge(history))
                counted.count_coverage(history)
    return counted


def test_what_is_declared_often_is_met_as_often_as_declared(statistics: Statistics) -> None:
    for goal in GOALS:
        due = goal.expected(statistics.looked, False)
        assert goal.times(statistics) >= due / 2 or due < 4, goal


def test_no_fault_strikes_where_that_is_declared_impossible(statistics: Statistics) -> None:
    for kind, phases in statistics.faults_by_phase.items():
        for phase in phases:
            assert phase in PHASES, f"{kind} struck in {phase!r}, which no table knows"
            assert not why_not(FaultKind(kind), phase), f"{kind} struck in {phase}, which is declared impossible"


def test_every_kind_of_fault_has_a_row_and_every_cell_is_met_unmet_or_impossible(statistics: Statistics) -> None:
    rows = {row.kind: row for row in fault_rows(statistics, PLACES)}
    drawn = {kind.value for kind in FaultKind if any(kind in drawable(*pair) for pair in PLACES)}
    assert set(rows) == drawn | set(statistics.faults_by_phase)
    assert rows["kill"].met["server: batch pending"] == statistics.faults_by_phase["kill"]["server: batch pending"] > 0
    assert "server: idle" in rows["throttled"].impossible
    for row in rows.values():
        assert not set(row.met) & set(row.unmet)
        assert not set(row.impossible) & (set(row.met) | set(row.unmet))
    direct = {row.kind: row for row in fault_rows(statistics, [("direct", "s3")])}
    assert "request-lost" not in direct
    assert not any(phase.startswith("server") for phase in direct["kill"].unmet)


def test_the_reference_is_above_every_floor(statistics: Statistics) -> None:
    assert below_thresholds(statistics, "hudi") == ()
    for threshold in THRESHOLDS:
        done, of = threshold.measure(statistics)
        assert done >= 2 * threshold.least * of or threshold.least >= 0.4, threshold.name


def test_what_was_due_and_never_met_takes_the_ground_from_its_guarantees(statistics: Statistics) -> None:
    poor = Statistics()
    poor.merge(statistics)
    for key in list(poor.met_in):
        if key.endswith("/duplicate-waited"):
            del poor.met_in[key]
    found = reached(poor, PLACES, reference(), False)
    assert [gap.sentence.partition(":")[0] for gap in found.gaps] == ["duplicate-waited"]
    assert found.gaps[0].concerns("G5", "timeline", "s3") and not found.gaps[0].concerns("G13", "timeline", "s3")
    outcome = judge_campaign(_campaign(poor, found.gaps), load_profile("reference"), None, Path("report"), [])
    verdicts = {row.id: row.verdict for row in outcome.rows if (row.mode, row.storage) == ("timeline", "s3")}
    assert (verdicts["G5"], verdicts["G13"]) == ("inconclusive", "holds")
    assert outcome.exit_code() == 3


def test_a_small_campaign_says_that_it_was_too_small_and_concludes_nothing() -> None:
    small = Statistics()
    history, _ = execute(make_plan(1, "timeline", "s3"), reference())
    small.add(history, judge(history))
    small.count_coverage(history)
    found = reached(small, [("timeline", "s3")], reference(), False)
    assert not found.gaps and "died-recovering" in found.too_rare and "fell-back" not in found.too_rare
    assert below_thresholds(small, "hudi") == ()


def _deaths(runs: int, died: int) -> Statistics:
    """Of so many runs with a server, so many in which it was killed."""
    statistics = Statistics()
    statistics.runs = RUNS_LEAST
    statistics.made["timeline/s3/operations"] = runs
    statistics.deaths["timeline/s3/operations/server"] = died
    return statistics


@pytest.mark.parametrize(
    ("runs", "died", "doubted"), ((230, 0, False), (240, 0, True), (85, 2, False), (1000, 12, True), (1000, 20, False))
)
def test_deaths_of_servers_are_asked_of_enough_runs_and_doubt_the_mode_with_servers_alone(
    runs: int, died: int, doubted: bool
) -> None:
    found = below_thresholds(_deaths(runs, died), "names")
    gaps = [gap for gap in found if gap.sentence.startswith("share of runs with a server")]
    assert bool(gaps) == doubted
    assert all(d.concerns("G3", "timeline", "s3") and not d.concerns("G3", "direct", "s3") for d in gaps)


def test_bad_luck_doubts_one_campaign_in_a_thousand_at_the_least_ratio_and_one_in_a_million_at_twice_as_much() -> None:
    """The exact probability that a Poisson count is so low that a campaign of any size is doubted."""

    def doubted(mean: float, due: float) -> float:
        counts = takewhile(lambda done: too_few(done, due), range(int(due) + 1))
        return sum(exp(done * log(mean) - mean - lgamma(done + 1)) for done in counts)

    for due in range(1, 400):
        assert doubted(due, due) < 1e-3
        assert doubted(2.0 * due, due) < 1e-6
    assert too_few(0, 7.0) and too_few(140, 200.0) and not too_few(0, 0.0)


def test_what_the_kit_cannot_bring_about_or_see_is_no_goal_of_that_kind_of_system(statistics: Statistics) -> None:
    foreign = load_system("properties.correct.hex_names:Markers")
    asked = reached(statistics, PLACES, foreign, False)
    assert "batch-of-several" not in asked.counts and "duplicate-waited" in asked.counts
    assert asked.not_applicable["earlier-instant-rolled-back"] == LAID_OUT
    one_mode = replace(reference(), server=None)
    only = reached(statistics, [("direct", storage) for storage in STORAGES], one_mode, False)
    assert only.not_applicable == {"other-format-rolled-back": CHANGED}
    assert not reached(statistics, PLACES, reference(), False).not_applicable


class Shy(hex_names.Markers):
    """Fails a create of a name that exists: never gets as far as to answer that it does."""

    def create(self, name: str) -> Created:
        created = super().create(name)
        if created is Created.EXISTS:
            raise Conflicted(name)
        return created


def test_a_goal_that_a_system_keeps_from_happening_is_still_its_goal() -> None:
    shy, place, counted = System(name="shy", direct=Shy, layout="names"), ("direct", "s3"), Statistics()
    for seed in range(SURE * 3):
        history, _ = execute(make_plan(seed, *place), shy)
        counted.add(history, judge(history))
        counted.count_coverage(history)
    found = reached(counted, [place], shy, False)
    (gap,) = (gap for gap in found.gaps if gap.sentence.startswith("name-collided: "))
    assert gap.concerns("G2", *place) and "name-collided" not in found.not_applicable


def test_a_goal_is_due_from_so_many_sampled_runs_on_that_chance_misses_it_once_in_a_million() -> None:
    assert exp(-SURE) <= 1e-6
    foreign = load_system("properties.correct.hex_names:Markers")
    for system in (reference(), foreign):
        for goal in GOALS:
            one_in = (system is foreign and goal.own_one_in) or goal.one_in
            for looked, due in ((SURE * one_in - 1, False), (SURE * one_in, not goal.why_not(system))):
                poor = Statistics()
                mode, storage = next(pair for pair in PLACES if goal.applies(*pair, goal.plans or "writes"))
                poor.looked[f"{mode}/{storage}/{goal.plans or 'writes'}"] = looked
                gaps = reached(poor, [(mode, storage)], system, False).gaps
                assert any(gap.sentence.startswith(f"{goal.name}: ") for gap in gaps) == due, goal


def test_a_kind_of_fault_is_due_by_the_runs_that_could_have_it() -> None:
    request = _request("reference", runs=1, modes=("timeline",), storages=("s3", "hdfs"))
    search = SearchState(request=request, progress=lambda _: None)
    runs = PlannedRuns(search, reference())
    search.statistics.made["timeline/hdfs/operations"] = 10**6
    assert not runs._faults_unmet()["fault reply-lost"] and runs._faults_unmet()["fault io-error"]
    search.statistics.made["timeline/s3/operations"] = SURE * FAULT_ONE_IN
    assert runs._faults_unmet()["fault reply-lost"] and not runs._faults_unmet()["fault stage-retried"]


def test_a_place_that_is_left_out_is_not_sampled() -> None:
    counted = Statistics()
    for counts in (counted.made, counted.looked):
        counts.update({"timeline/hdfs/operations": 10**6, "timeline/s3/operations": 3})
    counted.leave_out({("timeline", "hdfs")})
    assert counted.made == counted.looked == {"timeline/s3/operations": 3}


KINDS = {
    "reference": ("reference", "reference"),
    "both modes": ("properties.correct.hex_names:Markers", "python"),
    "server only": ("properties.correct.owner_batches:SYSTEM", "python"),
}
LONG = (2_000, 20_000) if os.environ.get("MARKER_SIM_PROFILE") == "nightly" else ()


@pytest.mark.parametrize("runs", (200, *LONG))
@pytest.mark.parametrize(
    "kind", ["reference", pytest.param("both modes", marks=CI_ONLY), pytest.param("server only", marks=CI_ONLY)]
)
def test_a_correct_system_of_each_kind_holds_in_campaigns_of_any_length(kind: str, runs: int) -> None:
    sut, profile = KINDS[kind]
    campaign = run_campaign(_request(sut, runs=runs, profile=profile), lambda _: None)
    assert not campaign.trouble and campaign.not_reached == ()
    outcome = judge_campaign(campaign, load_profile(profile), None, Path("report"), [])
    assert [row for row in outcome.rows if row.verdict == "violated"] == []
    undecided = {row.message for row in outcome.rows if row.verdict == "inconclusive"}
    assert undecided <= ({"no run had anything to judge"} if runs == 200 else set())


def _request(
    sut: str,
    *,
    runs: int,
    modes: tuple[str, ...] = MODES,
    storages: tuple[str, ...] = STORAGES,
    profile: str = "reference",
) -> CampaignRequest:
    return CampaignRequest(
        target=parse_target(sut),
        modes=modes,
        storages=storages,
        budget_s=inf,
        seed=1,
        profile=load_profile(profile),
        runs=runs,
        shrinking=False,
        canaries=False,
        jobs=1,
    )


def test_plans_of_both_kinds_are_looked_at() -> None:
    looked = Counter("writes" if turn % WRITES_EVERY == 1 else "operations" for turn in range(0, 60, LOOK_EVERY))
    assert min(looked["writes"], looked["operations"]) >= 60 // LOOK_EVERY // WRITES_EVERY
    assert SURE >= 10
    assert len({goal.name for goal in GOALS}) == len(GOALS) >= 25


def test_a_death_is_filed_under_what_its_process_was_doing() -> None:
    ops = (Op(actor="executor-0", kind="create", name=NAME),)
    seen: set[str] = set()
    for step in range(1, 24):
        fault = Fault.of(FaultKind.KILL, "server", Step(step))
        history, _ = execute(Plan(ops=ops, faults=(fault,)), reference())
        seen |= {phase for kind, phase in PhaseWalk(history).faults_by_phase if kind == "kill"}
    assert {"server: batch pending", "server: written and not answered"} <= seen
    phases = []
    for step in range(1, 16):
        fault = Fault.of(FaultKind.KILL, "driver", Step(step), executors_ms=0)
        plan = Plan(mode="direct", writes=(Write(tasks=(Task(),)),), directories=(), faults=(fault,))
        history, _ = execute(plan, reference())
        phases += [phase for kind, phase in PhaseWalk(history).faults_by_phase if kind == "kill"]
    order = ["begin", "stage", "finalize: listing", "commit: before the entry", "marker deletion"]
    assert [phase for phase in dict.fromkeys(phases) if phase.removeprefix("driver: ") in order] == [
        f"driver: {phase}" for phase in order
    ]


def test_two_runs_of_a_plan_in_processes_with_other_hash_seeds_are_equal_and_a_difference_is_seen() -> None:
    plans = [make_plan(3, "timeline", "s3"), make_write_plan(3, "direct", "local")]
    digests = [digest(execute(plan, reference())[0]) for plan in plans]
    assert differ_elsewhere("reference", plans, digests) == (2, 0)
    assert differ_elsewhere("reference", plans, digests[::-1]) == (2, 2)


class _Idle:
    """A marker store that never does anything. error: what it answers."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def create(self, name: str) -> Created:
        raise self._error

    def list_all(self) -> tuple[str, ...]:
        return ()

    def list_data_paths(self) -> tuple[str, ...]:
        return ()

    def list_log_paths(self) -> tuple[str, ...]:
        return ()

    def exists(self) -> bool:
        return False

    def delete(self) -> bool:
        return False


def refuses(context: Context) -> _Idle:
    """Refuses every create, politely."""
    return _Idle(Rejected("not today"))


def fails(context: Context) -> _Idle:
    """Answers every create with an error of storage."""
    return _Idle(StorageFailed("nothing works"))


@pytest.mark.parametrize("factory", ["refuses", "fails"])
def test_a_system_that_does_nothing_never_holds(factory: str) -> None:
    request = CampaignRequest(
        target=parse_target(
            f"{__name__}:{factory}" if "." in __name__ else f"properties.campaign.test_honesty:{factory}"
        ),
        modes=("direct",),
        storages=("s3", "local"),
        budget_s=600,
        seed=1,
        guarantees=frozenset({"G1", "G2", "G3", "G4", "G8", "G10"}),
        profile=load_profile("reference"),
        runs=30,
        shrinking=False,
    )
    campaign = run_campaign(request, lambda _: None)
    assert any(gap.sentence.startswith("share of creates that succeed") for gap in campaign.gaps)
    outcome = judge_campaign(campaign, load_profile("reference"), None, Path("report"), [])
    assert outcome.verdict != "holds" and outcome.exit_code() in (1, 3)
    assert not any(row.verdict == "holds" for row in outcome.rows)


def _campaign(statistics: Statistics, gaps: tuple[CoverageGap, ...]) -> Campaign:
    return Campaign(
        sut="reference",
        sut_version="",
        seed=1,
        duration_s=1.0,
        statistics=statistics,
        failures=(),
        last=None,
        not_reached=tuple(gap.sentence for gap in gaps),
        gaps=gaps,
    )

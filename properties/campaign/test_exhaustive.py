"""The reference under every single crash, what the space of crashes consists of, and that the search is not blind."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

import pytest

from marker_sim.faults import FaultKind
from marker_sim.system import reference
from properties.faces.campaign import COVERED, Case, Crashes, Piece, PieceResult, SearchSettings, Space, explore
from properties.faces.judges import load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.volume import CI_ONLY, SHARE, volume

PLACES = [("direct", s) for s in ("s3", "s3-unconditional", "local", "hdfs")] + [
    ("timeline", "s3"),
    ("timeline", "local"),
]
# All schedules take minutes; benchmarks/exhaustive.py has them. By night these four in every place; in CI in the
# timeline mode, and two in each place of the direct mode; by default the first of them.
SHORT = ("uniform", "retried", "given-up", "one-file")
OF_PLACE = {place: SHORT if place[1] in ("s3", "hdfs") else SHORT[2:] + SHORT[:2] for place in PLACES}
PROFILE = load_profile("reference")
# Of single crashes one in so many, of each actor and kind.
ONE_IN = SHARE // volume(SHARE)


def explored(space: Space, cases: Iterable[Case], guarantees: frozenset[str] | None = None) -> PieceResult:
    """Every case run and judged, with a row of each."""
    settings = SearchSettings(places=(), seed=0, guarantees=guarantees, profile=PROFILE, listing=True)
    seen = explore(Piece(settings=settings, first=0, count=sys.maxsize), Crashes(space, cases))
    seen.raise_error()
    assert not seen.statistics.differences
    return seen


def singles(space: Space) -> range:
    return range(space.size)


def pairs(space: Space) -> range:
    return range(space.size, 2 * space.size)


def covered(seen: PieceResult) -> int:
    return seen.statistics.reached.get(COVERED, 0)


@pytest.mark.parametrize(("mode", "storage"), PLACES)
def test_no_single_crash_breaks_the_reference(mode: str, storage: str) -> None:
    schedules = OF_PLACE[mode, storage][: volume(4 if mode == "timeline" else 2, nightly=4)]
    space = Space(reference(), (mode,), (storage,), schedules)
    numbers = singles(space)[::ONE_IN]
    done = explored(space, space.cases(numbers))
    assert not done.found, done.found
    assert done.taken == covered(done) == len(numbers), "each crash point is run, each crash happens"
    assert done.taken > volume(150 * len(schedules))


@pytest.mark.parametrize(("mode", "storage"), [("direct", "s3"), ("timeline", "s3"), ("timeline", "local")])
def test_no_pair_of_a_sample_breaks_the_reference_and_both_crashes_happen(mode: str, storage: str) -> None:
    space = Space(reference(), (mode,), (storage,), ("given-up",))
    done = explored(space, space.cases(pairs(space)[27 :: 9 * volume(4, quick=16)], every=11))
    assert not done.found, done.found
    assert done.taken == covered(done) > volume(40)


def test_every_actor_dies_at_each_of_its_calls_in_each_way_that_its_storage_has() -> None:
    space = Space(reference(), ("timeline",), ("s3", "local"), ("uniform",))
    for part, points in zip(space.parts, space.points, strict=True):
        for actor in ("driver", "executor-0", "executor-1", "executor-2", "server"):
            steps = sorted({p.n for p in points if p.target == actor})
            assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 5, (actor, steps)
        under_way = FaultKind.TORN_WRITE if part.storage == "local" else FaultKind.ORPHANED
        assert {p.kind for p in points} == {FaultKind.KILL, FaultKind.ATTEMPT_KILLED, under_way}
        kills = {
            (p.target[:6], p.settings.restart_ms, p.settings.executors_ms) for p in points if p.kind is FaultKind.KILL
        }
        assert kills == {("driver", 0, 0), ("driver", 0, 2000), ("execut", 0, 1), ("server", 0, 1), ("server", 3000, 1)}


def test_what_falls_back_is_not_run_again() -> None:
    space = Space(reference())
    assert sorted({(part.mode, part.storage) for part in space.parts}) == sorted(PLACES)


def test_every_number_has_its_cases_wherever_a_walk_begins_and_a_sample_has_some_of_them() -> None:
    space = Space(reference(), ("direct",), ("hdfs",), ("uniform",))
    around = range(space.size - 10, space.size + 3)
    at_once = list(space.cases(around))
    assert [case.place for case in at_once] == sorted({case.place for case in at_once})
    assert [len(case.crashes) for case in at_once[:11]] == [1] * 10 + [2], "pairs come behind the single crashes"
    assert [case for number in around for case in space.cases([number])] == at_once
    sampled = [case.place for case in space.cases(around, every=7)]
    assert set(sampled) < {case.place for case in at_once} and len(sampled) < len(at_once) / 2


def test_a_crash_that_does_not_happen_is_not_covered() -> None:
    space = Space(reference(), ("direct",), ("s3",), ("uniform",))
    case = next(space.cases(singles(space)))
    crash = case.crashes[0].at(9_999)
    never = Case((0, 0), case.part, replace(case.plan, faults=(crash,)), (crash,))
    assert not covered(explored(space, [never]))
    assert covered(explored(space, [case])) == 1


@pytest.mark.parametrize(
    ("name", "mode", "storage", "schedule"),
    [
        pytest.param("format-from-configuration", "timeline", "s3", "uniform", marks=CI_ONLY),
        pytest.param("rewritten-in-place", "timeline", "local", "one-file", marks=CI_ONLY),
        ("no-wait-for-the-dead", "direct", "s3", "uniform"),
    ],
)
def test_a_mutant_that_one_crash_shows_dies_by_singles(name: str, mode: str, storage: str, schedule: str) -> None:
    mutant = find_mutant(name)
    space = Space(load_mutant(mutant), (mode,), (storage,), (schedule,))
    done = explored(space, space.cases(singles(space)), frozenset({mutant.kills}))
    found = sum(bool(row.broken) for row in done.listed)
    assert 0 < found < done.taken / 4, f"{found} of {done.taken}: it takes a crash at the right step"


@pytest.mark.parametrize("name", ["rollback-not-retried", pytest.param("instant-removed-first", marks=CI_ONLY)])
def test_a_mutant_that_needs_an_interrupted_rollback_dies_by_pairs_and_not_by_singles(name: str) -> None:
    mutant = find_mutant(name)
    space = Space(load_mutant(mutant), ("direct",), ("s3",), ("uniform",))
    only = frozenset({mutant.kills})
    assert not explored(space, space.cases(singles(space)), only).found
    for case in space.cases(pairs(space), every=3):
        done = explored(space, [case], only)
        if done.found:
            assert covered(done) and len(case.crashes) == 2
            return
    pytest.fail(f"{name} survived the pairs")

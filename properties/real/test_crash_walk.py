"""Crash points of a short workload with real processes: each is met, the next write recovers, and no judge objects.

A part of the points is walked here, another part each time the seed is another; `benchmarks/crash_walk.py` walks all of
them. Each planted defect must be seen from a crash point that is known to show it.
"""

from __future__ import annotations

import random

import pytest

from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from properties.faces.worlds import ForkServer
from properties.real.arms import sound
from properties.real.crash_walk import Point, crash_points, walk
from properties.real.running import run_real
from properties.volume import CI_ONLY

POINTS = {"local": 5, "s3": 2}
FIRST = (Task(partition="p", group="a"),)
AGAIN = (Task(partition="p", group="a", kind="MERGE"), Task(group="b"))


def _plan(mode: str, storage: str) -> Plan:
    writes = (Write(tasks=FIRST), Write(tasks=AGAIN, abandon=True), Write(tasks=AGAIN))
    return Plan(mode=mode, storage=storage, directories=(), writes=writes, interval_ms=10, num_threads=2)


@pytest.mark.draws(runs=2, one_in=1)
@pytest.mark.parametrize(
    ("mode", "storage"), [("direct", "local"), pytest.param("timeline", "local", marks=CI_ONLY), ("timeline", "s3")]
)
def test_whoever_dies_anywhere_is_recovered_from(
    mode: str, storage: str, fork_server: ForkServer, chaos_seed: int
) -> None:
    plan = _plan(mode, storage)
    points = crash_points(plan, fork_server)
    chosen = random.Random(f"{chaos_seed} {mode} {storage}").sample(points, POINTS[storage])
    for point, met, history in walk(plan, tuple(chosen), fork_server):
        assert met, point
        assert sound(history), point


@pytest.mark.parametrize(
    ("mutant", "guarantee", "point"),
    [
        ("file-before-marker", "G13", Point("executor", 1, "after")),
        ("markers-deleted-before-commit", "G17", Point("driver", 3, "after")),
        ("no-reconcile", "G14", Point("executor", 4, "after")),
    ],
)
def test_a_planted_defect_is_seen_in_real_processes(
    mutant: str, guarantee: str, point: Point, fork_server: ForkServer
) -> None:
    plan = _plan("direct", "local")
    ((_, met, history),) = walk(plan, (point,), fork_server, f"mutant:{mutant}")
    assert met
    assert guarantee in {finding.guarantee for finding in judge(history) if finding.breaches}
    ((_, _, reference),) = walk(plan, (point,), fork_server)
    assert sound(reference)


def test_no_process_outlives_its_run(fork_server: ForkServer) -> None:
    run_real(_plan("timeline", "local"), fork_server=fork_server)
    lives = tuple(fork_server.lives.values())
    assert {life.role for life in lives} == {"driver", "executor", "timeline-server"}
    assert all(life.gone.is_set() for life in lives)

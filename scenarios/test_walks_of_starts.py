"""Walks of real servers whose start does something on storage, or that keep files of their own outside of tables."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.plan import Plan
from properties.faces.campaign import broken_in
from properties.faces.faults import REPLY
from properties.faces.outcome import KEPT, NOT_MET
from properties.faces.search import BASES, STARTING, Walk
from properties.faces.targets import CampaignRequest, HttpTarget, RealRuns, ServerOptions
from properties.volume import CI_ONLY, volume
from scenarios.correct_servers.starts import HERE, start
from scenarios.test_walks import PROFILE, RUN_S, creates

RECOVERING = shlex.join([sys.executable, "-S", str(HERE.parent / "servers" / "recovering_server.py")])
# The first points fail, the fifth is a death; a recovery that loses something does so at its first death.
STARTS, WORKLOADS = volume(40, quick=6), 2


@contextmanager
def started(tmp_path: Path, command: str, reader: str, ahead: bool = False) -> Iterator[RealRuns]:
    request = CampaignRequest(
        target=HttpTarget(ahead=ahead), modes=("timeline",), storages=("local",), seed=1, profile=PROFILE,
        budget_s=600.0, server=ServerOptions(start=command, reader=reader), report=tmp_path,
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as opened:
        yield opened


def played(opened: RealRuns, points: int, chosen: Callable[[Plan], bool], seed: int = 1) -> tuple[Walk, Counter[str]]:
    """The walk after so many of the chosen points, and what was counted in their runs."""
    walk, counts = Walk("local", 2, 25, seed), Counter[str]()
    bases = WORKLOADS
    while points and (plan := walk.next()) is not None:
        if not bases and not chosen(plan):
            walk.took(plan, (), False, ())
            continue
        run = opened.again(plan, time.monotonic() + RUN_S)
        counts.update(run.counts)
        kinds = broken_in(run.history, plan, PROFILE)
        struck = plan.faults[-1] in run.struck  # type: ignore[attr-defined]
        walk.took(plan, run.calls, struck, {kind.guarantee for kind in kinds})  # type: ignore[attr-defined]
        bases, points = max(0, bases - 1), points if bases else points - 1
    return walk, counts


def at_a_start(plan: Plan) -> bool:
    return plan.faults[-1].trigger.starting  # type: ignore[union-attr]


def dies_at_a_start(plan: Plan) -> bool:
    return at_a_start(plan) and plan.faults[-1].kind.row.kills


def outside_of_tables(plan: Plan) -> bool:
    return plan.faults[-1].trigger.pattern.startswith("^/")  # type: ignore[union-attr]


def recovered(
    tmp_path: Path, broken: str = "", chosen: Callable[[Plan], bool] = at_a_start
) -> tuple[list[tuple[str, str, str]], Counter[str]]:
    """Call, fate and what came of each point at a start, of a server that puts its journal into its state then."""
    command = f"{RECOVERING} {{port}} {{storage}}" + (f" --broken {broken}" if broken else "")
    with started(tmp_path, command, f"{RECOVERING} --names {{dir}}") as opened:
        walk, counts = played(opened, STARTS, chosen)
    rows = [row for row in walk.rows() if row.base == BASES[STARTING]]
    came = [(row.call, fate, what) for row in rows for fate, what in row.fates.items() if what not in ("", NOT_MET)]
    assert len(came) >= 0.5 * (counts["in plans: plan"] - WORKLOADS)
    return came, counts


@CI_ONLY
def test_a_server_that_ends_when_storage_fails_at_a_start_and_loses_nothing_keeps_its_promises(tmp_path: Path) -> None:
    came, counts = recovered(tmp_path)
    assert {what for _, _, what in came} == {KEPT}
    assert counts["server not up again until faults were over"], "no error at a start ended this server"


def test_a_recovery_that_loses_something_when_it_dies_itself_is_found(tmp_path: Path) -> None:
    came, _ = recovered(tmp_path, "empties-first", dies_at_a_start)
    assert any("G3" in what.split() for _, _, what in came)


@CI_ONLY
def test_a_server_that_never_comes_up_after_a_death_in_its_recovery_is_violated(tmp_path: Path) -> None:
    came, _ = recovered(tmp_path, "needs-a-hand")
    assert "G6" in {what for _, _, what in came} <= {KEPT, "G6"}


@CI_ONLY
@pytest.mark.parametrize("name", ["python-one-log", "python-sqlite"])
def test_files_of_a_private_format_outside_of_tables_are_walked(tmp_path: Path, name: str) -> None:
    with started(tmp_path, *start(name, tmp_path)) as opened:
        walk, _ = played(opened, volume(40, quick=4), outside_of_tables)
    rows = walk.rows()
    assert {row.call.partition(" ")[2] for row in rows} & {"/markers.log", "/markers.sqlite-wal"}
    assert {what for row in rows for what in row.fates.values()} - {"", NOT_MET} == {KEPT}


def test_a_server_that_calls_storage_before_it_is_needed_may_not_be_started_ahead(tmp_path: Path) -> None:
    command = f"{RECOVERING} {{port}} {{storage}}"
    plan = creates(Fault.of(FaultKind.KILL, "server", Site(REPLY, 2)))
    first, *others = plan.ops
    plan = replace(plan, ops=(first, replace(first, name="p/late.marker.CREATE", after_ms=1_000), *others))
    with (
        started(tmp_path, command, "echo {dir}", ahead=True) as opened,  # Two servers write over each other's file.
        pytest.raises(HarnessError, match="called storage before it was needed"),
    ):
        opened.again(plan, time.monotonic() + RUN_S)

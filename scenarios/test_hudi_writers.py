"""`--sut hudi-java:VERSION --writers N`: writers of one table in one JVM, of which the gate lets one go on at a time.

Tests marked `jvm` start real JVMs; they need Java 17 and `pip install '.[spark]'`, and fetch the jars once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from properties.faces.cli import parse_request
from properties.faces.outcome import failures_in
from properties.faces.targets import HEARTBEAT_OVER_MS, ROLLS, WRITERS_SHAPE, CampaignRequest, JavaRuns, OrderRuns
from properties.faces.worlds import SHARING, SparkRun

GROUP = Write(tasks=(Task(partition="p0", group="a"),))
OTHER = Write(tasks=(Task(partition="p0", group="b"),))
ROLLER = Write(name=ROLLS)
COMMIT = r"\.hoodie/timeline/\d+_\d+\.commit\.[0-9a-f-]{36}$"
NO_LOCK = "org.apache.hudi.client.transaction.lock.NoopLockProvider"
PARQUET = r"p0/[^/]*\.parquet$"


def paused(call: str, pattern: str, for_ms: int = HEARTBEAT_OVER_MS, writer: int = 1) -> Fault:
    return Fault.of(FaultKind.PAUSE, f"writer-{writer}", Call(pattern, (call,)), for_ms=for_ms)


def asking(report: Path, version: str, *, writers: str = "3", orders: bool = False) -> CampaignRequest:
    request = parse_request(
        argv=(), sut=f"hudi-java:{version}", mode="direct", storage=None, budget="400s", seed="1", guarantees=None,
        profile=None, expect=None, report=str(report), writers=writers, orders=orders,
    )  # fmt: skip
    return replace(request, report=report)


def raced(request: CampaignRequest, *plans: Plan) -> list[tuple[SparkRun, set[str]]]:
    """Each plan's run and the guarantees that it breaks."""
    found = []
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, JavaRuns)
        for plan in plans:
            played = runs.again(plan, runs.program.deadline)
            failures = failures_in(played.history, judge(played.history), request.profile)
            found.append((played, {kind.guarantee for kind in failures}))
    return found


def race(*writes: Write, faults: tuple[Fault, ...] = (), mode: str = "direct") -> Plan:
    return Plan(mode=mode, storage="local", num_threads=1, shape=WRITERS_SHAPE, writes=writes, faults=faults)


def told(played: SparkRun) -> list[str]:
    """How the writes of the race ended."""
    ends = (e for e in played.history.events if e.operation == "write" and e.process.startswith("writer-"))
    return [event.kind for event in ends if event.kind != "invoke"]


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["1.1.1", "1.2.0"])
def test_a_writer_that_was_told_committed_loses_its_rows_to_the_rollback_of_another(
    tmp_path: Path, version: str
) -> None:
    planned = race(GROUP, ROLLER, faults=(paused("close", PARQUET), paused("delete", PARQUET, 1_000, writer=2)))
    completed = race(GROUP, ROLLER, faults=(paused("open", COMMIT),))
    brief = race(GROUP, ROLLER, faults=(paused("open", COMMIT, 1_000),))
    first, second, control = raced(asking(tmp_path, version), planned, completed, brief)
    for (played, broken), expected in ((first, {"G24", "G26"}), (second, {"G29"})):
        assert told(played)[0] == "ok" and expected <= broken, (told(played), broken)
    assert not control[1] and told(control[0]) == ["ok", "ok"]


@pytest.mark.jvm
def test_of_two_writers_of_a_group_one_commits_and_of_two_groups_both(tmp_path: Path) -> None:
    at_data = (paused("close", PARQUET, 1_000),)
    plans = [
        race(GROUP, other, faults=at_data, mode=mode) for other in (GROUP, OTHER) for mode in ("direct", "timeline")
    ]
    runs = raced(asking(tmp_path, "1.2.0"), *plans)
    assert [broken for _, broken in runs] == [set()] * 4
    assert [told(played) for played, _ in runs] == [["ok", "info"]] * 2 + [["ok", "ok"]] * 2


@pytest.mark.jvm
def test_a_writer_that_dies_while_it_has_the_lock_leaves_it_and_its_files_to_others(tmp_path: Path) -> None:
    death = Fault.of(FaultKind.KILL, "writer-1", Call(COMMIT, ("open",)))
    ((played, broken),) = raced(asking(tmp_path, "1.2.0"), race(GROUP, GROUP, faults=(death,)))
    assert told(played) == ["info", "ok"] and not broken
    locked = [(e.process, e.operation) for e in played.history.events if e.operation in ("lock", "unlock")]
    assert ("writer-2", "unlock") in locked


def in_order(request: CampaignRequest, runs_max: int) -> Iterator[tuple[tuple[str, ...], frozenset[str], OrderRuns]]:
    """How the writes of each order of two writers ended, what it broke, and what is known by then of all orders."""
    with request.target.real_runs(request, lambda line: None) as runs:
        assert isinstance(runs, OrderRuns)
        for _ in range(runs_max):
            drawn = runs.draw({})
            assert drawn is not None
            played = runs.play(drawn)
            assert not played.trouble and not played.cut
            runs.took(drawn, played, ())
            failures = failures_in(played.history, played.findings or (), request.profile)
            yield tuple(sorted(told(played))), frozenset(kind.guarantee for kind in failures), runs


@pytest.mark.jvm
def test_orders_of_two_writers_of_a_group_are_followed_and_a_lock_that_nobody_takes_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asking(tmp_path, "1.2.0", writers="2", orders=True)
    ends = set()
    for told_, broken, runs in in_order(request, 30):
        ends.add(told_)
        assert broken <= {"G24"}  # As the next test shows.
        (known,) = runs.searches.values()
    assert ends == {("ok", "ok"), ("info", "ok")}
    assert (known.run, known.again, known.strayed) == (30, 0, 0) and known.left > 1
    monkeypatch.setitem(SHARING, "default", {"hoodie.write.lock.provider": NO_LOCK})
    assert any("G26" in broken for _, broken, _ in in_order(request, 200))


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["1.1.1", "1.2.0"])
def test_a_commit_that_began_first_and_wrote_last_is_hidden_behind_the_other(tmp_path: Path, version: str) -> None:
    before_write = Fault.of(FaultKind.PAUSE, "writer-1", Call(r"\.hoodie/timeline$", ("list",), 2), for_ms=1_000)
    ((played, broken),) = raced(asking(tmp_path, version), race(GROUP, GROUP, faults=(before_write,)))
    assert told(played) == ["ok", "ok"] and broken == {"G24"}

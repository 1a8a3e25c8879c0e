"""Kinds of faults: each happens as planned, and breaks code that is not prepared for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASS, FAULT_CLASSES, Fault, FaultKind, Site, Step, drawable
from marker_sim.history import Event, History
from marker_sim.judges import judge
from marker_sim.plan import Op, Plan, Task, Write, read_plan
from marker_sim.seams import Condition, Conflicted
from marker_sim.system import System, reference
from marker_sim.worlds.processes import faults as real_processes
from properties.faces.campaign import execute
from properties.faces.judges import SHIPPED, load_profile, parse_profile
from properties.faces.markers import Created, DirectMarkers
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.worlds import FOREIGN

CREATE = Op(actor="executor-0", kind="create", name="a.marker.CREATE")
LIST = Op(actor="executor-0", kind="list", after_ms=500)
TIMELINE = Plan(ops=(CREATE,))
DIRECT = Plan(mode="direct", ops=(CREATE,))


def fault(kind: FaultKind, actor: str = "executor-0", step: int = 1, site: str = "", **more: Any) -> Fault:
    trigger = Site(site, step) if site else Step(step)
    return Fault.of(kind, actor, trigger, **more)


def run(plan: Plan, *faults: Fault, system: System | None = None) -> History:
    return execute(replace(plan, faults=faults), system or reference())[0]


def struck(history: History, kind: FaultKind) -> list[Event]:
    return [event for event in history.events if event.kind == "fault" and event.operation == kind.value]


def waited_ms(history: History) -> float:
    invoke = next(event for event in history.events if event.kind == "invoke")
    done = next(e for e in history.events if e.caused_by == invoke.index and e.kind in ("ok", "fail", "info"))
    return (done.time_ns - invoke.time_ns) / 1e6


def outcome(history: History) -> str:
    return next(event.kind for event in history.events if event.kind in ("ok", "fail", "info"))


def broken(history: History) -> set[str]:
    return {finding.guarantee for finding in judge(history) if finding.breaches}


def test_every_kind_of_fault_has_a_class() -> None:
    assert {FAULT_CLASS[kind.value] for kind in FaultKind} <= set(FAULT_CLASSES)


@pytest.mark.parametrize("kind", FaultKind, ids=lambda kind: kind.value)
def test_what_a_world_cannot_do_is_refused_or_left_out_there(kind: FaultKind) -> None:
    one = fault(kind, "server")
    if kind.row.family in FOREIGN:
        with pytest.raises(UsageError, match="cannot be simulated: "):
            run(TIMELINE, one)
    else:
        run(replace(TIMELINE, storage=kind.row.storages[0]), one)
    real = [storage for storage in ("local", "s3") if not real_processes.why_not(one, storage)]
    assert bool(real) == (kind.row.family not in FOREIGN and kind not in real_processes.SIMULATED_ALONE)


@pytest.mark.parametrize("lost", [False, True])
def test_a_client_whose_connection_is_reset_hears_of_it_at_once(lost: bool) -> None:
    history = run(TIMELINE, fault(FaultKind.RESET, lost=lost))
    assert struck(history, FaultKind.RESET) and outcome(history) == "info" and waited_ms(history) < 50
    arrived = [event for event in history.events if event.operation == "arrived"]
    first = next(event.index for event in history.events if event.kind == "invoke")
    assert any(event.caused_by == first for event in arrived) != lost
    assert not broken(history)


def test_a_slow_link_is_slow_both_ways_for_as_long_as_it_lasts() -> None:
    usual = waited_ms(run(TIMELINE))
    history = run(replace(TIMELINE, ops=(CREATE, LIST)), fault(FaultKind.SLOW_LINK, for_ms=1200, late_ms=400))
    assert waited_ms(history) > usual + 700
    assert [event.value for event in struck(history, FaultKind.SLOW_LINK) if event.value] == ["begin", "end"]
    assert not broken(history)


def test_what_is_sent_over_a_cut_link_waits_or_is_lost() -> None:
    held = run(TIMELINE, fault(FaultKind.CUT_LINK, for_ms=1500))
    assert outcome(held) == "ok" and 1500 < waited_ms(held) < 2000
    lost = run(TIMELINE, fault(FaultKind.CUT_LINK, for_ms=1500, lost=True))
    assert outcome(lost) == "info" and waited_ms(lost) > 29_000
    assert not broken(held) and not broken(lost)


def test_an_overloaded_server_serves_one_request_after_the_other() -> None:
    names = [f"f{n}.marker.CREATE" for n in range(5)]
    ops = tuple(replace(CREATE, actor=f"executor-{n}", name=name, after_ms=5 * n) for n, name in enumerate(names))

    def between_ms(history: History) -> float:
        told = [e.time_ns for e in history.events if e.kind == "ok" and e.path in names]
        return (max(told) - min(told)) / 1e6

    busy = run(replace(TIMELINE, ops=ops), fault(FaultKind.OVERLOADED, "server", for_ms=4000, pace_ms=300))
    assert struck(busy, FaultKind.OVERLOADED) and not broken(busy)
    assert between_ms(busy) > 1000 > between_ms(run(replace(TIMELINE, ops=ops)))


class _TakesConflictForExists(DirectMarkers):
    """What a mapping of 409 to "it exists" makes of a direct marker."""

    def create(self, name: str, request: str = "") -> Created:
        try:
            self._storage.put(f"{self._directory}/{name}", b"", Condition.IF_ABSENT)
        except Conflicted:
            return Created.EXISTS
        return Created.CREATED


def test_a_conflict_says_nothing_of_what_is_there() -> None:
    conflict = fault(FaultKind.CONFLICT, site="executor: marker asked for")
    naive = System(name="naive", direct=_TakesConflictForExists)
    assert "G2" in broken(run(DIRECT, conflict, system=naive)) and "G2" not in broken(run(DIRECT, system=naive))
    history = run(DIRECT, conflict)
    assert struck(history, FaultKind.CONFLICT) and outcome(history) == "ok" and not broken(history)


@pytest.mark.parametrize("storage", ["local", "hdfs"])
@pytest.mark.parametrize("applied", [False, True])
def test_an_io_error_may_have_had_its_effect(storage: str, applied: bool) -> None:
    put = fault(FaultKind.IO_ERROR, site="executor: marker asked for", applied=applied)
    history = run(replace(DIRECT, storage=storage), put)
    (hit,) = struck(history, FaultKind.IO_ERROR)
    written = [e for e in history.events if e.kind == "effect" and str(e.path).endswith("/a.marker.CREATE")]
    assert len(written) == 1 and not broken(history)
    answer = next(event for event in history.events if event.kind == "ok" and event.operation == "create")
    assert answer.value == ("exists" if applied else "created"), hit


class _ListsKeys(DirectMarkers):
    """Takes every key for a marker."""

    def list_all(self) -> tuple[str, ...]:
        return tuple(path[len(self._directory) + 1 :] for path in self._storage.list(self._directory + "/"))


def test_a_placeholder_is_no_marker_and_no_residue() -> None:
    made = fault(FaultKind.PLACEHOLDER, step=2)
    plan = replace(DIRECT, ops=(CREATE, LIST))
    assert "G4" in broken(run(plan, made, system=System(name="naive", direct=_ListsKeys)))
    history = run(plan, made)
    assert struck(history, FaultKind.PLACEHOLDER) and not broken(history)
    writes = Plan(mode="direct", directories=(), writes=(Write(tasks=(Task(),)), Write(tasks=(Task(),))))
    for site in ("driver: task heard of", "driver: marker deletion answered"):
        history = run(writes, fault(FaultKind.PLACEHOLDER, "driver", site=site))
        assert struck(history, FaultKind.PLACEHOLDER) and not broken(history), site


def test_a_driver_whose_clock_went_back_still_makes_later_instants() -> None:
    """The second write begins at a time before the first one's; code that trusts the clock orders it first."""
    writes = (Write(tasks=(Task(),)), Write(tasks=(Task(kind="MERGE"),)), Write(tasks=(Task(kind="MERGE"),)))
    plan = Plan(mode="direct", directories=(), writes=writes)
    back = fault(FaultKind.CLOCK_JUMPED, "driver", site="driver: completed instant written", jump_ms=-3_600_000)
    history = run(plan, back)
    assert struck(history, FaultKind.CLOCK_JUMPED) and not broken(history)
    trusting = load_mutant(find_mutant("instant-of-the-clock"))
    assert "G24" in broken(run(plan, back, system=trusting)) and not broken(run(plan, system=trusting))


def test_power_loss_drops_what_was_not_synced_and_nothing_is_promised_under_it() -> None:
    plan = replace(TIMELINE, storage="local")
    gone = fault(FaultKind.POWER_LOST, "server", site="server: reply", restart_ms=20, unsynced_ms=1000)
    history = run(replace(plan, ops=(CREATE, LIST)), gone.at(2))
    assert struck(history, FaultKind.POWER_LOST)
    lost = [finding for finding in judge(history) if finding.breaches]
    assert {breach.under for finding in lost for breach in finding.breaches} == {"power-loss"}
    profile = load_profile("reference")
    assert all(not profile.promise(finding.guarantee, "timeline", "local", "power-loss").promised for finding in lost)
    assert not any(FaultKind.POWER_LOST in drawable("timeline", storage) for storage in ("local", "s3"))


@pytest.mark.parametrize("kind", [FaultKind.TIMEOUT_APPLIED, FaultKind.TIMEOUT_LOST])
def test_hdfs_may_fall_silent(kind: FaultKind) -> None:
    history = run(replace(DIRECT, storage="hdfs"), fault(kind, site="executor: marker asked for"))
    assert struck(history, kind) and waited_ms(history) >= 1000 and not broken(history)


@pytest.mark.parametrize(
    ("name", "deleted_by"),
    [("type-file-trusted-at-once", "servers-request"), ("type-file-trusted-when-alone", "second-server")],
)
def test_a_server_that_trusts_a_type_file_ends_without_one(name: str, deleted_by: str) -> None:
    """A server has written a file when the last request of another's deletion, which was cut short, is applied."""
    plan = read_plan(Path(__file__).parents[1] / "regressions" / f"type-file-deleted-by-a-dead-{deleted_by}.json")
    trusting = load_mutant(find_mutant(name))
    assert broken(execute(plan, trusting)[0]) == {"G9"} and not broken(execute(plan, reference())[0])


def test_a_loss_of_power_is_promised_by_rules_that_name_it_alone() -> None:
    promise = {"guarantee": "*", "source": "all of it"}
    named = {"guarantee": "G3", "under": "power-loss"}
    none = {"guarantee": "G22", "promised": False, "applicable": False}
    whole, own = (parse_profile({"promise": [promise, *more]}, "x") for more in ((), (named, none)))
    assert whole.promise("G3", "timeline", "local", "restart").promised
    assert not whole.promise("G3", "timeline", "local", "power-loss").promised
    assert not whole.survives_power_loss("timeline", "local")
    assert own.promise("G3", "timeline", "local", "power-loss").promised
    assert not own.promise("G4", "timeline", "local", "power-loss").promised
    assert not own.promise("G22", "timeline", "local", "power-loss").applicable
    assert own.survives_power_loss("timeline", "local")
    for name in SHIPPED:
        assert load_profile(name).survives_power_loss("timeline", "local") == (name == "http-power-loss")

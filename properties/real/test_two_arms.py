"""The same plan in the simulated world and with real processes: the same files where nothing races, the same verdicts.

A disagreement is a defect of one of the two arms. Plans free of races have one executor and storage faults nowhere;
kills of the driver and of the executor are at exact steps in both.
"""

from __future__ import annotations

import pytest

from marker_sim.faults import Call, Fault, FaultKind, Step
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from marker_sim.system import reference
from marker_sim.unusual_names import PARTITIONS
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.worlds import ForkServer, run
from properties.real.arms import outcome, sound
from properties.real.running import run_real
from properties.volume import CI_ONLY

WORLDS = [(mode, storage) for mode in ("direct", "timeline") for storage in ("local", "s3")]
# Each mode and each storage once by default, for tests whose plans take long.
SOME = [pytest.param(*world, marks=[CI_ONLY] if world in (WORLDS[1], WORLDS[2]) else []) for world in WORLDS]
THREE = (
    Write(tasks=(Task(partition="dt=1", group="a"), Task(partition="", group="b"))),
    Write(tasks=(Task(partition="dt=1", group="a", kind="MERGE"), Task(partition="größe=12/été", group="c"))),
    Write(tasks=(Task(partition="dt=1", group="a", kind="APPEND"), Task(partition="", group="b", kind="MERGE"))),
)


def _plan(mode: str, storage: str, **more: object) -> Plan:
    plan = {"directories": (), "writes": THREE, "executors": 1, "interval_ms": 10, "merge_on_read": True}
    return Plan(mode=mode, storage=storage, **{**plan, **more})  # type: ignore[arg-type]


def _deaths(history: History) -> list[str]:
    return [e.process.partition("#")[0] for e in history.events if e.kind == "fault" and e.operation == "kill"]


@pytest.mark.parametrize(("mode", "storage"), WORLDS)
def test_without_faults_both_arms_store_the_same(mode: str, storage: str, fork_server: ForkServer) -> None:
    plan = _plan(mode, storage)
    simulated, real = run(plan, reference()), run_real(plan, fork_server=fork_server)
    assert outcome(real) == outcome(simulated)
    assert sound(real)


@pytest.mark.parametrize(("mode", "storage"), SOME)
def test_every_partition_that_the_swarm_draws_is_stored_alike(mode: str, storage: str, fork_server: ForkServer) -> None:
    tasks = tuple(Task(partition=partition, group=f"f{n}") for n, partition in enumerate(PARTITIONS))
    plan = _plan(mode, storage, writes=(Write(tasks=tasks), Write(tasks=tasks, abandon=True)))
    simulated, real = run(plan, reference()), run_real(plan, fork_server=fork_server)
    assert outcome(real) == outcome(simulated)
    assert sound(real)


@pytest.mark.parametrize(("mode", "storage"), SOME)
def test_a_write_that_is_given_up_is_rolled_back_alike(mode: str, storage: str, fork_server: ForkServer) -> None:
    given_up = Write(tasks=THREE[0].tasks, abandon=True)
    plan = _plan(mode, storage, writes=(THREE[0], given_up, THREE[2]))
    simulated, real = run(plan, reference()), run_real(plan, fork_server=fork_server)
    assert outcome(real) == outcome(simulated)


@pytest.mark.parametrize("mode", ["direct", "timeline"])
@pytest.mark.parametrize("step", [3, 5])
def test_a_killed_executor_leaves_the_same_behind(mode: str, step: int, fork_server: ForkServer) -> None:
    fault = Fault.of(FaultKind.KILL, "executor-0", Step(step), restart_ms=5)
    plan = _plan(mode, "local", faults=(fault,))
    simulated, real = run(plan, reference()), run_real(plan, fork_server=fork_server)
    assert _deaths(simulated).count("executor-0") == _deaths(real).count("executor-0") == 1
    assert outcome(real) == outcome(simulated)


@pytest.mark.parametrize("storage", ["local", "s3"])
@pytest.mark.parametrize("removed", [False, True], ids=["emptied", "removed"])
def test_type_files_are_damaged_behind_everybodys_back(storage: str, removed: bool, fork_server: ForkServer) -> None:
    fault = Fault.of(FaultKind.TYPE_DAMAGED, "server", Step(5), removed=removed)
    real = run_real(_plan("timeline", storage, faults=(fault,)), fork_server=fork_server)
    struck = [event for event in real.events if event.kind == "fault" and event.operation == "damage"]
    done = [event for event in real.events if event.kind == "effect" and event.process == "kit"]
    assert struck and [event.path for event in done] == [event.path for event in struck]
    assert {event.value for event in done} == {None if removed else b""}
    assert sound(real)


def test_an_aim_that_kills_at_the_commit_is_rolled_back(fork_server: ForkServer) -> None:
    fault = Fault.of(FaultKind.KILL, "driver", Call(r"\.commit$|\.deltacommit$", ("put",)), executors_ms=0)
    history = run_real(_plan("timeline", "local", faults=(fault,)), fork_server=fork_server)
    assert _deaths(history).count("driver") == 1
    assert any(e.kind == "ok" and e.operation == "rollback" for e in history.events)
    assert sound(history)


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(("storage", "kind"), [("local", FaultKind.IO_ERROR), ("s3", FaultKind.SERVER_ERROR)])
def test_a_call_that_fails_is_applied_if_its_fault_says_so(
    storage: str, kind: FaultKind, applied: bool, fork_server: ForkServer
) -> None:
    fault = Fault.of(kind, "driver", Call(r"\.inflight$", ("put",)), applied=applied, calls=2)
    history = run_real(_plan("direct", storage, faults=(fault,)), fork_server=fork_server)
    first, again = (event for event in history.events if event.kind == "fault" and event.operation == kind.value)
    between = history.events[first.index : again.index]
    assert any(event.kind == "effect" and event.path == first.path for event in between) == applied
    assert sound(history)


@pytest.mark.parametrize("mode", ("direct", "timeline"))
def test_a_write_that_dies_of_its_own_error_is_seen_in_both_arms(mode: str, fork_server: ForkServer) -> None:
    """A driver that ends by itself leaves nothing that the next write does not take back; G25 alone objects."""
    plan, name = _plan(mode, "local"), "every-second-write-dies"
    simulated = run(plan, load_mutant(find_mutant(name)))
    for history in (simulated, run_real(plan, f"mutant:{name}", fork_server=fork_server)):
        findings = {finding.guarantee: finding for finding in judge(history)}
        assert {guarantee for guarantee, finding in findings.items() if finding.breaches} == {"G25"}
        assert "a stage is under way already" in findings["G25"].breaches[0].message


@pytest.mark.parametrize("trigger", [Step(3), Call(r"\.marker\.CREATE$", ("put",))])
def test_a_full_disk_refuses_a_write_and_kills_nobody(trigger: Step | Call, fork_server: ForkServer) -> None:
    fault = Fault.of(FaultKind.DISK_FULL, "executor-0", trigger)
    history = run_real(_plan("direct", "local", faults=(fault,)), fork_server=fork_server)
    (full,) = (event for event in history.events if event.kind == "fault" and event.operation == "disk-full")
    failed = [event for event in history.events[full.index :] if event.kind == "info" and event.process == full.process]
    assert failed and failed[0].error == f"{full.path}: No space left on device" and not _deaths(history)
    assert sound(history)

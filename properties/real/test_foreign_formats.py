"""Classes with a format of their own as real processes: a fresh instance reads what they stored, and no judge guesses.

Correct ones are not accused; with a fault in them they are, by the same plan.
"""

from __future__ import annotations

import pytest

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import History
from marker_sim.loading import load_system
from marker_sim.plan import Op, Plan, Task, Write
from properties.correct import hex_names
from properties.correct.shape import SYSTEMS, Shape
from properties.faces.campaign import NightlyTask, Processes, findings_in, processes, promised_breach
from properties.faces.judges import load_profile
from properties.faces.markers import Created
from properties.faces.targets import served
from properties.faces.worlds import ForkServer
from properties.real.running import run_real
from properties.volume import CI_ONLY

HERE = "properties.real.test_foreign_formats"
PROFILE = load_profile("python")
A, B, C = (f"dt=1/{stem}_0-0-0_001.parquet.marker.CREATE" for stem in "abc")
LOCAL = [("direct", "local"), ("timeline", "local")]
CORRECT = "properties.correct.hex_names:Markers"
S3 = [("direct", "s3"), ("timeline", "s3")]
# Each class on a local disk, of which a quarter by default, of each mode as many: test_correct_ones.py has all of them
# in the simulated world. On S3, where every run takes seconds, one a mode.
ON_DISK = [(sut, *place) for sut in SYSTEMS for place in LOCAL if served(load_system(sut), *place)]
RUNS = [
    *(pytest.param(*run, marks=[] if number % 8 in (0, 5) else [CI_ONLY]) for number, run in enumerate(ON_DISK)),
    (CORRECT, *S3[0]),
    ("properties.correct.owner_batches:SYSTEM", *S3[1]),
]


def plan(mode: str, storage: str) -> Plan:
    """Creates, a resend, a deletion and listings; a write, one that is given up, one whose executor is killed."""
    asked = (
        Op(actor="executor-7", kind="create", name=A, request="one"),
        Op(actor="executor-7", kind="create", name=A, request="one"),
        Op(actor="executor-7", kind="create", name=B),
        Op(actor="executor-7", kind="list"),
        Op(actor="executor-7", kind="delete"),
        Op(actor="executor-7", kind="create", name=C),
        Op(actor="executor-7", kind="list-data"),
    )
    tasks = (Task(partition="dt=1", group="a"), Task(partition="", group="b"))
    more = (Task(partition="dt=1", group="a", kind="APPEND"), Task(partition="dt=2", group="c"))
    killed = Fault.of(FaultKind.KILL, "executor-0", Step(9), restart_ms=5)
    writes = (Write(tasks=tasks), Write(tasks=more, abandon=True), Write(tasks=more))
    return Plan(
        mode=mode,
        storage=storage,
        ops=asked,
        writes=writes,
        faults=(killed,),
        interval_ms=10,
        num_threads=2,
        embedded=False,
        merge_on_read=True,
    )


def accusations(history: History, sut: str, of: Plan) -> dict[str, str]:
    """What the profile holds against the system, by guarantee."""
    findings = findings_in(history, load_system(sut))
    assert findings, "the run was left out"
    breaches = ((finding.guarantee, promised_breach(finding, of, PROFILE)) for finding in findings)
    return {guarantee: breach.message for guarantee, breach in breaches if breach is not None}


@pytest.mark.parametrize(("sut", "mode", "storage"), RUNS)
def test_a_correct_class_is_judged_by_what_it_lists_and_not_accused(
    sut: str, mode: str, storage: str, fork_server: ForkServer
) -> None:
    here = plan(mode, storage)
    history = run_real(here, sut, fork_server=fork_server)
    assert accusations(history, sut, here) == {}
    creates = [event for event in history.events if event.kind == "ok" and event.operation == "create"]
    assert {A, B, C} <= {event.path for event in creates}
    judged = {finding.guarantee for finding in findings_in(history, load_system(sut)) if finding.judged}
    assert judged >= {"G1", "G3", "G4", "G10", "G11", "G13", "G14", "G17", "G18", "G24", "G25"}
    (snapshot,) = (e for e in history.events if e.operation == "snapshot" and e.path == here.directories[0])
    assert isinstance(snapshot.value, tuple) and C in snapshot.value


class Forgetful(hex_names.Markers):
    """Says "created" of some names and stores nothing."""

    def create(self, name: str) -> Created:
        return Created.CREATED if name.startswith("dt=1/c") else super().create(name)


class Keeper(hex_names.Markers):
    """A deletion leaves the last file."""

    def delete(self) -> bool:
        paths = self.storage.list(self.prefix)
        for path in paths[:-1]:
            self.remove(path)
        return bool(paths)


@pytest.mark.parametrize(("mode", "storage"), LOCAL)
@pytest.mark.parametrize(("faulty", "broken"), [("Forgetful", {"G1"}), ("Keeper", {"G10", "G18"})])
def test_the_same_class_with_a_fault_in_it_is_caught(
    faulty: str, broken: set[str], mode: str, storage: str, fork_server: ForkServer
) -> None:
    here, sut = plan(mode, storage), f"{HERE}:{faulty}"
    assert broken <= set(accusations(run_real(here, sut, fork_server=fork_server), sut, here))


class Unconditional(Shape):
    """Replaces its one file only if unchanged, and never asks what the storage has."""

    def create(self, name: str) -> Created:
        there = self.read(self.prefix + "names")
        names = there.data.decode().split("\n") if there else []
        if name in names:
            return Created.EXISTS
        self.storage.put(self.prefix + "names", "\n".join([*names, name]).encode(), expected=there and there.version)
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        there = self.read(self.prefix + "names")
        return tuple(there.data.decode().split("\n")) if there else ()


@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_a_class_is_not_blamed_for_what_its_storage_has_not(mode: str, fork_server: ForkServer) -> None:
    sut = f"{HERE}:Unconditional"
    history = run_real(plan(mode, "local"), sut, fork_server=fork_server)
    assert "put-if-unchanged" in {event.error for event in history.events if event.operation == "unsupported"}
    assert findings_in(history, load_system(sut)) == ()


@pytest.mark.parametrize(
    ("sut", "broken"), [(CORRECT, set()), pytest.param(f"{HERE}:Keeper", {"G10", "G18"}, marks=CI_ONLY)]
)
def test_the_nightly_says_the_same_of_the_plans_it_draws(sut: str, broken: set[str]) -> None:
    task = NightlyTask(stream="real-local", first=0, count=4, sut=sut, profile="python", until=0.0, seed=1)
    with Processes(sut) as real:
        done = processes(task, real)
    assert done["runs"] == 4 and not done["trouble"]
    found = {sighting["guarantee"] for sighting in done["sightings"]}
    assert broken <= found and (broken or not found)

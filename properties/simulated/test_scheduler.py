"""The simulated world: killed is killed, time is virtual, and code that hangs is blamed by its line."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.judges import judge
from marker_sim.plan import Op, Plan
from marker_sim.seams import StorageFailed
from marker_sim.system import System, reference
from properties.faces.markers import Context, Created, DirectMarkers, ServedMarkers
from properties.faces.worlds import Cluster, run, watched

CREATES = tuple(Op(actor="executor-0", kind="create", name=f"f{n}.marker.CREATE") for n in range(4))


class _Stubborn(DirectMarkers):
    """Refuses to die: swallows its end and goes on calling seams."""

    log: list[str]

    def create(self, name: str, request: str = "") -> Created:
        while True:
            try:
                return super().create(name, request)
            except BaseException:
                self.log.append(name)


def test_a_killed_process_has_no_effect_any_more_even_if_it_swallows_its_end() -> None:
    log: list[str] = []

    def factory(context: Context) -> DirectMarkers:
        store = _Stubborn(context)
        store.log = log
        return store

    plan = Plan(
        mode="direct",
        ops=CREATES,
        faults=(Fault.of(FaultKind.KILL, "executor-0", Step(3), restart_ms=-1),),
    )
    history = run(plan, System(name="stubborn", direct=factory))
    killed = next(e.index for e in history.events if e.kind == "fault" and e.operation == "kill")
    sent_before = {e.path for e in history.events[:killed] if e.kind == "effect"}
    after = [e for e in history.events[killed:] if e.kind == "effect" and e.process == "executor-0#1"]
    assert len(sent_before) == 2 and not after
    assert log, "its handlers ran, but only after the history was closed"


def test_a_killed_server_comes_back_on_the_same_storage() -> None:
    plan = Plan(
        ops=CREATES,
        faults=(Fault.of(FaultKind.KILL, "server", Step(12), restart_ms=100),),
    )
    history = run(plan, reference())
    lives = [e.process for e in history.events if e.operation == "started"]
    assert lives == ["server#1", "server#2"]


def test_a_client_never_acts_again_after_an_unknown_outcome() -> None:
    plan = Plan(ops=CREATES, faults=(Fault.of(FaultKind.REPLY_LOST, "executor-0", Step(1)),))
    history = run(plan, reference())
    unknown = next(e for e in history.events if e.kind == "info")
    assert not [e for e in history.events[unknown.index + 1 :] if e.process == unknown.process]
    assert [e.process for e in history.events if e.kind == "ok" and e.process.startswith("executor-0")] == [
        "executor-0#2"
    ] * 3


class _Holds(DirectMarkers):
    """Its create holds a lock in an actor of its own, and does not wait for that one to let it go."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._seams = context

    def create(self, name: str, request: str = "") -> Created:
        runtime = self._seams.runtime

        def hold() -> None:
            with runtime.lock("one"):
                runtime.sleep(50)

        with runtime.lock("one"):
            pass
        runtime.spawn("holder", hold)
        runtime.sleep(10)
        if name == CREATES[1].name:
            raise StorageFailed(name)
        return super().create(name, request)


def test_a_client_whose_outcome_is_unknown_leaves_no_lock() -> None:
    history = run(Plan(mode="direct", storage="local", ops=CREATES), System(name="holds", direct=_Holds))
    assert [event.process for event in history.events if event.kind == "info"] == ["executor-0#1"]
    assert history.events[-1].time_ns < 30_000_000_000


def test_thirty_virtual_seconds_take_no_time() -> None:
    plan = Plan(ops=CREATES, faults=(Fault.of(FaultKind.REQUEST_LOST, "executor-0", Step(1)),))
    began = time.monotonic()
    history = run(plan, reference())
    assert time.monotonic() - began < 10.0
    assert history.events[-1].time_ns > 30_000_000_000


def test_changing_one_clients_plan_leaves_the_others_latencies() -> None:
    plan = Plan(mode="direct", jitter=7, ops=(*CREATES, Op(actor="executor-1", kind="create", name="g.marker.CREATE")))
    longer = replace(plan, ops=(*plan.ops, Op(actor="executor-0", kind="list")))

    def times(p: Plan) -> list[int]:
        return [e.time_ns for e in run(p, reference()).events if e.process == "executor-1#1"]

    assert times(plan) == times(longer)


def test_a_server_that_exits_by_itself_breaks_every_request_answered_and_not_the_kit() -> None:
    class Exiting(ServedMarkers):
        def create(self, name: str, request: str = "") -> Created:
            if name.startswith("f2"):
                sys.exit(0)
            return super().create(name, request)

    plan = Plan(ops=CREATES)
    history = run(plan, System(name="exiting", server=Exiting))
    assert [e.process for e in history.events if e.operation == "exited"] == ["server#1"]
    (finding,) = judge(history, frozenset({"G6"}))
    assert finding.breaches


def test_what_a_dead_actor_says_while_it_is_unwound_is_not_recorded() -> None:
    class Stubborn(DirectMarkers):
        def create(self, name: str, request: str = "") -> Created:
            try:
                return super().create(name, request)
            except BaseException:
                return Created.EXISTS

    faults = (Fault.of(FaultKind.KILL, "executor-0", Step(3), restart_ms=-1),)
    history = run(Plan(mode="direct", ops=CREATES, faults=faults), System(name="stubborn", direct=Stubborn))
    assert history.events[-1].operation == "snapshot"
    assert not any(finding.breaches for finding in judge(history))


def test_code_that_blocks_outside_the_seams_is_blamed_by_its_line() -> None:
    lock = threading.Lock()

    class Blocking(DirectMarkers):
        def create(self, name: str, request: str = "") -> Created:
            with lock:
                return super().create(name, request)

    plan = Plan(mode="direct", ops=(*CREATES, Op(actor="executor-1", kind="create", name="g.marker.CREATE")))
    cluster = Cluster(plan, System(name="blocking", direct=Blocking))
    with pytest.raises(HarnessError, match="with lock"), watched(lambda: cluster.scheduler.steps, 1.0):
        cluster.run()


@pytest.mark.parametrize("looks", [1, 2])
def test_a_run_is_blamed_when_two_looks_find_no_step_between_them_and_not_for_the_time_it_takes(looks: int) -> None:
    class Slow(DirectMarkers):
        def create(self, name: str, request: str = "") -> Created:
            for _ in range(looks):
                signal.raise_signal(signal.SIGALRM)
            return super().create(name, request)

    cluster = Cluster(Plan(mode="direct", ops=CREATES), System(name="slow", direct=Slow))
    blamed = pytest.raises(HarnessError, match="raise_signal") if looks == 2 else nullcontext()
    with blamed, watched(lambda: cluster.scheduler.steps):
        history = cluster.run()
        assert [event.kind for event in history.events].count("ok") >= len(CREATES)


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_waits_until_the_run_is_over_and_a_second_one_does_not(count: int) -> None:
    """It ended a command with 1, or was lost, when it came between two switches of actors."""

    class Interrupted(DirectMarkers):
        def create(self, name: str, request: str = "") -> Created:
            if left:
                left.pop()
                signal.raise_signal(signal.SIGINT)
            return super().create(name, request)

    over, left = False, [signal.SIGINT] * count
    cluster = Cluster(Plan(mode="direct", ops=CREATES), System(name="interrupted", direct=Interrupted))
    with pytest.raises(KeyboardInterrupt), watched(lambda: cluster.scheduler.steps):
        cluster.run()
        over = True
    assert over == (count == 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""How long the clients of a plan may take, and which faults of its servers count."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.plan import Plan
from marker_sim.worlds.http import fault_injector
from properties.faces.worlds import HeldCalls, PlanFaults, Recorder, ServerFaultInjector


class Server:
    """A server that notes what is done to it."""

    name, ended = "server-1", False

    def __init__(self) -> None:
        self.done: list[str] = []
        self.program = self  # What signals go to.

    def signal(self, number: signal.Signals) -> None:
        self.done.append(number.name)

    def proceed(self) -> None:
        self.done.append("SIGCONT")


class Injector:
    """One server that lives. second: what comes of a second one."""

    def __init__(self, second: object = None) -> None:
        self.servers = (Server(),)
        self.recorder, self.stopping, self.exited = Recorder(), threading.Lock(), False
        self.pauses: dict[Server, list[float]] = {}
        self._second = second

    def second_begins(self) -> object:
        return self._second

    def check(self) -> None:
        """It goes on."""


@pytest.mark.parametrize(("deadline_s", "expected_s"), [(10.0, 0.3), (0.15, 0.2)])
def test_clients_have_their_time_beside_that_of_a_server_that_starts(deadline_s: float, expected_s: float) -> None:
    injector: Any = Injector()
    faults = PlanFaults(Plan(), injector, ())
    faults._later(0, lambda: time.sleep(0.2))
    began = time.monotonic()
    faults.drive(lambda: False, 0.1, began + deadline_s)
    assert expected_s <= time.monotonic() - began < expected_s + 1


def paused(*for_ms: int) -> tuple[PlanFaults, Server]:
    injector: Any = Injector()
    faults, (server,) = PlanFaults(Plan(), injector, ()), injector.servers
    for duration in for_ms:
        faults._begin(server, Fault.of(FaultKind.PAUSE, "server", Step(1), for_ms=duration))
    return faults, server


@pytest.mark.parametrize(("for_ms", "met", "lasts_s"), [((100,), 1, 0.1), ((200, 50), 1, 0.2), ((50, 200), 2, 0.2)])
def test_a_pause_within_a_pause_does_nothing_and_one_that_is_longer_goes_on(
    for_ms: tuple[int, ...], met: int, lasts_s: float
) -> None:
    began = time.monotonic()
    faults, server = paused(*for_ms)
    while server.done == ["SIGSTOP"]:
        assert time.monotonic() - began < lasts_s + 5
        faults._do_what_is_due()
        time.sleep(0.002)
    assert time.monotonic() - began >= lasts_s and faults.met["pause"] == met
    assert server.done == ["SIGSTOP", "SIGCONT"]
    assert [event.value for event in faults._injector.recorder.events] == ["begin", "end"]
    assert not faults._injector.pauses


def test_every_pause_is_over_when_a_run_is_healed() -> None:
    faults, server = paused(5_000, 9_000)
    faults._do_what_is_due(all_of_it=True)
    assert server.done == ["SIGSTOP", "SIGCONT"]


class Refusing(ServerFaultInjector):
    """Its servers do not come up. takes_s: how long each tries."""

    def __init__(self, takes_s: float, then: Any) -> None:
        nothing: Any = SimpleNamespace(surroundings=None)
        super().__init__(nothing, Recorder(), Plan(), "work", lambda injector: nothing)
        self.tried, self.clock_s, self._takes_s, self._then = 0, 0.0, takes_s, then

    def start(self, slot: str = "first", startup_s: float | None = None, again: bool = False) -> Any:
        self.tried += 1
        self.clock_s += self._takes_s
        if self.tried == 2 and self._then is not None:
            return self._then
        raise HarnessError("it does not answer")


@pytest.mark.parametrize(
    ("takes_s", "serves", "tried"),
    [(0.5, True, 2), (0.5, False, 2), (20.0, True, 1)],
    ids=["exits-once", "exits", "does-not-answer"],
)
def test_a_second_server_that_exits_is_started_once_more(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, serves: bool, tried: int
) -> None:
    injector = Refusing(takes_s, Server() if serves else None)
    monkeypatch.setattr(
        "marker_sim.worlds.http.fault_injector.time", SimpleNamespace(monotonic=lambda: injector.clock_s)
    )
    second = injector.second_begins()
    assert injector.tried == tried and (second is not None) == (serves and tried == 2)
    ends = [event.value for event in injector.recorder.events if event.kind == "fault"]
    assert ends == (["begin"] if second else ["begin", "end"])
    assert injector.counts == {"second server" if second else "second server refused to serve": 1}


@pytest.mark.parametrize("starts", [True, False])
def test_a_second_server_that_is_refused_at_its_start_is_not_met(starts: bool) -> None:
    injector: Any = Injector(Server() if starts else None)
    faults = PlanFaults(Plan(), injector, ())
    faults._begin(injector.servers[0], Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=5_000))
    faults._do_what_is_due()
    assert faults.met["second-server"] == starts and not faults.second_is_coming


@pytest.mark.parametrize("ends", [True, False])
def test_a_run_ends_between_two_writes_of_a_file_and_waits_for_no_write_that_never_ends(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, plan, fleet = Recorder(), Plan(), SimpleNamespace()
    monkeypatch.setattr(fault_injector, "WRITTEN_S", 0.05)
    began, states = time.monotonic(), itertools.chain([True] * 3, itertools.repeat(not ends))
    held = HeldCalls(1, 0.0)
    world: Any = SimpleNamespace(rewriting=lambda: next(states), held=lambda name: held, surroundings=None)
    injector = ServerFaultInjector(fleet, recorder, plan, "t", lambda injector: world)  # type: ignore[arg-type]
    server: Any = SimpleNamespace(name="server-1", kill=lambda: recorder.record("server-1", "kit", "observe", "dead"))
    injector.servers = [server]
    injector.end()
    assert [event.operation for event in recorder.events] == ["kill", "dead"] and not injector.servers
    assert next(states) is not ends and (ends or time.monotonic() - began >= 0.05)

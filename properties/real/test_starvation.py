"""What the kernel says of a process that gets no processor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

from properties.faces.worlds import (
    WORTH_MS,
    FrontWorld,
    HeldCalls,
    Interceptor,
    ProcessorTime,
    ProcessorUse,
    Recorder,
    S3Front,
    Starvation,
    Watch,
    processor_use,
    starved_ms,
)

MS = 1_000_000
BUSY = "import os\nos.sched_setaffinity(0, {%d})\nos.nice(%d)\nwhile True: pass"


def test_a_process_that_others_keep_from_the_processor_is_starved() -> None:
    core = min(os.sched_getaffinity(0))
    words = [[sys.executable, "-c", BUSY % (core, nice)] for nice in (19, 0, 0)]
    running = [subprocess.Popen(each) for each in words]
    try:
        time.sleep(0.5)
        pid = running[0].pid
        lost, before = 0, processor_use([pid])
        deadline = time.monotonic() + 120  # Others may have the machine, and then little of it is these two's.
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = processor_use([pid])
            lost, before = lost + starved_ms(before, now), now
            if lost > 1_000:
                break
        assert lost > 1_000
    finally:
        for each in running:
            each.kill()
            each.wait()


def use(threads: int, ran_ms: int, waited_ms: int, busy_ms: int, at_ms: int = 1_000) -> ProcessorUse:
    times = {(1, number): ProcessorTime(ran_ms * MS, waited_ms * MS) for number in range(threads)}
    return ProcessorUse(times, busy_ms * MS, at_ms * MS)


def test_threads_that_keep_each_other_waiting_are_not() -> None:
    before = use(4, 0, 0, 0, 0)
    assert starved_ms(before, use(4, 500, 480, 2_000), cores=2) == 0
    assert starved_ms(before, use(4, 250, 700, 2_000), cores=2) == 500, "others had half of both processors"
    assert starved_ms(before, use(4, 250, 700, 1_200), cores=2) == 200, "others ran no longer"
    assert starved_ms(before, before, cores=2) == 0


def test_one_lock_of_many_threads_that_wait_in_turn_for_a_processor_is_starved() -> None:
    """A program that lets one of its threads run at a time spreads its waits over all of them."""
    assert starved_ms(use(100, 0, 0, 0, 0), use(100, 5, 5, 2_000), cores=2) == 250


def test_calls_that_the_kit_answers_late_are_its_own_doing() -> None:
    own = Starvation()
    assert own.look(use(1, 0, 0, 0, 0), HeldCalls(0, 0.0), 0.0) == 0
    # Four calls were answered some 5 ms late, and took 10 ms.
    assert own.look(use(1, 100, 0, 100), HeldCalls(4, 0.010), 0.005) == 30
    assert own.look(use(1, 200, 0, 200, 1_055), HeldCalls(400, 0.010), 0.005) == 55, "no more than the time that passed"
    assert own.look(use(1, 300, 0, 300, 3_000), HeldCalls(400, 0.010), 0.005) == 0


def test_a_kit_that_is_slow_between_two_echoes_is_seen_to_work_on_a_call_all_the_time() -> None:
    recorder, began = Recorder(), time.monotonic()

    def held(process: str) -> HeldCalls:
        time.sleep(0.2)
        return HeldCalls(0, time.monotonic() - began)

    injector: Any = SimpleNamespace(
        recorder=recorder,
        world=SimpleNamespace(echo=lambda: None, held=held),
        servers=[SimpleNamespace(name="server-1", pids=list)],
    )
    watch = Watch(injector, ())
    listening = threading.Thread(target=watch._listen_to_echo)
    listening.start()
    time.sleep(2.5)
    watch.end()
    listening.join(10.0)
    lost_ms = [event.value for event in recorder.events if event.operation == "starved"]
    assert sum(value for value in lost_ms if isinstance(value, int)) > 1_500, "all but the time before the first look"


def test_a_process_that_is_gone_has_no_threads() -> None:
    assert processor_use([2**22 + 1]).threads == {}


def test_a_server_whose_storage_is_the_kit_s_and_slow_is_starved() -> None:
    recorder = Recorder()
    with S3Front(Interceptor(recorder)) as front:
        world: Any = SimpleNamespace(front=front)
        injector: Any = SimpleNamespace(
            recorder=recorder,
            world=SimpleNamespace(echo=lambda: FrontWorld.echo(world), held=lambda process: HeldCalls()),
            servers=[SimpleNamespace(name="server-1", pids=list)],
        )
        watch = Watch(injector, ())
        FrontWorld.echo(world)  # Its libraries are loaded now.
        listening = threading.Thread(target=watch._listen_to_echo)
        with front.interceptor.lock:
            listening.start()
            time.sleep(1.0)
        watch.end()
        listening.join(10.0)
    lost = [event.value for event in recorder.events if (event.process, event.operation) == ("server-1", "starved")]
    assert isinstance(lost[0], int) and 1_000 - 2 * WORTH_MS - 100 <= lost[0] <= 2_000
    assert [event.operation for event in recorder.events if event.kind == "effect"] == []

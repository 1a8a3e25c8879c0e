"""What the kernel says of a process that gets no processor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

from marker_sim.worlds.http.s3_worlds import FrontWorld
from marker_sim.worlds.http.servers import WORTH_MS, ProcessorTime, processor_times, starved_ms
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import S3Front

MS = 1_000_000
BUSY = "import os\nos.sched_setaffinity(0, {%d})\nos.nice(%d)\nwhile True: pass"


def test_a_process_that_others_keep_from_the_processor_is_starved() -> None:
    core = min(os.sched_getaffinity(0))
    words = [[sys.executable, "-c", BUSY % (core, nice)] for nice in (19, 0, 0)]
    running = [subprocess.Popen(each) for each in words]
    try:
        time.sleep(0.5)
        pid = running[0].pid
        lost, before = 0, processor_times([pid])
        for _ in range(100):
            time.sleep(0.1)
            now = processor_times([pid])
            lost, before = lost + starved_ms(before, now), now
            if lost > 1_000:
                break
        assert lost > 1_000
    finally:
        for each in running:
            each.kill()
            each.wait()


def test_threads_that_keep_each_other_waiting_are_not() -> None:
    before = {(1, number): ProcessorTime(0, 0) for number in range(4)}
    crowd = {key: ProcessorTime(500 * MS, 480 * MS) for key in before}
    assert starved_ms(before, crowd) == 0
    alone = crowd | {(1, 9): ProcessorTime(10 * MS, 2_500 * MS)}
    assert starved_ms(before, alone) == 2_500 - 2_010
    assert starved_ms(before, before) == starved_ms({}, {}) == 0


def test_a_process_that_is_gone_has_no_threads() -> None:
    assert processor_times([2**22 + 1]) == {}


def test_a_server_whose_storage_is_the_kit_s_and_slow_is_starved() -> None:
    recorder = Recorder()
    with S3Front(Interceptor(recorder, lambda armed, call: None)) as front:
        world: Any = SimpleNamespace(front=front)
        stage: Any = SimpleNamespace(
            recorder=recorder,
            world=SimpleNamespace(echo=lambda: FrontWorld.echo(world)),
            injector=SimpleNamespace(servers=[SimpleNamespace(name="server-1", pids=list)]),
            _over=threading.Event(),
        )
        stage._starved = lambda server, lost_ms: RunStage._starved(stage, server, lost_ms)
        FrontWorld.echo(world)  # Its libraries are loaded now.
        listening = threading.Thread(target=RunStage._listen_to_echo, args=(stage,))
        with front.interceptor.lock:
            listening.start()
            time.sleep(1.0)
        stage._over.set()
        listening.join(10.0)
    lost = [event.value for event in recorder.events if (event.process, event.operation) == ("server-1", "starved")]
    assert isinstance(lost[0], int) and 1_000 - 2 * WORTH_MS - 100 <= lost[0] <= 2_000
    assert [event.operation for event in recorder.events if event.kind == "effect"] == []

"""What the kernel says of a process that gets no processor."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from marker_sim.worlds.http.starvation import ProcessorTime, processor_times, starved_ms

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

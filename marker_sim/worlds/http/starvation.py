"""How long a server was ready to run but did not, because of the machine or the kit.

The kernel counts for each thread how long it ran and how long it waited in a run queue (/proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from marker_sim.worlds.door.calls import HeldCalls
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.http.world import RunStorage
from marker_sim.worlds.recorder import Recorder

WORTH_MS = 50  # Shorter waits for a processor are not recorded.
# When requests are not awaited: servers that were idle at three measurements hang. A batch comes every 25 ms in a walk.
HANGS_S, LOOK_S, BUSY_SHARE = 0.75, 0.25, 0.05
_NS_PER_MS = 1_000_000


class ProcessorTime(NamedTuple):
    """The nanoseconds that a thread has run, and has waited for a processor, since it began."""

    ran_ns: int
    waited_ns: int


class ProcessorUse(NamedTuple):
    """threads: by process and thread. busy_ns: of all processors of the machine. at_ns: time.monotonic_ns()."""

    threads: Mapping[tuple[int, int], ProcessorTime]
    busy_ns: int
    at_ns: int


def processor_use(pids: Iterable[int]) -> ProcessorUse:
    """The times of all threads of some processes; no threads where the kernel does not count."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # The thread has ended.
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    ran, waited, _ = map(int, Path(thread, "schedstat").read_text().split())
                    found[pid, int(thread.name)] = ProcessorTime(ran, waited)
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    return ProcessorUse(found, int(busy_s * 1e9), time.monotonic_ns())


def starved_ms(before: ProcessorUse, now: ProcessorUse, cores: int = os.cpu_count() or 1) -> int:
    """The milliseconds that a server waited for a processor because of others, between two measurements.

    Its threads waited, and its own ones had all processors for at most the time that they ran, divided by the number of
    processors: threads that keep each other waiting are its own doing. Others cannot have taken more than they ran.
    """
    none = ProcessorTime(0, 0)
    waited = sum(time.waited_ns - before.threads.get(key, none).waited_ns for key, time in now.threads.items())
    ran = sum(time.ran_ns - before.threads.get(key, none).ran_ns for key, time in now.threads.items())
    others = now.busy_ns - before.busy_ns - ran
    return max(0, min(min(waited, now.at_ns - before.at_ns) - ran // cores, others)) // _NS_PER_MS


class Starvation:
    """The time that one server lost waiting for processors, and for late answers of the kit to storage calls."""

    def __init__(self) -> None:
        self._seen: tuple[ProcessorUse, HeldCalls] | None = None

    def look(self, now: ProcessorUse, held: HeldCalls, late_s: float) -> int:
        """The milliseconds lost since the last measurement.

        held: the server's calls, as of `now`. late_s: how late a thread of the kit was woken last.
        """
        (before, known), self._seen = self._seen or (now, held), (now, held)
        held_s = (held.calls - known.calls) * late_s + held.seconds - known.seconds
        return min(starved_ms(before, now) + int(held_s * 1000), (now.at_ns - before.at_ns) // _NS_PER_MS)


class Idleness:
    """How long servers have been idle: no request, answer or storage call, and no thread that wanted a processor.

    A sleeping server looks the same, so no guarantee is judged by this.
    """

    def __init__(self) -> None:
        self._seen = (0, 0)
        self._ran_ns = self._next_ns = self._since_ns = 0

    def lasts(self, recorder: Recorder, world: RunStorage, servers: Sequence[Server]) -> bool:
        """Whether all servers have been idle for `HANGS_S`; False when none lives."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_ns:
            calls = sum(world.held(each.name).calls for each in servers)
            seen = (recorder.count(("invoke", "ok", "fail", "info")), calls)
            use = processor_use(pid for server in servers for pid in server.pids())
            ran_ns = sum(thread.ran_ns + thread.waited_ns for thread in use.threads.values())
            worked = ran_ns - self._ran_ns > BUSY_SHARE * LOOK_S * 1e9 or ran_ns < self._ran_ns
            if seen != self._seen or worked or not servers or not self._since_ns:
                self._since_ns = now_ns
            self._seen, self._ran_ns, self._next_ns = seen, ran_ns, now_ns + int(LOOK_S * 1e9)
        return now_ns - self._since_ns > HANGS_S * 1e9

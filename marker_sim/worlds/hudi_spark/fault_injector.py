"""The faults of one write while it runs: who is killed or stopped at which call, and who goes on after it."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

from marker_sim.faults import Fault, FaultKind
from marker_sim.worlds.hudi_spark.drivers import DriverLife
from marker_sim.worlds.hudi_spark.steps import DRIVER, STORAGE, TableStep, armed, moment_of
from marker_sim.worlds.hudi_spark.table_storage import TableStorage, TriggerActions
from marker_sim.worlds.interceptor import ArmedFault, StorageCall
from marker_sim.worlds.recorder import Recorder


class WriteFaultInjector:
    """What a step does to one write.

    step: None for a write without fault.
    executors: their processes now.

    Whoever was stopped goes on when its time is over, or at `end`.
    """

    def __init__(
        self,
        step: TableStep | None,
        table: str,
        life: DriverLife,
        recorder: Recorder,
        executors: Callable[[], tuple[int, ...]],
    ) -> None:
        self._life = life
        self._recorder = recorder
        self._executors = executors
        self._word = "" if step is None else step.word
        self._faults = [(fault, armed(fault, table, life.name)) for fault in (step.faults if step is not None else ())]
        self._struck: Counter[Fault] = Counter()
        self._place: TableStorage | None = None
        self._path = ""
        self._stopped: dict[int, threading.Timer] = {}
        self._guard = threading.Lock()

    def arm(self, place: TableStorage, target: TriggerActions) -> None:
        """The faults are armed from now on."""
        target.acts = {}
        self._place = place
        for fault, aimed in self._faults:
            inject = self._kill_driver if fault.target == DRIVER else self._inject
            target.acts[aimed] = partial(inject, fault)
            place.arm(aimed, at=moment_of(fault))

    def end(self) -> None:
        """Everybody goes on; nothing may be armed any more."""
        for pid, timer in list(self._stopped.items()):
            timer.cancel()
            self._go_on(pid)

    @property
    def fired(self) -> int:
        """How many faults affected somebody."""
        return sum(self._fell(fault, aimed) for fault, aimed in self._faults)

    @property
    def met(self) -> bool:
        """Whether the last fault affected somebody, and not when a file that was cut was whole again."""
        if not self._faults or not self._fell(*self._faults[-1]):
            return False
        return moment_of(self._faults[-1][0]) != "cut" or (
            self._place is not None and self._place.stayed_short(self._path)
        )

    @property
    def deadly(self) -> bool:
        """Whether the driver was killed."""
        return any(fault.target == DRIVER and self._struck[fault] for fault, _ in self._faults)

    def _fell(self, fault: Fault, aimed: ArmedFault) -> int:
        """How often it happened: for storage every firing counts, for a process only those that affected it."""
        return aimed.fired if fault.target == STORAGE else self._struck[fault]

    def _kill_driver(self, fault: Fault, call: StorageCall) -> None:
        self._recorder.fault(self._life.name, "kill", path=call.path, act=self._life.strike, error=self._word)
        self._struck[fault] += 1
        self._path = call.path

    def _inject(self, fault: Fault, call: StorageCall) -> None:
        """Kill or stop an executor; which one made the call is not known, so one is drawn by the path."""
        pids = self._executors()
        if not pids:
            return
        pid = random.Random(call.path).choice(pids)
        name = f"executor-of-{self._life.name}"
        kill = fault.kind is FaultKind.KILL
        if not _signal(pid, signal.SIGSTOP):
            return
        self._struck[fault] += 1
        if kill:
            act = partial(_signal, pid, signal.SIGKILL)
            self._recorder.fault(name, "kill-executor", path=call.path, act=act, error=self._word)
            return
        self._recorder.fault(name, "pause", "begin", path=call.path, error=self._word)
        timer = threading.Timer(fault.settings.for_ms / 1000, self._go_on, (pid,))
        timer.daemon = True
        self._stopped[pid] = timer
        timer.start()

    def _go_on(self, pid: int) -> None:
        with self._guard:
            if self._stopped.pop(pid, None) is None:
                return
        self._recorder.fault(
            f"executor-of-{self._life.name}", "pause", "end", act=partial(_signal, pid, signal.SIGCONT)
        )


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True

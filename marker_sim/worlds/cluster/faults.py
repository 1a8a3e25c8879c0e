"""Faults of processes: deaths, pauses, second servers, and how all of them are healed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marker_sim.faults import Fault, FaultKind
from marker_sim.names import TYPE_FILE, MarkerDirectory
from marker_sim.worlds.cluster.lives import ClientLife, ExecutorLife, TimelineServerLife, WriteDriverLife
from marker_sim.worlds.cluster.store import ClusterClients, TimelineServers
from marker_sim.worlds.cluster.writes import ClusterWrites, Instruction
from marker_sim.worlds.host import Host

# Files of other tools and torn writes; a reader that treats one as a marker file finds a name in it.
_STRAY_FILES = (
    "MARKERS0.tmp",
    ".MARKERS0.crc",
    "MARKERS01",
    "MARKERS.types",
    "_SUCCESS",
    "p/f9-0_0-0-0_0.parquet.marker",
    "f9-0_0-0-0_0.parquet.marker.DELETE",
)
_STRAY = b"f9-0_0-0-0_0.parquet.marker.CREATE\n"


class ClusterFaults:
    """Injects a plan's faults into the processes of one cluster until all of them are healed.

    own: does what only this world can, given the process and the fault.
    directories: the marker directories so far. hudi: whether markers are in Hudi's format.
    """

    def __init__(
        self,
        host: Host,
        servers: TimelineServers,
        clients: ClusterClients,
        writes: ClusterWrites,
        directories: Callable[[], tuple[MarkerDirectory, ...]],
        own: Callable[[Any, Fault], Instruction],
        hudi: bool,
    ) -> None:
        self._hudi = hudi
        self.healed = False
        self._host = host
        self._servers = servers
        self._clients = clients
        self._writes = writes
        self._directories = directories
        self._own = own

    def strike(self, process: Any, fault: Fault, attempt: Any = None) -> Instruction:
        """Inject a fault at a step of a process. attempt: the one that makes the step, None for none."""
        if self.healed or not process.alive:
            return None
        match fault.kind:
            case FaultKind.KILL:
                self.kill(process, fault)
            case FaultKind.PAUSE:
                self._host.pause(process, fault.settings.for_ms)
            case FaultKind.SECOND_SERVER:
                self._servers.start_second(fault.settings.for_ms)
            case FaultKind.TYPE_DAMAGED:
                files = self._host.files()
                for path in (f"{directory.path}/{TYPE_FILE}" for directory in self._directories()):
                    if path in files:
                        self._host.damage(path, None if fault.settings.removed else b"", "damage")
            case FaultKind.STRAY_FILES if not self._hudi:
                return None  # A store with a private format may own its whole directory.
            case FaultKind.STRAY_FILES:
                for path in (f"{each.path}/{name}" for each in self._directories() for name in _STRAY_FILES):
                    self._host.damage(path, _STRAY, fault.kind.value)
            case kind if kind.row.family == "task":
                return self._writes.strike(process, fault, attempt)
            case _:
                return self._own(process, fault)
        return None

    def kill(self, process: Any, fault: Fault, value: str | None = None) -> None:
        """Kill the process now. value: of the event, None for a fault of the plan."""
        self._host.kill(process, value, lambda: self.died(process, fault))

    def tear(self, process: Any, fault: Fault) -> None:
        """Kill the process in the middle of a write to a local file, or with a request on its way to the store."""
        self._host.record(process.name, process.role, "fault", fault.kind.value)
        self.kill(process, fault)

    def heal(self) -> None:
        """End all faults, and restart every process that is to come back."""
        self._host.heal()
        self.healed = True
        self._servers.heal()

    def died(self, process: Any, fault: Fault | None) -> None:
        """Do what follows from a process's death, by its role; fault: None when it ended by itself."""
        after_ms = fault.settings.restart_ms if fault is not None else 0
        match process.life:
            case ClientLife():
                self._clients.died(process, after_ms)
            case WriteDriverLife():
                self._writes.driver_died(process, fault)
            case ExecutorLife():
                self._writes.executor_died(process, after_ms)
            case TimelineServerLife() if fault is not None:
                self._servers.died(process, after_ms)

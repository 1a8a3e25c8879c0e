"""Faults of processes: deaths, pauses, second servers, and how all of them are healed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marker_sim.faults import Fault, FaultKind
from marker_sim.names import TYPE_FILE, MarkerDirectory
from marker_sim.worlds.cluster.store import ClusterClients, TimelineServers
from marker_sim.worlds.cluster.writes import ClusterWrites, Instruction
from marker_sim.worlds.host import ClientLife, ExecutorLife, Host, TimelineServerLife, WriteDriverLife

# Files of other tools and torn writes; a reader that treats one as a marker file finds a name in it.
_STRAY_FILES = (
    "MARKERS0.tmp",
    ".MARKERS0.crc",
    "MARKERS01",
    "MARKERS.types",
    "_SUCCESS",
    "p/f9-0_0-0-0_0.parquet.marker",
    "f9-0_0-0-0_0.parquet.marker.DELETE",
    ".marker.CREATE",
    "APPEND",
)
_STRAY = b"f9-0_0-0-0_0.parquet.marker.CREATE\n"


@dataclass(eq=False)
class ClusterFaults:
    """Injects a plan's faults into the processes of one cluster until all of them are healed.

    own: does what only this world can, given the process and the fault.
    directories: the marker directories so far. hudi: whether markers are in Hudi's format.
    """

    host: Host
    servers: TimelineServers
    clients: ClusterClients
    writes: ClusterWrites
    directories: Callable[[], tuple[MarkerDirectory, ...]]
    own: Callable[[Any, Fault], Instruction]
    hudi: bool
    healed: bool = False

    def strike(self, process: Any, fault: Fault, attempt: Any = None) -> Instruction:
        """Inject a fault at a step of a process. attempt: the one that makes the step, None for none."""
        if self.healed or not process.alive:
            return None
        match fault.kind:
            case FaultKind.KILL:
                self.kill(process, fault)
            case FaultKind.PAUSE:
                self.host.pause(process, fault.settings.for_ms)
            case FaultKind.SECOND_SERVER:
                self.servers.start_second(fault.settings.for_ms)
            case FaultKind.TYPE_DAMAGED:
                files = self.host.files()
                for path in (f"{directory.path}/{TYPE_FILE}" for directory in self.directories()):
                    if path in files:
                        self.host.damage(path, None if fault.settings.removed else b"", "damage")
            case FaultKind.STRAY_FILES if not self.hudi:
                return None  # A store with a private format may own its whole directory.
            case FaultKind.STRAY_FILES:
                for path in (f"{each.path}/{name}" for each in self.directories() for name in _STRAY_FILES):
                    self.host.damage(path, _STRAY, fault.kind.value)
            case kind if kind.row.family == "task":
                return self.writes.strike(process, fault, attempt)
            case _:
                return self.own(process, fault)
        return None

    def kill(self, process: Any, fault: Fault, value: str | None = None) -> None:
        """Kill the process now. value: of the event, None for a fault of the plan."""
        self.host.kill(process, value, lambda: self.died(process, fault))

    def tear(self, process: Any, fault: Fault) -> None:
        """Kill the process in the middle of a write to a local file, or with a request on its way to the store."""
        self.host.record(process.name, process.role, "fault", fault.kind.value)
        self.kill(process, fault)

    def heal(self) -> None:
        """End all faults, and restart every process that is to come back."""
        self.host.heal()
        self.healed = True
        self.servers.heal()

    def died(self, process: Any, fault: Fault | None) -> None:
        """Do what follows from a process's death, by its role; fault: None when it ended by itself."""
        after_ms = fault.settings.restart_ms if fault is not None else 0
        match process.life:
            case ClientLife():
                self.clients.died(process, after_ms)
            case WriteDriverLife():
                self.writes.driver_died(process, fault)
            case ExecutorLife():
                self.writes.executor_died(process, after_ms)
            case TimelineServerLife() if fault is not None:
                self.servers.died(process, after_ms)

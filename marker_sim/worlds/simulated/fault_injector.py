"""Faults of processes and their end: who dies, who is paused, who gets company, and how all of it heals.

A process may have, in its `state`, `on_death`: what else happens when it dies, given the fault, instead of a restart
under its own name (drivers and executors of a write).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marker_sim.faults import FaultKind
from marker_sim.names import TYPE_FILE
from marker_sim.plan import Fault
from marker_sim.worlds.simulated.scheduler import MS, Process

if TYPE_CHECKING:
    from marker_sim.worlds.simulated.cluster import Cluster


class SimulatedFaultInjector:
    """Hurts the processes of one cluster, as its plan says, until everything heals."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._scheduler = cluster.scheduler
        self.healed = False
        self._waiting_restart: dict[str, Process] = {}

    def strike(self, process: Process, fault: Fault) -> None:
        """A fault of a process is due; called within the step of one of its actors."""
        scheduler, cluster = self._scheduler, self._cluster
        if self.healed or not process.alive:
            return
        match fault.kind:
            case FaultKind.KILL:
                self.kill(process, fault)
            case FaultKind.PAUSE:
                scheduler.record(process.name, process.role, "fault", "pause", value="begin")
                process.paused_until_ns = scheduler.now_ns + fault.duration_ms * MS
                scheduler.at(process.paused_until_ns, self._resumed, process)
            case FaultKind.SECOND_SERVER:
                if cluster.servers["server"] is not None and cluster.servers["second"] is None:
                    second = cluster.start_server("second")
                    scheduler.record(second.name, second.role, "fault", "second-server", value="begin")
                    scheduler.at(scheduler.now_ns + fault.duration_ms * MS, self._stop_second, second)
            case FaultKind.OVERLOADED:
                self._overload(process, fault)
            case FaultKind.CLOCK_JUMPED:
                if process.role == "driver":
                    process.clock_ms += fault.value
                    scheduler.record(process.name, "nemesis", "fault", fault.kind.value, value=str(fault.value))
            case FaultKind.PLACEHOLDER:
                self._make_placeholders()
            case FaultKind.POWER_LOST:
                self._lose_power(process, fault)
            case FaultKind.TYPE_DAMAGED:
                self._damage_type_files(b"" if fault.value == 1 else None)
            case kind if kind.row.family == "task":
                cluster.jobs.strike(process, fault)
            case _:
                raise AssertionError(fault)

    def kill(self, process: Process, fault: Fault) -> None:
        """The process dies here and now."""
        self._scheduler.record(process.name, process.role, "fault", "kill")
        self._dies(process, fault)

    def tear(self, process: Process, fault: Fault) -> None:
        """The process dies in the middle of a write to a local file, or with a request on its way to the store."""
        self._scheduler.record(process.name, process.role, "fault", fault.kind.value)
        self.kill(process, fault)

    def end(self, process: Process) -> None:
        """The process is gone: its locks are free, its connections break, its actors never go on."""
        process.alive = False
        process.paused_until_ns = 0
        self._cluster.locks.drop(process)
        self._cluster.wire(process).break_connections(process)

    def exited(self, process: Process) -> None:
        """The process ended by itself, in the middle of what it did; nobody starts it again."""
        self.end(process)
        if "client" in process.state:
            self._cluster.client_left()

    def heal(self) -> None:
        """No fault arms any more, and whoever was away is back, unless the plan leaves it dead."""
        cluster = self._cluster
        for state in cluster.actors.values():
            state.pending, state.next_step, state.sited = [], 0, {}
            state.storage_faults.clear()
            state.wire_faults.clear()
            state.link = None
        self.healed = True
        cluster.store.throttled.clear()
        cluster.store.silent.clear()
        cluster.store.full_until_ns = 0
        second = cluster.servers["second"]
        for process in list(self._waiting_restart.values()):
            if second is None or process.name.partition("#")[0] != "second":
                self._restart(process)
        if second is not None:
            self._stop_second(second)
        server = cluster.servers["server"]
        if server is not None and server.paused_until_ns:
            server.paused_until_ns = self._scheduler.now_ns
            self._resumed(server)

    def forget_restart(self, process: Process) -> None:
        """Somebody else starts what this process was."""
        self._waiting_restart.pop(process.name, None)

    def _dies(self, process: Process, fault: Fault) -> None:
        self.end(process)
        if "on_death" in process.state:
            process.state["on_death"](fault)
        elif fault.duration_ms >= 0:
            self._waiting_restart[process.name] = process
            self._scheduler.at(self._scheduler.now_ns + fault.duration_ms * MS, self._restart, process)
        elif "client" in process.state:
            self._cluster.client_left()

    def _restart(self, process: Process) -> None:
        if self._waiting_restart.pop(process.name, None) is None:
            return
        if "client" in process.state:
            process.state["client"].reborn(process)
        else:
            self._cluster.start_server(process.name.partition("#")[0])

    def _resumed(self, process: Process) -> None:
        if process.alive and process.paused_until_ns and process.paused_until_ns <= self._scheduler.now_ns:
            process.paused_until_ns = 0
            self._scheduler.record(process.name, process.role, "fault", "pause", value="end")

    def _stop_second(self, second: Process) -> None:
        scheduler = self._scheduler
        if second.alive:
            self.end(second)
            scheduler.record(second.name, second.role, "fault", "kill", value="second-server")
            scheduler.record(second.name, second.role, "fault", "second-server", value="end")
        if self._cluster.servers["second"] is second:
            self.forget_restart(second)

    def _damage_type_files(self, data: bytes | None) -> None:
        cluster = self._cluster
        for directory in cluster.marker_directories():
            path = f"{directory.path}/{TYPE_FILE}"
            if path in cluster.store.objects:
                self._scheduler.record("kit", "nemesis", "fault", "damage", path=path)
                cluster.store.write(cluster.kit, "delete" if data is None else "put", path, data)

    def _overload(self, server: Process, fault: Fault) -> None:
        """A server takes up requests one after the other, at a pace, for a while."""
        if server.role != "timeline-server" or server.state.get("free_ns", 0) > self._scheduler.now_ns:
            return
        now_ns, kind = self._scheduler.now_ns, fault.kind.value
        until_ns = now_ns + fault.duration_ms * MS
        pace_ns = max(1, fault.value) * MS
        server.state["overload"], server.state["free_ns"] = (pace_ns, until_ns), min(now_ns + pace_ns, until_ns)
        self._scheduler.record(server.name, server.role, "fault", kind, value="begin")

        def over(_: object) -> None:
            server.state["free_ns"] = 0
            if server.alive:
                self._scheduler.record(server.name, server.role, "fault", kind, value="end")

        self._scheduler.at(until_ns, over)

    def _make_placeholders(self) -> None:
        """Keys that end in "/", as consoles and other clients of an object store make them for directories."""
        cluster = self._cluster
        for directory in cluster.marker_directories():
            path = f"{directory.path}/"
            if cluster.store.model.startswith("s3") and path not in cluster.store.objects:
                self._scheduler.record("kit", "nemesis", "fault", FaultKind.PLACEHOLDER.value, path=path)
                cluster.store.write(cluster.kit, "put", path, b"")

    def _lose_power(self, process: Process, fault: Fault) -> None:
        """The process dies, and files are again what they were before the last `value` ms; nothing was synced."""
        cluster = self._cluster
        if cluster.store.model != "local" or cluster.store.unsynced is None:
            return
        self._scheduler.record(process.name, "nemesis", "fault", fault.kind.value)
        unsynced, cluster.store.unsynced = cluster.store.unsynced, []
        since_ns = self._scheduler.now_ns - fault.value * MS
        for time_ns, path, before in reversed(unsynced):
            if time_ns >= since_ns and cluster.store.objects.get(path) != before:
                cluster.store.write(cluster.kit, "delete" if before is None else "put", path, before)
        self.kill(process, fault)

"""One run of a plan: clients and writes with faults, healing, probes, and the final reading of storage.

before   what the tables held before is stored
faults   every client performs its operations in order, then the driver its writes; faults arm at steps
healed   nothing fails any more, paused and killed processes are back, the second server is gone
probe    in each directory num_threads + 1 creates, one a batch, and a list, by a fresh client; a write to each
         table that was written to, by a fresh driver
end      every process is killed, what was under way arrives, and a fresh reader sees what is stored
"""

from __future__ import annotations

from functools import partial
from typing import Any

from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.worlds.cluster.earlier_life import LEFT, earlier_instants
from marker_sim.worlds.cluster.faults import ClusterFaults
from marker_sim.worlds.cluster.settings import ClusterSettings
from marker_sim.worlds.cluster.store import ClusterClients, TimelineServers
from marker_sim.worlds.cluster.writes import ClusterWrites, Instruction
from marker_sim.worlds.host import Host, Restarts
from marker_sim.worlds.simulated.fresh_reader import READER, FreshReader, NotListed
from marker_sim.writer.slices import LINES, RowFormat, table_rows


class ClusterRun:
    """The processes of one run on a host, and the phases that they go through.

    rows_as: the format of data files.
    """

    rows_as: RowFormat = LINES

    def __init__(self, plan: Plan, system: System, host: Host) -> None:
        self.plan = plan
        self.system = system
        self.settings = ClusterSettings(plan, system, host.capabilities)
        self.choice = self.settings.choice
        restarts = Restarts()
        self.servers = TimelineServers(plan, host, restarts)
        self.clients = ClusterClients(host, restarts)
        self.writes = ClusterWrites(plan, host, self.servers)
        self.faults = ClusterFaults(
            host,
            self.servers,
            self.clients,
            self.writes,
            self.marker_directories,
            self._own_fault,
            system.layout == "hudi",
        )
        self.host = host
        self._saw = partial(host.record, "kit", "kit", "observe")

    def begin(self) -> None:
        """Store what the tables hold before the run, choose the mode and start the server."""
        self._lay_out()
        self._saw("phase", value="faults")
        self._saw("mode", value=self.choice.mode, error=self.choice.reason or None)
        if self.choice.mode == "timeline":
            self.servers.start("server")

    def play(self) -> None:
        """Perform the operations and the writes of the plan."""
        self.clients.play(self.plan.single_ops)
        for write in self.plan.writes:
            self.writes.play(write)

    def end(self) -> None:
        """Heal, probe, end every process and read what is stored."""
        self.faults.heal()
        self._saw("phase", value="healed")
        self.host.settle()
        self._saw("phase", value="probe")
        self.clients.play(self.plan.probes(self.choice.mode))
        self.writes.probe(self.plan.writes)
        self._saw("phase", value="end")
        self.host.end_all()
        self.host.settle()
        self._observe()

    def _lay_out(self) -> None:
        """Store and record the earlier instants of every table; their markers only in a format known to the kit."""
        mode = self.choice.mode if self.system.layout == "hudi" else ""
        for number, table in enumerate(self.plan.tables if self.plan.earlier is not None else ()):
            for each in earlier_instants(self.plan, number, mode, self.rows_as):
                self._saw("earlier", table, each.instant, each.state, each.paths)
                for path, data in each.files:
                    self.host.restore(path, data)
                if each.state == LEFT:
                    self.writes.instants[MarkerDirectory(table, each.instant)] = None
                    self._saw("mode", table, each.instant, None, mode, self.choice.reason or None)

    def marker_directories(self) -> tuple[MarkerDirectory, ...]:
        """The marker directories of the plan and of the writes so far."""
        return self.settings.directories + tuple(self.writes.instants)

    def _own_fault(self, process: Any, fault: Fault) -> Instruction:
        """Inject a fault that only this world has; other worlds do nothing."""
        return None

    def _observe(self) -> None:
        """Record every file and marker directory, and the rows that readers of completed commits find in each table.

        In a format that judges cannot read themselves a fresh instance of the system lists the directories.
        """
        host, settings = self.host, self.settings
        began, files = host.mark(), host.files()
        mode, storage = self.choice.mode, self.plan.storage
        fresh = FreshReader(self.system, mode, storage, settings.options, files, host.now_ns())
        for path in sorted(files):
            self._saw("file", path=path, value=files[path])
        for place in self.marker_directories():
            try:
                names = fresh.names(place.path)
            except NotListed as failed:  # A listing that ends so without any fault at that time breaks G11.
                if self.system.outside is not None and self.system.outside.reused:
                    raise  # What a program kept of another process may be the reason.
                asked = host.record(READER, "kit", "invoke", "list", *place)
                host.record(READER, "kit", "info", "list", *place, error=str(failed), caused_by=asked)
                continue
            self._saw("snapshot", *place, place.path, names, caused_by=began)
        for table in self.writes.tables:
            value, error = None, None
            try:
                value = tuple(f"{key}={row}" for key, row in sorted(table_rows(table, files, self.rows_as).items()))
            except ValueError as unreadable:
                error = str(unreadable)
            self._saw("rows", table, value=value, error=error)

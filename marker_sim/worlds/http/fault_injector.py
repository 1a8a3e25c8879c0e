"""Injects the faults of a run into real server processes, records each, and looks at storage around them.

Everything that stops or ends a server holds `ServerFaultInjector.stopping`, so a read of storage at an answer, which
stops the servers for a few milliseconds, never overlaps a kill or a pause. Such stops are not recorded as pauses: they
are shorter than the delays of a busy scheduler.

A fault at a storage call comes from the interceptor, with the recorder's lock held: it does not wait and does not take
`stopping`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable

from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.worlds.http.http_client import probe
from marker_sim.worlds.http.servers import Fleet, NotServing, Server, ServerPlace
from marker_sim.worlds.http.world import RunStorage
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.recorder import Act, Recorder

LOOK_AT_ACK_EVERY_S = 0.12
# Without a storage call to go by: after a failed write the rest never comes; and the upper limit.
WRITTEN_S, WRITTEN_MAX_S = 2.0, 15.0
SECOND_STARTUP_S, SECOND_STARTS = 20.0, 2
KIT_PROBE, PROBE_INSTANT = "kit-probe-", "000"  # Table and instant that only the kit's own requests name.
OF_POWER = "power lost, kept: "  # Prefix of the counters of a run, one for each kind of power loss.
KILL, PAUSE, SECOND = FaultKind.KILL.value, FaultKind.PAUSE.value, FaultKind.SECOND_SERVER.value
POWER_LOST = FaultKind.POWER_LOST.value


class ServerFaultInjector:
    """The servers of one run and their faults. `servers` are those alive, the first one first.

    world: the storage of the run. counts: the number of events by kind. trouble: errors in other threads of the run.
    news: notified when the servers to ask have changed; changed_s: when that was (time.monotonic).
    pauses: for each paused server, the ends of its pauses.
    exited: whether a server ended by itself. starting: a server that is being started again after a death.
    workdir: of the servers of this run, below that of the fleet. before: puts a proxy before a new server and returns
    its
        port; None for no proxy.
    """

    def __init__(
        self,
        fleet: Fleet,
        recorder: Recorder,
        plan: Plan,
        workdir: str,
        world: Callable[[ServerFaultInjector], RunStorage],
    ) -> None:
        self.fleet = fleet
        self.workdir = self._home = workdir
        self.recorder = recorder
        self.stopping = threading.Lock()
        self.news = threading.Condition()
        self.changed_s = time.monotonic()
        self.servers: list[Server] = []
        self.counts: Counter[str] = Counter()
        self.trouble: list[BaseException] = []
        self.pauses: dict[Server, list[float]] = {}
        self.exited = False
        self.starting: Server | None = None
        self.before: Callable[[Server], int | None] = lambda server: None
        self._looked_s = 0.0
        # Deaths of servers that the plan still has.
        self._deaths = sum(fault.target == "server" and fault.kind.row.kills for fault in plan.faults)
        self.world = world(self)
        self._place = ServerPlace(self.world.surroundings, plan.num_threads, plan.interval_ms)

    def thread(self, act: Callable[..., object], *arguments: object) -> threading.Thread:
        """Start a thread that calls `act`; an error in it fails the run."""

        def guarded() -> None:
            try:
                act(*arguments)
            except BaseException as error:
                self.trouble.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    @property
    def living(self) -> tuple[Server, ...]:
        """The live servers that nobody has ended."""
        return tuple(server for server in self.servers if not server.ended)

    def serves(self, process: str) -> bool:
        """Whether a server of this name has answered and lives."""
        return any(server.name == process for server in self.servers)

    @property
    def running(self) -> tuple[Server, ...]:
        """The live servers and the one that is being started again."""
        return (*self.servers, *filter(None, [self.starting]))

    def restarts(self, process: str) -> bool:
        """Whether the server of this name is started again after a death."""
        return self.starting is not None and self.starting.name == process

    def start(self, slot: str = "first", startup_s: float | None = None, again: bool = False) -> Server:
        """Start a server and notify clients; HarnessError when it does not come up. again: after a death."""
        directory = self.world.address(MarkerDirectory(f"{KIT_PROBE}{slot}", PROBE_INSTANT))
        begin = self._begin_again if again else lambda launch: launch()
        try:
            server = self.fleet.start(
                self._place, f"{self._home}/{slot}", lambda port: probe(port, directory), startup_s, begin
            )
            server.proxy = self.before(server)
            with self.recorder.lock:
                if server.ended:
                    raise NotServing(f"{server.name} was killed while it started", server, "was killed", killed=True)
                self._serves(server)
        finally:
            self.starting = None
        self._start_ahead()
        return server

    def _begin_again(self, launch: Callable[[], Server]) -> Server:
        with self.recorder.lock:  # None of its calls passes before the server is known.
            self.starting = launch()
            if self.world.has_called(self.starting.name):
                raise HarnessError(f"{self.starting.name} was started ahead, and called storage before it was needed")
        return self.starting

    def take_over(self, server: Server) -> None:
        """Use a live server of an earlier run; servers after it use its {workdir}."""
        self._home = server.slot.rpartition("/")[0]
        self._serves(server)
        self._start_ahead()

    def _serves(self, server: Server) -> None:
        server.started = self.recorder.record(server.name, "server", "observe", "started")
        self._now_living([*self.servers, server])

    def _start_ahead(self) -> None:
        """Begin the start of the next server, if a death is to come."""
        if self._deaths > 0:
            self.fleet.start_ahead(self._place)

    def on_ack(self, place: MarkerDirectory) -> None:
        """Read storage now and then at the moment when a create was answered."""
        try:
            if self._look_is_due() and self.stopping.acquire(blocking=False):
                try:
                    self._look_at_ack(place)
                finally:
                    self.stopping.release()
        except BaseException as error:
            self.trouble.append(error)

    def check(self) -> None:
        """Record servers that ended by themselves, and raise errors of other threads."""
        for server in list(self.servers):
            if server.exited() is not None and not server.ended:
                server.ended = True
                self._exited(server)
                self._gone(server)
        if self.trouble:
            raise self.trouble[0]
        if self.fleet.closing.is_set():
            raise HarnessError("the campaign ended during a run")

    def _exited(self, server: Server, how: str | None = None) -> None:
        self.exited = True
        said = server.last_lines()[-200:]
        self.recorder.record(server.name, "server", "observe", "exited", value=how, error=said)

    def look_at_dead(self, server: Server, places: tuple[MarkerDirectory, ...]) -> None:
        """Wait until a killed server is dead, and read what it left in storage."""
        server.kill()
        self._gone(server)
        for place in places:
            if self.servers:
                self.world.reader.look(place)
            else:
                self.world.reader.look_at_dead(place)

    def restart(self, healed: bool) -> None:
        """Start a server again on the same directories, with a fresh port; a fault at a call may kill it meanwhile.

        healed: all faults are over, so a server that does not come up has ended by itself. Before, storage may be the
        reason.
        """
        try:
            started = self.start(startup_s=None if healed else self.fleet.again_s, again=True)
            self.recorder.fault(started.name, "restart")
        except NotServing as none:
            if none.killed:
                return  # The fault that killed it starts it again.
            if not healed:
                self.counts["server not up again until faults were over"] += 1
                return
            self.recorder.record(none.server.name, "server", "observe", "started")
            self._exited(none.server, none.how)

    def second_begins(self) -> Server | None:
        """Start a second server on the same storage; None when it refuses to run beside the first, which is its right.

        One that exits is started once more, as service managers do.
        """
        self.recorder.fault("second", SECOND, "begin")
        began = time.monotonic()
        for _ in range(SECOND_STARTS):
            with contextlib.suppress(HarnessError):
                server = self.start("second", SECOND_STARTUP_S)
                self.counts["second server"] += 1
                return server
            if time.monotonic() - began > SECOND_STARTUP_S / SECOND_STARTS:
                break
        self.recorder.fault("second", SECOND, "end")
        self.counts["second server refused to serve"] += 1
        return None

    def second_ends(self, server: Server) -> None:
        """Kill the second server; the first one continues."""
        with self.stopping:
            self.recorder.fault(server.name, KILL, SECOND, act=server.kill)
            self.recorder.fault("second", SECOND, "end")
            self._gone(server)

    def wait(self, duration_s: float, until: Callable[[], bool]) -> None:
        """Let time pass until a condition holds, and record exits."""
        deadline = time.monotonic() + duration_s
        while not until() and (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.02))

    def end(self) -> None:
        """Kill all servers at the end of the run.

        Not while one rewrites a file in place, so that no guarantee is judged by that.
        """
        began = called = time.monotonic()
        calls = -1
        with self.stopping:
            while not self._ended(late=time.monotonic() > min(called + WRITTEN_S, began + WRITTEN_MAX_S)):
                before, calls = calls, sum(self.world.held(server.name).calls for server in self.servers)
                called = called if calls == before else time.monotonic()
                time.sleep(0.002)
            self._now_living([])

    def _ended(self, late: bool) -> bool:
        """Kill all servers unless a file is being rewritten; returns whether it did. late: kill in any case."""
        with self.recorder.lock:
            if self.servers and self.world.rewriting() and not late:
                return False
            for server in self.servers:
                self.recorder.record(server.name, "nemesis", "fault", KILL, value="end-of-run")
                server.kill()
        return True

    def _gone(self, server: Server) -> None:
        self._now_living([other for other in self.servers if other is not server])

    def _now_living(self, servers: list[Server]) -> None:
        self.servers = servers
        self._notify()

    def _notify(self) -> None:
        with self.news:
            self.changed_s = time.monotonic()
            self.news.notify_all()

    def kill(self, server: Server, call: StorageCall | None) -> None:
        """Send SIGKILL without waiting for the death. call: the storage call at which it dies, None for no call."""
        server.ended = True
        self._deaths -= 1
        self._fault(server, KILL, call, server.program.kill)
        self._notify()

    def _fault(self, server: Server, kind: str, call: StorageCall | None, act: Act | None = None) -> None:
        path, place = (call.path, call.operation) if call is not None else (None, None)
        self.recorder.fault(server.name, kind, path=path, act=act, error=place)

    def lose_power(self, server: Server, settings: FaultSettings, call: StorageCall | None) -> list[Server]:
        """Simulate a power loss: kill every server, and revert what was not synced before anything else happens.

        Returns the servers that died. call: as of `kill`.
        """
        names, lengths = settings.names or settings.lengths, settings.lengths
        kept = "names and lengths" if lengths else "names" if names else "nothing"
        with self.recorder.lock:
            self._fault(server, POWER_LOST, call)
            dying = [each for each in self.running if not each.ended]
            for each in dying:
                self.kill(each, call)
            self.world.lose_power(names, lengths)
        self.counts[f"{OF_POWER}{kept}"] += 1
        return dying

    def _look_is_due(self) -> bool:
        reader, rested_s = self.world.reader, time.monotonic() - self._looked_s
        return reader.live and not self.pauses and rested_s > max(LOOK_AT_ACK_EVERY_S, reader.rest_s)

    def _look_at_ack(self, place: MarkerDirectory) -> None:
        servers = self.servers
        try:
            if servers and all(server.stop() for server in servers):
                looked = self.world.reader.look_at_stopped(place)
                self.counts["storage read at an answer" if looked else "look at an answer given up"] += 1
        finally:
            for server in servers:
                server.proceed()
            self._looked_s = time.monotonic()

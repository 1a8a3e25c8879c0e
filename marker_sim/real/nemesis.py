"""Injects the misfortunes of a round into real server processes, records each, and looks at storage around them.

Everything that stops or ends a server takes `Nemesis.hands`, so that a look at the moment of an answer, which stops the
servers for a few milliseconds, never meets a kill or a pause half done. Such looks are not recorded as pauses: they are
shorter than what a busy scheduler does to a process by itself.

Storage is made to fail without destroying what was answered: a directory stands where a marker file of a directory
that has none yet would be written, or RLIMIT_FSIZE of the server's processes is lowered to the size of the largest
marker file (writes beyond it fail with EFBIG, as on a full disk; SIGXFSZ is left to the server's runtime, and JVM and
Python ignore it). The file system itself is the machine's; a small tmpfs was rejected because it needs root.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind
from marker_sim.names import MarkerDirectory, marker_file
from marker_sim.real.client import answers
from marker_sim.real.load import Load
from marker_sim.real.processes import Fleet, Server
from marker_sim.real.reader import Reader
from marker_sim.real.recorder import Recorder

LOOK_AT_ACK_EVERY_S = 0.12
ARMED_MAX_S = 2.0
SECOND_STARTUP_S = 20.0
PROBE_INSTANT = "000"
KILL, PAUSE, SECOND = FaultKind.KILL.value, FaultKind.PAUSE.value, FaultKind.SECOND_SERVER.value
STORAGE_FAILS, DISK_FULL = FaultKind.SERVER_ERROR.value, FaultKind.DISK_FULL.value


class Nemesis:
    """The servers of one round and what happens to them. `servers` are those alive, the first one first.

    address: how requests write a marker directory.
    """

    def __init__(
        self,
        fleet: Fleet,
        recorder: Recorder,
        rng: random.Random,
        num_threads: int,
        interval_ms: int,
        directory: Callable[[MarkerDirectory], str],
    ) -> None:
        self.fleet = fleet
        self.recorder = recorder
        self.rng = rng
        self.num_threads = num_threads
        self.interval_ms = interval_ms
        self.hands = threading.Lock()
        self.servers: list[Server] = []
        self.counts: dict[str, int] = {}
        self.trouble: list[BaseException] = []
        self.load: Load | None = None
        self.reader: Reader | None = None
        self.address = directory
        self._looked_s = 0.0
        self._armed = 0
        self._shot = threading.Event()
        self._full: list[tuple[int, tuple[int, int]]] = []

    def pids(self) -> list[int]:
        """Every process of every server that lives."""
        return [pid for server in list(self.servers) for pid in server.pids()]

    def start(self, slot: str = "first", startup_s: float | None = None) -> Server:
        """Start a server and let clients know; HarnessError when it does not come up."""
        probe = self.address(MarkerDirectory("kit-probe", PROBE_INSTANT))
        server = self.fleet.start(
            slot, self.num_threads, self.interval_ms, lambda port: answers(port, probe), startup_s
        )  # fmt: skip
        server.started = self.recorder.record(server.name, "server", "observe", "started")
        self._now_living([*self.servers, server])
        return server

    def on_ack(self, place: MarkerDirectory) -> None:
        """A create was answered this moment: kill if that is what waits for it, or look at storage now and then."""
        try:
            if self._armed:
                self._shoot_at_ack()
            elif time.monotonic() - self._looked_s > LOOK_AT_ACK_EVERY_S and self.hands.acquire(blocking=False):
                try:
                    self._look_at_ack(place)
                finally:
                    self.hands.release()
        except BaseException as error:
            self.trouble.append(error)

    def check(self) -> None:
        """Notice servers that ended by themselves, and raise what went wrong in other threads."""
        for server in list(self.servers):
            if server.exited() is not None and not server.ended:
                server.ended = True
                self.recorder.record(server.name, "server", "observe", "exited", error=server.last_lines()[-200:])
                self._now_living([other for other in self.servers if other is not server])
        if self.trouble:
            raise self.trouble[0]
        if self.fleet.closing.is_set():
            raise HarnessError("the campaign was ended while a round was under way")

    def kill(self, server: Server, places: tuple[MarkerDirectory, ...], at_ack: bool = False) -> None:
        """SIGKILL, at once or at the next answer to a create, then look at what is left."""
        assert self.reader is not None
        if at_ack and not self._wait_for_ack():
            at_ack = False
        if not at_ack:
            with self.hands:
                self._shoot(server)
        self._note("kill at an answer" if at_ack else "kill at a random moment")
        server.kill()
        self._now_living([other for other in self.servers if other is not server])
        for place in places:
            if self.servers:
                self.reader.look(place)
            else:
                self.reader.look_at_dead(place)

    def restart(self, slot: str = "first") -> Server:
        """Start again on the same directories, with a fresh port."""
        server = self.start(slot)
        self.recorder.fault(server.name, "restart")
        return server

    def pause(self, server: Server, duration_s: float) -> None:
        """SIGSTOP for a while."""
        with self.hands:
            self.recorder.fault(server.name, PAUSE, "begin", act=server.stop)
            self._note("pause")
            self.wait(duration_s)
            self.recorder.fault(server.name, PAUSE, "end", act=server.proceed)

    def second_begins(self) -> Server | None:
        """A second server on the same storage; None when it refuses to start beside the first, which is its right."""
        self.recorder.fault("second", SECOND, "begin")
        try:
            server = self.start("second", SECOND_STARTUP_S)
        except HarnessError:
            self.recorder.fault("second", SECOND, "end")
            self._note("second server refused to serve")
            return None
        self._note("second server")
        return server

    def second_ends(self, server: Server) -> None:
        """Kill the second server; the first one goes on."""
        with self.hands:
            self.recorder.fault(server.name, KILL, SECOND, act=server.kill)
            self.recorder.fault("second", SECOND, "end")
            self._now_living([other for other in self.servers if other is not server])

    def obstruct(self, place: MarkerDirectory, index: int, storage: Path) -> Callable[[], None]:
        """Make writing one marker file of a directory fail; returns what heals it."""
        path = f"{place.path}/{marker_file(index)}"
        (storage / path).mkdir(parents=True)
        self.recorder.fault(f"storage-{index}", STORAGE_FAILS, "begin", path)
        self._note("storage fails at one marker file")

        def heal() -> None:
            try:
                (storage / path).rmdir()
            except FileNotFoundError:
                pass  # The server did away with what stood in its way.
            except OSError:
                self.recorder.fault("storage", "damage", path=path)
                shutil.rmtree(storage / path)
            self.recorder.fault(f"storage-{index}", STORAGE_FAILS, "end", path)

        return heal

    def fill_disk(self, size_bytes: int) -> None:
        """Writes beyond this size fail from now on, for every process of every server."""
        self.recorder.fault("storage", DISK_FULL, "begin")
        for pid in self.pids():
            try:
                before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, before[1]))
            except (ProcessLookupError, PermissionError):
                continue
            self._full.append((pid, before))
        self._note("disk full")

    def free_disk(self) -> None:
        """The end of `fill_disk`."""
        for pid, before in self._full:
            try:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            except (ProcessLookupError, PermissionError):
                continue
        self._full.clear()
        self.recorder.fault("storage", DISK_FULL, "end")

    def wait(self, duration_s: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass, refill the load, notice exits; True as soon as `until` holds."""
        deadline = time.monotonic() + duration_s
        while not until():
            self.check()
            if self.load is not None:
                self.load.refill()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, 0.02))
        return True

    def end(self) -> None:
        """The run is over: kill what lives; no guarantee is judged by this."""
        with self.hands:
            for server in self.servers:
                self.recorder.record(server.name, "nemesis", "fault", KILL, value="end-of-run")
                server.kill()
            self._now_living([])

    def _now_living(self, servers: list[Server]) -> None:
        self.servers = servers
        if self.load is not None:
            self.load.servers = tuple(servers)

    def _note(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _wait_for_ack(self) -> bool:
        self._shot.clear()
        self._armed = self.rng.randint(1, 12)
        hit = self.wait(ARMED_MAX_S, self._shot.is_set)
        with self.hands:
            self._armed = 0
        return hit or self._shot.is_set()

    def _shoot_at_ack(self) -> None:
        with self.hands:
            if self._armed > 0:
                self._armed -= 1
                if self._armed == 0 and self.servers:
                    self._shoot(self.servers[0])
                    self._shot.set()

    def _shoot(self, server: Server) -> None:
        server.ended = True
        self.recorder.fault(server.name, KILL, act=lambda: server.signal(signal.SIGKILL))
        if self.load is not None:
            self.load.servers = tuple(other for other in self.load.servers if other is not server)

    def _look_at_ack(self, place: MarkerDirectory) -> None:
        if self.reader is None or not self.servers:
            return
        servers = list(self.servers)
        try:
            if all(server.stop() for server in servers):
                pids = [pid for server in servers for pid in server.pids()]
                looked = self.reader.look_at_stopped(place, pids)
                self._note("storage read at an answer" if looked else "look at an answer given up")
        finally:
            for server in servers:
                server.proceed()
            self._looked_s = time.monotonic()

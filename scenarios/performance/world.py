"""A large write's markers in virtual time: many task slots make their markers one by one, then the driver deletes all.

Everything is performed: a create is a request over the wire to the reference's timeline server or a put of the direct
markers, each marker file is rewritten whole, each deletion is a request of its own. Only the history is left out.
Every request to storage takes the same `latency_ms`; beside it stand what Amazon documents for S3: a listing comes in
pages of KEYS_A_PAGE keys, a request moves at most BYTES_A_MS. Nothing fails and nothing is throttled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.direct import DirectMarkers
from marker_sim.markers.files import read
from marker_sim.markers.protocol import handle
from marker_sim.markers.server import ServedMarkers
from marker_sim.markers.store import Context, Created
from marker_sim.names import marker_file_index, stored_names
from marker_sim.options import MarkerOptions
from marker_sim.seams import Condition, Content, Reply, Request
from marker_sim.worlds.simulated.runtime import SimHostLocks, SimRuntime
from marker_sim.worlds.simulated.scheduler import MS, ActorState, Process, Scheduler
from marker_sim.worlds.simulated.storage import SimStorage, Store
from marker_sim.worlds.simulated.wire import SimWire

DIRECTORY = "table/.hoodie/.temp/20210820173605"
KEYS_A_PAGE = 1_000
BYTES_A_MS = 85_000
STEPS_MAX = 1_000_000_000
Markers = DirectMarkers | TimelineMarkers
YEAR_NS = 366 * 24 * 3_600_000 * MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One write. slots: tasks at a time (Spark's parallelism). jitter: 0 for equal latencies, else their seed.

    looks_first: a direct create asks whether the directory exists before it puts, as Hudi's DirectWriteMarkers does.
    data_ms: how long a slot writes data after each marker.
    """

    mode: str
    files: int
    latency_ms: float
    num_threads: int = 20
    interval_ms: int = 50
    delete_parallelism: int = 100
    slots: int = 240
    jitter: int = 0
    looks_first: bool = False
    data_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a write came to, in virtual time. create_s: until the last marker, without the time of writing data.

    list_s: finalize asks for the data files that markers name. marker_files: without the type file. puts, wrote_bytes:
    of markers. requests: to storage. cpu_s: process time that the simulation took.
    """

    create_s: float
    list_s: float
    delete_s: float
    marker_files: int
    puts: int
    requests: int
    wrote_bytes: int
    steps: int
    cpu_s: float


class UnrecordedScheduler(Scheduler):
    """Keeps no history: a million creates would fill the memory, and this run is not judged."""

    def record(self, process: str, role: str, kind: str, operation: str, *rest: Any, **more: Any) -> int:
        """Drop an event; an actor that died of an error ends the run."""
        if operation == "actor-died" and not self.closed:
            raise HarnessError(f"{process} died in a simulation without faults: {more.get('error')}")
        return -1


class WeighedStore(Store):
    """An object store that counts what is put, and whose versions are numbers, so that no old content is kept."""

    def __init__(self, scheduler: Scheduler, latency_ms: float) -> None:
        super().__init__(scheduler, "s3")
        self.latency_ns = int(latency_ms * MS)
        self.puts = self.requests = self.wrote_bytes = 0

    def version(self, path: str, data: bytes) -> str:
        """New with every write."""
        return str(self._stamps[path])

    def write(self, process: Process, operation: str, path: str, data: bytes | None) -> None:
        """Apply and count one effect."""
        if data is None:
            del self.objects[path]
            return
        self.puts += 1
        self.wrote_bytes += len(data)
        self.objects[path] = data
        self._stamps[path] = self.puts


class PricedStorage:
    """The Storage seam with the prices of pages and bytes on top of the latency."""

    def __init__(self, inner: SimStorage, runtime: SimRuntime, store: WeighedStore, page_ms: float) -> None:
        self.capabilities = inner.capabilities
        self._inner = inner
        self._runtime = runtime
        self._store = store
        self._page_ms = page_ms

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """The bytes travel, then the request is like any other."""
        self._store.requests += 1
        if data:
            self._runtime.sleep(len(data) / BYTES_A_MS)
        return self._inner.put(path, data, condition, expected)

    def overwrite(self, path: str, data: bytes) -> None:
        """Object stores have none."""
        self._inner.overwrite(path, data)

    def get(self, path: str) -> Content:
        """One request, then the bytes travel."""
        self._store.requests += 1
        content = self._inner.get(path)
        if content.data:
            self._runtime.sleep(len(content.data) / BYTES_A_MS)
        return content

    def list(self, prefix: str) -> tuple[str, ...]:
        """One request a page."""
        found = self._inner.list(prefix)
        pages = max(1, -(-len(found) // KEYS_A_PAGE))
        self._store.requests += pages
        if pages > 1:
            self._runtime.sleep((pages - 1) * self._page_ms)
        return found

    def delete(self, path: str) -> None:
        """One request."""
        self._store.requests += 1
        self._inner.delete(path)


class World:
    """The processes of one write: a driver, its timeline server and the task slots."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.scheduler = UnrecordedScheduler(self._unexpected, self._unexpected, STEPS_MAX)
        self.store = WeighedStore(self.scheduler, setting.latency_ms)
        self.locks = SimHostLocks(self.scheduler)
        self.options = MarkerOptions(
            markers_type="DIRECT" if setting.mode == "direct" else "TIMELINE_SERVER_BASED",
            batch_num_threads=setting.num_threads,
            batch_interval_ms=setting.interval_ms,
            delete_parallelism=setting.delete_parallelism,
        )
        self.left = 0
        self.server = Process("server#1", "timeline-server", ActorState("server", (), setting.jitter))
        if setting.mode == "timeline":
            self.served = ServedMarkers(self._context(self.server))

    def run(self) -> Figures:
        """Make every marker, check what is stored, delete it, check that nothing is left."""
        setting, scheduler, store = self.setting, self.scheduler, self.store
        began_s = time.process_time()
        names = tuple(marker_names(setting.files))
        slots = min(setting.slots, setting.files)
        try:
            create_ns = self._play([self._creates(f"executor-{n}", names[n::slots]) for n in range(slots)])
            stored = stored_names(DIRECTORY, store.objects)
            if stored != frozenset(names):
                raise HarnessError(f"{len(stored)} markers are stored after {setting.files} creates")
            files = [path for path in store.objects if setting.mode == "direct" or _is_batch_file(path)]
            list_ns = self._play([self._drives(self._lists)])
            delete_ns = self._play([self._drives(self._deletes)])
            if store.objects:
                raise HarnessError(f"{len(store.objects)} files are left after the deletion")
        finally:
            scheduler.close()
        return Figures(
            create_s=create_ns / MS / 1_000 - setting.data_ms / 1_000 * len(names[::slots]),
            list_s=list_ns / MS / 1_000,
            delete_s=delete_ns / MS / 1_000,
            marker_files=len(files),
            puts=store.puts,
            requests=store.requests,
            wrote_bytes=store.wrote_bytes,
            steps=scheduler.steps,
            cpu_s=time.process_time() - began_s,
        )

    def _play(self, parts: list[tuple[Process, Callable[[], None]]]) -> int:
        """Run actors until all are through; how long that took, in virtual nanoseconds."""
        scheduler = self.scheduler
        began_ns = scheduler.now_ns
        self.left = len(parts)
        for process, body in parts:
            scheduler.spawn(process, body)
        scheduler.run_until_stop(began_ns + YEAR_NS)
        if self.left:
            raise HarnessError(f"{self.left} of {len(parts)} actors are not through after a year")
        return scheduler.now_ns - began_ns

    def _through(self) -> None:
        self.left -= 1
        self.scheduler.stop = not self.left

    def _creates(self, name: str, names: tuple[str, ...]) -> tuple[Process, Callable[[], None]]:
        process = Process(f"{name}#1", "executor", ActorState(name, (), self.setting.jitter))
        context = self._context(process)
        markers = self._markers(context)
        looks = self.setting.looks_first and self.setting.mode == "direct"

        def body() -> None:
            for marker in names:
                if looks:
                    read(context.storage, DIRECTORY)
                if markers.create(marker) is not Created.CREATED:
                    raise HarnessError(f"{marker} was there already")
                if self.setting.data_ms:
                    context.runtime.sleep(self.setting.data_ms)
            self._through()

        return process, body

    def _drives(self, act: Callable[[Markers], None]) -> tuple[Process, Callable[[], None]]:
        process = Process("driver#1", "driver", ActorState("driver", (), self.setting.jitter))
        markers = self._markers(self._context(process))

        def body() -> None:
            act(markers)
            self._through()

        return process, body

    def _lists(self, markers: Markers) -> None:
        if len(markers.list_data_paths()) != self.setting.files:
            raise HarnessError("a listing without faults is short")

    def _deletes(self, markers: Markers) -> None:
        if not markers.delete():
            raise HarnessError("there was nothing to delete")

    def _markers(self, context: Context) -> Markers:
        return DirectMarkers(context) if self.setting.mode == "direct" else TimelineMarkers(context)

    def _context(self, process: Process) -> Context:
        runtime = SimRuntime(self.scheduler, process, self.locks)
        storage = PricedStorage(SimStorage(self.store, process), runtime, self.store, self.setting.latency_ms)
        wire = SimWire(self.scheduler, process, lambda name: self.server, self._handle)
        return Context(storage=storage, runtime=runtime, wire=wire, directory=DIRECTORY, options=self.options)

    def _handle(self, server: Process, request: Request) -> Reply:
        return handle(request, lambda directory: self.served, lambda directory: self.served.create)

    def _unexpected(self, *what: object) -> None:
        raise HarnessError(f"{what} in a simulation without faults")


def simulate(setting: Setting) -> Figures:
    """Perform one write; equal settings give equal figures, but for cpu_s."""
    return World(setting).run()


def marker_names(count: int) -> list[str]:
    """Names like those of a bulk insert into a table without partitions; files of a task are numbered."""
    return [
        f"{number % 240:08x}-bb82-4f9f-969e-343364159174-{number // 240}_{number % 240}-579-0_20210820173605"
        ".parquet.marker.CREATE"
        for number in range(count)
    ]


def _is_batch_file(path: str) -> bool:
    return marker_file_index(path.rpartition("/")[2]) is not None

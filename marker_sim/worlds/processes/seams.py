"""Storage, Runtime and Wire of real processes; every call through them is a step.

Steps are counted for each actor over all its lives, in memory that outlives a killed process. The interceptor is met
outside of here: in the S3 front, and for local files at the door. The wire is HTTP to the timeline server that the kit
says is there now: one call is one request, and nothing resends it. What the plan does to a request is done here, on the
client's side: it is not sent, its reply is thrown away, it is sent twice, or late.
"""

from __future__ import annotations

import json
import mmap
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from marker_sim.faults import Fault, FaultKind
from marker_sim.history import UNSUPPORTED, CallError
from marker_sim.seams import Mailbox, NoAnswer, Refused, Reply, Request, Storage, StorageWrapper
from marker_sim.storages.locks import HostLocks
from marker_sim.worlds.http.http_client import BASE, HttpConnection, decode
from marker_sim.worlds.processes.coordinator import CoordinatorClient

SLOTS = 256
POSTS = ("/create", "/dir/delete")
SILENCE_MAX_MS = 1_000
CELL_BYTES = 8


def step_counters(path: Path) -> memoryview[int]:
    """The shared page: the steps so far of each actor, at its slot."""
    if not path.exists():
        path.write_bytes(bytes(SLOTS * CELL_BYTES))
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), SLOTS * CELL_BYTES)).cast("q")


class Steps:
    """The steps of one process and the faults of its actor. strike: called in the thread whose step is due."""

    def __init__(
        self,
        counters: memoryview[int],
        slot: int,
        faults: tuple[tuple[int, Fault], ...],
        strike: Callable[[int, Fault], None],
    ) -> None:
        self._counters, self._slot, self._strike = counters, slot, strike
        self._lock = threading.Lock()
        steps = counters[slot]
        self._pending = sorted(((f.n, number, f) for number, f in faults if f.n > steps), key=lambda e: e[:2])

    def step(self) -> None:
        """Count one seam call."""
        due = []
        with self._lock:
            self._counters[self._slot] += 1
            steps = self._counters[self._slot]
            while self._pending and self._pending[0][0] <= steps:
                due.append(self._pending.pop(0))
        for _, number, fault in due:
            self._strike(number, fault)


class CountedStorage(StorageWrapper):
    """A storage that counts calls as steps and passes them on."""

    def __init__(self, inner: Storage, steps: Steps, link: CoordinatorClient) -> None:
        super().__init__(inner)
        self._link = link
        self._count = steps.step

    def _call(self, operation: str, path: str, *arguments: Any) -> Any:
        """Count a step; record a call that needs what the storage lacks, even if its error is caught."""
        if lacks := self.capabilities.lacks(operation, *arguments[1:]):
            self._link.record(self._link.process, self._link.role, "observe", UNSUPPORTED, error=lacks)
        self._count()
        return super()._call(operation, path, *arguments)


@dataclass(eq=False)
class ThreadRuntime:
    """The Runtime seam of a process whose actors are threads.

    locks: of the host, None where processes may be on several hosts: then a lock excludes only threads of this process.
    died: called with a sentence when a thread ended by an error.
    """

    steps: Steps
    locks: HostLocks | None
    died: Callable[[str], object]
    _own_locks: dict[str, threading.Lock] = field(default_factory=dict)

    def now_ms(self) -> float:
        """Milliseconds since 1970."""
        return time.time() * 1000

    def sleep(self, duration_ms: float) -> None:
        """Let time pass."""
        self.steps.step()
        time.sleep(duration_ms / 1000)

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Start a thread."""
        self.steps.step()
        threading.Thread(target=self._guarded, args=(name, body), name=name, daemon=True).start()

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:
            self.died(f"{name}: {error!r}")

    def mailbox(self) -> Mailbox:
        """A queue between threads of this process."""
        return ThreadMailbox(self.steps.step)

    def lock(self, name: str) -> AbstractContextManager[None]:
        """A lock of the host or, without one, of this process."""
        self.steps.step()
        return self._hold_own(name) if self.locks is None else self.locks.hold(name)

    @contextmanager
    def _hold_own(self, name: str) -> Iterator[None]:
        with self._own_locks.setdefault(name, threading.Lock()):
            yield

    def unique_id(self) -> str:
        """A unique id, new in every process and life."""
        return uuid.uuid4().hex


@dataclass(eq=False)
class ThreadMailbox:
    """A queue between threads."""

    step: Callable[[], None]
    _items: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def put(self, item: Any) -> None:
        """Put an item, which the first waiting caller gets."""
        self.step()
        self._items.put(item)

    def get(self, timeout_ms: float | None = None) -> Any:
        """The next item, or None after `timeout_ms`."""
        self.step()
        try:
            return self._items.get(timeout=None if timeout_ms is None else timeout_ms / 1000)
        except queue.Empty:
            return None


@dataclass(eq=False)
class HttpWire:
    """The Wire seam over HTTP.

    address: maps a marker directory to its form in requests. invoke: the invocation that a call belongs to.
    armed: wire faults that wait for a request.
    """

    link: CoordinatorClient
    step: Callable[[], None]
    address: Callable[[str], str]
    invoke: Callable[[], int | None]
    armed: list[Fault] = field(default_factory=list)
    _own: threading.local = field(default_factory=threading.local)

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply:
        """Send one request and wait for its reply, a broken connection or the deadline."""
        self.step()
        invoke = self.invoke()
        if self.armed and self.link.ask("healed"):
            self.armed.clear()
        if not self.armed:
            return self._send(server, request, deadline_ms, invoke)
        fault, link = self.armed.pop(0), self.link
        kind, settings = fault.kind, fault.settings
        link.record(link.process, "nemesis", "fault", kind.value, caused_by=invoke)
        if kind is FaultKind.REQUEST_LOST:
            time.sleep(min(deadline_ms, SILENCE_MAX_MS) / 1000)
            raise NoAnswer(f"{CallError.WAITED} before the deadline")
        if kind is FaultKind.RESET and settings.lost:
            raise NoAnswer("connection reset")
        if kind is FaultKind.DELAYED:
            time.sleep(settings.late_ms / 1000)
        reply = self._send(server, request, deadline_ms, invoke, hang_up=kind is FaultKind.RESET)
        if kind is FaultKind.DUPLICATED:
            time.sleep(settings.late_ms / 1000)
            reply = self._send(server, request, deadline_ms, invoke)
        if kind is FaultKind.REPLY_LOST:
            raise NoAnswer("the reply was lost")
        return reply

    def _send(
        self, server: str, request: Request, deadline_ms: int, invoke: int | None, hang_up: bool = False
    ) -> Reply:
        found: tuple[str, int] | None = self.link.ask("address", server)
        if found is None:
            raise Refused(f"no server listens at {server}")
        name, port = found
        parameters = {**request.parameters, "markerdirpath": self.address(request.parameters["markerdirpath"])}
        target = f"{BASE}{request.path}?{urlencode(parameters, errors='surrogatepass')}"
        method = "POST" if request.path in POSTS else "GET"

        def sent() -> None:
            self.link.record(name, "timeline-server", "observe", "arrived", caused_by=invoke)
            if hang_up:
                raise ConnectionResetError

        connection: HttpConnection = self._own.__dict__.setdefault("connection", HttpConnection(port))
        connection.port, connection.timeout_s = port, deadline_ms / 1000
        try:
            status, body, content_type = connection.exchange(method, target, sent)
        except (NewConnectionError, ConnectTimeoutError) as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                raise Refused(f"no server listens at {server}") from error
            raise NoAnswer(f"no connection: {error.__cause__}") from error
        except (OSError, HTTPException, HTTPError) as error:
            connection.abort()
            raise NoAnswer(f"the connection broke: {error.__cause__ or error!r}") from error
        text = decode(body, content_type)
        try:
            return Reply(status, json.loads(text) if status == 200 else text)
        except ValueError as error:
            raise NoAnswer(f"malformed body: {text[:80]!r}") from error

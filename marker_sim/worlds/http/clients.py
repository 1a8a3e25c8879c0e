"""The clients of real servers: requests as operations of the history, and the clients of a plan, which send them.

A request is an invocation, its arrival, and its completion. Each client of a plan performs its operations in order,
over several lives. An operation for the second server waits for one that is coming up, goes to it while it lives, and
else to the first. Where no server lives, clients wait for one. After an unknown outcome or its death a client goes on
as another process.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from marker_sim.faults import Fault, FaultKind
from marker_sim.history import IN_CHUNKS, SPELLED
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Op
from marker_sim.unusual_names import written
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.http_client import CHUNKED, HttpConnection, HttpOutcome
from marker_sim.worlds.http.plan_faults import PlanFaults
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.recorder import Recorder

POLL_S = 0.1
JOIN_S = 2.0
_BEFORE_IT_ASKS = (FaultKind.PAUSE, FaultKind.DIRECTORY_REMOVED)
_NO_TEXT = re.compile("[\udc80-\udcff]")  # Surrogates stand for bytes that are not UTF-8.


@dataclass(frozen=True, slots=True)
class Requests:
    """Sends the requests of the clients of one run.

    directory: maps a marker directory to its form in requests.
    identity: whether each create carries an identity, which its resend repeats (`requestid`, our extension).
    """

    recorder: Recorder
    directory: Callable[[MarkerDirectory], str]
    identity: bool

    def send(
        self,
        process: str,
        server: Server,
        operation: str,
        place: MarkerDirectory,
        name: str,
        connection: HttpConnection,
        request: str = "",
        *,
        spelled: str = "",
        form: str = "",
        fault: Fault | None = None,
        arrived: Callable[[Server], object] = lambda server: None,
        over: Callable[[], bool] = lambda: False,
    ) -> HttpOutcome | None:
        """Send one request and record it; None if the client was killed before its completion, or the run is over.

        request: its identity, "" for a fresh one.
        spelled, form: how it writes the directory, and the form of the request, as `Op.spelled` and `Op.form`.
        fault: what happens to the request on its way.
        arrived: called each time when the request was passed to a connected server.
        over: whether clients may send no more requests; called at the invocation, with the recorder's lock held.
        """
        recorder = self.recorder
        address, target = written(place, self.directory(place), spelled)
        parameters: dict[str, str | bytes] = {"markerdirpath": address}
        path: str | None = None
        value: str | bytes | None = _may_be_refused(operation, address != self.directory(place), form)
        if operation == "create":
            parameters["markername"] = path = name
            if self.identity:
                parameters["requestid"] = value = request or f"{process}-only"
        elif operation == "hostile":
            parameters["markername"] = value = as_sent(name)
            path, value = target, value if target == place.path else f"?{urlencode(parameters)}"
        with recorder.lock:
            if over():
                return None
            invoke = recorder.record(
                process, "client", "invoke", operation, *place, path, value, caused_by=server.started
            )
        if invoke < 0:
            return None  # The history is closed, so the request could not be recorded.

        def sent() -> None:
            recorder.record(server.name, "server", "observe", "arrived", caused_by=invoke)
            arrived(server)

        if fault is not None and not fault.kind.row.kills:
            recorder.record(process, "nemesis", "fault", fault.kind.value, caused_by=invoke)
        outcome = connection.call(operation, parameters, sent, fault, form)
        if fault is not None and fault.kind.row.kills:
            recorder.fault(process, fault.kind.value)
            return None
        recorder.record(
            process, "client", outcome.kind, operation, *place, path, outcome.value, outcome.error, caused_by=invoke
        )
        return outcome


def _may_be_refused(operation: str, spelled: bool, form: str) -> str | None:
    """Why a server may refuse a listing or deletion: an unusual spelling of the directory, or a chunked body."""
    if operation in ("create", "hostile"):
        return None
    return SPELLED if spelled else IN_CHUNKS if (operation, form) == ("delete", CHUNKED) else None


class Scripts:
    """The clients of one run. After an answer to a create they read storage (`ServerFaultInjector.on_ack`)."""

    def __init__(
        self,
        ops: tuple[Op, ...],
        places: tuple[MarkerDirectory, ...],
        requests: Requests,
        faults: PlanFaults,
        injector: ServerFaultInjector,
    ) -> None:
        self._requests = requests
        self._places = places
        self._faults = faults
        self._injector = injector
        self._ended = threading.Event()
        self._connections: set[HttpConnection] = set()
        by_actor = groupby(sorted(ops, key=lambda op: op.actor), key=lambda op: op.actor)
        self._threads = [
            threading.Thread(target=self._work, args=(actor, tuple(own)), daemon=True, name=actor)
            for actor, own in by_actor
        ]
        self._left = len(self._threads)
        self._asked_s = time.monotonic()
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Whether every client has performed its operations."""
        return self._left == 0

    @property
    def idle_s(self) -> float:
        """Seconds since a client last sent a request, got an answer, or could choose another server."""
        return time.monotonic() - max(self._asked_s, self._injector.changed_s)

    def start(self) -> None:
        """Start all clients."""
        self._asked_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let no client begin another operation."""
        self._ended.set()

    def end(self) -> None:
        """End all clients and cut the connections of those that wait. Called when the history is closed."""
        self._ended.set()
        for connection in list(self._connections):
            connection.abort()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(JOIN_S)

    def _work(self, actor: str, ops: tuple[Op, ...]) -> None:
        life = 0
        connection: HttpConnection | None = None
        try:
            for op in ops:
                if op.after_ms:
                    self._ended.wait(op.after_ms / 1000)
                server = self._server(op)
                if server is None:
                    return
                if connection is None or connection.port != server.door:
                    if connection is not None:
                        connection.abort()
                    connection = HttpConnection(server.door, proxied=server.proxy is not None)
                    self._connections.add(connection)
                life += self._perform(f"{actor}.{life}" if life else actor, actor, op, server, connection)
        finally:
            if connection is not None:
                connection.abort()
            with self._lock:
                self._left -= 1

    def _server(self, op: Op) -> Server | None:
        """The server for an operation, as soon as there is one; None when the run is over."""
        news = self._injector.news
        while not self._ended.is_set():
            with news:
                servers = self._injector.living
                waits = op.server and len(servers) < 2 and self._faults.second_is_coming
                if servers and not waits:
                    return servers[op.server % len(servers)]
                news.wait(POLL_S)
        return None

    def _perform(self, process: str, actor: str, op: Op, server: Server, connection: HttpConnection) -> bool:
        """Perform one operation; returns whether the client continues as another process."""
        fault = self._before(process, actor, op)
        self._asked_s = time.monotonic()
        outcome = self._requests.send(
            process,
            server,
            op.kind,
            self._places[op.directory],
            op.name,
            connection,
            op.request,
            spelled=op.spelled,
            form=op.form,
            fault=fault,
            arrived=self._faults.arrived,
            over=lambda: fault is None and self._ended.is_set(),
        )
        self._asked_s = time.monotonic()
        if outcome is None:
            if fault is None:
                return False  # The run is over.
            self._ended.wait(max(0, fault.settings.restart_ms) / 1000)
            return True
        self._faults.answered(server)
        if outcome.kind == "ok" and op.kind == "create":
            self._injector.on_ack(self._places[op.directory])
        self._pause(process, self._faults.after(actor, op.kind))
        return outcome.kind == "info"

    def _before(self, process: str, actor: str, op: Op) -> Fault | None:
        """Inject the faults due before a client's request; returns the one that strikes the request itself."""
        due = self._faults.before(actor, op.kind)
        self._pause(process, [fault for fault in due if fault.kind is FaultKind.PAUSE])
        if any(fault.kind is FaultKind.DIRECTORY_REMOVED for fault in due):
            self._faults.remove(self._places[op.directory])
        return next((fault for fault in due if fault.kind not in _BEFORE_IT_ASKS), None)

    def _pause(self, process: str, due: list[Fault]) -> None:
        for fault in due:
            if fault.kind is FaultKind.PAUSE:
                recorder = self._requests.recorder
                recorder.fault(process, fault.kind.value, "begin")
                self._ended.wait(fault.settings.for_ms / 1000)
                recorder.fault(process, fault.kind.value, "end")


def as_sent(name: str) -> str | bytes:
    """The name, as bytes if it is not valid text."""
    return name.encode("utf-8", "surrogateescape") if _NO_TEXT.search(name) else name

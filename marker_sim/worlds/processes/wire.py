"""The Wire seam of real processes: HTTP to the timeline server that the kit says is there now.

One call is one request, and nothing resends it. What the plan does to a request is done
here, on the client's side: it is not sent, its reply is thrown away, it is sent twice, or late.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.parse import urlencode

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from marker_sim.faults import Fault, FaultKind
from marker_sim.history import Unanswered
from marker_sim.seams import NoAnswer, Refused, Reply, Request
from marker_sim.worlds.http.http_client import BASE, HttpConnection, decode
from marker_sim.worlds.processes.coordinator import CoordinatorClient

POSTS = ("/create", "/dir/delete")
SILENCE_MAX_MS = 1_000


class HttpWire:
    """Calls by HTTP.

    address: how requests write a marker directory. armed: wire faults that wait for a request.
    """

    def __init__(
        self,
        link: CoordinatorClient,
        step: Callable[[], None],
        address: Callable[[str], str],
        invoke: Callable[[], int | None],
    ) -> None:
        self.armed: list[Fault] = []
        self._link = link
        self._step = step
        self._address = address
        self._invoke = invoke
        self._own = threading.local()

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply:
        """Send one request and wait for its reply, a broken connection or the deadline."""
        self._step()
        invoke = self._invoke()
        fault = self.armed.pop(0) if self.armed else None
        if fault is not None and self._link.ask("healed"):
            self.armed.clear()
            fault = None
        if fault is not None:
            link = self._link
            link.record(link.process, "nemesis", "fault", fault.kind.value, caused_by=invoke)
            if fault.kind is FaultKind.REQUEST_LOST:
                time.sleep(min(deadline_ms, SILENCE_MAX_MS) / 1000)
                raise NoAnswer(f"{Unanswered.WAITED} before the deadline")
            if fault.kind is FaultKind.RESET and fault.settings.lost:
                raise NoAnswer("connection reset")
            if fault.kind is FaultKind.DELAYED:
                time.sleep(fault.settings.late_ms / 1000)
        hang_up = fault is not None and fault.kind is FaultKind.RESET
        reply = self._send(server, request, deadline_ms, invoke, hang_up)
        if fault is not None and fault.kind is FaultKind.DUPLICATED:
            time.sleep(fault.settings.late_ms / 1000)
            reply = self._send(server, request, deadline_ms, invoke)
        if fault is not None and fault.kind is FaultKind.REPLY_LOST:
            raise NoAnswer("the reply was lost")
        return reply

    def _send(
        self, server: str, request: Request, deadline_ms: int, invoke: int | None, hang_up: bool = False
    ) -> Reply:
        found: tuple[str, int] | None = self._link.ask("address", server)
        if found is None:
            raise Refused(f"no server listens at {server}")
        name, port = found
        parameters = {**request.parameters, "markerdirpath": self._address(request.parameters["markerdirpath"])}
        target = f"{BASE}{request.path}?{urlencode(parameters, errors='surrogatepass')}"
        method = "POST" if request.path in POSTS else "GET"

        def sent() -> None:
            self._link.record(name, "timeline-server", "observe", "arrived", caused_by=invoke)
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

"""Requests to servers as operations of a history: an invocation, its arrival, and its completion."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from marker_sim.faults import Fault
from marker_sim.history import IN_CHUNKS
from marker_sim.names import MarkerDirectory
from marker_sim.unusual_names import written
from marker_sim.worlds.http.http_client import HttpConnection, HttpOutcome
from marker_sim.worlds.http.request_forms import CHUNKED
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.recorder import Recorder

_NO_TEXT = re.compile("[\udc80-\udcff]")  # Surrogates stand for bytes that are no UTF-8.


class Requests:
    """The requests of the clients of one run.

    directory: how requests write a marker directory.
    identity: each create carries one, and its resend the same (`requestid`, our extension).
    """

    def __init__(self, recorder: Recorder, directory: Callable[[MarkerDirectory], str], identity: bool) -> None:
        self.recorder = recorder
        self._directory = directory
        self._identity = identity

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
        """One invocation with its completion; None when the client was killed before there was one, or the run is over.

        request: its identity, "" for one of its own.
        spelled, form: how it writes the directory, and all of it, as `Op.spelled` and `Op.form`.
        fault: what happens to the request on its way.
        arrived: called each time it was handed to a connected server.
        over: whether no client may ask any more; asked at the moment of the invocation, with the recorder's lock held.
        """
        recorder = self.recorder
        address, target = written(place, self._directory(place), spelled)
        parameters: dict[str, str | bytes] = {"markerdirpath": address}
        path: str | None = None
        value: str | bytes | None = IN_CHUNKS if operation == "delete" and form == CHUNKED else None
        if operation == "create":
            parameters["markername"] = path = name
            if self._identity:
                parameters["requestid"] = value = request or f"{process}-only"
        elif operation == "hostile":
            parameters["markername"] = value = as_sent(name)
            path, value = target, value if target == place.path else f"?{urlencode(parameters)}"
        with recorder.lock:
            if over():
                return None
            invoke = recorder.record(
                process, "client", "invoke", operation, place, path, value, caused_by=server.started
            )  # fmt: skip
        if invoke < 0:
            return None  # The history is over: nobody may ask for what it does not have.

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
            process, "client", outcome.kind, operation, place, path, outcome.value, outcome.error, caused_by=invoke
        )  # fmt: skip
        return outcome


def as_sent(name: str) -> str | bytes:
    """The name, as bytes where they are no text."""
    return name.encode("utf-8", "surrogateescape") if _NO_TEXT.search(name) else name

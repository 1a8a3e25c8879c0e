"""Requests to servers as operations of a history: an invocation, its arrival, and its completion."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.http.http_client import HttpConnection, HttpOutcome
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.recorder import Recorder


class Requests:
    """What clients of one round send.

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
        name: str | bytes,
        connection: HttpConnection,
        request: str = "",
        *,
        address: str = "",
        target: str = "",
        fault: Fault | None = None,
        arrived: Callable[[Server], object] = lambda server: None,
    ) -> HttpOutcome | None:
        """One invocation with its completion; None when the client was killed before there was one, or the run is over.

        request: its identity, "" for one of its own.
        address: the directory as it is written, "" for the usual way.
        target: what a hostile request to such a directory must leave as it is, "" for `place`.
        fault: what happens to the request on its way.
        arrived: called each time it was handed to a connected server.
        """
        recorder = self.recorder
        parameters: dict[str, str | bytes] = {"markerdirpath": address or self._directory(place)}
        path: str | None = None
        value: str | bytes | None = None
        if operation == "create":
            assert isinstance(name, str), "only a hostile name is no text"
            parameters["markername"] = path = name
            if self._identity:
                parameters["requestid"] = value = request or f"{process}-only"
        elif operation == "hostile":
            parameters["markername"] = name
            path, value = place.path, name
            if target:
                path, value = target, f"?{urlencode(parameters)}"
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
        outcome = connection.call(operation, parameters, sent, fault)
        if fault is not None and fault.kind.row.kills:
            recorder.fault(process, fault.kind.value)
            return None
        recorder.record(
            process, "client", outcome.kind, operation, place, path, outcome.value, outcome.error, caused_by=invoke
        )  # fmt: skip
        return outcome

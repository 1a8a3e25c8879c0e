"""The executor's side of timeline-server markers: one call is one request, without hidden resends."""

from __future__ import annotations

from typing import Any

from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import data_path
from marker_sim.seams import NoAnswer, Request


class TimelineMarkers:
    """The markers of one directory through a timeline server. Source: Hudi 0.15.0 TimelineServerBasedWriteMarkers.

    Raises Rejected for a 4xx, Refused when no server listens, NoAnswer when the effect is unknown.
    """

    def __init__(self, context: Context, server: str = "server") -> None:
        self._context = context
        self._server = server
        self._deadline_ms = context.options.remote_timeout_secs * 1000

    def create(self, name: str, request: str = "") -> Created:
        """Ask for a marker; `request` is the identity to repeat in a resend."""
        extra = {"markername": name, "requestid": request} if request else {"markername": name}
        return Created.CREATED if self._call("/create", **extra) is True else Created.EXISTS

    def list_all(self) -> tuple[str, ...]:
        """Every marker, sorted."""
        return tuple(sorted(self._call("/all")))

    def list_data_paths(self) -> tuple[str, ...]:
        """Data paths of CREATE and MERGE markers, sorted, each once."""
        return tuple(sorted({data_path(name) for name in self._call("/create-and-merge")}))

    def list_log_paths(self) -> tuple[str, ...]:
        """Data paths of APPEND markers, sorted, each once."""
        return tuple(sorted({data_path(name) for name in self._call("/append")}))

    def exists(self) -> bool:
        """Whether the marker directory exists."""
        return self._flag("/dir/exists")

    def delete(self) -> bool:
        """Delete the marker directory; False when there was none."""
        return self._flag("/dir/delete")

    def _flag(self, path: str) -> bool:
        answer = self._call(path)
        if not isinstance(answer, bool):
            raise NoAnswer(f"200 {answer!r}, which is neither true nor false")
        return answer

    def _call(self, path: str, **parameters: str) -> Any:
        request = Request(path, {"markerdirpath": self._context.directory, **parameters})
        reply = self._context.wire.call(self._server, request, self._deadline_ms)
        if reply.status == 200:
            return reply.body
        if 400 <= reply.status < 500:
            raise Rejected(f"{reply.status} {reply.body}")
        raise NoAnswer(f"{reply.status} {reply.body}")

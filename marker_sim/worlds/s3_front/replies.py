"""Replies that the front writes itself, in S3's XML; all others are moto's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from xml.sax.saxutils import escape

from marker_sim.worlds.s3_front.http_server import Response

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NO_DELETION = b"</DeleteResult>"


def ok(headers: Mapping[str, str]) -> Response:
    """200 without a body."""
    return Response("200 OK", list(headers.items()), b"")


def error(code: int, name: str, message: str, resource: str) -> Response:
    """An error as S3 writes it."""
    body = (
        f"{_DECLARATION}<Error><Code>{name}</Code><Message>{escape(message)}</Message>"
        f"<Resource>{escape(resource)}</Resource><RequestId>0</RequestId></Error>"
    )
    status = f"{code} {HTTPStatus(code).phrase}"
    return Response(status, [("Content-Type", "application/xml")], body.encode("utf-8", "replace"))


def slow_down(path: str) -> Response:
    """503: nothing was done, try again later."""
    return error(503, "SlowDown", "Please reduce your request rate.", path)


def internal_error(path: str) -> Response:
    """500: the outcome is unknown to the caller."""
    return error(500, "InternalError", "We encountered an internal error. Please try again.", path)


def with_errors(response: Response, keys: Iterable[str]) -> Response:
    """A reply to a deletion of many with InternalError added for some keys."""
    entries = "".join(
        f"<Error><Key>{escape(key)}</Key><Code>InternalError</Code>"
        "<Message>We encountered an internal error. Please try again.</Message></Error>"
        for key in keys
    )
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    body = response.body if _NO_DELETION in response.body else _empty_result(namespace)
    body = body.replace(_NO_DELETION, entries.encode("utf-8") + _NO_DELETION)
    headers = [(name, value) for name, value in response.headers if name.lower() != "content-length"]
    return Response(response.status, headers, body)


def _empty_result(namespace: str) -> bytes:
    return f'{_DECLARATION}<DeleteResult xmlns="{namespace}"></DeleteResult>'.encode()

"""The query string of a request: percent signs decoded exactly once, known parameters at most once, UTF-8 only."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def parse_query(raw: bytes, known: frozenset[bytes]) -> dict[bytes, bytes]:
    """The known parameters, still encoded; ValueError when one comes twice. Others are ignored, as Hudi does."""
    found: dict[bytes, bytes] = {}
    for piece in raw.split(b"&"):
        key, _, value = piece.partition(b"=")
        if b"%" in key or b"+" in key:
            key = decode(key).encode()
        if key in known:
            if key in found:
                raise ValueError(f"the parameter {key.decode()} is given twice; give it once")
            found[key] = value
    return found


def decode(raw: bytes) -> str:
    """One parameter as text; ValueError for a broken escape or bytes that are not UTF-8."""
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        if _BROKEN_ESCAPE.search(raw):
            raise ValueError("a percent sign is not followed by two hexadecimal digits; write %25 for a percent sign")
        raw = unquote_to_bytes(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("a parameter is not UTF-8 after its percent signs were decoded") from None

"""Inputs that are tried before any other: each broke a server once, this one or one that was made faulty on purpose.

A row is what the fuzzer prints when a property breaks; `{base}` and `{out}` are filled in.
"""

from __future__ import annotations

from scenarios.fuzz.file_inputs import Damage
from scenarios.fuzz.http_inputs import API, Ending, Input, Part, request

_HERE = b"{base}/t0/.hoodie/.temp/20260101000000000"


def _plain(*parts: Part) -> Input:
    return Input("target", (b"".join(map(request, parts)),), Ending.WAIT, parts, plain=True)


def _create(name: bytes, directory: bytes = _HERE) -> Part:
    return Part(b"POST", API + b"/create?markerdirpath=" + directory + b"&markername=" + name)


KNOWN: dict[str, tuple[Input, ...]] = {
    "a line break in a name": (_plain(_create(b"a%0Ab.marker.CREATE")),),
    "an empty directory": (_plain(Part(b"POST", API + b"/dir/delete?markerdirpath=")),),
    "a directory outside": (_plain(Part(b"POST", API + b"/dir/delete?markerdirpath={out}/.hoodie/.temp/1")),),
    "bytes that are no text": (_plain(_create(b"%FF.marker.CREATE")),),
    "one name twice": (_plain(_create(b"a.marker.CREATE"), _create(b"a.marker.CREATE")),),
}

KNOWN_FILES: dict[str, tuple[Damage, ...]] = {
    "a pipe that nobody writes to": (Damage("fifo", "MARKERS0"),),
    "a link to a directory outside": (
        Damage("link", "p", b"{out}/.hoodie"),
        Damage("file", "MARKERS0", b"a.marker.CREATE\n"),
    ),
}
KNOWN_TIMELINES: dict[str, tuple[Damage, ...]] = {}

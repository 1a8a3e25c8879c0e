"""Inputs that are tried before any other: each broke a server once, this one or one that was made faulty on purpose.

`{base}` and `{out}` are filled in.
"""

from __future__ import annotations

from scenarios.fuzz.file_inputs import Damage
from scenarios.fuzz.http_inputs import API, Ending, Input, Part, request

_HERE = b"{base}/t0/.hoodie/.temp/20260101000000000"


def _plain(*parts: Part) -> Input:
    return Input("target", (b"".join(map(request, parts)),), Ending.WAIT, parts, plain=True)


def _create(name: bytes, directory: bytes = _HERE) -> Part:
    return Part(b"POST", API + b"/create?markerdirpath=" + directory + b"&markername=" + name)


_A = _create(b"a.marker.CREATE")

KNOWN: dict[str, tuple[Input, ...]] = {
    "a line break in a name": (_plain(_create(b"a%0Ab.marker.CREATE")),),
    "an empty directory": (_plain(Part(b"POST", API + b"/dir/delete?markerdirpath=")),),
    "a directory outside": (_plain(Part(b"POST", API + b"/dir/delete?markerdirpath={out}/.hoodie/.temp/1")),),
    "bytes that are no text": (_plain(_create(b"%FF.marker.CREATE")),),
    "a directory in another one": (_plain(_create(b"a.marker.CREATE", _HERE + b"/p/.hoodie/.temp/20260101000000000")),),
    # Answered 400 and stored all the same: the body ended in an error, which was taken for its end.
    "a body that breaks off in an error": (
        Input(
            "framing",
            (request(_A, headers=(b"Host: a", b"Transfer-Encoding: chunked"), body=b"FFFFFFFFFFFFFFFFFF\r\n"),),
            Ending.HALF_CLOSE,
            (_A,),
        ),
    ),
    "a body that is cut": (
        Input(
            "body", (request(_A, headers=(b"Host: a", b"Content-Length: 9"), body=b"few"),), Ending.HALF_CLOSE, (_A,)
        ),
    ),
    # The refusal of the second was sent in the place of the answer to the first, which was done all the same.
    "no HTTP behind a request": (
        Input("pipelined", (request(_A) + b"no HTTP\r\n\r\n",), Ending.HALF_CLOSE, (_A,), plain=True),
    ),
    "too much behind a request": (
        Input("pipelined", (request(_A) + b"GET /" + b"x" * 90_000,), Ending.HALF_CLOSE, (_A,), plain=True),
    ),
    "gone before two answers": (
        Input("pipelined", (request(_A) * 2,), Ending.RESET, (_A, _A), plain=True),
        Input("pipelined", (request(_A) * 2,), Ending.HALF_CLOSE, (_A, _A), plain=True),
    ),
    "an upgrade that nobody wants": (
        Input(
            "pipelined",
            (request(_A, headers=(b"Host: a", b"Connection: Upgrade", b"Upgrade: websocket")) + request(_A),),
            Ending.HALF_CLOSE,
            (_A, _A),
        ),
    ),
    "a name of sixteen bytes": (_plain(_create(b"aa.marker.CREATE")),),
    "a name that is not ASCII": (_plain(_create(b"%C3%A9.marker.CREATE")),),
    "one name twice": (_plain(_create(b"a.marker.CREATE"), _create(b"a.marker.CREATE")),),
}

KNOWN_FILES: dict[str, tuple[Damage, ...]] = {
    "a pipe that nobody writes to": (Damage("fifo", "MARKERS0"),),
    "a link to a directory outside": (
        Damage("link", "p", b"{out}/.hoodie"),
        Damage("file", "MARKERS0", b"a.marker.CREATE\n"),
    ),
    "a link to what never ends": (Damage("link", "MARKERS0", b"/dev/zero"),),
    "a line of 10 MB": (Damage("huge-line", "MARKERS4", b"x", 10 * 2**20),),
    "many files": (Damage("many", "many", b"", 3_000),),
}
_FAILED = "20260101000000000"
_BEGUN = (Damage("file", f"{_FAILED}.commit.requested"), Damage("file", f"{_FAILED}.inflight"))
KNOWN_TIMELINES: dict[str, tuple[Damage, ...]] = {
    # Recoveries believed the markers of a failed instant and deleted what another one had committed.
    "a marker that names a commit": (
        *_BEGUN,
        Damage("file", f".temp/{_FAILED}/MARKERS0", b".hoodie/20250101000000000.commit.marker.CREATE\n"),
    ),
    "a marker that names another instant's file": (
        *_BEGUN,
        Damage("file", f".temp/{_FAILED}/MARKERS0", b"p/f_0-0-0_20250101000000000.parquet.marker.MERGE\n"),
    ),
}

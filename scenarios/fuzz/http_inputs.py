"""Strategies over what a hostile client sends, byte by byte, and over how it behaves while it does.

A request is put together from a method, a target, a version, header lines and a body; in most inputs one part is odd
and the others are plain, so that a server has no other reason to refuse.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from urllib.parse import quote, quote_from_bytes

from hypothesis import strategies as st

from scenarios.fuzz import odd

TABLES = ("t0", "t1", "t2/nested", "dt=2020-01-01")
INSTANTS = ("20260101000000000", "20260101000000001", "20260101000001")
API = b"/v1/hoodie/marker"
_ROUTES = (b"/create",) * 8 + (b"/all", b"/all", b"/create-and-merge", b"/append", b"/dir/exists", b"/dir/delete")
_WHOLE_MAX = 9000


class Ending(Enum):
    """What a client does when it has sent everything."""

    WAIT = "waits for its answers"
    HALF_CLOSE = "waits a moment and says that nothing more will come"
    RESET = "resets the connection"
    VANISH = "closes without reading"
    HOLD = "keeps the connection open and says nothing"


class Input(NamedTuple):
    """One connection. requests: method and target of each request of it that is whole, in order.

    plain: nothing but the targets is odd, so that each request is owed what its target asks for.
    """

    kind: str
    pieces: tuple[bytes, ...]
    ending: Ending
    requests: tuple[tuple[bytes, bytes], ...] = ()
    plain: bool = False

    def filled(self, scene: Scene) -> Input:
        """The input for a server of a place."""
        parts = tuple((method, scene.written(target)) for method, target in self.requests)
        return self._replace(pieces=tuple(map(scene.written, self.pieces)), requests=parts)


class Part(NamedTuple):
    """A method and a target."""

    method: bytes
    target: bytes


def request(
    part: Part, version: bytes = b"HTTP/1.1", headers: tuple[bytes, ...] = odd.PLAIN_HEADERS, body: bytes = b""
) -> bytes:
    """The bytes of one request; a POST says how long its body is unless its headers speak of that already."""
    told = any(line.lower().startswith((b"content-length", b"transfer-encoding")) for line in headers)
    if not told and (body or part.method == b"POST"):
        headers = (*headers, b"Content-Length: %d" % len(body))
    head = b" ".join((part.method, part.target, version)) + b"\r\n"
    return head + b"".join(line + b"\r\n" for line in headers) + b"\r\n" + body


def quoted(data: bytes) -> st.SearchStrategy[bytes]:
    """Ways to write bytes into a query, right ones and wrong ones."""
    usual = quote_from_bytes(data, safe="/").encode()
    whole = b"".join(b"%%%02X" % byte for byte in data) if len(data) < _WHOLE_MAX else usual
    ways = (usual, usual, usual, whole, whole.lower(), usual.replace(b"%20", b"+"), quote(usual).encode(), data)
    return st.sampled_from(ways)


GOOD_NAMES = st.builds(
    lambda partition, stem, number, kind: f"{partition}{stem}{number}.marker.{kind}".encode(),
    st.sampled_from(odd.PARTITIONS),
    st.sampled_from(odd.STEMS),
    st.integers(0, 30),
    st.sampled_from(("CREATE", "CREATE", "MERGE", "APPEND")),
)
_TEXTS = st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass"))
_NOISE_NAMES = st.one_of(st.binary(max_size=12), _TEXTS).map(lambda start: start + b".marker.CREATE")
_SMALL = st.binary(max_size=4)


class Scene:
    """Every strategy, for a server of the given base. out: a place that is not below it."""

    def __init__(self, base: str, out: str) -> None:
        self._base, self._out = base.encode(), out.encode()
        usual = [f"{{base}}/{table}/.hoodie/.temp/{instant}".encode() for table in TABLES for instant in INSTANTS]
        self._directories = st.sampled_from([self.fill(directory) for directory in usual])
        self._odd_directories = st.sampled_from([self.fill(directory) for directory in odd.ODD_DIRECTORIES])
        plain = self.targets(plain=True)
        self.inputs = st.one_of(
            self.targets(plain=False).map(self._target),
            self.targets(plain=False).map(self._target),
            plain.map(self._target),
            self._request_lines(),
            st.builds(self._headers, plain, st.sampled_from(odd.ODD_HEADERS)),
            st.builds(self._framing, plain, st.sampled_from(odd.FRAMINGS)),
            st.builds(self._body, plain, st.sampled_from(sorted(BODIES))),
            st.lists(self.targets(plain=False), min_size=2, max_size=5).map(self._pipelined),
            st.builds(self._pipelined, st.lists(plain, min_size=2, max_size=4), st.sampled_from(tuple(Ending))),
            self._mutated(plain),
            self._garbage(),
            self._cut(plain),
            st.builds(self._vanishing, plain, st.sampled_from((Ending.RESET, Ending.VANISH, Ending.HOLD))),
            st.builds(self._slow, plain, st.integers(2, 40)),
            st.builds(self._huge, plain, st.sampled_from(sorted(HUGE))),
        )

    def fill(self, text: bytes) -> bytes:
        """A text of the tables with its places filled in."""
        return text.replace(b"{base}", self._base).replace(b"{out}", self._out)

    def written(self, request: bytes) -> bytes:
        """A request with the paths of the place, percent-encoded, for they may hold spaces and letters of any kind."""
        base, out = (quote_from_bytes(path, safe="/").encode() for path in (self._base, self._out))
        return request.replace(b"{base}", base).replace(b"{out}", out)

    @st.composite
    @staticmethod
    def _drawn_target(draw: st.DrawFn, scenario: Scene, plain: bool) -> Part:
        route = draw(st.sampled_from(_ROUTES))
        what = (
            "nothing" if plain else draw(st.sampled_from(("name", "name", "directory", "directory", "query", "text")))
        )
        directory = draw(scenario._odd_directories if what == "directory" else scenario._directories)
        usual = quote_from_bytes(directory, safe="/").encode()
        pairs = [b"markerdirpath=" + (usual if plain else draw(quoted(directory)))]
        if route == b"/create":
            names = {"name": st.sampled_from(odd.ODD_NAMES), "text": _NOISE_NAMES}.get(what, GOOD_NAMES)
            name = draw(names)
            pairs.append(b"markername=" + (quote_from_bytes(name).encode() if plain else draw(quoted(name))))
        query = b"&".join(pairs)
        if what == "query":
            query = scenario.fill(draw(st.sampled_from(odd.ODD_QUERIES))).replace(b"{pairs}", query)
        method = b"POST" if route in (b"/create", b"/dir/delete") else b"GET"
        return Part(method, API + route + b"?" + query)

    def targets(self, plain: bool) -> st.SearchStrategy[Part]:
        """Methods and targets of known routes; unless `plain` the directory, the name or the query is odd."""
        return Scene._drawn_target(self, plain)

    def _target(self, part: Part) -> Input:
        return Input("target", (request(part),), Ending.WAIT, (part,), plain=True)

    def _request_lines(self) -> st.SearchStrategy[Input]:
        def odd_path(part: Part, path: bytes) -> Input:
            return self._line(Part(part.method, path + b"?" + part.target.partition(b"?")[2]))

        plain = self.targets(plain=True)
        return st.one_of(
            st.builds(odd_path, plain, st.sampled_from(odd.ODD_PATHS)),
            st.builds(lambda p, m: self._line(Part(m, p.target)), plain, st.sampled_from(odd.ODD_METHODS)),
            st.builds(self._line, plain, st.sampled_from(odd.ODD_VERSIONS)),
        )

    def _line(self, part: Part, version: bytes = b"HTTP/1.1") -> Input:
        headers = (*odd.PLAIN_HEADERS, b"Content-Length: 0")
        return Input("request-line", (request(part, version, headers),), Ending.WAIT, (part,))

    def _headers(self, part: Part, headers: tuple[bytes, ...]) -> Input:
        return Input("headers", (request(part, headers=headers),), Ending.WAIT, (part,))

    def _framing(self, part: Part, framing: tuple[tuple[bytes, ...], bytes]) -> Input:
        headers, body = framing
        inner = self.fill(odd.SMUGGLED)
        size = str(len(inner)).encode()
        lines = (odd.PLAIN_HEADERS[0], *(line.replace(b"{n}", size) for line in headers))
        data = request(part, headers=lines, body=body.replace(b"{request}", inner))
        return Input("framing", (data,), Ending.HALF_CLOSE, (part,))

    def _body(self, part: Part, which: str) -> Input:
        headers, body, whole = BODIES[which]
        data = request(part, headers=(*odd.PLAIN_HEADERS, *headers), body=body)
        ending = Ending.WAIT if whole else Ending.HALF_CLOSE
        return Input("body", (data,), ending, (part,), plain=which == "none")

    def _pipelined(self, parts: list[Part], ending: Ending = Ending.WAIT) -> Input:
        return Input("pipelined", (b"".join(map(request, parts)),), ending, tuple(parts), plain=True)

    def _mutated(self, plain: st.SearchStrategy[Part]) -> st.SearchStrategy[Input]:
        def mutate(part: Part, edits: list[tuple[int, int, bytes]]) -> Input:
            data = request(part)
            for where, gone, new in edits:
                at = where % (len(data) + 1)
                data = data[:at] + new + data[at + gone :]
            return Input("mutated", (data,), Ending.HALF_CLOSE)

        edit = st.tuples(st.integers(0, 4000), st.integers(0, 3), _SMALL)
        return st.builds(mutate, plain, st.lists(edit, min_size=1, max_size=4))

    def _garbage(self) -> st.SearchStrategy[Input]:
        known = st.sampled_from(odd.GARBAGE)
        return st.one_of(known, known, st.binary(min_size=1, max_size=60)).map(
            lambda data: Input("garbage", (data,), Ending.HALF_CLOSE)
        )

    def _cut(self, plain: st.SearchStrategy[Part]) -> st.SearchStrategy[Input]:
        def cut(part: Part, where: int, ending: Ending) -> Input:
            data = request(part, body=b"body" * 4)
            return Input("cut", (data[: where % len(data)],), ending)

        endings = (Ending.HALF_CLOSE, Ending.RESET, Ending.VANISH, Ending.HOLD)
        return st.builds(cut, plain, st.integers(0, 4000), st.sampled_from(endings))

    def _vanishing(self, part: Part, ending: Ending) -> Input:
        return Input("vanishing", (request(part),), ending, (part,), plain=True)

    def _slow(self, part: Part, count: int) -> Input:
        data = request(part)
        size = -(-len(data) // count)
        pieces = tuple(data[at : at + size] for at in range(0, len(data), size))
        return Input("slow", pieces, Ending.WAIT, (part,), plain=True)

    def _huge(self, part: Part, which: str) -> Input:
        return Input("huge", (HUGE[which](part),), Ending.HALF_CLOSE, (part,))


BODIES: dict[str, tuple[tuple[bytes, ...], bytes, bool]] = {
    "none": ((), b"", True),
    "small": ((), b"ignored", True),
    "form": ((b"Content-Type: application/x-www-form-urlencoded",), b"markername=b.marker.CREATE", True),
    "large": ((), b"x" * 300_000, True),
    "fewer than promised": ((b"Content-Length: 1000",), b"few", False),
    "more than promised": ((b"Content-Length: 3",), b"more than three\r\n\r\n", False),
    "chunked": ((b"Transfer-Encoding: chunked",), b"4\r\nbody\r\n0\r\n\r\n", True),
    "chunked with trailers": ((b"Transfer-Encoding: chunked",), b"4\r\nbody\r\n0\r\nX: y\r\n\r\n", True),
    "chunks cut": ((b"Transfer-Encoding: chunked",), b"4\r\nbo", False),
    "chunks that are none": ((b"Transfer-Encoding: chunked",), b"body\r\n\r\n", False),
    "expected": ((b"Expect: 100-continue", b"Content-Length: 4"), b"body", True),
    "expected and not sent": ((b"Expect: 100-continue", b"Content-Length: 4"), b"", False),
}
HUGE = {
    "header": lambda part: request(part, headers=(b"Host: a", b"X: " + b"h" * 1_000_000)),
    "header lines": lambda part: request(part, headers=tuple(b"X-%d: %d" % (n, n) for n in range(30_000))),
    "endless header": lambda part: request(part, headers=(b"Host: a", b"X: " + b"h" * 2_000_000))[:-4],
    "query": lambda part: request(Part(part.method, part.target + b"&x=" + b"q" * 500_000)),
    "path": lambda part: request(Part(part.method, b"/" + b"p/" * 200_000)),
    "method": lambda part: request(Part(b"M" * 500_000, part.target)),
    "parameters": lambda part: request(Part(part.method, part.target + b"&a=b" * 60_000)),
    "blank lines": lambda part: b"\r\n" * 200_000 + request(part),
}

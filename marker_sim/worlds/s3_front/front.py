"""An S3 on loopback that records every effect, in order, before its reply is sent.

    client ── HTTP ──► request ──► interceptor: faults, limits ──► moto ──► effects recorded ──► reply
                                   └────────── under its lock ──────────┘

What was changed is found by looking at moto's own objects before and after a request, not by understanding the request:
copies, uploads in parts, conditional puts that failed and deletions of nothing are right by construction. Moto compares
and puts in two steps; that they are atomic here is the lock's doing.

    THROTTLED        503 SlowDown, nothing done
    SERVER_ERROR     500 InternalError, nothing done; or done, if applied, and a deletion of many keys in part: each
                     third key stays and is answered with InternalError
    SLOW_STORAGE     done late_ms later; other calls pass meanwhile
    TIMEOUT_APPLIED  done at once, and then silence: for_ms, or silence_ms when that is 0
    TIMEOUT_LOST     not done, the same silence
    TIMEOUT_LATE     silence for silence_ms, and done late_ms after it ended, unless the front was closed
    a death          the connection ends without a byte; before the call: it is not done
    PAUSE            done and answered as ever

S3 splits a bucket by key prefixes of its own choice, and grants each 3,500 writes and 5,500 reads a second; more is 503
SlowDown. Our decision: a prefix is a table's metadata, the path up to and including `.hoodie/`, else the first part
of the path; so the marker directories of one table share a limit and two tables never do. A bucket of tokens holds what
it grants in a second. Each key of a deletion of many counts as a write, and may overdraw; a listing counts as a read.
Source: "Best practices design patterns: optimizing Amazon S3 performance", the limits.

Silence ends with the connection, without a byte: after its time, when the client gives up, or when the front closes.
A caller of `close` must not hold the interceptor's lock. Other kinds of faults cannot be done here and are trouble.
"""

from __future__ import annotations

import io
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.interceptor import HEAD, ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.s3_front import requests
from marker_sim.worlds.s3_front.http_server import SOCKET, HttpServer, NoReply, Response
from marker_sim.worlds.s3_front.requests import S3Request
from marker_sim.worlds.s3_front.store import BUCKET, MotoStore

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

ROLE = "timeline-server"
READER, SECRET = "reader", "marker-sim-secret"  # The access key with which the kit reads; no signature is verified.
SILENCE_MS_MAX = 600_000
SPARED_EACH = 3
WRITES_PER_S = 3_500.0
READS_PER_S = 5_500.0
_METADATA = ".hoodie/"


class S3Front:
    """Serves one bucket until `close`. The access key of a request names its process in the history.

    roles: the role of each process, "timeline-server" if missing; may be changed while serving.
    spared: a process that meets no fault, with which the kit reads what is stored.
    refused: processes that are dead, but whose program may still send requests; these are answered AccessDenied.
    requests: the number of requests so far, by operation.
    silence_ms: how long a request that times out stays without a reply.
    """

    def __init__(
        self,
        interceptor: Interceptor,
        *,
        bucket: str = BUCKET,
        writes_per_s: float = WRITES_PER_S,
        reads_per_s: float = READS_PER_S,
        silence_ms: int = 1_000,
    ) -> None:
        self.interceptor = interceptor
        self.bucket = bucket
        self.roles: dict[str, str] = {}
        self.spared = ""
        self.refused: set[str] = set()
        self._limits: Limits | None = Limits(writes_per_s, reads_per_s)
        self._silence_ms = silence_ms
        self._closing = threading.Event()
        self.requests: Counter[str] = Counter()
        self._store = MotoStore(bucket)
        self._server = HttpServer(self, name=f"s3-front-{bucket}")
        self.endpoint = self._server.endpoint

    def __enter__(self) -> S3Front:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end()
        if kind is None:
            self.check()

    def close(self) -> None:
        """Stop serving; HarnessError when requests met a defect of the kit or of moto. May be called again."""
        self.end()
        self.check()

    def end(self) -> None:
        """Stop serving, without checks."""
        self._closing.set()
        try:
            self._server.close()
        finally:
            self._store.close()

    def check(self) -> None:
        """HarnessError when a request met a defect of the kit or of moto, so that no server is blamed for it."""
        if self._server.troubles:
            first, count = self._server.troubles[0], len(self._server.troubles)
            raise HarnessError(f"the S3 front of bucket {self.bucket} failed at {count} requests, first: {first}")

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The stored objects by key, sorted; read without passing the interceptor."""
        with self.interceptor.lock:
            return self._store.objects(prefix)

    def change(self, key: str, data: bytes | None) -> None:
        """Put or delete an object without the interceptor, and without recording it."""
        with self.interceptor.lock:
            self._store.change(key, data)

    def remove(self, prefix: str, process: str) -> None:
        """Delete everything below a prefix in the name of a process; no fault strikes."""
        with self.interceptor.lock:
            for key in self._store.objects(prefix):
                self._store.change(key, None)
                self.interceptor.applied(None, StorageCall(process, ROLE, "delete", key), "delete", key, None)

    def healed(self) -> None:
        """End throttling; armed faults stay armed."""
        with self.interceptor.lock:
            self._limits = None

    def __call__(self, environ: WSGIEnvironment) -> Response:
        """The front as an application; raises NoReply where the connection ends without a reply."""
        ask = requests.read_ask(environ, self.bucket)
        if isinstance(ask, Response):
            return ask
        also = (HEAD,) if environ["REQUEST_METHOD"] == "HEAD" else ()
        call = StorageCall(ask.process, self.roles.get(ask.process, ROLE), ask.operation, ask.path, also)
        with self.interceptor.lock:
            if ask.process in self.refused:
                return requests.error(403, "AccessDenied", "Access Denied", environ["RAW_URI"])
            self.requests[ask.operation] += 1
            if ask.operation == "other":
                return self._through(ask, environ)
            armed = self._struck(ask, call)
            if armed is None or armed.passes or not armed.hits(call.role):
                return self._apply(armed, call, ask, environ)
            if armed.kind.row.kills:
                if armed.call.when == "after":
                    self._apply(armed, call, ask, environ)
                raise NoReply
            if armed.fault.settings.applied and ask.many:
                return self._apply_partly(call, ask, environ)
            if armed.fault.settings.applied or armed.kind is FaultKind.TIMEOUT_APPLIED:
                self._apply(None, call, ask, environ)
        return self._apply_fault(armed.fault, call, ask, environ)

    def _struck(self, ask: S3Request, call: StorageCall) -> ArmedFault | None:
        """The fault that strikes this call: an armed one, or else throttling by an empty token bucket."""
        if ask.process == self.spared:
            return None
        armed = self.interceptor.strike(call)
        if armed is None:
            first = ask.keys[0] if ask.keys else ask.path
            if self._limits is None or self._limits.take(first, writes=ask.writes, cost=max(1, len(ask.keys))):
                return None
            armed = ArmedFault(Fault.of(FaultKind.THROTTLED, "", Call()))
            self.interceptor.recorder.fault(call.process, armed.kind.value, path=call.path, error=call.operation)
        return armed

    def _apply_fault(self, fault: Fault, call: StorageCall, ask: S3Request, environ: WSGIEnvironment) -> Response:
        """The reply under a storage fault; the lock is not held, and waiting ends when the front closes."""
        match fault.kind:
            case FaultKind.THROTTLED:
                return requests.error(*requests.SLOW_DOWN, environ["RAW_URI"])
            case FaultKind.SERVER_ERROR:
                return requests.error(*requests.INTERNAL_ERROR, environ["RAW_URI"])
            case FaultKind.SLOW_STORAGE:
                self._closing.wait(fault.settings.late_ms / 1000)
                with self.interceptor.lock:
                    return self._apply(None, call, ask, environ)
            case FaultKind.TIMEOUT_APPLIED | FaultKind.TIMEOUT_LOST:
                self._silence(environ, fault.settings.for_ms or self._silence_ms)
                raise NoReply
            case FaultKind.TIMEOUT_LATE:
                self._silence(environ, self._silence_ms)
                raise NoReply(lambda: self._apply_late(fault.settings.late_ms, call, ask, environ))
            case _:
                raise HarnessError(f"{fault.kind.value} was aimed at {call.path}, and the S3 front cannot do that")

    def _silence(self, environ: WSGIEnvironment, duration_ms: int) -> None:
        """Wait until the time is over, the client hangs up or the front closes."""
        connection: socket.socket = environ[SOCKET]
        deadline = time.monotonic() + min(duration_ms, SILENCE_MS_MAX) / 1000
        try:
            # Not select(), which fails with descriptors above 1,023.
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            readable = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if readable and connection.recv(1, socket.MSG_PEEK):
                self._closing.wait(max(0.0, deadline - time.monotonic()))
        except (OSError, ValueError):
            return

    def _apply_late(self, delay_ms: int, call: StorageCall, ask: S3Request, environ: WSGIEnvironment) -> None:
        if not self._closing.wait(delay_ms / 1000):
            with self.interceptor.lock:
                self._apply(None, call, ask, environ)

    def _apply(self, armed: ArmedFault | None, call: StorageCall, ask: S3Request, environ: WSGIEnvironment) -> Response:
        """Moto's reply, with its changes recorded; a fault strikes after the last effect. The lock is held."""
        before = [(key, self._store.version(key)) for key in ask.keys] if ask.writes else []
        try:
            return self._through(ask, environ)
        finally:
            changed = [key for key, version in before if self._store.version(key) is not version]
            for key in changed:
                content = self._store.content(key)
                operation = "delete" if content is None else "put"
                self.interceptor.applied(armed if key == changed[-1] else None, call, operation, key, content)
            if not changed:
                self.interceptor.passed_by(armed, call)

    def _apply_partly(self, call: StorageCall, ask: S3Request, environ: WSGIEnvironment) -> Response:
        """A deletion of many that leaves each third key and reports InternalError for it. The lock is held."""
        spared = ask.keys[SPARED_EACH - 1 :: SPARED_EACH]
        body = requests.without(environ["wsgi.input"].read(), frozenset(spared))
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        return requests.with_errors(self._apply(None, call, ask, environ), spared)

    def _through(self, ask: S3Request, environ: WSGIEnvironment) -> Response:
        if ask.upload and not self._store.has_upload(ask.path, ask.upload):
            return requests.error(404, "NoSuchUpload", "The specified upload does not exist", environ["RAW_URI"])
        return self._store.ask(environ)


def prefix_of(path: str) -> str:
    """The prefix whose request limit a path counts against."""
    before, found, _ = f"/{path}/".partition(f"/{_METADATA}")
    if found:
        return f"{before}/{_METADATA}".removeprefix("/")
    return path.partition("/")[0]


class Limits:
    """The token buckets of all prefixes. Callers of `take` hold a lock.

    clock: seconds, monotonic.
    """

    def __init__(
        self,
        writes_per_s: float = WRITES_PER_S,
        reads_per_s: float = READS_PER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if writes_per_s <= 0 or reads_per_s <= 0:
            raise UsageError(f"{writes_per_s:g} writes and {reads_per_s:g} reads a second: both must be above 0")
        self._per_s = {True: float(writes_per_s), False: float(reads_per_s)}
        self._clock = clock
        self._levels: dict[tuple[str, bool], tuple[float, float]] = {}

    def take(self, path: str, *, writes: bool, cost: int = 1) -> bool:
        """Whether the prefix of a path has a token left; if so, take `cost` of them."""
        key, rate, now = (prefix_of(path), writes), self._per_s[writes], self._clock()
        level, since = self._levels.get(key, (max(rate, 1.0), now))
        level = min(max(rate, 1.0), level + (now - since) * rate)
        granted = level >= 1
        self._levels[key] = (level - cost if granted else level, now)
        return granted

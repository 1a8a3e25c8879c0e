"""The kit's S3 front as the storage of a round: it sees every request and can make it fail.

Each server life signs with an access key of its own, its name in the history, so that an effect says who had it. All
faults are bounded by `STORAGE_TIMEOUT_MS`: a request that a dead server has sent is applied by then, or never.

A server that one trouble silenced meets none of those that follow. Then it is killed and started again, and the same
trouble has one more chance; only a trouble that a fresh server does not meet either is declared missed. What hangs
since storage failed is judged while it hangs, so every third round leaves a silenced server as it is and counts what
met nothing under a name of its own; there a trouble is missed only when storage had not failed before it. So does each
round in which storage fails below one directory, where a kill would excuse what hangs in the others. Elsewhere the
second chance fails requests again, so that such a server hangs in the probes of most of these rounds too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from marker_sim.faults import FaultKind
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.file_rewrites import Rewrites
from marker_sim.worlds.http.object_reader import ObjectReader
from marker_sim.worlds.http.round_stage import RoundStage
from marker_sim.worlds.http.s3_capabilities import REGION, SECRET, capabilities, environment, honest, name_of
from marker_sim.worlds.http.snapshot_recorder import run_reader
from marker_sim.worlds.http.storage_wire_rounds import STORAGE_WIRE
from marker_sim.worlds.http.world import DirectoryReader, Surroundings
from marker_sim.worlds.interceptor import WRITES, Interceptor, Trigger, When
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import ProbedCapabilities, S3Front, probe_s3

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

BUCKET = "lake"
READER = "reader"
STORAGE_TIMEOUT_MS = 2_000
STRIKES_MAX = 1_000_000
TROUBLE_WAIT_S = 8.0
SILENCED_WAIT_S = 2.0  # For the troubles of a round after one that met nothing.
LEFT_SILENCED_EVERY = 3
OWN_PROBE_ROUNDS = 8
READS = ("get", "list")
SERVERS = "server-"
SMALL_BUCKETS = (2.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFault:
    """A way in which requests go wrong until it is healed.

    times: how many at most.
    duration_ms: of each.

    sure: every server makes such requests, so that one which meets no trouble leaves the campaign inconclusive.
    """

    name: str
    kind: FaultKind
    operations: tuple[str, ...] = ("put",)
    times: int = STRIKES_MAX
    duration_ms: int = 0
    sure: bool = True


TROUBLES = (
    RequestFault(name="failing put", kind=FaultKind.SERVER_ERROR),
    RequestFault(name="failing read", kind=FaultKind.SERVER_ERROR, operations=READS, sure=False),
    RequestFault(name="slow put", kind=FaultKind.SLOW_STORAGE, duration_ms=700),
    RequestFault(name="throttled requests", kind=FaultKind.THROTTLED, operations=(*WRITES, *READS)),
    RequestFault(name="time-out of an applied put", kind=FaultKind.TIMEOUT_APPLIED, times=3, duration_ms=1_200),
    RequestFault(name="time-out of a lost put", kind=FaultKind.TIMEOUT_LOST, times=3, duration_ms=1_200),
)


class FrontWorld:
    """A front and a bucket for one round.

    scheme: s3a, s3 or s3n.
    command: the user's reader, or "".
    """

    def __init__(self, stage: RoundStage, scheme: str, command: str, probed: ProbedCapabilities) -> None:
        self.interceptor: Interceptor | None = Interceptor(stage.recorder, stage.injector.inject)
        self.whens: tuple[When, ...] = ("before", "after")
        self.rewrites: Rewrites | None = None
        self.front = S3Front(self.interceptor, bucket=BUCKET)
        self.front.spared = READER
        self.wire: ProxiedWire | None = None
        self._toxiproxy: Toxiproxy | None = None
        if stage.spec.kind == STORAGE_WIRE:
            try:
                self._stand_before()
            except BaseException:
                self.front.end()
                raise
        self._scheme = scheme
        self._command = command
        self._patience_s = TROUBLE_WAIT_S
        self._failed = False
        self._probed = probed
        names = self._names if command else None
        self.reader: DirectoryReader = ObjectReader(stage.recorder, self.front.objects, in_order=True, names=names)

    def _stand_before(self) -> None:
        """Put a proxy between servers and front."""
        from marker_sim.worlds.proxies.toxiproxy import Toxiproxy

        self._toxiproxy = Toxiproxy().__enter__()
        try:
            self.wire = self._toxiproxy.proxy("s3", urlsplit(self.front.endpoint).port or 0)
        except BaseException:
            self._toxiproxy.close()
            raise

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""
        return {
            "storage": name_of(self._probed),
            "witness": "effects",
            "layout": "names" if self._command else "hudi",
            "late_effect_ms": 0,
            "storage_timeout_ms": STORAGE_TIMEOUT_MS,
            "capabilities": capabilities(self._probed),
        }

    def address(self, place: MarkerDirectory) -> str:
        """The directory as a URI."""
        return f"{self._scheme}://{self.front.bucket}/{place.path}"

    def surroundings(self, process: str) -> Surroundings:
        """{storage} is the bucket as a URI; the environment says who signs."""
        endpoint = self.front.endpoint if self.wire is None else f"http://127.0.0.1:{self.wire.port}"
        values = {
            "storage": f"{self._scheme}://{self.front.bucket}",
            "bucket": self.front.bucket,
            "endpoint": endpoint,
        }
        return Surroundings(values, environment(endpoint, process))

    def fail(self, stage: RoundStage, until: float) -> None:
        """Every trouble, in an order drawn, each healed, wherever requests go."""
        troubles: list[RequestFault | None] = [*TROUBLES, None]
        self._fail(stage, stage.rng.sample(troubles, len(troubles)), "")

    def fail_below(self, stage: RoundStage, place: MarkerDirectory, until: float) -> None:
        """Every trouble but the request limits, which are everybody's; a server that they silence is left as it is."""
        self._fail(stage, stage.rng.sample(TROUBLES, len(TROUBLES)), place.path)

    def _fail(self, stage: RoundStage, troubles: Iterable[RequestFault | None], below: str) -> None:
        injector, rng = stage.injector, stage.rng
        if rng.random() < 0.75:  # Else the server meets the trouble when it first reads the directory.
            stage.ask_once("exists", stage.failing, "")
        stage.release()
        for trouble in troubles:
            _ = injector.first  # When nobody lives there is nobody to meet the trouble.
            if trouble is None:
                duration_s = rng.uniform(0.6, 1.0)
                self._inflict(stage, "request limits exceeded", partial(self._throttle_by_rate, injector, duration_s))
            else:
                strike = partial(self._strike, injector, trouble, below, rng)
                self._inflict(stage, trouble.name, strike, sure=trouble.sure, leave=bool(below))
            injector.wait(rng.uniform(0.3, 0.6))

    def _inflict(
        self, stage: RoundStage, name: str, strike: Callable[[float], int], *, sure: bool = True, leave: bool = False
    ) -> None:
        """One trouble, once more against a fresh server when it met nothing.

        strike: waits so many seconds for a first request, and returns how many the trouble met. leave: a server that
        an earlier trouble silenced is left as it is.
        """
        injector = stage.injector
        leave = leave or not stage.spec.number % LEFT_SILENCED_EVERY
        met = strike(self._patience_s)
        if not sure:
            injector.note(name, met)
        elif met or not (self._failed and leave):
            if not met:
                self._patience_s = SILENCED_WAIT_S
                injector.kill(injector.first, stage.places)
                injector.restart()
                met = strike(TROUBLE_WAIT_S)
            injector.declare(name, met)
        else:
            self._patience_s = SILENCED_WAIT_S
            injector.note(f"{name}: the server sent no storage request; it was left running")
        self._failed = self._failed or met > 0

    def _strike(
        self, injector: ServerFaultInjector, trouble: RequestFault, below: str, rng: Random, patience_s: float
    ) -> int:
        assert self.interceptor is not None
        trigger = Trigger(
            kind=trouble.kind,
            pattern=f"^{re.escape(below)}(/|$)" if below else "",
            operations=trouble.operations,
            process=SERVERS,
            times=trouble.times,
            duration_ms=trouble.duration_ms,
        )
        self.interceptor.arm(trigger)
        injector.wait(patience_s, lambda: trigger.fired > 0)
        injector.wait(rng.uniform(0.4, 0.8))
        self.interceptor.disarm()
        return trigger.fired

    def _throttle_by_rate(self, injector: ServerFaultInjector, duration_s: float, patience_s: float) -> int:
        def throttled() -> int:
            return self.front.counts.faults.get(FaultKind.THROTTLED.value, 0)

        before = throttled()
        self.front.limit(*SMALL_BUCKETS)
        injector.wait(patience_s, lambda: throttled() > before)
        injector.wait(duration_s)
        self.front.healed()
        return throttled() - before

    def close(self) -> None:
        """End the front and what stands before it, and forget the bucket."""
        try:
            if self._toxiproxy is not None:
                self._toxiproxy.close()
        finally:
            self.front.close()

    def _names(self, place: MarkerDirectory) -> list[str]:
        return run_reader(self._command, self.address(place), environment(self.front.endpoint, READER))


def probe_front() -> ProbedCapabilities:
    """What the kit's own front keeps."""
    interceptor = Interceptor(Recorder(), lambda trigger, call: None)
    with S3Front(interceptor, bucket=BUCKET) as front:
        found = probe_s3(front.endpoint, BUCKET, "kit", SECRET, REGION, "", rounds=OWN_PROBE_ROUNDS)
    return honest(found, "the kit's own S3")

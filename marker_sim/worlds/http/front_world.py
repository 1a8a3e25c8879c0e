"""The kit's S3 front as the storage of a round: it sees every request and can make it fail.

Each server life signs with an access key of its own, its name in the history, so that an effect says who had it. All
faults are bounded by `STORAGE_TIMEOUT_MS`: a request that a dead server has sent is applied by then, or never.

A server that one trouble silenced meets none of those that follow. It is left as it is, for what hangs since storage
failed is judged while it hangs; a trouble that met nothing is missed only where storage had not failed before it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.faults.row import CHANGES
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.http.fault_injector import ServerFaultInjector
from marker_sim.worlds.http.file_rewrites import Rewrites
from marker_sim.worlds.http.object_reader import ObjectReader
from marker_sim.worlds.http.round_stage import RoundStage
from marker_sim.worlds.http.s3_capabilities import REGION, SECRET, capabilities, environment, honest, name_of
from marker_sim.worlds.http.snapshot_recorder import run_reader
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.http.world import DirectoryReader, Surroundings
from marker_sim.worlds.interceptor import ArmedFault, Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import ProbedCapabilities, S3Front, probe_s3

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

BUCKET = "lake"
READER = "reader"
STORAGE_TIMEOUT_MS = 2_000
STRIKES_MAX = 1_000_000
TROUBLE_WAIT_S = 8.0
SILENCED_WAIT_S = 2.0  # After a trouble that may have silenced the server.
OWN_PROBE_ROUNDS = 8
READS = ("get", "list")


def _failing(kind: FaultKind, operations: tuple[str, ...] = ("put",), calls: int = STRIKES_MAX, **how: int) -> Fault:
    return Fault.of(kind, "server", Call(operations=operations), calls=calls, **how)


# Ways in which requests go wrong until they are healed.
REQUEST_FAULTS = {
    "failing put": _failing(FaultKind.SERVER_ERROR),
    "failing read": _failing(FaultKind.SERVER_ERROR, READS),
    "slow put": _failing(FaultKind.SLOW_STORAGE, late_ms=700),
    "throttled requests": _failing(FaultKind.THROTTLED, (*CHANGES, *READS)),
    "time-out of an applied put": _failing(FaultKind.TIMEOUT_APPLIED, calls=3, for_ms=1_200),
    "time-out of a lost put": _failing(FaultKind.TIMEOUT_LOST, calls=3, for_ms=1_200),
}
NOT_BY_ALL = frozenset({"failing read"})  # Not every server makes such requests, so that to meet none decides nothing.


class FrontWorld:
    """A front and a bucket for one round.

    scheme: s3a, s3 or s3n.
    command: the user's reader, or "".
    """

    def __init__(self, stage: RunStage, scheme: str, command: str, probed: ProbedCapabilities) -> None:
        self.interceptor: Interceptor | None = None
        self.whens: tuple[When, ...] = ("before", "after")
        self.rewrites: Rewrites | None = None
        self.front = S3Front(Interceptor(stage.recorder, stage.injector.inject), bucket=BUCKET)
        self.front.spared = READER
        self.wire: ProxiedWire | None = None
        self._toxiproxy: Toxiproxy | None = None
        if stage.storage_wire:
            try:
                self._stand_before()
            except BaseException:
                self.front.end()
                raise
        self._scheme = scheme
        self._command = command
        self._failed = False
        self._probed = probed
        self.bind(stage)

    def bind(self, stage: RunStage) -> FrontWorld:
        """The next run on the same bucket."""
        self.interceptor = self.front.interceptor = Interceptor(
            stage.recorder, stage.injector.inject, below=f"{stage.table}/"
        )
        names = self._names if self._command else None
        self.reader: DirectoryReader = ObjectReader(stage.recorder, self.front.objects, in_order=True, names=names)
        return self

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

    def fail_below(self, stage: RoundStage, place: MarkerDirectory, until: float) -> None:
        """Every trouble in an order drawn, each healed, at requests below one directory."""
        injector, rng = stage.injector, stage.rng
        if rng.random() < 0.75:  # Else the server meets the trouble when it first reads the directory.
            stage.ask_once("exists", place, "")
        stage.release()
        for name in rng.sample(tuple(REQUEST_FAULTS), len(REQUEST_FAULTS)):
            _ = injector.first  # When nobody lives there is nobody to meet the trouble.
            met = self._strike(injector, REQUEST_FAULTS[name], place.path, rng)
            if met or not (self._failed or name in NOT_BY_ALL):
                injector.declare(name, met)
            else:
                injector.note(name if name in NOT_BY_ALL else f"{name}: the server sent no storage request", met)
            self._failed = self._failed or met > 0
            injector.wait(rng.uniform(0.3, 0.6))

    def _strike(self, injector: ServerFaultInjector, fault: Fault, below: str, rng: Random) -> int:
        """How many requests met a trouble."""
        assert self.interceptor is not None and isinstance(fault.trigger, Call)
        armed = ArmedFault(replace(fault, trigger=fault.trigger._replace(pattern=f"^{re.escape(below)}(/|$)")))
        self.interceptor.arm(armed)
        injector.wait(SILENCED_WAIT_S if self._failed else TROUBLE_WAIT_S, lambda: armed.fired > 0)
        injector.wait(rng.uniform(0.4, 0.8))
        self.interceptor.disarm()
        return armed.fired

    def begin(self, fault: Fault) -> None:
        """Nothing: faults of an object store are at its requests."""

    def heal(self, fault: Fault) -> None:
        """Nothing."""

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
    interceptor = Interceptor(Recorder(), lambda armed, call: None)
    with S3Front(interceptor, bucket=BUCKET) as front:
        found = probe_s3(front.endpoint, BUCKET, "kit", SECRET, REGION, "", rounds=OWN_PROBE_ROUNDS)
    return honest(found, "the kit's own S3")

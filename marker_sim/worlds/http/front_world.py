"""The kit's S3 front as the storage of runs: it sees every request and can make it fail.

Each server life signs with an access key of its own, its name in the history, so that an effect says who had it. All
faults are bounded by `STORAGE_TIMEOUT_MS`: a request that a dead server has sent is applied by then, or never.
"""

from __future__ import annotations

from contextlib import closing, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.worlds.http.object_reader import ObjectReader
from marker_sim.worlds.http.plan_wires import start_toxiproxy
from marker_sim.worlds.http.s3_capabilities import REGION, SECRET, capabilities, environment, honest, name_of
from marker_sim.worlds.http.snapshot_recorder import READER_TIMEOUT_S, run_reader
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.http.world import DirectoryReader, Surroundings
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import ProbedCapabilities, S3Front, probe_s3

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy

BUCKET = "lake"
READER = "reader"
STORAGE_TIMEOUT_MS = 2_000
OWN_PROBE_ROUNDS = 8


class FrontWorld:
    """A front and a bucket.

    scheme: s3a, s3 or s3n.
    command: the user's reader, or "".
    """

    interceptor: Interceptor

    def __init__(self, stage: RunStage, scheme: str, command: str, probed: ProbedCapabilities) -> None:
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
        self._probed = probed
        self.bind(stage)

    def bind(self, stage: RunStage) -> FrontWorld:
        """The next run on the same bucket."""
        self.interceptor = self.front.interceptor = Interceptor(
            stage.recorder, stage.injector.inject, f"{stage.table}/", stage.injector.serves
        )
        names = self._names if self._command else None
        self.reader: DirectoryReader = ObjectReader(stage.recorder, self.front.objects, in_order=True, names=names)
        return self

    def _stand_before(self) -> None:
        """Put a proxy between servers and front."""
        self._toxiproxy = start_toxiproxy()
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

    def unseen(self) -> tuple[str, ...]:
        """Nothing: servers reach the bucket through the front alone. HarnessError when it failed."""
        self.front.check()
        return ()

    def echo(self) -> None:
        """A request of the kit's own, which meets no fault."""
        asking = HTTPConnection(urlsplit(self.front.endpoint).netloc, timeout=STORAGE_TIMEOUT_MS / 1000)
        with closing(asking), suppress(OSError, HTTPException):  # It took as long as it took.
            asking.request("HEAD", f"/{self.front.bucket}/echo", headers={"Authorization": f"AWS {READER}:"})
            asking.getresponse().read()

    def begin(self, fault: Fault) -> None:
        """Nothing: faults of an object store strike at its requests alone."""

    def heal(self, fault: Fault) -> bool:
        """False: no request meets it."""
        return False

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Object after object, each an effect of that process."""
        self.front.remove(f"{place.path}/", process)

    def close(self) -> None:
        """End the proxy, if there is one, and the front with its bucket."""
        try:
            if self._toxiproxy is not None:
                self._toxiproxy.close()
        finally:
            self.front.close()

    def _names(self, place: MarkerDirectory, timeout_s: float = READER_TIMEOUT_S) -> list[str]:
        return run_reader(self._command, self.address(place), environment(self.front.endpoint, READER), timeout_s)


@cache
def probe_front() -> ProbedCapabilities:
    """The promises that the kit's own front keeps, probed once in a process: each campaign has the same."""
    interceptor = Interceptor(Recorder(), lambda armed, call: None)
    with S3Front(interceptor, bucket=BUCKET) as front:
        found = probe_s3(front.endpoint, BUCKET, "kit", SECRET, REGION, "", rounds=OWN_PROBE_ROUNDS)
    return honest(found, "the kit's own S3")

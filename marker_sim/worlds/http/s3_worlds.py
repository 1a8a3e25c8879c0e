"""Object stores as the storage of runs: the kit's S3 front, or an endpoint of the user's own.

The front sees every request and can make it fail. Each server life signs with an access key of its own, its name in
the history, so that an effect says who had it. All faults are bounded by `STORAGE_TIMEOUT_MS`: a request that a dead
server has sent is applied by then, or never. The user's endpoint is read by requests, without faults, and left as it
was.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from marker_sim.errors import HarnessError, UsageError
from marker_sim.names import MarkerDirectory
from marker_sim.seams import NotFound, StorageError
from marker_sim.storages.s3 import S3Storage
from marker_sim.worlds.http.plan_wires import start_toxiproxy
from marker_sim.worlds.http.world import DirectoryReader, Endpoint, RunGround, RunStorage, Surroundings
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import BUCKET, READER, REGION, SECRET, ProbedCapabilities, S3Front, probe_s3

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import Toxiproxy

STORAGE_TIMEOUT_MS = 2_000
SITE_TIMEOUT_MS = 5_000
OWN_PROBE_ROUNDS = 8
NOT_ON_A_SITE = (
    "storage faults: an endpoint of your own is not made to fail, nor is the wire to it",
    "kills and pauses aimed at requests to storage: an endpoint of your own is not seen from inside",
)


def environment(endpoint: str, access_key: str, secret_key: str = SECRET) -> dict[str, str]:
    """The environment variables of S3 clients in most languages; AWS_DEFAULT_REGION is Python's name for AWS_REGION."""
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


class FrontWorld(RunStorage):
    """The kit's S3 front with one bucket.

    scheme: s3a, s3 or s3n.
    """

    interceptor: Interceptor

    def __init__(self, ground: RunGround, scheme: str, command: str, probed: ProbedCapabilities) -> None:
        self.front = S3Front(ground.interceptor(""))
        self.front.spared = READER
        uri = f"{scheme}://{BUCKET}"
        super().__init__(command, uri, uri, environment(self.front.endpoint, READER))
        self._toxiproxy: Toxiproxy | None = None
        if ground.wire:
            with ExitStack() as undone:  # Clean up when this fails.
                undone.callback(self.front.end)
                self._toxiproxy = start_toxiproxy()
                undone.callback(self._toxiproxy.close)
                self.wire = self._toxiproxy.proxy("s3", urlsplit(self.front.endpoint).port or 0)
                undone.pop_all()
        self._probed = probed
        self.bind(ground)

    def bind(self, ground: RunGround) -> None:
        """Serve the next run on the same bucket."""
        self.interceptor = self.front.interceptor = ground.interceptor(f"{ground.table}/")
        self.reader = DirectoryReader(ground.recorder, self.front.objects, in_order=True, names=self._names)

    def describe(self) -> dict[str, Any]:
        """The storage fields of a history's header."""
        own = {"witness": "effects", "layout": self.layout, "late_effect_ms": 0}
        return {**own, "storage_timeout_ms": STORAGE_TIMEOUT_MS, **self._probed.header()}

    def surroundings(self, process: str) -> Surroundings:
        """The bucket as a URI for {storage}, and environment variables with the server's access key."""
        endpoint = self.front.endpoint if self.wire is None else f"http://127.0.0.1:{self.wire.port}"
        values = {"storage": self.uri, "bucket": BUCKET, "endpoint": endpoint}
        return Surroundings(values, environment(endpoint, process))

    def unseen(self) -> tuple[str, ...]:
        """No sentence: servers reach the bucket only through the front. HarnessError when the front failed."""
        self.front.check()
        return ()

    def echo(self) -> None:
        """Send a request of the kit to its own S3 and wait for the answer. No fault strikes it."""
        asking = HTTPConnection(urlsplit(self.front.endpoint).netloc, timeout=STORAGE_TIMEOUT_MS / 1000)
        with closing(asking), suppress(OSError, HTTPException):  # Only its duration matters.
            asking.request("HEAD", f"/{self.front.bucket}/echo", headers={"Authorization": f"AWS {READER}:"})
            asking.getresponse().read()

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Delete object by object, each an effect of that process."""
        self.front.remove(f"{place.path}/", process)

    def close(self) -> None:
        """End the proxy, if there is one, and the front with its bucket."""
        try:
            if self._toxiproxy is not None:
                self._toxiproxy.close()
        finally:
            self.front.close()


@cache
def probe_front() -> ProbedCapabilities:
    """The promises that the kit's own front keeps, probed once in a process: each campaign has the same."""
    interceptor = Interceptor(Recorder())
    with S3Front(interceptor) as front:
        found = probe_s3(front.endpoint, BUCKET, "kit", SECRET, REGION, "", rounds=OWN_PROBE_ROUNDS)
    return found.honest("the kit's own S3")


class ExternalS3World(RunStorage):
    """The user's endpoint. A run's keys are removed when it is over; its delays are not the kit's."""

    def __init__(
        self, ground: RunGround, site: Endpoint, scheme: str, command: str, probed: ProbedCapabilities
    ) -> None:
        uri = f"{scheme}://{site.bucket}/{site.prefix}"
        super().__init__(command, uri, uri, environment(site.url, site.access_key, site.secret_key))
        self._site = site
        self._storage = S3Storage(
            site.url,
            site.bucket,
            site.prefix,
            site.access_key,
            secret_key=site.secret_key,
            connect_timeout_s=SITE_TIMEOUT_MS / 1000,
            read_timeout_s=SITE_TIMEOUT_MS / 1000,
        )
        self._mine = ""
        self._probed = probed
        self.bind(ground)

    def bind(self, ground: RunGround) -> None:
        """Serve the next run on the same endpoint."""
        if self._mine:
            self._remove(self._mine)
        self._mine = f"{ground.table}/"
        self.reader = DirectoryReader(ground.recorder, self._objects, in_order=False, names=self._names)

    def describe(self) -> dict[str, Any]:
        """The storage fields of a history's header."""
        own = {"witness": "reads", "layout": self.layout}
        return {**own, "storage_timeout_ms": SITE_TIMEOUT_MS, **self._probed.header()}

    def surroundings(self, process: str) -> Surroundings:
        """The campaign's prefix as a URI for {storage}; every server signs with the user's keys."""
        values = {"storage": self.uri, "bucket": self._site.bucket, "endpoint": self._site.url}
        return Surroundings(values, self._environment)

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Delete object by object."""
        self._remove(f"{place.path}/")

    def close(self) -> None:
        """Remove the run's objects."""
        self._remove(self._mine)
        self._storage.close()

    def _remove(self, prefix: str) -> None:
        try:
            for path in self._storage.list(prefix):
                self._storage.delete(path)
        except StorageError as error:
            raise HarnessError(f"{self.uri}/{prefix} could not be removed: {error}") from error

    def _objects(self, prefix: str) -> dict[str, bytes]:
        found = {}
        for path in self._storage.list(prefix):
            try:
                found[path] = self._storage.get(path).data
            except NotFound:
                continue  # Deleted since the listing.
        return found


def probe_site(site: Endpoint) -> ProbedCapabilities:
    """The promises that a user's endpoint keeps; UsageError or HarnessError, with its address, when it fails."""
    try:
        found = probe_s3(site.url, site.bucket, site.access_key, site.secret_key, REGION, site.prefix)
    except (UsageError, HarnessError) as error:
        raise type(error)(f"--s3-endpoint {site.url}: {error}") from error
    return found.honest(site.url)

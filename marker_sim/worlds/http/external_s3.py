"""The user's S3 endpoint as the storage of runs: read by requests, without faults, and left as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Fault
from marker_sim.names import MarkerDirectory
from marker_sim.seams import NotFound, StorageError
from marker_sim.storages.s3 import S3Storage
from marker_sim.worlds.http.object_reader import ObjectReader
from marker_sim.worlds.http.s3_capabilities import REGION, capabilities, environment, honest, name_of
from marker_sim.worlds.http.snapshot_recorder import READER_TIMEOUT_S, run_reader
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.http.world import DirectoryReader, Endpoint, Surroundings
from marker_sim.worlds.s3_front import ProbedCapabilities, probe_s3

if TYPE_CHECKING:
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire

SITE_TIMEOUT_S = 5.0
NOT_ON_A_SITE = (
    "storage faults: an endpoint of your own is not made to fail, nor is the wire to it",
    "kills and pauses aimed at requests to storage: an endpoint of your own is not seen from inside",
)


class ExternalS3World:
    """The endpoint during one run: read by requests, without faults. Its keys are removed when the run is over."""

    interceptor = None

    def __init__(self, stage: RunStage, site: Endpoint, scheme: str, command: str, probed: ProbedCapabilities) -> None:
        self.wire: ProxiedWire | None = None
        self._site = site
        self._storage = S3Storage(
            site.url,
            site.bucket,
            site.prefix,
            site.access_key,
            secret_key=site.secret_key,
            connect_timeout_s=SITE_TIMEOUT_S,
            read_timeout_s=SITE_TIMEOUT_S,
        )
        self._root = f"{scheme}://{site.bucket}/{site.prefix}"
        self._mine = ""
        self._command = command
        self._probed = probed
        self.bind(stage)

    def bind(self, stage: RunStage) -> ExternalS3World:
        """The next run on the same endpoint."""
        if self._mine:
            self._remove(self._mine)
        self._mine = f"{stage.table}/"
        names = self._names if self._command else None
        self.reader: DirectoryReader = ObjectReader(stage.recorder, self._objects, in_order=False, names=names)
        return self

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""
        return {
            "storage": name_of(self._probed),
            "witness": "reads",
            "layout": "names" if self._command else "hudi",
            "storage_timeout_ms": int(SITE_TIMEOUT_S * 1000),
            "capabilities": capabilities(self._probed),
        }

    def address(self, place: MarkerDirectory) -> str:
        """The directory as a URI."""
        return f"{self._root}/{place.path}"

    def surroundings(self, process: str) -> Surroundings:
        """{storage} is the campaign's prefix as a URI; every server signs as the user said."""
        values = {"storage": self._root, "bucket": self._site.bucket, "endpoint": self._site.url}
        return Surroundings(values, environment(self._site.url, self._site.access_key, self._site.secret_key))

    def unseen(self) -> tuple[str, ...]:
        """Nothing that is known: no call is seen, and nothing is judged by calls."""
        return ()

    def echo(self) -> None:
        """Nothing: the endpoint is no part of the kit, so its delays are not the kit's."""

    def begin(self, fault: Fault) -> None:
        """Nothing: the kit does not make a user's endpoint fail."""

    def heal(self, fault: Fault) -> bool:
        """False: nothing met it."""
        return False

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Object after object."""
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
            raise HarnessError(f"{self._root}/{prefix} could not be removed: {error}") from error

    def _objects(self, prefix: str) -> dict[str, bytes]:
        found = {}
        for path in self._storage.list(prefix):
            try:
                found[path] = self._storage.get(path).data
            except NotFound:
                continue  # Deleted since it was listed.
        return found

    def _names(self, place: MarkerDirectory, timeout_s: float = READER_TIMEOUT_S) -> list[str]:
        around = environment(self._site.url, self._site.access_key, self._site.secret_key)
        return run_reader(self._command, self.address(place), around, timeout_s)


def probe_site(site: Endpoint) -> ProbedCapabilities:
    """The promises that a user's endpoint keeps; UsageError or HarnessError, with its address, when it fails."""
    try:
        found = probe_s3(site.url, site.bucket, site.access_key, site.secret_key, REGION, site.prefix)
    except (UsageError, HarnessError) as error:
        raise type(error)(f"--s3-endpoint {site.url}: {error}") from error
    return honest(found, site.url)

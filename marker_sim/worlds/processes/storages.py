"""What a cluster of real processes stores in: a fresh local directory, or a bucket behind the S3 front."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from marker_sim.errors import HarnessError
from marker_sim.seams import Capabilities
from marker_sim.storages.local import LocalStorage
from marker_sim.storages.s3 import S3Storage
from marker_sim.worlds.interceptor import Interceptor

BUCKET = "lake"


class ClusterStorage(Protocol):
    """capabilities: what children see. spec: how they reach it. settle_ms: after which nothing is on its way."""

    capabilities: Capabilities
    settle_ms: int

    def spec(self) -> dict[str, str]: ...
    def stored(self, path: str) -> bytes | None: ...
    def files(self) -> dict[str, bytes]: ...
    def damage(self, path: str, data: bytes | None) -> None: ...
    def expect(self, process: str, role: str) -> None: ...
    def close(self) -> None: ...


def check_storage(storage: str) -> None:
    """HarnessError for a storage of plans that real processes have not."""
    if storage not in ("local", "s3"):
        raise HarnessError(f"storage {storage} has no real processes; local and s3 have")


def open_storage(storage: str, interceptor: Interceptor, root: Path) -> ClusterStorage:
    """A fresh storage for one run, in a new directory `root`, or in S3 behind a front."""
    return LocalClusterStorage(root) if storage == "local" else S3ClusterStorage(interceptor)


class LocalClusterStorage:
    """A directory of its own."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True)
        self._root = root
        self._storage = LocalStorage(root)
        self.capabilities = self._storage.capabilities
        self.settle_ms = 0

    def spec(self) -> dict[str, str]:
        """The JSON-ready form from which child processes open the storage."""
        return {"kind": "local", "root": str(self._root)}

    def stored(self, path: str) -> bytes | None:
        """The content of a file."""
        try:
            return (self._root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def files(self) -> dict[str, bytes]:
        """Every file that is not the storage's own."""
        return {path: self._storage.get(path).data for path in self._storage.list("")}

    def damage(self, path: str, data: bytes | None) -> None:
        """Replace a file, None to delete it, without a record."""
        if data is None:
            (self._root / path).unlink()
        else:
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_bytes(data)

    def expect(self, process: str, role: str) -> None:
        """Nothing: a local directory needs no preparation."""

    def close(self) -> None:
        """Nothing: the caller deletes the directory."""


class S3ClusterStorage:
    """A storage in a bucket of the kit's S3 front."""

    def __init__(self, interceptor: Interceptor) -> None:
        from marker_sim.worlds.s3_front import S3Front

        self._front = S3Front(interceptor, bucket=BUCKET)
        self._front.__enter__()
        self._storage = S3Storage(self._front.endpoint, BUCKET, access_key="kit")
        self.capabilities = self._storage.capabilities
        self.settle_ms = self.capabilities.request_timeout_ms + self.capabilities.late_effect_ms

    def spec(self) -> dict[str, str]:
        """The JSON-ready form from which child processes open the storage."""
        return {"kind": "s3", "endpoint": self._front.endpoint, "bucket": BUCKET}

    def stored(self, path: str) -> bytes | None:
        """The content of an object."""
        return self._front.objects(path).get(path)

    def files(self) -> dict[str, bytes]:
        """Every stored object."""
        return dict(self._front.objects(""))

    def damage(self, path: str, data: bytes | None) -> None:
        """Replace an object, None to delete it, without a record."""
        self._front.change(path, data)

    def expect(self, process: str, role: str) -> None:
        """Requests that this process signs are its own."""
        self._front.roles[process] = role

    def close(self) -> None:
        """End the front."""
        self._front.__exit__(None, None, None)

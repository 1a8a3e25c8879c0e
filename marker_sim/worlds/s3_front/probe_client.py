"""A bucket as used by the probe: answers to requests, races of several requests, and removal of everything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from marker_sim.errors import HarnessError, UsageError
from marker_sim.seams import Condition, Conflicted, NotFound, PreconditionFailed, StorageError
from marker_sim.storages.s3 import S3Storage, StoreAnswered

MEETING_TIMEOUT_S = 30.0

T = TypeVar("T")


class ProbeReply(NamedTuple):
    """The answer to one put: HTTP status (0 for none), the ETag if accepted, and the content to be stored."""

    status: int
    etag: str
    body: bytes


class ProbeEndpoint:
    """One storage for all racers, with what was written to it; leaving the context removes that.

    Entering it raises UsageError when the bucket is not there or not ours to use, HarnessError without an answer.
    """

    def __init__(self, storage: S3Storage, bucket: str, racers: int) -> None:
        self._storage, self._bucket, self._racers = storage, bucket, racers
        self._written: dict[str, None] = {}
        self._guard = threading.Lock()
        self._pool = ThreadPoolExecutor(racers, thread_name_prefix="honesty")

    def __enter__(self) -> ProbeEndpoint:
        try:
            self._storage.check_bucket()
        except StorageError as error:
            self._end()
            status = _status(error)
            if status in (301, 400, 401, 403, 404):
                raise UsageError(
                    f"bucket {self._bucket} is not ours to use ({status}); check its name, keys and region"
                ) from error
            raise HarnessError(f"the S3 endpoint does not answer for bucket {self._bucket} ({error})") from error
        return self

    def __exit__(self, *_: object) -> None:
        left = [key for key in self._written if not self.delete(key) and not self.delete(key)]
        self._end()
        if left:
            raise HarnessError(f"{len(left)} objects could not be removed again, the first is {left[0]}")

    def _end(self) -> None:
        self._pool.shutdown()
        self._storage.close()

    def race(self, body: Callable[[int], T]) -> tuple[T, ...]:
        """The results of racers that start together. A BrokenPromise raised by one of them is raised here."""
        barrier = threading.Barrier(self._racers, timeout=MEETING_TIMEOUT_S)

        def run(racer: int) -> T:
            barrier.wait()
            return body(racer)

        return tuple(self._pool.map(run, range(self._racers)))

    def put(
        self, key: str, text: str, condition: Condition = Condition.NONE, expected: str | None = None
    ) -> ProbeReply:
        """The answer to a put, with or without a condition."""
        body = text.encode()
        with self._guard:
            self._written[key] = None
        try:
            return ProbeReply(200, self._storage.put(key, body, condition, expected), body)
        except StorageError as error:
            return ProbeReply(_status(error), "", body)

    def get(self, key: str) -> bytes | None:
        """The stored content: b"" for nothing, None when it could not be read."""
        try:
            return self._storage.get(key).data
        except NotFound:
            return b""
        except StorageError:
            return None

    def list(self, start: str) -> tuple[str, ...] | None:
        """The keys with a prefix, None when the listing failed."""
        try:
            return self._storage.list(start)
        except StorageError:
            return None

    def delete(self, key: str) -> bool:
        """Whether a deletion was answered as done."""
        try:
            self._storage.delete(key)
        except NotFound:
            return True
        except StorageError:
            return False
        return True


def _status(error: StorageError) -> int:
    """The HTTP status in an error, 0 when no complete answer came."""
    match error:
        case StoreAnswered():
            return error.status
        case NotFound():
            return 404
        case PreconditionFailed():
            return 412
        case Conflicted():
            return 409
    return 0

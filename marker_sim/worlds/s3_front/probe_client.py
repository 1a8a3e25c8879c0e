"""An S3 endpoint as the probe uses it: single requests without resends, races of several, and all of it removed after.

An answer is a status and what came with it; 0 is the status of no whole answer.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from marker_sim.errors import HarnessError, UsageError

MEETING_TIMEOUT_S = 30.0

T = TypeVar("T")


class ProbeReply(NamedTuple):
    """The answer to one put: HTTP status (0: none came), the ETag if it was taken, and what it wanted stored."""

    status: int
    etag: str
    body: bytes


class ProbeEndpoint:
    """One client for all racers, and what was written below `place`; leaving it removes that.

    Entering it raises UsageError when the bucket is not there or not ours to use, HarnessError when nobody answers.
    """

    def __init__(
        self, endpoint: str, bucket: str, access_key: str, secret: str, region: str, place: str, racers: int
    ) -> None:
        self._bucket, self._place, self._racers = bucket, place, racers
        self._botocore = _module("botocore.exceptions")
        self._client = (
            _module("boto3.session")
            .Session()
            .client(
                "s3",
                endpoint_url=endpoint,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret,
                region_name=region,
                config=_module("botocore.config").Config(
                    retries={"total_max_attempts": 1},
                    connect_timeout=5,
                    read_timeout=10,
                    max_pool_connections=racers,
                    proxies={},
                    s3={"addressing_style": "path"},
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                ),
            )
        )
        self._written: dict[str, None] = {}
        self._guard = threading.Lock()
        self._pool = ThreadPoolExecutor(racers, thread_name_prefix="honesty")

    def __enter__(self) -> ProbeEndpoint:
        status, _ = self._ask(lambda: self._client.head_bucket(Bucket=self._bucket))
        if status != 200:
            self._end()
            if status in (301, 400, 401, 403, 404):
                raise UsageError(
                    f"bucket {self._bucket} is not ours to use ({status}); check its name, keys and region"
                )
            raise HarnessError(f"the S3 endpoint does not answer for bucket {self._bucket} (status {status}, 0: none)")
        return self

    def __exit__(self, *_: object) -> None:
        left = [key for key in self._written if not self.delete(key) and not self.delete(key)]
        self._end()
        if left:
            raise HarnessError(f"{len(left)} objects could not be removed again, the first is {self._place}{left[0]}")

    def _end(self) -> None:
        self._pool.shutdown()
        self._client.close()

    def race(self, body: Callable[[int], T]) -> tuple[T, ...]:
        """What each racer came to; they begin together. A Lie that one of them saw is raised."""
        barrier = threading.Barrier(self._racers, timeout=MEETING_TIMEOUT_S)

        def run(racer: int) -> T:
            barrier.wait()
            return body(racer)

        return tuple(self._pool.map(run, range(self._racers)))

    def put(self, key: str, text: str, **conditions: str) -> ProbeReply:
        """Put an object, perhaps under a condition."""
        body = text.encode()
        with self._guard:
            self._written[key] = None
        status, answer = self._ask(
            lambda: self._client.put_object(Bucket=self._bucket, Key=self._place + key, Body=body, **conditions)
        )
        return ProbeReply(status, answer.get("ETag", ""), body)

    def get(self, key: str) -> bytes | None:
        """What is stored: b"" for nothing, None when it could not be read."""

        def ask() -> dict[str, Any]:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._place + key)
            with answer["Body"] as body:
                return {**answer, "data": body.read()}

        status, answer = self._ask(ask)
        return answer["data"] if status == 200 else b"" if status == 404 else None

    def list(self, start: str) -> tuple[str, ...] | None:
        """The keys that start so, None when the listing failed."""
        status, answer = self._ask(
            lambda: self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._place + start)
        )
        if status != 200:
            return None
        return tuple(entry["Key"].removeprefix(self._place) for entry in answer.get("Contents", ()))

    def delete(self, key: str) -> bool:
        """Whether a deletion was answered as done."""
        status, _ = self._ask(lambda: self._client.delete_object(Bucket=self._bucket, Key=self._place + key))
        return status in (200, 204, 404)

    def _ask(self, request: Callable[[], dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        """The status, 0 when no whole answer came, and the answer."""
        try:
            answer = request()
        except self._botocore.ClientError as error:
            return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)), {}
        except (self._botocore.BotoCoreError, self._botocore.HTTPClientError, OSError):
            return 0, {}
        return int(answer["ResponseMetadata"]["HTTPStatusCode"]), answer


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise HarnessError(
            "probing an S3 endpoint needs boto3, which is missing; pip install '.[s3]' in a clone of marker-sim"
        ) from error

"""An S3 bucket as Storage, through botocore: one call is one request, without retries by botocore.

    answer                                     error of the seam
    404 NoSuchKey                              NotFound; PreconditionFailed for a put that expects a version
    412                                        PreconditionFailed
    409                                        Conflicted
    503 SlowDown and its kin, 429              Throttled
    other 5xx, 403, other 4xx, NoSuchBucket    StorageFailed, with the store's error
    no connection at all                       StorageFailed: nothing was sent
    time-out, broken connection                StorageTimeout: applied, never applied, or applied later

An ETag is the version. Keys longer than S3 accepts are PathRefused before a request is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from marker_sim.seams import (
    Capabilities,
    Condition,
    Conflicted,
    Content,
    NotFound,
    PathRefused,
    PreconditionFailed,
    StorageError,
    StorageFailed,
    StorageTimeout,
    Throttled,
    Unsupported,
)
from marker_sim.surroundings.requirements import importing

KEY_SIZE_MAX_BYTES = 1024
CONCURRENCY = 64
LATE_EFFECT_MS = 2_000  # How long a request may still be applied after its time-out.
_THROTTLES = frozenset(
    {
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequests",
        "BandwidthLimitExceeded",
    }
)


class StoreAnswered(StorageFailed):
    """An error reply of the store. status: HTTP."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class S3Storage:
    """The objects of a bucket below a prefix; safe to use from `concurrency` threads at the same time.

    endpoint: a URL, None for AWS itself. access_key, secret_key: None for the credentials that botocore finds.
    HarnessError when botocore (part of boto3) is not installed.
    """

    def __init__(
        self,
        endpoint: str | None,
        bucket: str,
        prefix: str = "",
        access_key: str | None = None,
        *,
        secret_key: str | None = None,
        region: str | None = None,
        connect_timeout_s: float = 1.0,
        read_timeout_s: float = 1.0,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.capabilities = Capabilities(
            scheme="s3",
            put_if_absent=True,
            put_if_unchanged=True,
            atomic_replace=True,
            host_lock=False,
            batched_markers=True,
            request_timeout_ms=int((connect_timeout_s + read_timeout_s) * 1000),
            late_effect_ms=LATE_EFFECT_MS,
        )
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        with importing("S3 storage"):
            import botocore.config
            import botocore.exceptions
            import botocore.session
        self._botocore = botocore.exceptions
        config = botocore.config.Config(
            # No retries by botocore: the reference decides which requests may be sent twice.
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=connect_timeout_s,
            read_timeout=read_timeout_s,
            max_pool_connections=concurrency,
            s3={"addressing_style": "path"} if endpoint else None,
            proxies={} if endpoint else None,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            tcp_keepalive=True,
        )
        session = botocore.session.Session()
        session.register_component("data_loader", _data_loader())
        self._client = session.create_client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=access_key,
            aws_secret_access_key=(secret_key or access_key) if access_key else secret_key,
            region_name=region or session.get_config_variable("region") or "us-east-1",
            config=config,
        )
        # Waiting for "100 Continue" would double the time-out of a store that does not answer.
        self._client.meta.events.register("before-sign.s3", _without_expectation)

    def check_bucket(self) -> None:
        """Raise NotFound or another StorageError unless the bucket exists and is accessible."""
        self._ask(self._bucket, lambda: self._client.head_bucket(Bucket=self._bucket))

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace atomically, if absent or if unchanged; returns the new ETag."""
        conditions: dict[str, str] = {}
        if condition is Condition.IF_ABSENT:
            conditions["IfNoneMatch"] = "*"
        if expected is not None:
            conditions["IfMatch"] = expected
        key = self._key(path)
        try:
            answer = self._ask(
                path, lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=data, **conditions)
            )
        except NotFound:
            # IfMatch on an object that does not exist.
            raise PreconditionFailed(path) from None
        version: str = answer["ETag"]
        return version

    def overwrite(self, path: str, data: bytes) -> None:
        """Raise: an object store cannot write in place."""
        raise Unsupported("s3 does not write in place: ask storage.capabilities first")

    def get(self, path: str) -> Content:
        """The object as it is now."""
        key = self._key(path)

        def ask() -> Content:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            with answer["Body"] as body:
                return Content(body.read(), answer["ETag"])

        content: Content = self._ask(path, ask)
        return content

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every key below a prefix, sorted, read page by page; concurrent puts and deletions may be included or not."""
        found: list[str] = []
        token: dict[str, str] = {}
        whole = self._prefix + prefix
        while True:
            ask = partial(self._client.list_objects_v2, Bucket=self._bucket, Prefix=whole, **token)
            page = self._ask(prefix, ask)
            found += [entry["Key"][len(self._prefix) :] for entry in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return tuple(sorted(found))
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is fine."""
        key = self._key(path)
        self._ask(path, lambda: self._client.delete_object(Bucket=self._bucket, Key=key))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _key(self, path: str) -> str:
        key = self._prefix + path
        if len(key.encode("utf-8", "surrogatepass")) > KEY_SIZE_MAX_BYTES:
            raise PathRefused(f"{path[:80]!r}... is longer than the {KEY_SIZE_MAX_BYTES} bytes of an S3 key")
        return key

    def _ask(self, path: str, call: Callable[[], Any]) -> Any:
        """The answer to a request, with errors of botocore turned into those of the seam."""
        known = self._botocore
        try:
            return call()
        except known.ClientError as error:
            raise _answered(path, error.response) from error
        except (known.EndpointConnectionError, known.ConnectTimeoutError, known.ProxyConnectionError) as error:
            raise StorageFailed(f"{path}: no connection to the store ({error})") from error
        except (known.NoCredentialsError, known.PartialCredentialsError) as error:
            raise StorageFailed(f"{path}: no credentials for the store ({error})") from error
        except known.ParamValidationError as error:
            raise PathRefused(f"{path}: {error}") from error
        except (known.HTTPClientError, known.BotoCoreError, OSError) as error:
            raise StorageTimeout(f"{path}: no whole answer ({error})") from error


@cache
def _data_loader() -> Any:
    """The service descriptions, loaded once a process; loading them takes four fifths of creating a client."""
    import botocore.session

    return botocore.session.Session().get_component("data_loader")


def _answered(path: str, response: dict[str, Any]) -> StorageError:
    """The seam's error for an error reply."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = f"{path}: the store answered {status} {code} {response.get('Error', {}).get('Message', '')}".rstrip()
    if code == "NoSuchBucket":
        return StoreAnswered(said, status)
    if status == 404:
        return NotFound(path)
    if status == 412:
        return PreconditionFailed(path)
    if status == 409:
        return Conflicted(path)
    if status == 429 or code in _THROTTLES:
        return Throttled(said)
    if status in (401, 403):
        return StoreAnswered(f"{said}; check the credentials and what they may do", status)
    return StoreAnswered(said, status)


def _without_expectation(request: Any, **_: Any) -> None:
    if "Expect" in request.headers:
        del request.headers["Expect"]

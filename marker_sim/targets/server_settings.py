"""Settings that a foreign server receives: batching, storage, and an S3 endpoint of the user's own.

The placeholders `{threads}` and `{interval_ms}` of its start command pass settings to a server. Without a placeholder
the number of `--batch-threads` counts, or Hudi's default, in every run and every server life.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from marker_sim.errors import UsageError
from marker_sim.options import MarkerOptions
from marker_sim.reading import either

if TYPE_CHECKING:
    from marker_sim.worlds.http.world import Endpoint

THREADS = (1, 2, 3, 20)
INTERVALS_MS = (10, 25, 50, 50, 120)
THREADS_MAX = 1_000
# Formats of a marker directory in requests, by storage; the first is the default.
FORMS = {"local": ("path", "file"), "s3": ("s3a", "s3", "s3n")}
ACCESS_KEY, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """The batching settings that plans choose from.

    threads: batch threads.
    intervals_ms: between batches.
    words: where each comes from.
    """

    threads: tuple[int, ...]
    intervals_ms: tuple[int, ...]
    words: dict[str, str]


def batching(start: str, batch_threads: int | None) -> Batching:
    """The settings by which a server started by `start` is judged. batch_threads: the user's option, or None."""
    default = MarkerOptions()

    def chosen(name: str, told: tuple[int, ...], hudis: int) -> tuple[tuple[int, ...], str]:
        if f"{{{name}}}" in start:
            return told, f"{either(sorted(set(told)))}, set by {{{name}}}"
        return (hudis,), f"{hudis}, Hudi's default, for --start has no {{{name}}}"

    threads, said = chosen("threads", THREADS, default.batch_num_threads)
    if batch_threads is not None:
        threads, said = (batch_threads,), f"{batch_threads}, said by --batch-threads"
    intervals_ms, interval = chosen("interval_ms", INTERVALS_MS, default.batch_interval_ms)
    words = {"batch threads": said, "batch interval in ms": interval}
    return Batching(threads=threads, intervals_ms=intervals_ms, words=words)


def parse_endpoint(options: Mapping[str, str], environment: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that the options name, None for the kit's own front; UsageError for the first mistake.

    options: those given, by their names without `--s3-`.
    """
    url, bucket = options.get("endpoint"), options.get("bucket")
    if url is None:
        for option in (f"--s3-{name.replace('_', '-')}" for name in options):
            raise UsageError(
                f"{option} was given without --s3-endpoint; write --s3-endpoint URL as well, or leave {option} out"
                " to use the S3 front that the kit starts"
            )
        return None
    from marker_sim.worlds.http.world import Endpoint

    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise UsageError(f"--s3-endpoint was given {url!r}; write http:// or https://, a host and a port, nothing more")
    if bucket is None:
        raise UsageError(f"--s3-endpoint {url} needs a bucket that the kit may write to; write --s3-bucket NAME")
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(f"--s3-bucket was given {bucket!r}; write the name of a bucket: 3 to 63 of a-z, 0-9, '.', '-'")
    key = options.get("access_key") or environment.get(ACCESS_KEY, "")
    secret = options.get("secret_key") or environment.get(SECRET_KEY, "")
    for option, variable, value in (("--s3-access-key", ACCESS_KEY, key), ("--s3-secret-key", SECRET_KEY, secret)):
        if not value:
            raise UsageError(f"--s3-endpoint {url} needs credentials; write {option} or set {variable}")
    return Endpoint(url=url.rstrip("/"), bucket=bucket, access_key=key, secret_key=secret)


def known_endpoint(stored: Mapping[str, str], environment: Mapping[str, str]) -> Endpoint:
    """The endpoint of a stored form, with keys from the environment, "" where it has none."""
    from marker_sim.worlds.http.world import Endpoint

    key, secret = environment.get(ACCESS_KEY, ""), environment.get(SECRET_KEY, "")
    return Endpoint(url=stored["url"], bucket=stored["bucket"], access_key=key, secret_key=secret)


def check_keys(endpoint: Endpoint) -> None:
    """UsageError for an endpoint without keys, such as a stored failure's when the environment has none."""
    if not endpoint.access_key or not endpoint.secret_key:
        raise UsageError(f"the S3 endpoint {endpoint.url} needs credentials; set {ACCESS_KEY} and {SECRET_KEY}")

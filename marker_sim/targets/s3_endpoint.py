"""Real storages for a foreign server, and a user's own S3 endpoint, checked at the edge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from marker_sim.errors import UsageError
from marker_sim.worlds.http.world import Endpoint

# How requests write a marker directory, by storage; the first is what is taken when nothing is said.
FORMS = {"local": ("path", "file"), "s3": ("s3a", "s3", "s3n")}
ACCESS_KEY, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def parse_endpoint(
    *,
    url: str | None,
    bucket: str | None,
    access_key: str | None,
    secret_key: str | None,
    environment: Mapping[str, str],
) -> Endpoint | None:
    """The endpoint that the options name, None for the kit's own front; UsageError for the first mistake."""
    if url is None:
        for option, value in (
            ("--s3-bucket", bucket), ("--s3-access-key", access_key), ("--s3-secret-key", secret_key)
        ):  # fmt: skip
            if value is not None:
                raise UsageError(
                    f"{option} was given without --s3-endpoint; write --s3-endpoint URL as well, or leave {option} out"
                    " to use the S3 front that the kit starts"
                )
        return None
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
    key, secret = access_key or environment.get(ACCESS_KEY, ""), secret_key or environment.get(SECRET_KEY, "")
    for option, variable, value in (("--s3-access-key", ACCESS_KEY, key), ("--s3-secret-key", SECRET_KEY, secret)):
        if not value:
            raise UsageError(f"--s3-endpoint {url} needs credentials; write {option} or set {variable}")
    return Endpoint(url=url.rstrip("/"), bucket=bucket, access_key=key, secret_key=secret)


def known_endpoint(stored: Mapping[str, str], environment: Mapping[str, str]) -> Endpoint:
    """The endpoint of a stored form, with keys from the environment, "" where it has none."""
    key, secret = environment.get(ACCESS_KEY, ""), environment.get(SECRET_KEY, "")
    return Endpoint(url=stored["url"], bucket=stored["bucket"], access_key=key, secret_key=secret)


def check_keys(endpoint: Endpoint) -> None:
    """UsageError for an endpoint without keys, such as a stored failure's when the environment has none."""
    if not endpoint.access_key or not endpoint.secret_key:
        raise UsageError(f"the S3 endpoint {endpoint.url} needs credentials; set {ACCESS_KEY} and {SECRET_KEY}")

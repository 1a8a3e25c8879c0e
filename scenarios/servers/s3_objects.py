"""Objects of one bucket by signed HTTP (AWS signature version 4), with the standard library alone.

A request is sent once, over a connection of its own: no idle connection fails, and no resend hides anything.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import time
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_S = 15.0  # Longer than any fault of storage, and than a busy machine needs.
PAGES_MAX = 1000


class Failed(OSError):
    """The store did not do it, or does not say whether it did."""


class Changed(Failed):
    """The object is not what the condition asked for (412, 409)."""


class S3Objects:
    """get and list read, put and delete write; etags are as the store gives them."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        parts = urlsplit(endpoint)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port or 80
        self._bucket = bucket
        self._region = os.environ.get("AWS_REGION", "us-east-1")
        self._key, self._secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and etag, None when there is no such object."""
        status, body, headers = self._send("GET", key)
        if status == 404:
            return None
        _expect(status, body, 200)
        return body, headers["etag"]

    def put(self, key: str, data: bytes, *, etag: str | None = None, absent: bool = False) -> str:
        """Replace an object, if it still has the etag or is absent; its new etag."""
        condition = {"if-none-match": "*"} if absent else {"if-match": etag} if etag else {}
        status, body, headers = self._send("PUT", key, data=data, headers=condition)
        if status in (404, 409, 412):
            raise Changed(f"{status} {key}")
        _expect(status, body, 200)
        return headers["etag"]

    def list(self, prefix: str) -> dict[str, str]:
        """Etags by key."""
        found: dict[str, str] = {}
        token = ""
        for _ in range(PAGES_MAX):
            query = {"list-type": "2", "prefix": prefix} | ({"continuation-token": token} if token else {})
            status, body, _ = self._send("GET", "", query=query)
            _expect(status, body, 200)
            tree = ElementTree.fromstring(body)
            space = tree.tag[: tree.tag.index("}") + 1] if tree.tag.startswith("{") else ""
            for item in tree.iter(f"{space}Contents"):
                found[item.findtext(f"{space}Key", "")] = item.findtext(f"{space}ETag", "")
            token = tree.findtext(f"{space}NextContinuationToken", "")
            if not token:
                return found
        raise Failed(f"{prefix} has too many pages")

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        status, body, _ = self._send("DELETE", key)
        _expect(status, body, 204, 200, 404)

    def _send(
        self,
        method: str,
        key: str,
        *,
        query: dict[str, str] | None = None,
        data: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes, dict[str, str]]:
        path = quote(f"/{self._bucket}/{key}" if key else f"/{self._bucket}")
        asked = urlencode(sorted((query or {}).items()), quote_via=quote, safe="")
        signed = self._sign(method, path, asked, data, dict(headers or {}))
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path + (f"?{asked}" if asked else ""), body=data, headers=signed)
            reply = connection.getresponse()
            return reply.status, reply.read(), {name.lower(): value for name, value in reply.getheaders()}
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"{method} {key}: {error!r}") from error
        finally:
            connection.close()

    def _sign(self, method: str, path: str, query: str, data: bytes, headers: dict[str, str]) -> dict[str, str]:
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = hashlib.sha256(data).hexdigest()
        headers |= {"host": f"{self._host}:{self._port}", "x-amz-date": now, "x-amz-content-sha256": digest}
        names = ";".join(sorted(headers))
        shown = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = "\n".join((method, path, query, shown, names, digest))
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{self._secret}".encode()
        for part in (now[:8], self._region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        credential = f"AWS4-HMAC-SHA256 Credential={self._key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "Authorization": credential, "Connection": "close"}


def _expect(status: int, body: bytes, *fine: int) -> None:
    if status not in fine:
        raise Failed(f"the store answered {status} {body[:120]!r}")

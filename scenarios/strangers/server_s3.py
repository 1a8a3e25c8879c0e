"""The markers of server.py in a bucket: MARKERS<n> objects that are replaced only if they are what was read."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from scenarios.strangers.server_files import MARKER_FILE, TYPE, Directory, Files, Markers


class Changed(Exception):
    """An object is not what was read."""


class Client:
    """Signed requests to one bucket; an OSError for every answer that decides nothing."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.host = urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc
        self.key, self.secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        self.region = os.environ.get("AWS_REGION", "us-east-1")

    def call(
        self,
        method: str,
        key: str = "",
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str, bytes]:
        """Status, ETag and body; 404 and 412 are answers, 409 is a 412, everything else from 300 on is an OSError."""
        path = quote(f"/{self.bucket}/{key}" if key else f"/{self.bucket}", safe="/-_.~")
        words = "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in sorted((query or {}).items()))
        connection = http.client.HTTPConnection(self.host, timeout=5)
        try:
            target = f"{path}?{words}" if words else path
            connection.request(method, target, body, {**self.signed(method, path, words, body), **(headers or {})})
            reply = connection.getresponse()
            data, status = reply.read(), reply.status
        except http.client.HTTPException as error:
            raise OSError(f"S3 does not answer: {error!r}") from error
        finally:
            connection.close()
        if status >= 300 and status not in (404, 409, 412):
            raise OSError(f"S3 answers {status}")
        return (412 if status == 409 else status), reply.headers.get("ETag", ""), data

    def signed(self, method: str, path: str, words: str, body: bytes) -> dict[str, str]:
        """The headers of a request that is signed by version 4."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": digest, "x-amz-date": now}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = f"{method}\n{path}\n{words}\n{lines}\n{names}\n{digest}"
        scope = f"{now[:8]}/{self.region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        secret = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        signature = hmac.new(secret, text.encode(), "sha256").hexdigest()
        credential = f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "Authorization": credential}

    def list(self, prefix: str) -> list[str]:
        """The keys below a prefix; a marker directory has fewer than the 1,000 of one answer."""
        _, _, data = self.call("GET", query={"list-type": "2", "prefix": prefix})
        return [element.text or "" for element in ElementTree.fromstring(data).iter() if element.tag.endswith("}Key")]


class Bucket(Markers):
    """Markers in S3; within one server one writes a directory at a time, between servers the conditions decide."""

    def __init__(self, root: str, threads: int, defect: int) -> None:
        super().__init__(root, threads, defect)
        self.client = Client(root.removeprefix("s3a://"))

    def key(self, directory: str) -> str:
        return directory.removeprefix(f"{self.root}/")

    def read(self, directory: str, state: Directory) -> Files:
        files: Files = {}
        prefix = f"{self.key(directory)}/"
        for key in self.client.list(prefix):
            if match := MARKER_FILE.fullmatch(key.removeprefix(prefix)):
                status, tag, data = self.client.call("GET", key)
                if status == 200:
                    files[int(match[1])] = data.decode().split("\n")[:-1], tag
        return files

    def flush(self, directory: str, state: Directory, names: list[str]) -> set[str]:
        while True:
            try:
                return super().flush(directory, state, names)
            except Changed:
                if self.defect == 14:
                    return set()

    def write(self, directory: str, state: Directory, index: int, names: list[str], version: str) -> None:
        key = self.key(directory)
        self.client.call("PUT", f"{key}/{TYPE}", body=b"TIMELINE_SERVER_BASED", headers={"If-None-Match": "*"})
        body = "".join(f"{name}\n" for name in names).encode()
        while True:
            condition = {"If-Match": version} if version else {"If-None-Match": "*"}
            status, _, _ = self.client.call("PUT", f"{key}/MARKERS{index}", body=body, headers=condition)
            if status == 200:
                return
            if self.defect != 13:
                raise Changed
            _, version, _ = self.client.call("HEAD", f"{key}/MARKERS{index}")

    def delete(self, directory: str) -> bool:
        state = self.state(directory)
        with state.flushing:
            prefix = f"{self.key(directory)}/"
            keys = self.client.list(prefix)
            files = [key for key in keys if MARKER_FILE.fullmatch(key.removeprefix(prefix))]
            for key in [*files, *(key for key in keys if key not in files)]:
                self.client.call("DELETE", key)
            return bool(files)

    @contextmanager
    def alone(self, directory: str) -> Iterator[None]:
        yield

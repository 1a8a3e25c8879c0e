"""The same as `ground`, on an object store: keys below a prefix are the server's, all others are canaries."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from properties.faces.storages import S3Storage
from properties.faces.worlds import Interceptor, Recorder, S3Front
from scenarios.fuzz.ground import Stored, names_in
from scenarios.fuzz.http_fuzz import Place
from scenarios.fuzz.http_inputs import INSTANTS, TABLES
from scenarios.fuzz.rules import Base
from scenarios.fuzz.subject import Subject, serve_command

BUCKET = "lake"
KEY = "fuzz"
_PLACE = re.compile(r"base/(?:.*?/)?\.hoodie/\.temp/[^/]+/(?P<inner>MARKERS(?:0|[1-9][0-9]*|\.type))\Z", re.DOTALL)


class BucketGround:
    """A bucket of the front, planted with tables, canaries beside the base and outside of it."""

    def __init__(self, front: S3Front) -> None:
        self._front = front
        self.base = Base(f"s3a://{BUCKET}/base", f"/{BUCKET}/base")
        self.out = f"s3a://{BUCKET}/outside"
        storage = S3Storage(front.endpoint, BUCKET, access_key=KEY, secret_key=KEY, read_timeout_s=30.0)
        for table in TABLES:
            storage.put(f"base/{table}/.hoodie/{INSTANTS[0]}.commit", b"{}")
            storage.put(f"base/{table}/dt=1/f_0-0-0_{INSTANTS[0]}.parquet", b"PAR1")
        for place in ("outside", "base-beside"):
            for instant in (*INSTANTS, "1"):
                storage.put(f"{place}/.hoodie/.temp/{instant}/MARKERS0", b"canary.marker.CREATE\n")
        self._before = self._others()

    def uri(self, directory: str) -> str:
        """A marker directory as requests spell it."""
        return self.base.uri + directory[len(self.base.path) :]

    def stored(self) -> Stored:
        """Read every marker directory below the base."""
        found: dict[str, dict[str, bytes]] = {}
        for key, data in self._front.objects("base/").items():
            if _PLACE.match(key):
                folder, _, name = key.rpartition("/")
                found.setdefault(f"/{BUCKET}/{folder}", {})[name] = data
        counted = {directory: names_in(files) for directory, files in found.items()}
        return {directory: count for directory, count in counted.items() if count}

    def touched(self) -> list[str]:
        """Keys that changed and are no marker files of the base."""
        now = self._others()
        keys = sorted(now.keys() | self._before.keys())
        return [f"{key} changed" for key in keys if now.get(key) != self._before.get(key)]

    def _others(self) -> dict[str, bytes]:
        return {key: data for key, data in self._front.objects().items() if not _PLACE.match(key)}


def s3(root: Path) -> Callable[[int], Place]:
    """Places on a bucket of the kit's own store, one after another."""

    def place(number: int) -> Place:
        front = S3Front(
            Interceptor(Recorder(), lambda trigger, call: None), bucket=BUCKET, writes_per_s=1e9, reads_per_s=1e9
        )
        front.__enter__()
        try:
            ground = BucketGround(front)
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
            environment = dict.fromkeys(names, KEY) | {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}
            command = serve_command(ground.base.uri, "--s3-endpoint", front.endpoint)
            subject = Subject(command, root / f"server-{number}.log", environment)
        except BaseException:
            front.close()
            raise

        def close() -> None:
            try:
                subject.end()
            finally:
                front.close()

        return Place(ground, subject, close)

    return place

"""S3: a marker directory is one object, replaced only if it is what was read (If-Match, If-None-Match).

Creates of one process take turns in a directory, so that only those of another server make them try again.

python one_key.py PORT s3a://BUCKET    serve; endpoint and keys from the environment
python one_key.py --names URI          print the names of a directory, for --reader
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Markers, key_of, serve_on_s3
from scenarios.servers.s3_objects import Changed, S3Objects

KEY = "all-markers.txt"
PAUSE_S = 0.005
TRIES = 400


class OneKey(Markers):
    """Keeps no state; an error is passed to the client, and nothing is sent again after one."""

    def __init__(self, bucket: str) -> None:
        self._objects = S3Objects(os.environ["AWS_ENDPOINT_URL"], bucket)
        self._turns: defaultdict[str, Lock] = defaultdict(Lock)

    def create(self, directory: str, name: str) -> bool:
        """Read, add, replace; from the beginning after a conflict."""
        with self._turns[directory]:
            return self._create(directory, name)

    def _create(self, directory: str, name: str) -> bool:
        for _ in range(TRIES):
            there = self._objects.get(_key(directory))
            data = there[0] if there else b""
            if name in data.decode().split("\n"):
                return False
            etag = there[1] if there else None
            try:
                self._objects.put(_key(directory), data + f"{name}\n".encode(), etag=etag, absent=etag is None)
            except Changed:
                time.sleep(PAUSE_S)
                continue
            return True
        raise TimeoutError("others were faster each time")

    def names(self, directory: str) -> list[str]:
        """Its lines."""
        there = self._objects.get(_key(directory))
        return there[0].decode().split("\n")[:-1] if there else []

    def delete(self, directory: str) -> bool:
        """One request."""
        there = self._objects.get(_key(directory)) is not None
        self._objects.delete(_key(directory))
        return there


def _key(directory: str) -> str:
    return f"{key_of(directory)}/{KEY}"


if __name__ == "__main__":
    serve_on_s3(OneKey)

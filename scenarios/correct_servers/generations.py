"""S3: an object for each marker, below a generation of its directory that one object names; a deletion is one PUT.

A create puts its marker if it is absent (If-None-Match) and then looks whether the generation is still the one that it
read; a deletion names a new generation, if nobody else did meanwhile (If-Match), and removes the objects of the old one
afterwards, as far as it gets. Nothing is locked and nothing is kept in memory.

python generations.py PORT s3a://BUCKET    serve; endpoint and keys from the environment
python generations.py --names URI          print the names of a directory, for --reader
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.plain_http import Markers, key_of, serve_on_s3
from scenarios.servers.s3_objects import Changed, Failed, S3Objects

FIRST = "first"  # The generation of a directory that was never deleted.
KEY_MAX = 400  # Bytes of a name in a key; the object of a longer one has it as its content.
TRIES = 100


class Generations(Markers):
    """An error is passed to the client, and nothing is sent again after one."""

    def __init__(self, bucket: str) -> None:
        self._objects = S3Objects(os.environ["AWS_ENDPOINT_URL"], bucket)

    def create(self, directory: str, name: str) -> bool:
        """Put, and again if the directory was deleted meanwhile."""
        generation = self._generation(directory)[0]
        for _ in range(TRIES):
            new = self._put(_marker(directory, generation, name), name)
            before, generation = generation, self._generation(directory)[0]
            if before == generation:
                return new
        raise TimeoutError("the directory was deleted each time")

    def _put(self, key: str, name: str) -> bool:
        for _ in range(TRIES):
            try:
                self._objects.put(key, name.encode(), absent=True)
            except Changed:  # It is there, or another PUT goes on.
                if self._objects.get(key) is not None:
                    return False
            else:
                return True
        raise TimeoutError("others were faster each time")

    def names(self, directory: str) -> list[str]:
        """Of one generation, if it is still the one that counts when they were read."""
        generation = self._generation(directory)[0]
        for _ in range(TRIES):
            found = self._names(directory, generation)
            before, generation = generation, self._generation(directory)[0]
            if before == generation:
                return found
        raise TimeoutError("the directory was deleted each time")

    def _names(self, directory: str, generation: str) -> list[str]:
        found = []
        for key in self._objects.list(_home(directory, generation)):
            kind, _, word = key.rpartition("/")[2].partition("-")
            there = (unquote(word).encode(), "") if kind == "n" else self._objects.get(key)
            if there is not None:
                found.append(there[0].decode())
        return found

    def delete(self, directory: str) -> bool:
        """Whoever names a new generation has deleted; so has whom another one forestalled."""
        generation, etag = self._generation(directory)
        there = bool(self._objects.list(_home(directory, generation)))
        try:
            self._objects.put(_pointer(directory), uuid4().hex.encode(), etag=etag, absent=etag is None)
        except Changed:
            if self._generation(directory)[0] == generation:
                raise
            return there
        with suppress(Failed):
            for key in self._objects.list(_home(directory, generation)):
                self._objects.delete(key)
        return there

    def _generation(self, directory: str) -> tuple[str, str | None]:
        there = self._objects.get(_pointer(directory))
        return (there[0].decode(), there[1]) if there else (FIRST, None)


def _pointer(directory: str) -> str:
    return f"{key_of(directory)}/generation"


def _home(directory: str, generation: str) -> str:
    return f"{key_of(directory)}/of-{generation}/"


def _marker(directory: str, generation: str, name: str) -> str:
    word = quote(name, safe="")
    key = f"n-{word}" if len(word) <= KEY_MAX else f"h-{sha256(name.encode()).hexdigest()}"
    return _home(directory, generation) + key


if __name__ == "__main__":
    serve_on_s3(Generations)

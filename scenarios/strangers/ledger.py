"""A correct marker store for --sut: names in a few objects, written in batches, each replaced only if it is unchanged.

`faulty_*.py` have classes that are this one but for a single mistake. README.md says which mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import check_marker_name, data_path, is_append
from marker_sim.seams import Condition, Mailbox, NotFound, PreconditionFailed, StorageError


class Asked(NamedTuple):
    """A create that waits for its batch."""

    name: str
    identity: str
    answer: Mailbox


class Ledger:
    """One object `bucket-<n>` for the names of one hash: a line that is unique to its writing, then a name a line."""

    buckets = 4

    def __init__(self, context: Context) -> None:
        self.storage, self.runtime = context.storage, context.runtime
        self.can = context.storage.capabilities
        self.directory = context.directory
        self.waiting: dict[int, list[Asked]] = {}
        self.busy: set[int] = set()
        self.creators: dict[str, str] = {}

    def create(self, name: str, identity: str = "") -> Created:
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        bucket = crc32(name.encode()) % self.buckets
        asked = Asked(name, identity, self.runtime.mailbox())
        self.waiting.setdefault(bucket, []).append(asked)
        if bucket not in self.busy:
            self.busy.add(bucket)
            self.start(bucket)
        return self.wait(asked)

    def wait(self, asked: Asked) -> Created:
        answer = asked.answer.get()
        if isinstance(answer, StorageError):
            raise answer
        return Created.CREATED if answer is Created.CREATED else Created.EXISTS

    def start(self, bucket: int) -> None:
        """Begin to write what waits for a bucket, and what comes meanwhile."""
        self.runtime.spawn("flush", lambda: self.flush_all(bucket))

    def flush_all(self, bucket: int) -> None:
        while batch := self.take(bucket):
            try:
                self.settle(batch, self.flush(bucket, [asked.name for asked in batch]))
            except StorageError as error:
                self.fail(batch, error)
        self.busy.discard(bucket)

    def take(self, bucket: int) -> list[Asked]:
        return self.waiting.pop(bucket, [])

    def settle(self, batch: list[Asked], new: set[str]) -> None:
        """Answer a batch that is stored: the first to ask for a new name created it, and so did its resends."""
        for asked in batch:
            if asked.name in new:
                new.discard(asked.name)
                self.creators[asked.name] = asked.identity
                asked.answer.put(Created.CREATED)
            else:
                same = asked.identity and self.creators.get(asked.name) == asked.identity
                asked.answer.put(Created.CREATED if same else Created.EXISTS)

    def fail(self, batch: list[Asked], error: StorageError) -> None:
        for asked in batch:
            asked.answer.put(error)

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        """Store names and say which of them were not there."""
        path = f"{self.directory}/bucket-{bucket}"
        with self.runtime.lock(path):
            while True:
                known, version = self.read(path)
                new = self.fresh(names, known)
                try:
                    if new:
                        self.store(path, [*known, *new], version)
                    return set(new)
                except (PreconditionFailed, NotFound):
                    self.runtime.sleep(1)

    def fresh(self, names: list[str], known: Iterable[str]) -> list[str]:
        there = set(known)
        return [name for name in dict.fromkeys(names) if name not in there]

    def read(self, path: str) -> tuple[list[str], str | None]:
        """The names of a bucket and its version, None where there is none."""
        try:
            data, version = self.storage.get(path)
        except NotFound:
            return [], None
        return self.decode(data), version

    def decode(self, data: bytes) -> list[str]:
        return data.decode().split("\n")[1:-1]

    def store(self, path: str, names: list[str], version: str | None) -> None:
        """Replace a bucket that is what was read: under the lock of the host, or by a condition."""
        data = "".join(f"{line}\n" for line in (self.runtime.unique_id(), *names)).encode()
        if self.can.host_lock:
            self.storage.put(path, data)
        elif version is None:
            self.storage.put(path, data, Condition.IF_ABSENT)
        else:
            self.storage.put(path, data, expected=version)

    def paths(self) -> list[str]:
        """The buckets that are stored."""
        bucket = re.compile(re.escape(self.directory) + r"/bucket-\d+")
        return [path for path in self.storage.list(f"{self.directory}/") if bucket.fullmatch(path)]

    def list_all(self) -> tuple[str, ...]:
        return tuple(name for path in self.paths() for name in self.read(path)[0])

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple(sorted({data_path(name) for name in self.list_all() if not is_append(name)}))

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple(sorted({data_path(name) for name in self.list_all() if is_append(name)}))

    def exists(self) -> bool:
        return bool(self.paths())

    def delete(self) -> bool:
        there = self.exists()
        for path in self.storage.list(f"{self.directory}/"):
            with self.runtime.lock(path):
                self.remove(path)
        self.creators.clear()
        return there

    def remove(self, path: str) -> None:
        self.storage.delete(path)

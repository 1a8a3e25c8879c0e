"""Six marker stores for --sut, each with one mistake in what it remembers or waits for. README.md has the table."""

from __future__ import annotations

from marker_sim.markers.store import Context, Created
from marker_sim.names import data_path
from scenarios.strangers.ledger import Asked, Ledger


class StripsLines(Ledger):
    """Takes white space off the ends of the lines that it reads, also when it writes them again."""

    def decode(self, data: bytes) -> list[str]:
        return [line.strip() for line in super().decode(data)]


class BucketIsThere(Ledger):
    """A name that this process stored is answered "exists" when its bucket is there, whoever wrote the bucket since."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.stored: set[str] = set()

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        if self.stored.issuperset(names) and self.storage.list(f"{self.directory}/bucket-{bucket}"):
            return set()
        new = super().flush(bucket, names)
        self.stored.update(names)
        return new

    def delete(self) -> bool:
        there = super().delete()
        self.stored.clear()
        return there


class ResendFromMemory(Ledger):
    """A resend of the request that created a marker is answered without a look at storage."""

    def create(self, name: str, identity: str = "") -> Created:
        if identity and self.creators.get(name) == identity:
            return Created.CREATED
        return super().create(name, identity)


class ListingKept(Ledger):
    """Listings are kept for 300 ms; a create or deletion drops them when it begins, and not when it is done."""

    kept: tuple[str, ...] = ()
    until_ms = 0.0

    def create(self, name: str, identity: str = "") -> Created:
        self.until_ms = 0.0
        return super().create(name, identity)

    def list_all(self) -> tuple[str, ...]:
        if self.runtime.now_ms() >= self.until_ms:
            self.kept = super().list_all()
            self.until_ms = self.runtime.now_ms() + 300
        return self.kept

    def delete(self) -> bool:
        self.until_ms = 0.0
        return super().delete()


class AppendAnywhere(Ledger):
    """Takes a marker for one of a log file when APPEND is anywhere in its name, also in the partition."""

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple(sorted({data_path(name) for name in self.list_all() if "APPEND" not in name}))

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple(sorted({data_path(name) for name in self.list_all() if "APPEND" in name}))


class LateIsExists(Ledger):
    """Who waited 2 s for a batch is told "exists": somebody is writing the name, after all."""

    def wait(self, asked: Asked) -> Created:
        answer = asked.answer.get(2000)
        if answer is None:
            return Created.EXISTS
        asked.answer.put(answer)
        return super().wait(asked)

"""Fourteen marker stores for --sut, each with one mistake in how it writes and deletes. README.md has the table."""

from __future__ import annotations

from marker_sim.markers.store import Context, Created
from marker_sim.names import data_path
from marker_sim.seams import (
    Condition,
    Conflicted,
    NotFound,
    PreconditionFailed,
    StorageError,
    StorageFailed,
    StorageTimeout,
    Throttled,
)
from scenarios.strangers.ledger import Asked, Ledger


class OwnWriteAssumed(Ledger):
    """A put that timed out is tried again later; "it changed" is then taken for the success of the first try."""

    def store(self, path: str, names: list[str], version: str | None) -> None:
        try:
            super().store(path, names, version)
        except StorageTimeout:
            self.runtime.sleep(self.can.late_effect_ms)
            try:
                super().store(path, names, version)
            except PreconditionFailed:
                return


class LazyDelete(Ledger):
    """A deletion leaves a gravestone and sweeps in the background; who waited 500 ms for the sweep takes it away."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grave = f"{self.directory}/deleted"

    def paths(self) -> list[str]:
        return [] if self.grave in self.storage.list(self.grave) else super().paths()

    def delete(self) -> bool:
        if not self.paths():
            return False
        self.storage.put(self.grave, b"")
        self.creators.clear()
        self.runtime.spawn("sweep", self.sweep)
        return True

    def sweep(self) -> None:
        try:
            for path in self.storage.list(f"{self.directory}/bucket-"):
                with self.runtime.lock(path):
                    self.remove(path)
            self.remove(self.grave)
        except StorageError:
            return

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        for _ in range(10):
            if self.grave not in self.storage.list(self.grave):
                break
            self.runtime.sleep(50)
        else:
            self.remove(self.grave)
        return super().flush(bucket, names)


class GapInLog(Ledger):
    """A log of numbered objects that is read up to the first number that is missing; a failed put uses one up."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.next: dict[int, int] = {}

    def replay(self, bucket: int) -> tuple[list[str], int]:
        names: list[str] = []
        number = 0
        while True:
            more, version = self.read(f"{self.directory}/log-{bucket}/{number}")
            if version is None:
                return names, number
            names += more
            number += 1

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        with self.runtime.lock(f"{self.directory}/log-{bucket}"):
            while True:
                known, end = self.replay(bucket)
                if not (new := self.fresh(names, known)):
                    return set()
                number = max(self.next.get(bucket, 0), end)
                self.next[bucket] = number + 1
                data = "".join(f"{line}\n" for line in (self.runtime.unique_id(), *new)).encode()
                try:
                    self.storage.put(f"{self.directory}/log-{bucket}/{number}", data, Condition.IF_ABSENT)
                    return set(new)
                except PreconditionFailed:
                    self.runtime.sleep(1)

    def list_all(self) -> tuple[str, ...]:
        return tuple(name for bucket in range(self.buckets) for name in self.replay(bucket)[0])

    def exists(self) -> bool:
        return bool(self.list_all())

    def delete(self) -> bool:
        self.next.clear()
        return super().delete()


class StringOrder(Ledger):
    """A log of numbered objects whose next number follows the last one in the order of strings: after 9 comes 10."""

    buckets = 1

    def segments(self) -> list[str]:
        return [path for path in self.storage.list(f"{self.directory}/log-") if path.rpartition("-")[2].isdigit()]

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        for _ in range(40):
            segments = self.segments()
            known = [name for path in segments for name in self.read(path)[0]]
            if not (new := self.fresh(names, known)):
                return set()
            number = int(max(segments).rpartition("-")[2]) + 1 if segments else 0
            data = "".join(f"{line}\n" for line in (self.runtime.unique_id(), *new)).encode()
            try:
                self.storage.put(f"{self.directory}/log-{number}", data, Condition.IF_ABSENT)
                return set(new)
            except PreconditionFailed:
                self.runtime.sleep(5)
        raise Conflicted(f"{self.directory} is written by too many")

    def list_all(self) -> tuple[str, ...]:
        return tuple(name for path in self.segments() for name in self.read(path)[0])

    def exists(self) -> bool:
        return bool(self.segments())


class DeletingForEver(Ledger):
    """Creates wait while the directory is being deleted; a deletion that fails is never over."""

    deleting = False

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        while self.deleting:
            self.runtime.sleep(20)
        return super().flush(bucket, names)

    def delete(self) -> bool:
        self.deleting = True
        there = super().delete()
        self.deleting = False
        return there


class PatienceGrows(Ledger):
    """Waits after each 503, twice as long as the time before; no success makes the waits short again."""

    pause_ms = 200.0

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        while True:
            try:
                return super().flush(bucket, names)
            except Throttled:
                self.runtime.sleep(self.pause_ms)
                self.pause_ms *= 2


class OneTry(Ledger):
    """One worker writes for all directories of a process, and an error ends the round for those that come after."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.todo: list[tuple[Ledger, int]] = context.process.setdefault("todo", [])
        self.at_work: set[str] = context.process.setdefault("at work", set())

    def start(self, bucket: int) -> None:
        self.todo.append((self, bucket))
        if not self.at_work:
            self.at_work.add("worker")
            self.runtime.spawn("worker", self.work)

    def work(self) -> None:
        while self.todo:
            jobs = [(store, bucket, store.take(bucket)) for store, bucket in self.todo]
            self.todo.clear()
            for store, bucket, _ in jobs:
                store.busy.discard(bucket)
            try:
                while jobs:
                    store, bucket, batch = jobs[0]
                    store.settle(batch, store.flush(bucket, [asked.name for asked in batch]))
                    jobs.pop(0)
            except StorageError as error:
                for store, _, batch in jobs:
                    store.fail(batch, error)
        self.at_work.clear()


class AbsentOnError(Ledger):
    """A bucket that cannot be read is taken for one that is not there."""

    def read(self, path: str) -> tuple[list[str], str | None]:
        try:
            return super().read(path)
        except StorageFailed:
            return [], None


class LeaseWithoutFence(Ledger):
    """Where there is no lock of the host, writers take turns by a lease of 1 s; the put itself is unconditional."""

    def flush(self, bucket: int, names: list[str]) -> set[str]:
        if self.can.host_lock:
            return super().flush(bucket, names)
        path = f"{self.directory}/lease-{bucket}"
        with self.runtime.lock(path):
            lease = self.acquire(path)
            try:
                return super().flush(bucket, names)
            finally:
                self.release(path, lease)

    def acquire(self, path: str) -> bytes:
        while True:
            lease = f"{self.runtime.unique_id()} {self.runtime.now_ms() + 1000}".encode()
            try:
                self.storage.put(path, lease, Condition.IF_ABSENT)
                return lease
            except PreconditionFailed:
                pass
            try:
                held, version = self.storage.get(path)
                if float(held.split()[1]) < self.runtime.now_ms():
                    self.storage.put(path, lease, expected=version)
                    return lease
            except (NotFound, PreconditionFailed):
                pass
            self.runtime.sleep(20)

    def release(self, path: str, lease: bytes) -> None:
        try:
            if self.storage.get(path).data == lease:
                self.storage.delete(path)
        except StorageError:
            return

    def store(self, path: str, names: list[str], version: str | None) -> None:
        data = "".join(f"{line}\n" for line in (self.runtime.unique_id(), *names)).encode()
        self.storage.put(path, data)


class ChunkOffByOne(Ledger):
    """Writes at most four names at a time, and the fifth of those that wait is forgotten."""

    buckets = 1
    at_once = 4

    def take(self, bucket: int) -> list[Asked]:
        waiting = super().take(bucket)
        if rest := waiting[self.at_once + 1 :]:
            self.waiting[bucket] = rest
        return waiting[: self.at_once]


class DeletesTheNeighbour(Ledger):
    """A deletion takes all buckets whose path begins as the directory does: that of 001 those of 0010 as well."""

    def delete(self) -> bool:
        there = self.exists()
        for path in self.storage.list(self.directory):
            with self.runtime.lock(path):
                self.remove(path)
        self.creators.clear()
        return there


class DeletesAgain(Ledger):
    """A delete of an object that timed out is sent again at once; the first one may still come, and meet new names."""

    def remove(self, path: str) -> None:
        for _ in range(2):
            try:
                return super().remove(path)
            except StorageTimeout:
                continue
        return super().remove(path)


class DataFileIsName(Ledger):
    """Two markers of one data file, of different types, are taken for the same."""

    buckets = 1

    def fresh(self, names: list[str], known: object) -> list[str]:
        there = {data_path(name) for name in known} if isinstance(known, list) else set()
        new: dict[str, str] = {}
        for name in names:
            if data_path(name) not in there:
                new.setdefault(data_path(name), name)
        return list(new.values())


class FirstHasTheError(Ledger):
    """When a batch cannot be written, the first who asked for a name is told so; the others read "exists"."""

    def fail(self, batch: list[Asked], error: StorageError) -> None:
        told: set[str] = set()
        for asked in batch:
            asked.answer.put(Created.EXISTS if asked.name in told else error)
            told.add(asked.name)

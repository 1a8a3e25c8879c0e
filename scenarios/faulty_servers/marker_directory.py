"""Where the timeline server in Python keeps markers: batches, files in Hudi's format, locks.

A lock on each marker directory, and the identity of its files, make several servers on one storage see each other's
changes. `defect` names the one place that is wrong (README.md); "" is correct.
"""

import fcntl
import os
import re
import shutil
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

TYPE_FILE, TYPE_TEXT = "MARKERS.type", b"TIMELINE_SERVER_BASED"
TEMPORARY = re.compile(r"\.(MARKERS\.type|MARKERS[0-9]+)\.tmp")

Signature = dict[str, tuple[int, ...]]


@dataclass(slots=True)
class Create:
    """One create that waits for its batch."""

    name: str
    reply: Callable[[bool], None] | None = None
    first: bool = False
    created: bool = False
    error: str = ""
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says."""

    root: str
    threads: int
    interval_s: float
    defect: str


@contextmanager
def locked(path: str, *, make: bool = False) -> Iterator[bool]:
    """Holds the lock of a marker directory, which every server of this storage takes; false if there is none."""
    while True:
        if make:
            os.makedirs(path, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if make:
                continue
            yield False
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if is_still(path, handle):
                yield True
                return
        finally:
            os.close(handle)


def is_still(path: str, handle: int) -> bool:
    """Whether the path leads to the opened directory: it may have been deleted while we waited for its lock."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def sync_directory(path: str) -> None:
    """Makes the entries of a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class MarkerDirectory:
    """One marker directory: the creates that wait, and what its files hold."""

    def __init__(self, path: str, settings: Settings) -> None:
        self.path = path
        self.settings = settings
        self.defect = settings.defect
        self.queue_lock = threading.Lock()
        self.queue: list[Create] = []
        self.dispatching = False
        self.files_lock = threading.Lock()
        self.files: dict[int, list[str]] = {}
        self.known: set[str] = set()
        self.signature: Signature | None = None
        self.next_index = 0
        self.batches = 0
        self.made = self.recovered = False
        self.written: set[str] = set()

    def submit(self, create: Create) -> None:
        """Queues a create; its event is set once it is decided."""
        with self.queue_lock:
            if self.defect == "decided-when-queued":
                create.first = create.name not in self.known and all(other.name != create.name for other in self.queue)
            self.queue.append(create)
            if not self.dispatching:
                self.dispatching = True
                threading.Thread(target=self._dispatch, daemon=True).start()

    def _dispatch(self) -> None:
        while True:
            time.sleep(self.settings.interval_s)
            with self.queue_lock:
                batch, self.queue = self.queue, []
                if not batch:
                    self.dispatching = False
                    return
            try:
                answers = self._store(batch)
            except Exception as error:
                for create in batch:
                    create.error = f"the batch failed: {error}"
                    create.done.set()
                continue
            for create, created in zip(batch, answers, strict=True):
                create.created = created
                if create.reply is not None:  # A client that has hung up ends this thread.
                    create.reply(created)
                create.done.set()

    def _store(self, batch: list[Create]) -> list[bool]:
        """Writes the new names of a batch; says for each create whether it is the one that created its name."""
        if self.defect == "written-without-lock":
            return self._store_with_short_lock(batch)
        there = os.path.isdir(self.path)
        with self.files_lock, locked(self.path, make=self._makes()) as held:
            if not held:
                raise FileNotFoundError(self.path)
            answers, fresh = self._decide(batch)
            if fresh:
                if self.defect != "marker-file-first" and not (self.defect == "type-with-new-directory" and there):
                    self._write_type()
                index = self._take_index()
                self._append(index, fresh)
                if self.defect == "marker-file-first":
                    self._write_type()
                self.batches += 1
                if self.defect == "compacted-file-by-file" and self.batches % self.settings.threads == 0:
                    self._compact()
            return answers

    def _makes(self) -> bool:
        """Whether a batch makes the directory where it is missing."""
        makes = not (self.defect == "made-remembered" and self.made)
        self.made = True
        return makes

    def _compact(self) -> None:
        """Move all names to MARKERS0, file by file."""
        for index in sorted(self.files)[1:]:
            self._append(0, self.files.pop(index))
            os.remove(f"{self.path}/MARKERS{index}")
        self.signature = None

    def _store_with_short_lock(self, batch: list[Create]) -> list[bool]:
        with self.files_lock, locked(self.path, make=True):
            answers, fresh = self._decide(batch)
            index = self._take_index()
            lines = [*self.files.get(index, ()), *fresh]
            self._write_type()
        if fresh:
            # Other requests need not wait for the disk.
            try:
                self._replace(f"MARKERS{index}", self._encode(lines))
            except FileNotFoundError:
                os.makedirs(self.path, exist_ok=True)
                self._write_type()
                self._replace(f"MARKERS{index}", self._encode(lines))
            self.signature = None
        return answers

    def _decide(self, batch: list[Create]) -> tuple[list[bool], list[str]]:
        """The answer to each create of a batch, and the names that have to be written for these answers."""
        self._refresh()
        answers: list[bool] = []
        fresh: dict[str, str] = {}
        for create in batch:
            key = self._key(create.name)
            answers.append(create.first or (key not in self.known and key not in fresh))
            if key not in self.known and key not in fresh:
                fresh[key] = create.name
            elif self.defect == "duplicate-answered-early" and key in fresh:
                create.done.set()
        return answers, list(fresh.values())

    def _take_index(self) -> int:
        index = self.next_index
        self.next_index = (index + 1) % self.settings.threads
        if self.defect == "first-index-once" and self.batches:
            return 1 + (self.batches - 1) % self.settings.threads
        return index

    def _append(self, index: int, fresh: list[str]) -> None:
        lines = [*self.files.get(index, ()), *fresh]
        self.signature = None
        self._replace(f"MARKERS{index}", self._encode(lines))
        self.files[index] = lines
        self.written.add(f"MARKERS{index}")
        self.known.update(self._key(name) for name in fresh)
        self.signature = self._current_signature()

    def _key(self, name: str) -> str:
        return unicodedata.normalize("NFC", name) if self.defect == "nfc-compared" else name

    @staticmethod
    def _encode(lines: list[str]) -> bytes:
        return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")

    def _write_type(self) -> None:
        try:
            with open(f"{self.path}/{TYPE_FILE}", "rb") as file:
                if file.read() == TYPE_TEXT:
                    return
        except FileNotFoundError:
            pass
        self._replace(TYPE_FILE, TYPE_TEXT)

    def _replace(self, name: str, content: bytes) -> None:
        """Replaces a file atomically and durably."""
        temporary = f"{self.path}/.{name}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            if self.defect == "renamed-before-flush":
                os.rename(temporary, f"{self.path}/{name}")
            written = os.write(handle, content)
            while written < len(content) and self.defect != "short-write-whole":
                written += os.write(handle, content[written:])
            os.fsync(handle)
        finally:
            os.close(handle)
        if self.defect == "removed-before-rename" and os.path.isfile(f"{self.path}/{name}"):
            os.remove(f"{self.path}/{name}")
        if self.defect != "renamed-before-flush":
            os.rename(temporary, f"{self.path}/{name}")
        sync_directory(self.path)

    def _current_signature(self) -> Signature:
        """Identifies the marker files as they are now; every rewrite makes a new file."""
        pattern = r"MARKERS[0-9]" if self.defect == "two-digit-index-unread" else r"MARKERS[0-9]+"
        try:
            with os.scandir(self.path) as entries:
                files = [each for each in entries if re.fullmatch(pattern, each.name) and each.is_file()]
                found = {each.name: each.stat() for each in files}
        except OSError:
            if self.defect == "listing-error-is-empty":
                return {}
            raise
        if self.defect == "size-is-identity":
            return {name: (status.st_size,) for name, status in found.items()}
        if self.defect == "second-is-identity":
            return {name: (int(status.st_mtime),) for name, status in found.items()}
        signature: Signature = {name: (s.st_ino, s.st_size, s.st_mtime_ns) for name, s in found.items()}
        return signature | {"": (os.stat(self.path).st_ino,)}

    def _refresh(self) -> None:
        """Reads the files unless they are those that were read or written last."""
        if self.defect == "temporary-adopted" and not self.recovered:
            self.recovered = True
            for left in [name for name in os.listdir(self.path) if TEMPORARY.fullmatch(name)]:
                os.replace(f"{self.path}/{left}", f"{self.path}/{left[1 : -len('.tmp')]}")
        signature = self._current_signature()
        if signature == self.signature:
            return
        files: dict[int, list[str]] = {}
        for name in sorted(signature):
            if name:
                with open(f"{self.path}/{name}", "rb") as file:
                    # What follows the last line end was torn off by a crash and was never answered.
                    lines = file.read().decode(errors="surrogateescape").split("\n")[:-1]
                files[int(name.removeprefix("MARKERS"))] = lines
        self.files = files
        self.known = {self._key(line) for lines in files.values() for line in lines}
        self.signature = signature

    def names(self) -> list[str]:
        """All names, sorted."""
        if self.defect == "compacted-file-by-file":
            return self._names_unlocked()
        with self.files_lock, locked(self.path) as there:
            if not there:
                return []
            self._refresh()
            return sorted({line for lines in self.files.values() for line in lines})

    def _names_unlocked(self) -> list[str]:
        names: set[str] = set()
        for name in sorted(os.listdir(self.path)) if os.path.isdir(self.path) else ():
            if re.fullmatch("MARKERS[0-9]+", name):
                with suppress(FileNotFoundError), open(f"{self.path}/{name}", "rb") as file:
                    names.update(file.read().decode(errors="surrogateescape").split("\n")[:-1])
        return sorted(names)

    def delete(self) -> bool:
        """Removes the directory with all that is in it; false if there was none."""
        with self.files_lock, locked(self.path) as there:
            self.signature = None
            if there and self.defect == "own-files-deleted":
                return self._delete_written()
            if there:
                shutil.rmtree(self.path)
                sync_directory(os.path.dirname(self.path))
            self.known = set()
            return there

    def _delete_written(self) -> bool:
        for name in self.written:
            os.remove(f"{self.path}/{name}")
        there = bool(self.written)
        self.written.clear()
        if not self._current_signature().keys() - {""}:
            shutil.rmtree(self.path)
        return there

    def exists(self) -> bool:
        """Whether the directory is there."""
        with self.files_lock, locked(self.path) as there:
            return there

"""The kit's own look at a marker directory on a local file system, made so that no writer in place is accused falsely.

A look takes a mark (the index of the last event), then reads every marker file, and reports what it saw as `observe
file` for what changed and one `observe snapshot` caused by the mark. It counts only at rest: the same files with the
same inode, size and modification time before and after, all bytes read, the last line of each terminated. When an
answered name is missing even so, the look is repeated for `SETTLE_S`: a writer in place that the scheduler holds at a
line's end looks the same as a file at rest.

What is missing, or torn, is believed only while no server has a marker file of the directory open for writing.

Two looks need no rest. A dead server writes nothing. A stopped one has to be caught between two writes: a file that a
process of it has open for writing, or one that was there and is gone, decides nothing and the look is given up.

Limits: Linux (/proc) tells who writes; side files such as `.MARKERS3.crc` and temporary files are not read.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISREG

from marker_sim.errors import HarnessError
from marker_sim.names import (
    TYPE_BATCHED,
    TYPE_FILE,
    MarkerDirectory,
    decode_names,
    is_marker_name,
    marker_file_index,
    stored_names,
)
from marker_sim.worlds.http.snapshot_recorder import (
    READER_TIMEOUT_S,
    STOPPED_TIMEOUT_S,
    Snapshot,
    SnapshotRecorder,
    run_reader,
)
from marker_sim.worlds.recorder import Recorder

SETTLE_S = 0.35
TORN_S = 0.15
GIVE_UP_S = 2.0
RETRY_S = 0.002
RAW_SHARE = 0.1
STOPPED_WAIT_S = 0.05
_Signature = dict[str, tuple[int, int, int]]


class LocalReader:
    """Reads the marker directories of one run. Safe to call from any thread; readings come one after another.

    writers: the processes of all servers that live.
    command: the user's reader, "" for Hudi's format.
    """

    live = True

    def __init__(
        self, recorder: Recorder, storage: Path, writers: Callable[[], list[int]], command: str, rng: random.Random
    ) -> None:
        self.recorder = recorder
        self.lock = threading.Lock()
        self.looks = 0
        self.given_up = 0
        self.layout = "names" if command else "hudi"
        self._storage = storage
        self._command = command
        self._rng = rng
        self._writers = writers
        self._since: dict[str, tuple[tuple[int, int, int], float]] = {}
        self._told = SnapshotRecorder(recorder, self.layout)
        self._short: dict[str, bytes | None] = {}
        self._excused: dict[str, set[str]] = {}

    def look(self, place: MarkerDirectory) -> bool:
        """Read a directory while servers live; False when it was not at rest within `GIVE_UP_S`, or all died."""
        if self._cannot_read(place):
            return False
        began = time.monotonic()
        lasting: frozenset[str] | None = None
        while time.monotonic() - began < GIVE_UP_S and self._writers():
            with self.lock:
                mark, seen = self._scan(place, at_rest=True)
                if seen is not None:
                    missing = self._missing(place, seen)
                    lasting = missing if lasting is None else lasting & missing
                    if not missing or (missing <= lasting and self._settled(place, time.monotonic() - began)):
                        self._excused.setdefault(place.path, set()).update(missing)
                        self._tell(place, seen, mark)
                        return True
            time.sleep(RETRY_S if not lasting else RETRY_S * 10)
        self.given_up += 1
        return False

    def look_at_dead(self, place: MarkerDirectory) -> None:
        """Look when no server lives: what is there now is what was kept, torn lines included."""
        if self._cannot_read(place):
            return
        with self.lock:
            mark, seen = self._scan(place, at_rest=False)
            assert seen is not None
            self._excused.setdefault(place.path, set()).update(self._missing(place, seen))
            self._tell(place, seen, mark)

    def look_at_stopped(self, place: MarkerDirectory, pids: Iterable[int]) -> bool:
        """Look while every server is stopped; False when it was stopped in the middle of a write."""
        if not self.lock.acquire(timeout=STOPPED_WAIT_S):
            return False
        try:
            if self._being_written(place, pids) or self._cannot_read(place):
                return False
            try:
                mark, seen = self._scan(place, at_rest=False, timeout_s=STOPPED_TIMEOUT_S)
            except HarnessError:
                return False  # It waits for a lock that a stopped server has: a database in the middle of a write.
            gone = seen is not None and self._told.files(place).keys() - seen.files.keys()
            if seen is None or (not self._command and gone):
                return False
            self._excused.setdefault(place.path, set()).update(self._missing(place, seen))
            self._tell(place, seen, mark)
            return True
        finally:
            self.lock.release()

    def _cannot_read(self, place: MarkerDirectory) -> bool:
        """Whether a file stands where the directory should, so that a reader of the system's own would fail."""
        return bool(self._command) and (self._storage / place.path).is_file()

    def _missing(self, place: MarkerDirectory, seen: Snapshot) -> frozenset[str]:
        names = seen.names if self._command else stored_names(place.path, seen.files)
        return self._expected - names - self._excused.get(place.path, set())

    def _scan(
        self, place: MarkerDirectory, at_rest: bool, timeout_s: float = READER_TIMEOUT_S
    ) -> tuple[int, Snapshot | None]:
        """The mark and what was read after it; None when it was not at rest."""
        self.looks += 1
        with self.recorder.lock:
            mark = self.recorder.mark()
            self._expected = self.recorder.answered(place)
        if self._command:
            names = run_reader(self._command, str(self._storage / place.path), timeout_s=timeout_s)
            return mark, Snapshot({}, frozenset(names))
        before = _signature(self._storage, place)
        for path, signature in before.items():
            if self._since.get(path, (None, 0.0))[0] != signature:
                self._since[path] = (signature, time.monotonic())
        files: dict[str, bytes] = {}
        for path in sorted(before):
            try:
                files[path] = (self._storage / path).read_bytes()
            except OSError:
                continue
        self._tell_raw(place, files, mark)
        if at_rest:
            whole = all(len(files.get(path, b"")) == size for path, (_, size, _) in before.items())
            ended = all(_terminated(path, data) or self._stays_torn(place, path, data) for path, data in files.items())
            if not whole or not ended or files.keys() != before.keys() or before != _signature(self._storage, place):
                return mark, None
        return mark, Snapshot(files, frozenset())

    def _settled(self, place: MarkerDirectory, waited_s: float) -> bool:
        """Whether what was missing for so long is missing for good."""
        return waited_s > SETTLE_S and not self._being_written(place, self._writers())

    def _stays_torn(self, place: MarkerDirectory, path: str, data: bytes) -> bool:
        """Whether a file with an unterminated last line is left so: seen before as it is, or unchanged for long."""
        if self._told.files(place).get(path) == data:
            return True
        known = self._since.get(path)
        rests = known is not None and time.monotonic() - known[1] > TORN_S
        return rests and not self._being_written(place, self._writers())

    def _being_written(self, place: MarkerDirectory, pids: Iterable[int]) -> bool:
        root = f"{self._storage / place.path}/"
        held = (path[len(root) :] for path in _open_for_writing(pids) if path.startswith(root))
        return any(_is_marker_file(relative) for relative in held)

    def _tell(self, place: MarkerDirectory, seen: Snapshot, mark: int) -> None:
        for path in self._told.tell(place, seen, mark):
            self._short.pop(path, None)

    def _tell_raw(self, place: MarkerDirectory, files: dict[str, bytes], mark: int) -> None:
        """Record single reads that lack a name seen before, each once, and a share of the others, for the count."""
        for path, told in self._told.files(place).items():
            if marker_file_index(path.rpartition("/")[2]) is None:
                continue
            data = files.get(path)
            if data is not None and data.startswith(told):
                if self._rng.random() > RAW_SHARE:
                    continue
            elif self._short.get(path) == data or not set(decode_names(told)) - set(decode_names(data or b"")):
                continue
            else:
                self._short[path] = data
            self.recorder.record("kit", "kit", "observe", "raw-file", place, path, data, caused_by=mark)


def _signature(storage: Path, place: MarkerDirectory) -> _Signature:
    """Inode, size and modification time of every marker file below a directory, by path relative to the storage."""
    found: _Signature = {}
    root = str(storage / place.path)
    for folder, _, names in os.walk(root):
        for name in names:
            full = f"{folder}/{name}"
            relative = full[len(root) + 1 :]
            if not _is_marker_file(relative):
                continue
            try:
                stat = os.stat(full)
            except OSError:
                continue
            if not S_ISREG(stat.st_mode):
                continue  # A pipe or a device: opening it would wait for ever, or never end.
            found[f"{place.path}/{relative}"] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def _is_marker_file(relative: str) -> bool:
    return relative == TYPE_FILE or marker_file_index(relative) is not None or is_marker_name(relative)


def _terminated(path: str, data: bytes) -> bool:
    """Whether a file can be at rest by what it holds; an empty one is probably being rewritten."""
    name = path.rpartition("/")[2]
    if name == TYPE_FILE:
        return data == TYPE_BATCHED
    return marker_file_index(name) is None or data.endswith(b"\n")


def _open_for_writing(pids: Iterable[int]) -> set[str]:
    """Paths that processes have open for writing."""
    found = set()
    for pid in pids:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in descriptors:
            try:
                target = os.readlink(f"/proc/{pid}/fd/{number}")
                flags = Path(f"/proc/{pid}/fdinfo/{number}").read_text().split("flags:", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            if int(flags, 8) & os.O_ACCMODE:
                found.add(target)
    return found

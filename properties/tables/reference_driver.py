"""The reference behind the protocol of HudiJavaWriter.java: what hudi-java's walk plays must not accuse it.

`python -m properties.tables.reference_driver [MUTANT]` answers "open", "write" and "read" as the Java program does, in
lives of one process. A life is the reference's write client on local files, whose every system call meets the faults
that it is told: `os` of `marker_sim.storages.local` is `WatchedOs`. Its mutants are wrong on purpose.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from marker_sim.options import MarkerOptions
from marker_sim.plan import Task
from marker_sim.seams import Mailbox, NoAnswer, SeamError
from marker_sim.storages import local
from marker_sim.timeline import COMMIT, DELTA_COMMIT, WriteStat, WriteToken
from properties.faces.markers import Context, MarkerStore, direct_markers, served_markers
from properties.faces.writer import WriteClient, assigned, table_rows, work_of, write_file

QUICKER = 50  # How many times shorter the reference's pauses are.
ERRORS = {"error": errno.EIO, "applied": errno.EIO, "full": errno.ENOSPC, "full-within": errno.ENOSPC}


class Death(BaseException):
    """What the calls of a dead life get."""


@dataclass(slots=True)
class ToldFault:
    """From the n-th call that fits on, so many calls meet it."""

    pattern: re.Pattern[str]
    operations: list[str]
    effect: str
    n: int
    calls: int
    seen: int = 0
    fired: int = 0


@dataclass(slots=True)
class WatchedOs:
    """The module `os` for the storage of one life: calls that change or read files below `root` are told and may fail.

    dead: once it is, each call raises.
    """

    root: str
    faults: list[ToldFault] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    dead: bool = False
    ended: Callable[[], None] = lambda: None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _open: dict[int, str] = field(default_factory=dict)  # Paths of files that are written.

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """A file or a directory; the latter is no call, for nothing depends on it alone."""
        whole = self._path(path, dir_fd)
        if flags & os.O_DIRECTORY:
            return os.open(path, flags, mode, dir_fd=dir_fd)
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        act = partial(os.open, path, flags, mode, dir_fd=dir_fd)
        if not writes and not os.path.exists(whole):
            return act()
        opened: int = self._call("open" if writes else "get", whole, act)
        if writes:
            self._open[opened] = whole
        return opened

    def write(self, file: int, data: Any) -> int:
        """The whole of it."""
        rest = bytes(data)
        half = partial(os.write, file, rest[: len(rest) // 2])
        written: int = self._call("write", self._open[file], partial(os.write, file, rest), half)
        return written

    def close(self, file: int) -> None:
        """A file that was written, or something else, which is no call."""
        whole = self._open.pop(file, None)
        try:
            if whole is not None:
                self._call("close", whole, lambda: None)
        finally:
            os.close(file)

    def link(self, source: str, target: str, **words: Any) -> None:
        """A second name of a file."""
        self._call("link", self._path(target, words["dst_dir_fd"]), partial(os.link, source, target, **words))

    def rename(self, source: str, target: str, **words: Any) -> None:
        """Another name of a file."""
        self._call("rename", self._path(target, words["dst_dir_fd"]), partial(os.rename, source, target, **words))

    def unlink(self, path: str, *, dir_fd: int) -> None:
        """A missing file is no call."""
        self._removes("delete", path, dir_fd, partial(os.unlink, path, dir_fd=dir_fd))

    def rmdir(self, path: str, *, dir_fd: int) -> None:
        """The same."""
        self._removes("rmdir", path, dir_fd, partial(os.rmdir, path, dir_fd=dir_fd))

    def mkdir(self, path: str, mode: int, *, dir_fd: int) -> None:
        """A directory that is there is no call."""
        whole, act = self._path(path, dir_fd), partial(os.mkdir, path, mode, dir_fd=dir_fd)
        act() if os.path.exists(whole) else self._call("mkdir", whole, act)

    def scandir(self, directory: int) -> Any:
        """The names in an open directory."""
        return self._call("list", self._path("", directory), partial(os.scandir, directory))

    def _removes(self, operation: str, path: str, directory: int, act: Callable[[], None]) -> None:
        whole = self._path(path, directory)
        act() if not os.path.lexists(whole) else self._call(operation, whole, act)

    def _path(self, path: str, directory: int | None) -> str:
        return path if directory is None else f"{os.readlink(f'/proc/self/fd/{directory}')}/{path}".rstrip("/")

    def _call(self, operation: str, whole: str, act: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        with self._lock:
            if self.dead:
                raise Death
            path = whole.removeprefix(self.root)
            due = self._strike(operation, path)
            effect = due.effect if due is not None else "ok"
            halved = due is not None and (effect == "torn" or (effect == "full-within" and due.fired == 1))
            was = os.path.getsize(whole) if operation == "open" and os.path.exists(whole) else 0
            told: dict[str, Any] = {"op": operation, "path": path, "result": effect}
            self.calls.append(told)
            result = None
            does = halved or effect in ("ok", "die-after", "applied")
            if does:
                result = (half if halved and half is not None else act)()
                told["gone"] = [path] if operation == "delete" else []
                self._put(told, operation, whole, was)
            if effect.startswith("die") or effect == "torn":
                self.dead = True
                self.ended()
                raise Death
            if effect != "ok":
                if operation in ("open", "get") and result is not None:
                    os.close(result)
                raise OSError(ERRORS[effect], os.strerror(ERRORS[effect]))
            return result

    def _put(self, told: dict[str, Any], operation: str, whole: str, was: int) -> None:
        file = Path(whole)
        if operation not in ("open", "write", "close", "rename", "link") or local.is_own(whole) or not file.is_file():
            return
        if file.stat().st_size < was:
            told["cut"] = True
        marker = "/.hoodie/.temp/" in whole
        if marker or operation != "write":
            told["puts"] = file.read_bytes().decode("latin-1") if marker else ""

    def _strike(self, operation: str, path: str) -> ToldFault | None:
        due = None
        for fault in self.faults:
            if operation not in fault.operations or not fault.pattern.search(path):
                continue
            turn = fault.n <= fault.seen + 1 < fault.n + fault.calls
            if turn and due is not None:
                continue
            fault.seen += 1
            due = fault if turn else due
        if due is not None:
            due.fired += 1
        return due


class Threads:
    """The runtime seam of a life: threads, whose pauses are short."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}

    def now_ms(self) -> float:
        return time.time() * 1000

    def sleep(self, duration_ms: float) -> None:
        time.sleep(duration_ms / 1000 / QUICKER)

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                body()
            except Death:
                return

        threading.Thread(target=guarded, name=name, daemon=True).start()

    def mailbox(self) -> Mailbox:
        items: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def get(timeout_ms: float | None = None) -> Any:
            try:
                return items.get(timeout=None if timeout_ms is None else timeout_ms / 1000)
            except queue.Empty:
                return None

        return cast(Mailbox, SimpleNamespace(put=items.put, get=get))

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        with self._locks.setdefault(name, threading.Lock()):
            yield

    def unique_id(self) -> str:
        return os.urandom(8).hex()


def no_wire(*_: Any) -> Any:
    raise NoAnswer("a life has its timeline server in its own process")


class Life:
    """One writer of one table, until it dies or the next one begins."""

    def __init__(self, asked: dict[str, Any], mutant: str) -> None:
        root, _, self.table = asked["table"].rpartition("/")
        self.root, self.options, self.mutant = root, asked["options"], mutant
        self.os = WatchedOs(root=f"{os.path.realpath(root)}/")
        cast(Any, local).os = self.os
        self.storage, self.runtime, self.shared = local.LocalStorage(Path(root)), Threads(), dict[str, Any]()
        threads = int(self.options["hoodie.markers.timeline_server_based.batch.num_threads"])
        self.settings = MarkerOptions(batch_interval_ms=10, batch_num_threads=threads)

    def context(self, directory: str) -> Context:
        return Context(
            storage=self.storage, runtime=self.runtime, wire=cast(Any, no_wire), directory=directory,
            options=self.settings, process=self.shared,
        )  # fmt: skip

    # The markers of an instant (writer.client.Markers).

    def store(self, directory: str) -> MarkerStore:
        direct = self.options["hoodie.write.markers.type"] == "DIRECT"
        return (direct_markers if direct else served_markers)(self.context(directory))

    def stored(self, directory: str) -> tuple[str, ...]:
        try:
            return direct_markers(self.context(directory)).list_all()
        except SeamError:
            if self.mutant == "swallows-listing-errors":
                return ()
            raise

    def write(self, asked: dict[str, Any]) -> dict[str, Any]:
        watched, over, error = self.os, threading.Event(), list[str]()
        watched.calls, watched.ended = [], over.set
        watched.faults = [
            ToldFault(re.compile(told["pattern"]), told["operations"], told["effect"], told["n"], told["calls"])
            for told in asked["faults"]
        ]

        def write() -> None:
            try:
                self._upsert(asked)
            except Death:
                return
            except Exception as failed:
                error.append(repr(failed))
            over.set()

        threading.Thread(target=write, daemon=True).start()
        ended = over.wait(asked["limit_ms"] / 1000)
        answer: dict[str, Any] = {"struck": [fault.fired for fault in watched.faults], "calls": watched.calls}
        watched.faults, watched.calls = [], []
        if watched.dead or not ended:
            answer["died" if watched.dead else "hangs"] = watched.dead = True
        elif error:
            answer["error"] = error[0]
        else:
            answer["ok"] = True
        return answer

    def _upsert(self, asked: dict[str, Any]) -> None:
        merges = self.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
        context = self.context(self.table)
        client = WriteClient(self.table, context, self, DELTA_COMMIT if merges else COMMIT)
        instant, stats = client.begin(), list[WriteStat]()
        create = self.store(f"{self.table}/.hoodie/.temp/{instant}").create
        rows = sorted(asked["rows"], key=lambda row: (row[1], row[0]))
        for number, (partition, own) in enumerate(groupby(rows, key=lambda row: row[1])):
            task = Task(partition=partition, group="g", kind="APPEND" if merges else "MERGE")
            work = assigned(task, (self.table, instant), client.slices, merges)
            token = WriteToken(number, int(instant[8:]), 0)
            stats.append(write_file(
                work_of(work, token, tuple((key, value) for key, _, value, _ in own)), context, cast(Any, create)
            ))  # fmt: skip
        client.finalize(instant, tuple(stats))
        client.commit(instant, tuple(stats), asked["extra"])

    def read(self) -> list[list[str]]:
        """The rows of the table, read past everything that is watched."""
        files = {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in Path(self.root, self.table).rglob("*")
            if stat.S_ISREG(path.lstat().st_mode)
        }
        return [[key, value] for key, value in table_rows(self.table, files).items() if value]  # No value: deleted.


def main() -> None:
    """Answer questions until there is none."""
    life: Life | None = None
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any] = {"ok": True}
        if asked["do"] == "open":
            if life is not None:
                life.os.dead = True
            life = Life(asked, (*sys.argv[1:], "")[0])
        elif life is not None:
            try:
                answer = life.write(asked) if asked["do"] == "write" else {"rows": life.read()}
            except ValueError as error:
                answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

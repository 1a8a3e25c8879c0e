"""The markers of server.py, as MARKERS<n> files of a local directory: a batch under a lock, read, then replaced."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MARKER_FILE = re.compile(r"MARKERS(0|[1-9]\d*)")
TYPE = "MARKERS.type"
Files = dict[int, tuple[list[str], str]]


class Busy(Exception):
    """A request that is answered 409."""


class Asked:
    """A create that waits; `new` or `error` is set when it is done."""

    def __init__(self, name: str, reply: Callable[[bool], None]) -> None:
        self.name, self.reply = name, reply
        self.done = threading.Event()
        self.new = False
        self.error: OSError | None = None


class Directory:
    """What a server knows of a marker directory: who waits, and who writes."""

    def __init__(self) -> None:
        self.waiting: list[Asked] = []
        self.flushing = threading.Lock()
        self.batches = 0
        self.written: set[int] = set()
        self.cached: dict[int, tuple[int, list[str]]] = {}
        self.typed = self.made = False


class Markers:
    """Creates, lists and deletes. Whoever finds nobody writing writes what waits, for all who wait."""

    def __init__(self, root: str, threads: int, defect: int) -> None:
        self.root, self.threads, self.defect = root, threads, defect
        self.guard = threading.Lock()
        self.directories: dict[str, Directory] = {}

    def state(self, directory: str) -> Directory:
        with self.guard:
            return self.directories.setdefault(directory, Directory())

    def create(self, directory: str, name: str, reply: Callable[[bool], None]) -> bool | None:
        """Whether the marker is new; None when the reply is out."""
        state, asked = self.state(directory), Asked(name, reply)
        with self.guard:
            state.waiting.append(asked)
        if not state.flushing.acquire(timeout=0.5 if self.defect == 7 else 600):
            raise Busy("the directory is busy, ask again")
        try:
            if not asked.done.is_set():
                self.batch(directory, state)
        finally:
            state.flushing.release()
        if asked.error:
            raise asked.error
        return None if self.defect == 8 else asked.new

    def batch(self, directory: str, state: Directory) -> None:
        with self.guard:
            batch, state.waiting = state.waiting, []
        error, new = None, set[str]()
        try:
            with self.alone(directory):
                new = self.flush(directory, state, list(dict.fromkeys(asked.name for asked in batch)))
        except OSError as failed:
            error = failed
        for asked in batch:
            asked.error, asked.new = error, asked.name in new
            new.discard(asked.name)
            asked.done.set()
        if self.defect == 8 and not error:
            for asked in batch:
                asked.reply(asked.new)

    def flush(self, directory: str, state: Directory, names: list[str]) -> set[str]:
        """Store names and say which are new; the next batch has the next file."""
        files = self.read(directory, state)
        known = {name for there, _ in files.values() for name in there}
        if not (new := [name for name in names if name not in known]):
            return set()
        index = state.batches % self.threads
        if self.defect == 4 and state.batches:
            index = 1 + (state.batches - 1) % self.threads
        state.batches += 1
        there, version = files.get(index, ([], ""))
        self.write(directory, state, index, [*there, *new], version)
        if self.defect == 5 and state.batches % self.threads == 0:
            self.compact(directory, state)
        return set(new)

    def write(self, directory: str, state: Directory, index: int, names: list[str], version: str) -> None:
        if not (self.defect == 12 and state.made):
            os.makedirs(directory, exist_ok=True)
        state.made = True
        if not (state.typed if self.defect == 3 else os.path.exists(f"{directory}/{TYPE}")):
            self.replace(f"{directory}/{TYPE}", "TIMELINE_SERVER_BASED")
        state.typed = True
        path = f"{directory}/MARKERS{index}"
        self.replace(path, "".join(f"{name}\n" for name in names))
        state.written.add(index)
        if self.defect == 10:
            state.cached[index] = int(os.stat(path).st_mtime), names

    def compact(self, directory: str, state: Directory) -> None:
        """Defect 5: file by file, all names move to MARKERS0; listings that have read that already miss them."""
        files = self.read(directory, state)
        names, _ = files.pop(0, ([], ""))
        for index in sorted(files):
            names += files[index][0]
            self.write(directory, state, 0, names, "")
            os.remove(f"{directory}/MARKERS{index}")

    def replace(self, path: str, text: str) -> None:
        folder, _, file_name = path.rpartition("/")
        temporary = f"{folder}/.{file_name}.tmp"
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            if self.defect == 1:
                os.replace(temporary, path)
        if self.defect != 1:
            os.replace(temporary, path)

    def read(self, directory: str, state: Directory) -> Files:
        """The names of each MARKERS<n> and its version."""
        files: Files = {}
        try:
            there = sorted(os.listdir(directory))
        except FileNotFoundError:
            return {}
        for file_name in there:
            match = MARKER_FILE.fullmatch(file_name)
            if not match or (self.defect == 2 and len(match[1]) > 1):
                continue
            path, index = f"{directory}/{file_name}", int(match[1])
            try:
                if (
                    self.defect == 10
                    and index in state.cached
                    and state.cached[index][0] == int(os.stat(path).st_mtime)
                ):
                    files[index] = state.cached[index][1], ""
                    continue
                with open(path, encoding="utf-8", newline="\n") as file:
                    files[index] = file.read().split("\n")[:-1], ""
            except (FileNotFoundError, IsADirectoryError):
                continue
        return files

    def names(self, directory: str) -> list[str]:
        files = self.read(directory, Directory())
        return list(dict.fromkeys(name for there, _ in files.values() for name in there))

    def delete(self, directory: str) -> bool:
        """Remove the directory, the marker files first, and say whether it had names."""
        state = self.state(directory)
        with state.flushing, self.alone(directory):
            files = self.read(directory, state)
            if self.defect == 6:
                return self.delete_written(directory, state)
            for index in files:
                os.remove(f"{directory}/MARKERS{index}")
            if os.path.lexists(f"{directory}/{TYPE}"):
                os.remove(f"{directory}/{TYPE}")
            if os.path.isdir(directory):
                shutil.rmtree(directory)
            state.cached.clear()
            return bool(files)

    def delete_written(self, directory: str, state: Directory) -> bool:
        """Defect 6: only what this life of the server wrote."""
        there = bool(state.written)
        for index in state.written:
            os.remove(f"{directory}/MARKERS{index}")
        state.written.clear()
        if os.path.isdir(directory) and not self.read(directory, state):
            shutil.rmtree(directory)
        return there

    @contextmanager
    def alone(self, directory: str) -> Iterator[None]:
        """No other server changes the directory."""
        os.makedirs(f"{self.root}/.locks", exist_ok=True)
        with open(f"{self.root}/.locks/{hashlib.sha1(directory.encode()).hexdigest()}", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

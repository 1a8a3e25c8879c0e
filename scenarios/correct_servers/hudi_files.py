"""Hudi's files for the Python servers beside this module: how they are read, replaced, removed and locked."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TypeVar

TYPE, TYPE_TEXT = "MARKERS.type", b"TIMELINE_SERVER_BASED"
TRIES = 20
_NUMBER = count(time.time_ns())
T = TypeVar("T")


def fresh(path: str, word: str) -> str:
    """A path beside another that no server had before."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.{word}.{os.getpid()}.{next(_NUMBER)}"


def lines(path: str) -> list[str]:
    """The terminated lines of a file, none of one that is missing."""
    try:
        return [line.decode() for line in Path(path).read_bytes().split(b"\n")[:-1]]
    except FileNotFoundError:
        return []


def text(names: Iterable[str]) -> bytes:
    """The content of a marker file."""
    return "".join(f"{name}\n" for name in names).encode()


def write(file: int, data: bytes) -> None:
    """All of it, at the offset of an open file, which is closed then."""
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)


def replace(path: str, data: bytes) -> None:
    """A file as a whole."""
    new = fresh(path, "new")
    write(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), data)
    os.rename(new, path)


def typed(directory: str) -> None:
    """The directory and its type file are there."""
    os.makedirs(directory, exist_ok=True)
    with suppress(FileNotFoundError):
        if Path(directory, TYPE).read_bytes() == TYPE_TEXT:
            return
    replace(f"{directory}/{TYPE}", TYPE_TEXT)


def add(directory: str, name: str, file: str = "MARKERS0", publish: Callable[[str, bytes], object] = replace) -> bool:
    """Whether a name is new in a marker file, which has it then. FileNotFoundError: another program removed something.

    publish: gives the file at a path its content.
    """
    path = f"{directory}/{file}"
    typed(directory)
    known = lines(path)
    if name in known:
        return False
    publish(path, text([*known, name]))
    check(directory, path, name)
    return True


def check(directory: str, path: str, name: str) -> None:
    """FileNotFoundError unless the name is still stored."""
    if name not in lines(path) or not os.path.exists(f"{directory}/{TYPE}"):
        raise FileNotFoundError(path)


def insist(do: Callable[[], T]) -> T:
    """Do it again while another program removes the directory meanwhile."""
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            return do()
    return do()


def remove(directory: str) -> bool:
    """Whether there was a directory; its type file goes last."""
    try:
        there = os.listdir(directory)
    except FileNotFoundError:
        return False
    for name in sorted(there, key=lambda name: name == TYPE):
        with suppress(FileNotFoundError):
            os.unlink(f"{directory}/{name}")
    with suppress(FileNotFoundError):
        os.rmdir(directory)
    return True


@contextmanager
def locked(root: str, directory: str) -> Iterator[None]:
    """A lock of the host, which ends with its process."""
    os.makedirs(f"{root}/.locks", exist_ok=True)
    held = os.open(f"{root}/.locks/{sha256(directory.encode()).hexdigest()}", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def alone(root: str) -> int:
    """The lock of the only server of a storage; a second one ends here."""
    while True:
        with suppress(OSError):
            os.makedirs(f"{root}/.locks", exist_ok=True)
            held = os.open(f"{root}/.locks/alone", os.O_RDWR | os.O_CREAT)
            break
        time.sleep(0.05)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another server has this storage")
    return held

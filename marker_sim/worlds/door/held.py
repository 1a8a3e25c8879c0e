"""A process stopped at a call: what the kit reads of it, and how the kit acts in its place."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import resource
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.worlds.door import kernel
from marker_sim.worlds.door.kernel import Notice
from marker_sim.worlds.door.known_files import file_at, file_of
from marker_sim.worlds.door.table import LOW

PATH_BYTES_MAX = 4096
WRITE_BYTES_MAX = 0x7FFF_F000  # The kernel writes no more at once (MAX_RW_COUNT).
_OF_ITSELF = (
    (re.compile(rb"/+proc/+(?:self|thread-self)(?=/|$)"), b"/proc/%d"),
    (re.compile(rb"/+dev/+fd(?=/|$)"), b"/proc/%d/fd"),
    (re.compile(rb"/+dev/+std(in|out|err)$"), b"/proc/%d/fd/"),
)
_STATUS = re.compile(
    rb"\nUmask:\s*(\d+)\n.*?\nTgid:\s*(\d+)\n.*?\nUid:(?:\s+\d+){3}\s+(\d+)\nGid:(?:\s+\d+){3}\s+(\d+)\n"
    rb".*?Groups:([ \d]*)",
    re.DOTALL,
)
_OPENED = re.compile(r"flags:\s*(\d+)")
_STREAMS = {b"in": b"0", b"out": b"1", b"err": b"2"}


class Status(NamedTuple):
    """The parts of `/proc/TID/status` that are needed: the process, and the ids with which it accesses files."""

    pid: int
    umask: int
    user: int
    group: int
    groups: tuple[int, ...]


class OpenFile(NamedTuple):
    """A file that a process has open: its current path, and the results of the kit's `fstat` and F_GETFL.

    file: device and inode.
    """

    path: str
    mode: int
    size: int
    file: tuple[int, int]
    flags: int
    offset: int


class HeldCall:
    """A thread stopped at a call. `keep` holds descriptors that the kit opened for it until `close`."""

    def __init__(self, notice: Notice, name: str) -> None:
        self.notice = notice
        self.name = name
        self.thread = notice.thread
        self.arguments = notice.arguments
        self.status = _status(notice.thread)
        self._kept: list[int] = []

    @property
    def pid(self) -> int:
        """The process id of the thread."""
        return self.status.pid

    def number(self, argument: int) -> int:
        """An argument as an int: a file descriptor, AT_FDCWD, flags."""
        return signed(self.arguments[argument])

    def memory(self, address: int, size: int) -> bytes:
        """The memory at an address, as far as it is readable; HarnessError when the kit may not read it."""
        try:
            file = open_memory(f"/proc/{self.thread}/mem")
        except PermissionError as error:
            raise HarnessError(
                f"the memory of a process that the kit started cannot be read ({error.strerror}): it has the rights of"
                " another user, or kernel.yama.ptrace_scope is 2 or more"
            ) from None
        try:
            return os.pread(file, size, address)
        except (OSError, OverflowError):  # The kernel reports EFAULT to the process itself.
            return b""
        finally:
            os.close(file)

    def store(self, address: int, data: bytes) -> None:
        """Write to the memory of the process; does nothing at a bad address."""
        file = os.open(f"/proc/{self.thread}/mem", os.O_WRONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError, OverflowError):
                os.pwrite(file, data, address)
        finally:
            os.close(file)

    def text(self, address: int) -> bytes | None:
        """The path at an address, None when the address is bad."""
        data, end, _ = self.memory(address, PATH_BYTES_MAX).partition(b"\0")
        return data if end else None

    def keep(self, file: int) -> int:
        """Close this descriptor in `close`; returns it."""
        self._kept.append(file)
        return file

    def close(self) -> None:
        """Close all kept descriptors."""
        while self._kept:
            os.close(self._kept.pop())

    def linked(self, number: int) -> str:
        """The kernel's path of an open file, "" for a descriptor that is not open."""
        try:
            return os.readlink(f"/proc/{self.thread}/fd/{number}")
        except OSError:
            return ""

    @contextlib.contextmanager
    def copy(self, number: int) -> Iterator[int]:
        """A context with the kit's copy of an open file. The copy keeps the locks of a process that dies meanwhile."""
        copied = kernel.copy_of(self.pid, self.thread, number)
        try:
            yield copied
        finally:
            os.close(copied)

    def open_file(self, number: int) -> OpenFile:
        """The state of an open file."""
        with self.copy(number) as file:
            status, flags = os.fstat(file), fcntl.fcntl(file, fcntl.F_GETFL)
            try:
                offset = status.st_size if flags & os.O_APPEND else os.lseek(file, 0, os.SEEK_CUR)
            except OSError:
                offset = 0
        return OpenFile(self.linked(number), status.st_mode, status.st_size, file_of(status), flags, offset)

    def own(self, path: bytes) -> bytes:
        """A path in which `/proc/self` and `/dev/fd` are replaced by those of the process."""
        for pattern, instead in _OF_ITSELF:
            if found := pattern.match(path):
                begin = instead % self.pid + (_STREAMS[found[1]] if found.re.groups else b"")
                return begin + path[found.end() :]
        return path

    def limit(self, kind: int) -> int | None:
        """A soft limit of the process (resource.RLIMIT_NOFILE), None when it is unlimited or cannot be read."""
        try:
            soft = resource.prlimit(self.pid, kind)[0]
        except PermissionError:
            return None
        return None if soft == resource.RLIM_INFINITY else soft

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """A context in which this thread accesses files with the umask, user and groups of the process."""
        status = self.status
        os.umask(status.umask)
        mine = (os.geteuid(), os.getegid())
        if (status.user, status.group) == mine and (mine[0] != 0 or status.groups == _groups()):
            yield
            return
        groups = os.getgroups()
        kernel.act_as(status.user, status.group, status.groups)
        try:
            yield
        finally:
            kernel.act_as(*mine, groups)


def open_memory(path: str) -> int:
    """Open the memory of a process for reading."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def signed(value: int) -> int:
    """The lower 32 bits of an argument as a signed int."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value & 0x8000_0000 else value


def free_number(held: HeldCall, base: int, cursors: dict[int, int], least: int) -> int | None:
    """A descriptor from `base` on that is free in the process, None when all are taken.

    HarnessError when the process lowered its limit so that it cannot have such a descriptor.

    The search goes round, because the descriptor after the last is probably free. /proc decides what is free: a close
    is not seen, a fork begins with the descriptors of its parent, and a taken one would be replaced silently.
    """
    end = held.limit(resource.RLIMIT_NOFILE) or resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    first = max(base, least)
    if base >= end:
        raise HarnessError(f"process {held.pid} lowered its limit of open files to {end}; watched ones begin at {base}")
    if first >= end:
        return None
    at = cursors.get(held.pid, first)
    at = at if first <= at < end else first
    folder = f"/proc/{held.pid}/fd"
    if os.path.lexists(f"{folder}/{at}"):
        taken = {int(name) for name in os.listdir(folder)}
        free = (number for number in (*range(at, end), *range(first, at)) if number not in taken)
        found = next(free, None)
        if found is None:
            return None
        at = found
    cursors[held.pid] = at + 1
    return at


def watched(number: int, base: int) -> bool:
    """Whether writes on a descriptor stop at the door."""
    return 0 <= number < LOW or number >= base


def files_at(path: bytes) -> set[tuple[int, int]]:
    """Device and inode of a file, or of all files below a directory."""
    found = [path, *(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)]
    return set(map(file_of, map(os.lstat, found)))


def written_unseen(processes: Iterable[int], files: set[tuple[int, int]], base: int) -> bool:
    """Whether a process has one of these files open for writing at a descriptor that is not watched."""
    for process in processes:
        with contextlib.suppress(OSError):  # The process may have ended.
            for number in map(int, os.listdir(f"/proc/{process}/fd")):
                with contextlib.suppress(OSError):
                    if file_at(f"/proc/{process}/fd/{number}") in files and not watched(number, base):
                        with open(f"/proc/{process}/fdinfo/{number}") as said:
                            if int(_OPENED.findall(said.read())[0], 8) & os.O_ACCMODE:
                                return True
    return False


def _groups() -> tuple[int, ...]:
    return tuple(os.getgroups())


def _status(thread: int) -> Status:
    try:
        with open(f"/proc/{thread}/status", "rb", buffering=0) as file:
            text = file.read(4096)
    except (FileNotFoundError, ProcessLookupError):
        raise kernel.CallerGone from None
    found = _STATUS.search(text)
    if found is None:  # It is a zombie.
        raise kernel.CallerGone
    umask, pid, user, group, groups = found.groups()
    return Status(int(pid), int(umask, 8), int(user), int(group), tuple(map(int, groups.split())))

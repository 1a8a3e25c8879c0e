"""Messages of the seccomp listener, and system calls that Python does not wrap, by ctypes.

Sources: seccomp_unotify(2), seccomp(2), linux/seccomp.h, pidfd_getfd(2), setfsuid(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.worlds.door.table import numbers, this_machine

# _IOWR('!', 0, struct seccomp_notif), and so on.
_RECV, _SEND, _VALID, _ADD, _FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103, 0x40082104
_NOTICE = struct.Struct("=QIIiIQ6Q")  # id, thread, flags; number, machine, instruction pointer, arguments
_REPLY = struct.Struct("=QqiI")  # id, result, error, flags
_ADDED = struct.Struct("=QIIII")  # id, flags, source, number, flags of the number
_CONTINUE = 1
_SET_NUMBER, _SEND_IT = 1, 2
_SYNC_WAKE_UP = 1
_CLONE_FS = 0x200
_PIDFD_THREAD = os.O_EXCL


class Notice(NamedTuple):
    """A call at which a thread is stopped; its arguments are unsigned, as the kernel sends them."""

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]


class CallerGone(Exception):
    """The calling thread died or its call was interrupted, so there is nobody to answer."""


def hand_over_at_once(listener: int) -> None:
    """Let the kernel switch directly between the two sides of a listener; before Linux 6.6 this has no effect."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(listener, _FLAGS, _SYNC_WAKE_UP)


def receive(listener: int) -> Notice:
    """Receive the next stopped call; CallerGone when its thread died meanwhile."""
    buffer = bytearray(_NOTICE.size)
    with _gone():
        fcntl.ioctl(listener, _RECV, buffer, True)
    id_, thread, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
    return Notice(id_, thread, number, tuple(arguments))


def is_held(listener: int, id_: int) -> bool:
    """Whether the thread still waits for the answer. If not, what was read of it may belong to another thread."""
    if listener < 0:
        return False
    try:
        fcntl.ioctl(listener, _VALID, struct.pack("=Q", id_))
    except OSError:
        return False
    return True


def answer(listener: int, id_: int, result: int = 0, error: int = 0) -> None:
    """Resume the thread with a result, or with an error."""
    with _gone():
        fcntl.ioctl(listener, _SEND, _REPLY.pack(id_, result, -error, 0))


def let_pass(listener: int, id_: int) -> None:
    """Let the kernel perform the call unchanged."""
    with _gone():
        fcntl.ioctl(listener, _SEND, _REPLY.pack(id_, 0, 0, _CONTINUE))


def answer_with_file(listener: int, id_: int, file: int, number: int, flags: int) -> None:
    """Install an open file in the process at a descriptor and answer with that descriptor, in one step."""
    with _gone():
        fcntl.ioctl(listener, _ADD, _ADDED.pack(id_, _SET_NUMBER | _SEND_IT, file, number, flags))


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise CallerGone from None
        raise


@cache
def own_numbers() -> dict[str, int]:
    """The numbers of system calls on this machine, by name."""
    return numbers(this_machine())


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def system_call(name: str, *words: int | bytes) -> int:
    """Make a system call by its name; OSError when it fails."""
    passed = [word if isinstance(word, bytes) else ctypes.c_long(word) for word in words]
    return _checked(_library().syscall(ctypes.c_long(own_numbers()[name]), *passed))


def copy_of(process: int, thread: int, number: int) -> int:
    """The kit's own descriptor of a file that a process has open, sharing its offset and locks; close it soon.

    Taken from the thread since Linux 6.9, because the first thread of a process may have ended before the others.
    """
    try:
        handle = os.pidfd_open(thread, _PIDFD_THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        handle = os.pidfd_open(process)
    try:
        return system_call("pidfd_getfd", handle, number, 0)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise HarnessError(
                f"pidfd_getfd is refused ({error.strerror}), so the files of a process cannot be reached; a container"
                " needs CAP_SYS_PTRACE for it, or a profile that allows it"
            ) from None
        raise
    finally:
        os.close(handle)


def leave_common_directory() -> None:
    """Give this thread a umask and a working directory of its own."""
    _checked(_library().unshare(_CLONE_FS))


def act_as(user: int, group: int, groups: Iterable[int]) -> None:
    """Let this thread, and no other, access files as that user; ids that it may not take are left unchanged."""
    packed = struct.pack(f"={len(tuple(groups))}I", *groups)
    with contextlib.suppress(PermissionError):
        system_call("setgroups", len(packed) // 4, packed)
    _library().setfsgid(group)
    _library().setfsuid(user)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)

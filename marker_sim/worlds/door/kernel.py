"""Messages of seccomp's listener and calls of the kernel that Python has no names for, by ctypes.

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
    """A call that a thread is held at; arguments are as the kernel has them, unsigned."""

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]


class CallerGone(Exception):
    """The thread that made a call is dead, or the call was interrupted: there is nobody to answer."""


def hand_over_at_once(listener: int) -> None:
    """Whoever waits for the other side gets the processor of this one; before Linux 6.6 as the scheduler likes."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(listener, _FLAGS, _SYNC_WAKE_UP)


def receive(listener: int) -> Notice:
    """The next call that is held; CallerGone when its thread died meanwhile."""
    buffer = bytearray(_NOTICE.size)
    with _gone():
        fcntl.ioctl(listener, _RECV, buffer, True)
    id_, thread, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
    return Notice(id_, thread, number, tuple(arguments))


def is_held(listener: int, id_: int) -> bool:
    """Whether the thread still waits for the answer; before that, what was read of it may be somebody else's."""
    if listener < 0:
        return False
    try:
        fcntl.ioctl(listener, _VALID, struct.pack("=Q", id_))
    except OSError:
        return False
    return True


def answer(listener: int, id_: int, result: int = 0, error: int = 0) -> None:
    """Let the thread go on with a result, or with an error."""
    with _gone():
        fcntl.ioctl(listener, _SEND, _REPLY.pack(id_, result, -error, 0))


def let_pass(listener: int, id_: int) -> None:
    """Let the kernel do the call as if nobody had looked."""
    with _gone():
        fcntl.ioctl(listener, _SEND, _REPLY.pack(id_, 0, 0, _CONTINUE))


def answer_with_file(listener: int, id_: int, file: int, number: int, flags: int) -> None:
    """Put an open file into the process at a number and answer with that number, in one step."""
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
    """A system call by its name; OSError when it fails."""
    passed = [word if isinstance(word, bytes) else ctypes.c_long(word) for word in words]
    return _checked(_library().syscall(ctypes.c_long(own_numbers()[name]), *passed))


def copy_of(process: int, thread: int, number: int) -> int:
    """The kit's own number of a file that a process has open, sharing its offset and its locks; close it soon.

    By the thread, since Linux 6.9: the first thread of a process may have ended before the others.
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
    """From now on this thread has a umask and a working directory of its own."""
    _checked(_library().unshare(_CLONE_FS))


def act_as(user: int, group: int, groups: Iterable[int]) -> None:
    """This thread, and no other, reaches files as that user; what it may not become it does not."""
    packed = struct.pack(f"={len(tuple(groups))}I", *groups)
    with contextlib.suppress(PermissionError):
        system_call("setgroups", len(packed) // 4, packed)
    _library().setfsgid(group)
    _library().setfsuid(user)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)

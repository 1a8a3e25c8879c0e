"""Calls on open file descriptors: translates each into an act below the root, and performs it for the process.

The kit takes a copy of the open file for a moment, so offset and flags are shared. sendfile and copy_file_range become
writes of their source's content. They are refused from a pipe or socket, for which the kit would have to wait, and so
are splice and reflinks, as by a file system without them: callers fall back to writes, which are seen byte by byte.
A duplicate gets a watched descriptor, so that writes on it stop too.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import signal
import stat
import struct
from collections.abc import Callable
from dataclasses import replace

from marker_sim.worlds.door import kernel
from marker_sim.worlds.door.effects import Act, Found, Scope, shown
from marker_sim.worlds.door.held import WRITE_BYTES_MAX, HeldCall, OpenFile, signed, watched
from marker_sim.worlds.door.known_files import file_at
from marker_sim.worlds.door.paths import relative

_IOV_MAX = 1024
_SYNCED = os.RWF_DSYNC | os.RWF_SYNC  # Flags of pwritev2.
Data = Callable[[], bytes | None]
"""Reads the data to write; None at a bad address, for which the kernel reports the error to the process."""


def _file(held: HeldCall, scope: Scope, number: int) -> OpenFile | None:
    """An open file below the root, whose path is made relative; None for any other."""
    if relative(scope.root, held.linked(number)) is None:
        return None
    try:
        file = held.open_file(number)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None
        raise
    inside = relative(scope.root, file.path)
    return None if inside is None else file._replace(path=inside)


def write(
    held: HeldCall, scope: Scope, data: Data, offset: int | None = None, flags: int = 0, argument: int = 0
) -> Found:
    """A write to a file, at `offset` or at the file's own. argument: index of the argument that is the descriptor."""
    number = held.number(argument)
    file = _file(held, scope, number)
    if file is None or not stat.S_ISREG(file.mode) or not file.flags & os.O_ACCMODE:
        return None
    content = data()
    if content is None:
        return None
    begin = file.offset if offset is None else offset
    call = shown(held, "write", file.path)._replace(
        flags=file.flags | (os.O_DSYNC if flags & _SYNCED else 0),
        offset=begin,
        data=content,
        size_before=file.size,
        file=file.file,
    )

    def perform(bytes_max: int | None) -> int:
        piece = content if bytes_max is None else content[:bytes_max]
        room = held.limit(resource.RLIMIT_FSIZE)
        if room is not None and piece and begin + len(piece) > room:
            if begin >= room:
                kernel.system_call("tgkill", held.pid, held.thread, signal.SIGXFSZ)
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            piece = piece[: room - begin]
        with held.copy(number) as copy:
            return _put(copy, piece, -1 if offset is None else offset, flags, file.flags, bytes_max is not None)

    return Act(call=call, perform=perform)


def _put(file: int, data: bytes, offset: int, flags: int, of_file: int, cut: bool) -> int:
    """Write at an offset, -1 for the file's own. Data for O_DIRECT is aligned to a page of memory."""
    if not of_file & os.O_DIRECT or not data:
        return os.write(file, data) if offset < 0 and not flags else os.pwritev(file, [data], offset, flags)
    with mmap.mmap(-1, len(data)) as pages:
        pages[:] = data
        if cut:
            fcntl.fcntl(file, fcntl.F_SETFL, of_file & ~os.O_DIRECT)
        try:
            with memoryview(pages) as whole:
                return os.pwritev(file, [whole], offset, flags)
        finally:
            if cut:
                fcntl.fcntl(file, fcntl.F_SETFL, of_file)


def transfer(
    held: HeldCall, scope: Scope, into: int, source: int, offsets: tuple[int, int], size: int, error: int
) -> Found:
    """sendfile and copy_file_range, as a write of the source's content; `error` if it is no file, or with O_APPEND.

    into, source: the indices of the arguments that are file descriptors.
    offsets: the addresses of the two offsets, of the target and of the source; 0 for the current position.
    """
    file = _file(held, scope, held.number(into))
    if file is None:
        return None
    try:
        with held.copy(held.number(source)) as copy:
            if file.flags & os.O_APPEND or not stat.S_ISREG(os.fstat(copy).st_mode):
                return error
            to, begin = (struct.unpack("=q", held.memory(at, 8))[0] if at else None for at in offsets)
            begin = os.lseek(copy, 0, os.SEEK_CUR) if begin is None else begin
            data = os.pread(copy, min(size, WRITE_BYTES_MAX), begin)
    except struct.error:
        return errno.EFAULT
    except OSError as failed:
        return failed.errno
    act = write(held, scope, lambda: data, to, argument=into)
    if not isinstance(act, Act) or act.perform is None:
        return act
    if not data:
        return replace(act, call=None)
    written = act.perform

    def perform(bytes_max: int | None) -> int:
        count = written(bytes_max)
        if offsets[0] and to is not None:
            held.store(offsets[0], struct.pack("=q", to + count))
        if offsets[1]:
            held.store(offsets[1], struct.pack("=q", begin + count))
        else:
            with held.copy(held.number(source)) as copy:
                os.lseek(copy, begin + count, os.SEEK_SET)
        return count

    return replace(act, perform=perform)


def one_piece(held: HeldCall, address: int, size: int) -> Data:
    """The data of a write from one buffer."""
    size = min(size, WRITE_BYTES_MAX)
    return lambda: held.memory(address, size) or (None if size else b"")


def pieces(held: HeldCall, address: int, count: int) -> Data:
    """The data of a write from several buffers, in order."""

    def data() -> bytes | None:
        pieces = tuple(struct.iter_unpack("=QQ", held.memory(address, 16 * min(count, _IOV_MAX))))
        whole = b"".join(held.memory(begin, min(size, WRITE_BYTES_MAX)) for begin, size in pieces if size)
        return whole or (None if any(size for _, size in pieces) or len(pieces) < count else b"")

    return data


def on_number(
    held: HeldCall, scope: Scope, operation: str, act: Callable[[int], object], size: int = 0, offset: int = 0
) -> Found:
    """A call on one open file that returns 0."""
    number = held.number(0)
    file = _file(held, scope, number)
    if file is None or not (stat.S_ISREG(file.mode) or stat.S_ISDIR(file.mode)):
        return None
    call = shown(held, operation, file.path)._replace(
        flags=file.flags, size=size, offset=offset, size_before=file.size, file=file.file
    )

    def perform(_: int | None) -> int:
        with held.copy(number) as copy:
            act(copy)
        return 0

    return Act(call=call, perform=perform)


def allocate(held: HeldCall, scope: Scope, mode: int, offset: int, size: int) -> Found:
    """fallocate: the call's `size` is the end of the allocated range."""
    words = (mode, offset, size)
    return on_number(
        held, scope, "allocate", lambda file: kernel.system_call("fallocate", file, *words), offset + size, offset
    )


def sync_all(held: HeldCall, scope: Scope) -> Found:
    """sync, of all file systems."""
    return Act(call=shown(held, "sync", ""), perform=lambda _: 0)


def sync_system(held: HeldCall, scope: Scope) -> Found:
    """syncfs, of the root's file system by any descriptor."""
    number = held.number(0)
    try:
        if os.stat(f"/proc/{held.thread}/fd/{number}").st_dev != os.stat(scope.root).st_dev:
            return None
    except OSError:
        return None
    return sync_all(held, scope)


def closing(held: HeldCall, scope: Scope) -> Found:
    """close of a file open for writing: reported only if it is the process's last descriptor of that file."""
    number = held.number(0)
    file = _file(held, scope, number)
    if file is None or not stat.S_ISREG(file.mode) or not file.flags & os.O_ACCMODE:
        return None
    folder = f"/proc/{held.thread}/fd"
    if sum(file_at(f"{folder}/{name}") == file.file for name in os.listdir(folder)) > 1:
        return None
    return Act(call=shown(held, "close", file.path)._replace(file=file.file), perform=None)


def refused(held: HeldCall, scope: Scope, argument: int, error: int) -> Found:
    """Refuse a way to write to a watched file that the door cannot see."""
    return error if _file(held, scope, held.number(argument)) is not None else None


def copied(held: HeldCall, scope: Scope, least: int = 0, close_on_exec: bool = False) -> Found:
    """dup and F_DUPFD: the copy gets a watched descriptor; no decision is needed."""
    number = held.number(0)
    file = _file(held, scope, number)
    if file is None or not file.flags & os.O_ACCMODE or least < 0:
        return None
    return Act(
        call=None,
        perform=lambda _: held.keep(kernel.copy_of(held.pid, held.thread, number)),
        opens=True,
        close_on_exec=close_on_exec,
        number_min=least,
    )


def copied_to(held: HeldCall, scope: Scope, target: int) -> Found:
    """dup2, performed by the process; writes escape if the target is not a watched descriptor."""
    target = signed(target)
    file = None if watched(target, scope.base) else _file(held, scope, held.number(0))
    if file is not None and file.flags & os.O_ACCMODE:
        scope.unseen.append(f"{file.path} was copied to number {target}, on which writes do not stop")
    return None


def mapped(held: HeldCall, scope: Scope) -> Found:
    """mmap of a file for writing, whose writes are not seen."""
    file = _file(held, scope, held.number(4))
    if file is not None:
        scope.unseen.append(f"{file.path} is mapped, and what is written to memory does not stop")
    return None


def listed(held: HeldCall, scope: Scope) -> Found:
    """getdents64, which only reads."""
    inside = relative(scope.root, held.linked(held.number(0)))
    return None if inside is None else Act(call=shown(held, "list", inside), perform=None)

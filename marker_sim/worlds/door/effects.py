"""What each system call means below the root, and how the kit does it in the place of the process.

    paths     found by `paths.py`, then the same call from an open directory and a name
    numbers   of files below the root: a copy of the open file for a moment, so the offset is shared
    neither   splice, sendfile, copy_file_range and reflinks into a file below the root are refused as by a file system
              that has no such thing: callers go back to writing, which is seen byte by byte
    copies    of a number are files of their own with watched numbers, so that writes on them stop as well

What a call names outside of the root, and whatever is no storage (a pipe, a device), the process does itself.
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
from dataclasses import dataclass, field

from marker_sim.worlds.door import kernel
from marker_sim.worlds.door.calls import FileCall
from marker_sim.worlds.door.held import WRITE_BYTES_MAX, HeldCall, OpenFile, signed, watched
from marker_sim.worlds.door.paths import AT_FDCWD, FoundPath, find, relative

_SYMLINK_FOLLOW, _REMOVEDIR, _EMPTY_PATH, _SYMLINK_NOFOLLOW = 0x400, 0x200, 0x1000, 0x100
_IOV_MAX = 1024
_CURRENT = (1 << 64) - 1  # The offset of pwritev2 that means the file's own.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Act:
    """A call below the root. perform does it, a write up to so many bytes, and returns the result.

    call: as it is shown; None for a copy of a number, which nobody is asked about. perform: None when the process does
    it itself.
    opens: what is returned is a number of the kit, which `held` keeps, to be given to the process as `number_min` or
        higher.
    """

    call: FileCall | None
    perform: Callable[[int | None], int] | None
    opens: bool = False
    close_on_exec: bool = False
    number_min: int = 0


@dataclass(slots=True, eq=False)
class Scope:
    """What is watched: files below `root` with numbers from `base`. unseen: what escaped, by sentence."""

    root: str
    base: int
    process: str
    role: str
    unseen: set[str] = field(default_factory=set)


Data = Callable[[], bytes | None]
"""Reads what is to be written; None at a bad address, of which the kernel tells the process."""
Found = Act | int | None
"""An act, the errno with which a call is refused, or None: the process does it itself."""


def read_call(held: HeldCall, scope: Scope) -> Found:
    """What a held call is."""
    meaning = _MEANINGS[held.name]
    return meaning(held, scope, held.arguments)


def _shown(held: HeldCall, scope: Scope, operation: str, path: str | None, target: str | None = "") -> FileCall:
    return FileCall(
        scope.process, scope.role, held.pid, held.thread, held.name, operation, path or "", target or ""
    )  # fmt: skip


def _find(held: HeldCall, scope: Scope, number: int, address: int, follow: bool) -> FoundPath | None:
    path = held.text(address)
    if path is None:
        return None
    if os.readlink(f"/proc/{held.thread}/root") != "/":
        scope.unseen.add(f"process {held.pid} has a root directory of its own")
        return None
    return find(held, scope.root, signed(number), path, follow) if path else None


def _open(held: HeldCall, scope: Scope, number: int, address: int, flags: int, mode: int) -> Found:
    flags = signed(flags)
    exclusive = flags & os.O_CREAT and flags & os.O_EXCL
    found = _find(held, scope, number, address, follow=not (flags & os.O_NOFOLLOW or exclusive))
    if found is None or found.inside is None or not found.storage or flags & os.O_PATH:
        return None
    if not flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC):
        return None if stat.S_ISDIR(found.mode) else _asked(held, scope, "get", found)
    call = _shown(held, scope, "open", found.inside)._replace(flags=flags, size_before=found.size)

    def perform(_: int | None) -> int:
        with held.acting():
            return held.keep(os.open(found.name, flags, mode & 0o7777, dir_fd=found.directory))

    return Act(call=call, perform=perform, opens=True, close_on_exec=bool(flags & os.O_CLOEXEC))


def _at(
    held: HeldCall,
    scope: Scope,
    operation: str,
    name: str,
    number: int,
    address: int,
    *words: int,
    follow: bool = False,
) -> Found:
    """A call of the kernel on one path."""
    found = _find(held, scope, number, address, follow)
    if found is None or found.inside is None:
        return None
    call = _shown(held, scope, operation, found.inside)._replace(size_before=found.size)

    def perform(_: int | None) -> int:
        with held.acting():
            return kernel.system_call(name, found.directory, found.name, *words)

    return Act(call=call, perform=perform)


def _unlink(held: HeldCall, scope: Scope, number: int, address: int, flags: int) -> Found:
    operation = "rmdir" if flags & _REMOVEDIR else "delete"
    return _at(held, scope, operation, "unlinkat", number, address, flags)


def _truncate(held: HeldCall, scope: Scope, address: int, size: int) -> Found:
    found = _find(held, scope, AT_FDCWD, address, follow=True)
    if found is None or found.inside is None:
        return None
    call = _shown(held, scope, "cut", found.inside)._replace(size_before=found.size, size=size)

    def perform(_: int | None) -> int:
        with held.acting():
            os.truncate(b"/proc/self/fd/%d/%b" % (found.directory, found.name), size)
        return 0

    return Act(call=call, perform=perform)


def _two(held: HeldCall, scope: Scope, operation: str, args: tuple[int, int, int, int, int]) -> Found:
    """A rename or a link; one of the two paths may lie outside."""
    number, old, other, new, flags = args
    source: FoundPath | None
    if flags & _EMPTY_PATH and operation == "link" and held.text(old) == b"":
        own = b"/proc/self/fd/%d" % signed(number)
        source, flags = find(held, scope.root, AT_FDCWD, own, follow=True), _SYMLINK_FOLLOW
    else:
        source = _find(held, scope, number, old, follow=operation == "link" and bool(flags & _SYMLINK_FOLLOW))
    target = _find(held, scope, other, new, follow=False)
    if source is None or target is None or (source.inside is None and target.inside is None):
        return None
    if operation == "rename" and source.inside is None:
        scope.unseen.add(f"{target.inside} was moved in from outside, and may have been written there")
    call = _shown(held, scope, operation, source.inside, target.inside)
    call = call._replace(flags=flags, size_before=target.size)
    name = "renameat2" if operation == "rename" else "linkat"

    def perform(_: int | None) -> int:
        with held.acting():
            words = (source.directory, source.name, target.directory, target.name)
            return kernel.system_call(name, *words, flags)

    return Act(call=call, perform=perform)


def _symlink(held: HeldCall, scope: Scope, text: int, number: int, address: int) -> Found:
    found, leads = _find(held, scope, number, address, follow=False), held.text(text)
    if found is None or found.inside is None or leads is None:
        return None
    call = _shown(held, scope, "symlink", found.inside, os.fsdecode(leads))._replace(size_before=found.size)

    def perform(_: int | None) -> int:
        with held.acting():
            return kernel.system_call("symlinkat", leads, found.directory, found.name)

    return Act(call=call, perform=perform)


def _file(held: HeldCall, scope: Scope, number: int) -> tuple[OpenFile, str] | None:
    """An open file below the root, with its path there; None for any other."""
    if relative(scope.root, held.linked(number)) is None:
        return None
    try:
        file = held.open_file(number)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None
        raise
    inside = relative(scope.root, file.path)
    return None if inside is None else (file, inside)


def _write(held: HeldCall, scope: Scope, data: Data, offset: int | None = None, flags: int = 0) -> Found:
    number = held.number(0)
    found = _file(held, scope, number)
    if found is None or not stat.S_ISREG(found[0].mode) or not found[0].flags & os.O_ACCMODE:
        return None
    file, content = found[0], data()
    if content is None:
        return None
    begin = file.offset if offset is None else offset
    call = _shown(held, scope, "write", found[1])._replace(
        flags=file.flags, offset=begin, data=content, size_before=file.size
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
    """Write at an offset, -1 for the file's own. Past the page cache (O_DIRECT) data begins with a page of memory."""
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


def _bytes(held: HeldCall, address: int, size: int) -> Data:
    size = min(size, WRITE_BYTES_MAX)
    return lambda: held.memory(address, size) or (None if size else b"")


def _vector(held: HeldCall, address: int, count: int) -> Data:
    """The pieces that a process has in several places, in order."""

    def data() -> bytes | None:
        pieces = tuple(struct.iter_unpack("=QQ", held.memory(address, 16 * min(count, _IOV_MAX))))
        whole = b"".join(held.memory(begin, min(size, WRITE_BYTES_MAX)) for begin, size in pieces if size)
        return whole or (None if any(size for _, size in pieces) or len(pieces) < count else b"")

    return data


def _on_number(
    held: HeldCall, scope: Scope, operation: str, act: Callable[[int], object], size: int = 0, offset: int = 0
) -> Found:
    """A call on one open file that returns nothing."""
    number = held.number(0)
    found = _file(held, scope, number)
    if found is None or not (stat.S_ISREG(found[0].mode) or stat.S_ISDIR(found[0].mode)):
        return None
    call = _shown(held, scope, operation, found[1])._replace(
        flags=found[0].flags, size=size, offset=offset, size_before=found[0].size
    )

    def perform(_: int | None) -> int:
        with held.copy(number) as copy:
            act(copy)
        return 0

    return Act(call=call, perform=perform)


def _allocate(held: HeldCall, scope: Scope, mode: int, offset: int, size: int) -> Found:
    words = (mode, offset, size)
    return _on_number(
        held, scope, "allocate", lambda file: kernel.system_call("fallocate", file, *words), offset + size, offset
    )  # fmt: skip


def _sync_all(held: HeldCall, scope: Scope) -> Found:
    def perform(_: int | None) -> int:
        os.sync()
        return 0

    return Act(call=_shown(held, scope, "sync", ""), perform=perform)


def _sync_system(held: HeldCall, scope: Scope) -> Found:
    """syncfs: of the root's file system through any number."""
    number = held.number(0)
    try:
        if os.stat(f"/proc/{held.thread}/fd/{number}").st_dev != os.stat(scope.root).st_dev:
            return None
    except OSError:
        return None

    def perform(_: int | None) -> int:
        with held.copy(number) as copy:
            return kernel.system_call("syncfs", copy)

    return Act(call=_shown(held, scope, "sync", ""), perform=perform)


def _refused(held: HeldCall, scope: Scope, argument: int, error: int) -> Found:
    """A way into a file that cannot be seen."""
    return error if _file(held, scope, held.number(argument)) is not None else None


def _copied(held: HeldCall, scope: Scope, least: int = 0, close_on_exec: bool = False) -> Found:
    number = held.number(0)
    found = _file(held, scope, number)
    if found is None or not found[0].flags & os.O_ACCMODE or least < 0:
        return None
    return Act(
        call=None,
        perform=lambda _: held.keep(kernel.copy_of(held.pid, held.thread, number)),
        opens=True,
        close_on_exec=close_on_exec,
        number_min=least,
    )


def _copied_to(held: HeldCall, scope: Scope, target: int) -> Found:
    """dup2: the process does it; a number between those that are watched escapes."""
    target = signed(target)
    found = None if watched(target, scope.base) else _file(held, scope, held.number(0))
    if found is not None and found[0].flags & os.O_ACCMODE:
        scope.unseen.add(f"{found[1]} was copied to number {target}, on which writes do not stop")
    return None


def _mapped(held: HeldCall, scope: Scope) -> Found:
    found = _file(held, scope, held.number(4))
    if found is not None:
        scope.unseen.add(f"{found[1]} is mapped, and what is written to memory does not stop")
    return None


def _asked(held: HeldCall, scope: Scope, operation: str, found: FoundPath | None) -> Found:
    """A call that reads: it is shown, and the process does it itself."""
    if found is None or found.inside is None:
        return None
    return Act(
        call=_shown(held, scope, operation, found.inside)._replace(size_before=found.size), perform=None
    )  # fmt: skip


def _listed(held: HeldCall, scope: Scope) -> Found:
    inside = relative(scope.root, held.linked(held.number(0)))
    return None if inside is None else Act(call=_shown(held, scope, "list", inside), perform=None)


def _stat(held: HeldCall, scope: Scope, number: int, address: int, flags: int = 0) -> Found:
    found = _find(held, scope, number, address, follow=not flags & _SYMLINK_NOFOLLOW)
    return _asked(held, scope, "stat", found)


_C = AT_FDCWD
_MEANINGS: dict[str, Callable[[HeldCall, Scope, tuple[int, ...]], Found]] = {
    "write": lambda h, s, a: _write(h, s, _bytes(h, a[1], a[2])),
    "pwrite64": lambda h, s, a: _write(h, s, _bytes(h, a[1], a[2]), a[3]),
    "writev": lambda h, s, a: _write(h, s, _vector(h, a[1], a[2])),
    "pwritev": lambda h, s, a: _write(h, s, _vector(h, a[1], a[2]), a[3]),
    "pwritev2": lambda h, s, a: _write(h, s, _vector(h, a[1], a[2]), None if a[3] == _CURRENT else a[3], signed(a[5])),
    "open": lambda h, s, a: _open(h, s, _C, a[0], a[1], a[2]),
    "openat": lambda h, s, a: _open(h, s, a[0], a[1], a[2], a[3]),
    "creat": lambda h, s, a: _open(h, s, _C, a[0], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, a[1]),
    "fsync": lambda h, s, a: _on_number(h, s, "sync", os.fsync),
    "fdatasync": lambda h, s, a: _on_number(h, s, "sync", os.fdatasync),
    "sync": lambda h, s, a: _sync_all(h, s),
    "syncfs": lambda h, s, a: _sync_system(h, s),
    "ftruncate": lambda h, s, a: _on_number(h, s, "cut", lambda file: os.ftruncate(file, a[1]), a[1]),
    "fallocate": lambda h, s, a: _allocate(h, s, signed(a[1]), a[2], a[3]),
    "truncate": lambda h, s, a: _truncate(h, s, a[0], a[1]),
    "rename": lambda h, s, a: _two(h, s, "rename", (_C, a[0], _C, a[1], 0)),
    "renameat": lambda h, s, a: _two(h, s, "rename", (a[0], a[1], a[2], a[3], 0)),
    "renameat2": lambda h, s, a: _two(h, s, "rename", (a[0], a[1], a[2], a[3], signed(a[4]))),
    "unlink": lambda h, s, a: _unlink(h, s, _C, a[0], 0),
    "unlinkat": lambda h, s, a: _unlink(h, s, a[0], a[1], signed(a[2])),
    "mkdir": lambda h, s, a: _at(h, s, "mkdir", "mkdirat", _C, a[0], a[1]),
    "mkdirat": lambda h, s, a: _at(h, s, "mkdir", "mkdirat", a[0], a[1], a[2]),
    "rmdir": lambda h, s, a: _unlink(h, s, _C, a[0], _REMOVEDIR),
    "link": lambda h, s, a: _two(h, s, "link", (_C, a[0], _C, a[1], 0)),
    "linkat": lambda h, s, a: _two(h, s, "link", (a[0], a[1], a[2], a[3], signed(a[4]))),
    "symlink": lambda h, s, a: _symlink(h, s, a[0], _C, a[1]),
    "symlinkat": lambda h, s, a: _symlink(h, s, a[0], a[1], a[2]),
    "mknod": lambda h, s, a: _at(h, s, "mknod", "mknodat", _C, a[0], a[1], a[2]),
    "mknodat": lambda h, s, a: _at(h, s, "mknod", "mknodat", a[0], a[1], a[2], a[3]),
    "copy_file_range": lambda h, s, a: _refused(h, s, 2, errno.EXDEV),
    "sendfile": lambda h, s, a: _refused(h, s, 0, errno.EINVAL),
    "splice": lambda h, s, a: _refused(h, s, 2, errno.EINVAL),
    "ioctl": lambda h, s, a: _refused(h, s, 0, errno.EOPNOTSUPP),
    "dup": lambda h, s, a: _copied(h, s),
    "dup2": lambda h, s, a: _copied_to(h, s, a[1]),
    "dup3": lambda h, s, a: _copied_to(h, s, a[1]),
    "fcntl": lambda h, s, a: _copied(h, s, signed(a[2]), signed(a[1]) == fcntl.F_DUPFD_CLOEXEC),
    "mmap": lambda h, s, a: _mapped(h, s),
    "getdents64": lambda h, s, a: _listed(h, s),
    "stat": lambda h, s, a: _stat(h, s, _C, a[0]),
    "lstat": lambda h, s, a: _stat(h, s, _C, a[0], _SYMLINK_NOFOLLOW),
    "newfstatat": lambda h, s, a: _stat(h, s, a[0], a[1], signed(a[3])),
    "statx": lambda h, s, a: _stat(h, s, a[0], a[1], signed(a[2])),
    "access": lambda h, s, a: _stat(h, s, _C, a[0]),
    "faccessat": lambda h, s, a: _stat(h, s, a[0], a[1]),
    "faccessat2": lambda h, s, a: _stat(h, s, a[0], a[1], signed(a[3])),
}

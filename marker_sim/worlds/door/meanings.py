"""Translates each system call that stops at the door, by its name."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable

from marker_sim.worlds.door.effects import (
    REMOVEDIR,
    SYMLINK_NOFOLLOW,
    Found,
    Scope,
    change_path,
    look,
    open_path,
    symlink,
    truncate,
    two_paths,
    unlink,
)
from marker_sim.worlds.door.held import HeldCall, signed
from marker_sim.worlds.door.open_files import (
    allocate,
    closing,
    copied,
    copied_to,
    listed,
    mapped,
    on_number,
    one_piece,
    pieces,
    refused,
    sync_all,
    sync_system,
    transfer,
    write,
)
from marker_sim.worlds.door.paths import AT_FDCWD, LeadsNowhere

_CURRENT = (1 << 64) - 1  # The offset with which pwritev2 uses the file's own.
_C = AT_FDCWD


def _answered(file: int) -> None:
    """Check only that the file is open: worlds/disk.py models syncs below the root, and a real one would be slow."""


_MEANINGS: dict[str, Callable[[HeldCall, Scope, tuple[int, ...]], Found]] = {
    "write": lambda h, s, a: write(h, s, one_piece(h, a[1], a[2])),
    "pwrite64": lambda h, s, a: write(h, s, one_piece(h, a[1], a[2]), a[3]),
    "writev": lambda h, s, a: write(h, s, pieces(h, a[1], a[2])),
    "pwritev": lambda h, s, a: write(h, s, pieces(h, a[1], a[2]), a[3]),
    "pwritev2": lambda h, s, a: write(h, s, pieces(h, a[1], a[2]), None if a[3] == _CURRENT else a[3], signed(a[5])),
    "openat": lambda h, s, a: open_path(h, s, a[0], a[1], a[2], a[3]),
    "creat": lambda h, s, a: open_path(h, s, _C, a[0], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, a[1]),
    "fsync": lambda h, s, a: on_number(h, s, "sync", _answered),
    "fdatasync": lambda h, s, a: on_number(h, s, "sync", _answered),
    "sync": lambda h, s, a: sync_all(h, s),
    "syncfs": lambda h, s, a: sync_system(h, s),
    "ftruncate": lambda h, s, a: on_number(h, s, "cut", lambda file: os.ftruncate(file, a[1]), a[1]),
    "fallocate": lambda h, s, a: allocate(h, s, signed(a[1]), a[2], a[3]),
    "truncate": lambda h, s, a: truncate(h, s, a[0], a[1]),
    "rename": lambda h, s, a: two_paths(h, s, "rename", (_C, a[0], _C, a[1], 0)),
    "renameat": lambda h, s, a: two_paths(h, s, "rename", (a[0], a[1], a[2], a[3], 0)),
    "renameat2": lambda h, s, a: two_paths(h, s, "rename", (a[0], a[1], a[2], a[3], signed(a[4]))),
    "unlink": lambda h, s, a: unlink(h, s, _C, a[0], 0),
    "unlinkat": lambda h, s, a: unlink(h, s, a[0], a[1], signed(a[2])),
    "mkdirat": lambda h, s, a: change_path(h, s, "mkdir", "mkdirat", a[0], a[1], a[2]),
    "rmdir": lambda h, s, a: unlink(h, s, _C, a[0], REMOVEDIR),
    "link": lambda h, s, a: two_paths(h, s, "link", (_C, a[0], _C, a[1], 0)),
    "linkat": lambda h, s, a: two_paths(h, s, "link", (a[0], a[1], a[2], a[3], signed(a[4]))),
    "symlink": lambda h, s, a: symlink(h, s, a[0], _C, a[1]),
    "symlinkat": lambda h, s, a: symlink(h, s, a[0], a[1], a[2]),
    "mknodat": lambda h, s, a: change_path(h, s, "mknod", "mknodat", a[0], a[1], a[2], a[3]),
    "copy_file_range": lambda h, s, a: transfer(h, s, 2, 0, (a[3], a[1]), a[4], errno.EXDEV),
    "sendfile": lambda h, s, a: transfer(h, s, 0, 1, (0, a[2]), a[3], errno.EINVAL),
    "splice": lambda h, s, a: refused(h, s, 2, errno.EINVAL),
    "ioctl": lambda h, s, a: refused(h, s, 0, errno.EOPNOTSUPP),
    "close": lambda h, s, a: closing(h, s),
    "dup": lambda h, s, a: copied(h, s),
    "dup2": lambda h, s, a: copied_to(h, s, a[1]),
    "dup3": lambda h, s, a: copied_to(h, s, a[1]),
    "fcntl": lambda h, s, a: copied(h, s, signed(a[2]), signed(a[1]) == fcntl.F_DUPFD_CLOEXEC),
    "mmap": lambda h, s, a: mapped(h, s),
    "getdents64": lambda h, s, a: listed(h, s),
    "stat": lambda h, s, a: look(h, s, _C, a[0]),
    "lstat": lambda h, s, a: look(h, s, _C, a[0], SYMLINK_NOFOLLOW),
    "newfstatat": lambda h, s, a: look(h, s, a[0], a[1], signed(a[3])),
    "statx": lambda h, s, a: look(h, s, a[0], a[1], signed(a[2])),
    "faccessat": lambda h, s, a: look(h, s, a[0], a[1]),
    "faccessat2": lambda h, s, a: look(h, s, a[0], a[1], signed(a[3])),
}

_AT = {"open": "openat", "mkdir": "mkdirat", "mknod": "mknodat", "access": "faccessat"}
"""Calls whose arguments are those of another one without its directory, which is the current one."""


def read_call(held: HeldCall, scope: Scope) -> Found:
    """Translate the call at which a process is stopped."""
    name, arguments = held.name, held.arguments
    if name in _AT:
        name, arguments = _AT[name], (_C, *arguments)
    try:
        return _MEANINGS[name](held, scope, arguments)
    except LeadsNowhere as nowhere:
        return int(nowhere.args[0])

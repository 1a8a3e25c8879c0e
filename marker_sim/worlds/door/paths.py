"""Resolves the path of a call: the kernel resolves directories as for the process, the kit looks at the last name.

A path begins at the working directory of the process or at a directory that it has open; symbolic links at the last
name are followed one by one. Paths outside the root are left to the process. A path with a missing directory fails as
it would in the process, and is not reported.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import NamedTuple

from marker_sim.worlds.door.held import HeldCall

AT_FDCWD = -100
LINKS_MAX = 40
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.EBADF, errno.ESRCH)
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NUMBERS = re.compile(r"/proc/\d+(/task/\d+)?/fd")


class FoundPath(NamedTuple):
    """A resolved path.

    directory, name: an open directory and the name in it, for the "at" system calls.
    inside: relative to the root, None when it lies outside.
    mode, size: of the file there, 0 and None if there is none.
    """

    directory: int
    name: bytes
    inside: str | None
    mode: int
    size: int | None

    @property
    def storage(self) -> bool:
        """Whether the path holds a file, a directory, a link or nothing, rather than a pipe or device."""
        return not self.mode or stat.S_ISREG(self.mode) or stat.S_ISDIR(self.mode) or stat.S_ISLNK(self.mode)


class LeadsNowhere(Exception):
    """A directory of a path is missing; the argument is the errno of the call."""


def relative(root: str, path: str) -> str | None:
    """A path relative to the root, None when it is outside."""
    if path == root:
        return ""
    return path[len(root) + 1 :] if path.startswith(f"{root}/") else None


def find(held: HeldCall, root: str, number: int, path: bytes, follow: bool) -> FoundPath | None:
    """Resolve the path of a call from an open directory or AT_FDCWD; None when the path cannot be resolved.

    LeadsNowhere when a directory of it is missing: the call fails with this errno. If it were left to the process, the
    directory might exist by then, and the call would not be seen.
    """
    try:
        start = -1
        if not path.startswith(b"/"):
            place = "cwd" if number == AT_FDCWD else f"fd/{number}"
            start = held.keep(os.open(f"/proc/{held.thread}/{place}", os.O_PATH | os.O_CLOEXEC))
        with held.acting():
            return _walk(held, root, start, path, follow)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise LeadsNowhere(error.errno) from None
        if error.errno in _NOWHERE:
            return None
        raise


def _walk(held: HeldCall, root: str, start: int, path: bytes, follow: bool) -> FoundPath | None:
    for _ in range(LINKS_MAX):
        path = held.own(path)
        head, name = os.path.split(path.rstrip(b"/"))
        if name in (b"", b".", b".."):
            head, name = path, b"."
        directory = held.keep(os.open(head or b".", _LOOK, dir_fd=None if start < 0 else start))
        folder = os.readlink(f"/proc/self/fd/{directory}")
        whole = folder if name == b"." else f"{folder.rstrip('/')}/{os.fsdecode(name)}"
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is not None and stat.S_ISLNK(found.st_mode) and (follow or path.endswith(b"/")):
            text = os.readlink(name, dir_fd=directory)
            if not _NUMBERS.fullmatch(folder):
                path, start = text + (b"/" if path.endswith(b"/") else b""), directory
                continue
            # A file given by its descriptor: its path may be gone, so the kernel follows the link itself.
            whole, found = os.fsdecode(text), os.stat(name, dir_fd=directory)
        tail = b"/" if path.endswith(b"/") and name != b"." else b""
        return FoundPath(
            directory,
            name + tail,
            relative(root, whole),
            found.st_mode if found else 0,
            found.st_size if found else None,
        )
    return None

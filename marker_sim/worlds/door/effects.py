"""Calls on paths: translates each into an act below the root, and performs it in the place of the process.

`paths.py` resolves a path; the kit then makes the same call relative to an open directory, with the umask, user and
groups of the process. The process itself performs calls on anything outside of the root and on pipes and devices.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from marker_sim.surroundings import supervisor
from marker_sim.worlds.door import kernel
from marker_sim.worlds.door.calls import FileCall
from marker_sim.worlds.door.held import HeldCall, files_at, signed, written_unseen
from marker_sim.worlds.door.paths import AT_FDCWD, FoundPath, find

_SYMLINK_FOLLOW, REMOVEDIR, _EMPTY_PATH, SYMLINK_NOFOLLOW = 0x400, 0x200, 0x1000, 0x100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Act:
    """A call below the root.

    call: as passed to `decide`; None for the copy of a descriptor, which needs no decision.
    perform: performs the call (a write up to a number of bytes) and returns its result; None when the process does so.
    opens: the result is a descriptor of the kit, kept by `held`; the process gets one of its own, at least
    `number_min`.
    """

    call: FileCall | None
    perform: Callable[[int | None], int] | None
    opens: bool = False
    close_on_exec: bool = False
    number_min: int = 0


@dataclass(slots=True, eq=False)
class Scope:
    """What is watched: files below `root`, at descriptors from `base` on, of all processes below one launcher.

    unseen: sentences about writes that escaped.
    """

    root: str
    base: int
    launcher: int
    unseen: list[str] = field(default_factory=list)


Found = Act | int | None
"""An act, the errno with which a call is refused, or None when the process performs the call itself."""


def shown(held: HeldCall, operation: str, path: str | None, target: str | None = "") -> FileCall:
    """The call as passed to `decide`, without caller and operation's details, which are added later."""
    return FileCall("", "", held.pid, held.thread, held.name, operation, path or "", target or "")


def _find(held: HeldCall, scope: Scope, number: int, address: int, follow: bool) -> FoundPath | None:
    path = held.text(address)
    if path is None:
        return None
    if os.readlink(f"/proc/{held.thread}/root") != "/":
        scope.unseen.append(f"process {held.pid} has a root directory of its own")
        return None
    return find(held, scope.root, signed(number), path, follow) if path else None


def open_path(held: HeldCall, scope: Scope, number: int, address: int, flags: int, mode: int) -> Found:
    """An open that writes or creates; an open that only reads is reported and left to the process."""
    flags = signed(flags)
    exclusive = flags & os.O_CREAT and flags & os.O_EXCL
    found = _find(held, scope, number, address, follow=not (flags & os.O_NOFOLLOW or exclusive))
    if found is None or found.inside is None or not found.storage or flags & os.O_PATH:
        return None
    if not flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC):
        return None if stat.S_ISDIR(found.mode) else asked(held, "get", found)
    call = shown(held, "open", found.inside)._replace(flags=flags, size_before=found.size)

    def perform(_: int | None) -> int:
        with held.acting():
            return held.keep(os.open(found.name, flags, mode & 0o7777, dir_fd=found.directory))

    return Act(call=call, perform=perform, opens=True, close_on_exec=bool(flags & os.O_CLOEXEC))


def change_path(
    held: HeldCall, scope: Scope, operation: str, name: str, number: int, address: int, *words: int
) -> Found:
    """A system call on one name, which does not follow a link."""
    found = _find(held, scope, number, address, follow=False)
    if found is None or found.inside is None:
        return None
    call = shown(held, operation, found.inside)._replace(size_before=found.size, flags=words[0] if words else 0)
    return _acting(held, call, name, found.directory, found.name, *words)


def _acting(held: HeldCall, call: FileCall, name: str, *words: int | bytes) -> Act:
    """One system call, made with the rights of the process."""

    def perform(_: int | None) -> int:
        with held.acting():
            return kernel.system_call(name, *words)

    return Act(call=call, perform=perform)


def unlink(held: HeldCall, scope: Scope, number: int, address: int, flags: int) -> Found:
    """unlinkat of a name or of an empty directory."""
    operation = "rmdir" if flags & REMOVEDIR else "delete"
    return change_path(held, scope, operation, "unlinkat", number, address, flags)


def truncate(held: HeldCall, scope: Scope, address: int, size: int) -> Found:
    """truncate: sets the length of a file given by its path."""
    found = _find(held, scope, AT_FDCWD, address, follow=True)
    if found is None or found.inside is None:
        return None
    call = shown(held, "cut", found.inside)._replace(size_before=found.size, size=size)
    return _acting(held, call, "truncate", b"/proc/self/fd/%d/%b" % (found.directory, found.name), size)


def two_paths(held: HeldCall, scope: Scope, operation: str, args: tuple[int, int, int, int, int]) -> Found:
    """A rename or a link; one of the two paths may lie outside the root."""
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
    call = shown(held, operation, source.inside, target.inside)
    call = call._replace(flags=flags, size_before=target.size)
    name = "renameat2" if operation == "rename" else "linkat"

    def perform(_: int | None) -> int:
        with held.acting():
            words = (source.directory, source.name, target.directory, target.name)
            result = kernel.system_call(name, *words, flags)
        if source.inside is None and target.inside is not None:
            came = files_at(b"/proc/self/fd/%d/%b" % (target.directory, target.name.rstrip(b"/")))
            if written_unseen(supervisor.family(scope.launcher), came, scope.base):
                scope.unseen.append(f"{target.inside} was opened outside, and writes on that number do not stop")
        return result

    return Act(call=call, perform=perform)


def symlink(held: HeldCall, scope: Scope, text: int, number: int, address: int) -> Found:
    """symlinkat; `target` is the text of the link."""
    found, leads = _find(held, scope, number, address, follow=False), held.text(text)
    if found is None or found.inside is None or leads is None:
        return None
    call = shown(held, "symlink", found.inside, os.fsdecode(leads))._replace(size_before=found.size)
    return _acting(held, call, "symlinkat", leads, found.directory, found.name)


def asked(held: HeldCall, operation: str, found: FoundPath | None) -> Found:
    """A call that only reads: it is reported, and the process performs it."""
    if found is None or found.inside is None:
        return None
    return Act(call=shown(held, operation, found.inside)._replace(size_before=found.size), perform=None)


def look(held: HeldCall, scope: Scope, number: int, address: int, flags: int = 0) -> Found:
    """stat and similar calls, which only read."""
    found = _find(held, scope, number, address, follow=not flags & SYMLINK_NOFOLLOW)
    return asked(held, "stat", found)

"""What of a directory is on the disk, by the calls that stopped at the door, and what a loss of power leaves of it.

    fsync of a file        its content and length; not the name of a new one, which ext4 adds and POSIX does not promise
    fsync of a directory   the names in it, as they are then; not what is below them
    O_DSYNC, O_SYNC        each write is followed by an fsync of its file
    sync, syncfs           everything
    a rename               of one directory into another: an fsync of either makes both durable, as in a journal

What was there at the beginning, and what comes from outside, is on the disk. Power is lost in one of three ways, each
of which POSIX allows; ext4 and XFS may leave all of them:

    keeps                names    length of a file           its bytes
    nothing              synced   synced                     synced
    names                now      as synced, if not cut      synced
    names and lengths    now      now                        synced, and zeros for what was added or cut off since

Bytes that were written over since they were synced are the old ones in all of them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from marker_sim.worlds.door.calls import FileCall
from marker_sim.worlds.door.known_files import NO_FILE, FileId, file_of


@dataclass(slots=True, eq=False)
class _Inode:
    """A file, directory or link, of which the rest is on the disk.

    status: when it was made, or seen first. data: of a file, or the text of a link. uncut: how many of these bytes were
    never cut off. names: in a directory. with_it: directories that a rename leads from or to, and no fsync followed.
    """

    status: os.stat_result
    data: bytes = b""
    uncut: int = 0
    names: dict[str, _Inode] = field(default_factory=dict)
    with_it: set[_Inode] = field(default_factory=set)

    def hold(self, data: bytes) -> None:
        """All of it is on the disk."""
        self.data, self.uncut = data, len(data)


class Disk:
    """The disk below a directory. `saw` each call that was done, in their order, before anything else is."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._inodes: dict[FileId, _Inode] = {}
        self._top = self._on_disk("")

    def saw(self, call: FileCall) -> None:  # noqa: C901
        """A call was done."""
        file = call.file
        match call.operation:
            case "open" if call.flags & os.O_TMPFILE == os.O_TMPFILE:
                self._forget_nameless()
            case "open" if call.size_before is None:
                self._make(call.path)
            case "open" if call.flags & os.O_TRUNC:
                self._cut(file_of(os.stat(self._root / call.path)), 0)
            case "mkdir" | "symlink" | "mknod":
                self._make(call.path)
            case "cut":
                self._cut(file if file != NO_FILE else file_of(os.stat(self._root / call.path)), call.size)
            case "write" if call.flags & os.O_DSYNC:
                self._sync_file(call)
            case "rename" | "link" if not call.path and call.target:
                self._on_disk(call.target)
            case "rename" if call.target:
                self._move(call.path, call.target)
            case "link" if call.target and file_of(os.lstat(self._root / call.target)) not in self._inodes:
                self._make(call.target)  # A file that had no name.
            case "sync" if file == NO_FILE:
                self._inodes = {}
                self._top = self._on_disk("")
            case "sync" if file in self._inodes and stat.S_ISDIR(self._inodes[file].status.st_mode):
                self._sync_directory(self._inodes[file], call.path)
            case "sync":
                self._sync_file(call)

    def settle(self, path: str) -> None:
        """What is at a path, or is not, is on the disk."""
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            names = self._inode(folder).names
            names.pop(name, None)
            names[name] = self._on_disk(path)

    def lose_power(self, names: bool, lengths: bool) -> None:
        """The directory becomes what a disk would hold; nobody has a file of it open. names, lengths: are kept."""
        if names or lengths:
            for path in _walk(self._root):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    inode = self._inode(str(path.relative_to(self._root)))
                    left = inode.data[: min(inode.uncut, status.st_size)]
                    _fill(path, left.ljust(status.st_size, b"\0") if lengths else left, status)
        else:
            for path in _walk(self._root):
                self._inode(str(path.relative_to(self._root))).status = os.lstat(path)
            for entry in os.scandir(self._root):
                shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
            _build(self._root, self._top, {})
        self._inodes = {}
        self._top = self._on_disk("")

    def _inode(self, path: str) -> _Inode:
        """What is at a path; on the disk as it is now, if it was not seen before."""
        known = self._inodes.get(file_of(os.lstat(self._root / path)))
        return known if known is not None else self._on_disk(path)

    def _on_disk(self, path: str) -> _Inode:
        """What is at a path and below it, all of it on the disk as it is now."""
        place = self._root / path
        inode = self._make(path)
        mode = inode.status.st_mode
        if stat.S_ISDIR(mode):
            inode.names = {name: self._on_disk(os.path.join(path, name)) for name in os.listdir(place)}
        elif stat.S_ISREG(mode):
            inode.hold(place.read_bytes())
        return inode

    def _make(self, path: str) -> _Inode:
        """What is at a path is new there: nothing of it is on the disk."""
        place = self._root / path
        status = os.lstat(place)
        inode = self._inodes[file_of(status)] = _Inode(status)
        if stat.S_ISLNK(status.st_mode):
            inode.hold(os.fsencode(os.readlink(place)))
        return inode

    def _cut(self, file: FileId, size: int) -> None:
        inode = self._inodes.get(file)
        if inode is not None:
            inode.uncut = min(inode.uncut, size)

    def _move(self, path: str, target: str) -> None:
        source, into = (self._inode(each.rpartition("/")[0]) for each in (path, target))
        if source is not into:
            source.with_it.add(into)
            into.with_it.add(source)

    def _sync_directory(self, inode: _Inode, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # It was removed, and so is in no other one's names.
            found = os.listdir(self._root / path)
            inode.names = {name: self._inode(os.path.join(path, name)) for name in found}
        others, inode.with_it = inode.with_it, set()
        for other in others:
            other.with_it.discard(inode)
        for place in _walk(self._root) if others else ():
            inside = str(place.relative_to(self._root))
            if (other := self._inode(inside)) in others:
                self._sync_directory(other, inside)

    def _sync_file(self, call: FileCall) -> None:
        """The file of a call, which is at its path, or, when it has no name any more, at a number of the caller."""
        numbers = f"/proc/{call.pid}/fd"
        for place in (self._root / call.path, *(Path(numbers, name) for name in os.listdir(numbers))):
            with contextlib.suppress(OSError):
                status = os.stat(place)
                if file_of(status) == call.file:
                    self._inodes.setdefault(call.file, _Inode(status)).hold(place.read_bytes())
                    return

    def _forget_nameless(self) -> None:
        """Files without a name are forgotten: a new one may have the number of an inode that is gone."""
        there = {file_of(os.lstat(path)) for path in (self._root, *_walk(self._root))}
        self._inodes = {file: inode for file, inode in self._inodes.items() if file in there}


def _walk(root: Path) -> Iterator[Path]:
    """All that is below a directory, a directory before what is in it."""
    for folder, folders, names in os.walk(root):
        yield from (Path(folder, name) for name in (*folders, *names))


def _fill(path: Path, data: bytes, status: os.stat_result) -> None:
    """A file holds this, and is the same file."""
    if path.read_bytes() != data:
        os.chmod(path, stat.S_IMODE(status.st_mode) | stat.S_IWUSR)
        path.write_bytes(data)
        os.chmod(path, stat.S_IMODE(status.st_mode))


def _build(folder: Path, inode: _Inode, built: dict[_Inode, Path]) -> None:
    """Make all that the disk has in a directory. built: the files so far, which may have more names. No pipes."""
    for name, child in inode.names.items():
        path, mode = folder / name, child.status.st_mode
        if child in built:
            os.link(built[child], path)
            continue
        if stat.S_ISLNK(mode):
            os.symlink(os.fsdecode(child.data), path)
        elif stat.S_ISDIR(mode):
            path.mkdir()
            _build(path, child, built)
        elif stat.S_ISREG(mode):
            path.write_bytes(child.data)
            built[child] = path
        else:
            continue
        if (child.status.st_uid, child.status.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(path, child.status.st_uid, child.status.st_gid, follow_symlinks=False)
        if not stat.S_ISLNK(mode):
            os.chmod(path, stat.S_IMODE(mode))

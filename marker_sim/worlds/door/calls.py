"""A storage call that stopped at the door, and what can become of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol


class Caller(Protocol):
    """Whose calls these are. ended: nobody of it is answered any more."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def ended(self) -> bool: ...


class FileCall(NamedTuple):
    """A call of a watched process on a file below the root, before it is done.

    process, role: of its caller; pid, thread: the kernel's numbers of who called.
    operation: open, write, cut (truncate, ftruncate), allocate, delete (unlink), rename, link, symlink, mkdir, rmdir,
        mknod, sync (fsync, fdatasync, syncfs, sync); where reads are watched also get (open for reading), list, stat.
    number: of this call among all that were shown, from 1.
    path: relative to the root, "" for the root itself and for what is outside; the kernel adds " (deleted)" to that of
        a file without a name. target: the second path of rename and link, the text of a symlink.
    flags: of an open, or of the open file that is written; of renameat2, linkat and unlinkat; the mode of mknod.
    file: device and inode of the open file of a call on a number, else zeros.
    offset, data: where a write goes, and all that it would write. size: the length of cut, the end of allocate.
    size_before: of the file at the path, None where there was none.
    """

    process: str
    role: str
    pid: int
    thread: int
    system_call: str
    operation: str
    path: str
    target: str = ""
    flags: int = 0
    offset: int = 0
    data: bytes = b""
    size: int = 0
    size_before: int | None = None
    number: int = 0
    file: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of a call; without settings it is done.

    error: the errno that is reported, 0 for none. applied: the call is done all the same.
    bytes_max: a write ends after so many bytes, None for all of them.
    late_ms: it is done and answered later, and other calls meanwhile.
    kill: nobody of the process is answered any more and it is killed, before the call is done or after it; within a
        write: after `bytes_max` of it. alone: the process that called, and not all of its command.
    """

    error: int = 0
    applied: bool = False
    bytes_max: int | None = None
    late_ms: float = 0
    kill: Literal["", "before", "after"] = ""
    alone: bool = False


class CallOutcome(NamedTuple):
    """What became of a call.

    done: whether it took effect, as far as it did. result: what the kernel returned, the bytes of a write.
    error: the errno returned to the caller, from the call itself or from the decision; 0 for success.
    """

    done: bool
    result: int = 0
    error: int = 0


class HeldCalls(NamedTuple):
    """How many calls of a command stopped at the door, and the seconds that the kit worked for them."""

    calls: int = 0
    seconds: float = 0.0

"""A storage call that stopped at the door, the decision about it, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol


class Caller(Protocol):
    """The process or command that made a call. ended: its calls are no longer answered."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def ended(self) -> bool: ...


class FileCall(NamedTuple):
    """A call of a watched process on a file below the root, before it is performed.

    process, role: of its caller; pid, thread: the kernel's ids of the calling process and thread.
    operation: open, write, cut (truncate, ftruncate), allocate, delete (unlink), rename, link, symlink, mkdir, rmdir,
        mknod, sync (fsync, fdatasync, syncfs, sync); where reads are watched also get (open for reading), list, stat.
    number: position among all calls that were decided, from 1.
    path: relative to the root, "" for the root itself and for paths outside; the kernel appends " (deleted)" to the
    path of
        a file without a name. target: the second path of rename and link, the text of a symlink.
    flags: of an open, or of the open file that is written; of renameat2, linkat and unlinkat; the mode of mknod.
    file: device and inode of the open file when the call takes a file descriptor, else zeros.
    offset, data: position and complete content of a write. size: the new length of cut, the end of allocate.
    size_before: of the file at the path, None if there was none.
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
    """What happens to a call; with default values it is performed.

    error: the errno to report, 0 for none. applied: the call is performed although an error is reported.
    bytes_max: a write is cut to this many bytes, None for all of them.
    late_ms: the call is performed and answered after this delay; other calls proceed meanwhile.
    kill: when the caller is killed, "before" or "after" the call (a write: after `bytes_max` of it); nothing of it is
        answered any more. alone: only the process that called is killed, not its whole command.
    """

    error: int = 0
    applied: bool = False
    bytes_max: int | None = None
    late_ms: float = 0
    kill: Literal["", "before", "after"] = ""
    alone: bool = False


class CallOutcome(NamedTuple):
    """The outcome of a call.

    done: whether it took effect, at least partly. result: the kernel's return value, for a write the number of bytes.
    error: the errno returned to the caller, from the call itself or from the decision; 0 for success.
    """

    done: bool
    result: int = 0
    error: int = 0


class HeldCalls(NamedTuple):
    """How many calls of a command stopped at the door, and the seconds that the kit spent on them.

    since: when the kit began with the one that it works on (time.monotonic), 0 for none.
    """

    calls: int = 0
    seconds: float = 0.0
    since: float = 0.0

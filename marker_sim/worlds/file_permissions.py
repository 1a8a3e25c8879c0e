"""Holds whoever opens or writes a file until somebody looked at it: permission events of the kernel (fanotify).

inotify tells afterwards. Here a call waits for our answer before it is done, so that a process can be killed before it
opens a file, and while a file that it cut is still short, at exactly that place.

    operation   event            what is there
    open        FAN_OPEN_PERM    the file as it was: if the open cuts it, that is not done yet
    cut         FAN_PRE_ACCESS   less than when it was opened: it was cut, and what is to be written is not written yet

Needs CAP_SYS_ADMIN; "cut" needs Linux 6.14 and ext4, xfs or btrfs. Nobody is held for good: a call goes on when it was
answered, when the thread fails, and when the descriptor is closed, so also when the kit dies. Directories are marked
and never a mount, so that nobody else on the machine waits for us. Calls of the kit's own process are allowed without
being reported, but in their turn: whoever is told of a call must not wait for a thread that opens a file here.
By ctypes: pyfanotify (0.3.0, July 2024) is a C extension without FAN_PRE_ACCESS that starts a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

OPEN, CUT = "open", "cut"
_MASKS = {OPEN: 0x0001_0000, CUT: 0x0010_0000}  # FAN_OPEN_PERM, FAN_PRE_ACCESS
_ON_CHILD = 0x0800_0000
_CLASS_PRE_CONTENT, _CLOEXEC, _NONBLOCK = 8, 1, 2
_ADD, _REMOVE, _FLUSH = 0x01, 0x02, 0x80
_AT_FDCWD = -100
_ALLOW = 1
_EVENT = struct.Struct("=IBBHQii")  # struct fanotify_event_metadata: length, ..., mask, descriptor, process
_WAKE_MS = 50
_END_S = 2.0


class PermissionEvents:
    """Holds calls on files in directories, each until `told(operation, path)` returns; true: its caller was killed.

    operations: those that are granted for the file system of `root`; refused: why another one is not, "" when all are.
    short_from: how long a file was before it was cut. trouble: what ended it early. The caller of a call that was
    killed is held until it is dead.
    """

    def __init__(self, root: Path, told: Callable[[str, str], object]) -> None:
        self.operations: tuple[str, ...] = ()
        self.refused = ""
        self.short_from: dict[str, int] = {}
        self.trouble: BaseException | None = None
        self._told = told
        self._sizes: dict[str, int] = {}
        self._wanted = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._answer, daemon=True, name="permissions")
        self._number = -1
        try:
            self._number = _checked("fanotify_init", _CLASS_PRE_CONTENT | _CLOEXEC | _NONBLOCK, os.O_RDONLY)
            for operation, mask in _MASKS.items():
                self._mark(_ADD, mask, str(root))
                self._mark(_REMOVE, mask, str(root))
                self.operations += (operation,)
        except OSError as error:
            self.refused = f"{errno.errorcode.get(error.errno or 0, error.errno)} ({error.strerror})"
        if self.operations:
            self._thread.start()
        else:
            self.close()

    def hold(self, operations: Iterable[str], folders: Iterable[str]) -> None:
        """Begin to hold calls of these kinds on files in these directories, and in those that are `add`ed."""
        self._wanted = sum(_MASKS[operation] for operation in self.operations if operation in operations)
        if self._wanted & _MASKS.get(CUT, 0):
            self._wanted |= _MASKS[OPEN]  # Which tells how long a file is before it is cut.
        for folder in folders:
            self.add(folder)

    def add(self, folder: str) -> None:
        """One directory more; one that is gone is fine."""
        if self._wanted and self._number >= 0:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._mark(_ADD, self._wanted, folder)

    def release(self) -> None:
        """Hold no calls from now on."""
        self._wanted = 0
        if self._number >= 0:
            self._mark(_FLUSH, 0, None)

    def close(self) -> None:
        """Let every held call continue, and report no more calls."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(_END_S)
        self._shut()

    def _shut(self) -> None:
        """Let every held call continue."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def _mark(self, flags: int, mask: int, folder: str | None) -> None:
        mask = ctypes.c_uint64(mask | (_ON_CHILD if mask else 0)).value
        path = None if folder is None else os.fsencode(folder)
        _checked("fanotify_mark", self._number, flags, ctypes.c_uint64(mask), _AT_FDCWD, path)

    def _answer(self) -> None:
        waiting = select.poll()
        waiting.register(self._number, select.POLLIN)
        try:
            while not self._over.is_set():
                if waiting.poll(_WAKE_MS):
                    self._answer_those(os.read(self._number, 64 * _EVENT.size))
        except BaseException as error:
            if not self._over.is_set():
                self.trouble = error
            self._shut()

    def _answer_those(self, data: bytes) -> None:
        while data:
            length, _, _, _, mask, number, process = _EVENT.unpack_from(data)
            data = data[length:]
            try:
                if process != os.getpid():
                    self._look(mask, number, process)
            finally:
                with contextlib.suppress(FileNotFoundError):  # Its caller died while it was held.
                    os.write(self._number, struct.pack("=iI", number, _ALLOW))
                os.close(number)

    def _look(self, mask: int, number: int, process: int) -> None:
        path, size = os.readlink(f"/proc/self/fd/{number}"), os.fstat(number).st_size
        held = self._sizes.get(path, 0)
        if not mask & _MASKS[OPEN] and size < held:
            self.short_from[path] = held
            operation = CUT
        else:
            self._sizes[path] = size
            if not mask & _MASKS[OPEN]:
                return
            operation = OPEN
        if self._told(operation, path):
            _wait_for_the_end(process)


def granted(folder: Path) -> tuple[tuple[str, ...], str]:
    """The operations that can be held in a directory, and why others cannot, "" when all can."""
    events = PermissionEvents(folder, lambda operation, path: False)
    events.close()
    return events.operations, events.refused


def _wait_for_the_end(process: int) -> None:
    """Wait until a killed process is dead: if its call were answered before, it might still carry it out."""
    try:
        number = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        select.select([number], [], [], _END_S)
    finally:
        os.close(number)


def _checked(name: str, *words: object) -> int:
    """A function of the C library; OSError when it fails or is not there."""
    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    number: int = function(*words)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number

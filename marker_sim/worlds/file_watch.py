"""Tells what processes of other people do to the files below a directory, so that faults can be aimed at it.

The kernel (inotify) tells after the effect, and only then can anything strike: a crash point here is "as soon as the
kernel told us", never before an effect, and the writer goes on until the signal takes effect. Measured on 2 cores under
load, 100 kills each of a Python writer of small files: the signal left 0.06 ms after the file was closed (median), and
the writer made no further file at 1 ms a file (99 in 100 kills: at most 11) and 4 at full speed (90 in 100: at most
178, when somebody else had the core).

    moment        event               what is there
    create        IN_CREATE           an empty file
    modify        IN_MODIFY           a part of its content, or all
    close-write   IN_CLOSE_WRITE      all that its writer wrote
    moved-to      IN_MOVED_TO         a whole file under its new name
    delete        IN_DELETE           nothing; moved-from (IN_MOVED_FROM) is the same for the old name
    cut           IN_MODIFY           less than there was: a file that had content is emptied to be written again

The first four are told as the operation "put", the next two as "delete", each moment as a call of its own: whoever aims
at the n-th file chooses the moment that happens once for each, by `moments`. A cut that lasts shorter than it takes to
look is not seen, and a writer that is killed at it may be done before it dies: `stayed_short` says whether it was.

Where the kernel grants permission events (file_permissions.py) and a fault is at the operation "cut" or "open", the
call is reported before it is done and its caller held until then: such a fault strikes exactly. There is no other way
to see "open".
Limits: Linux. Directories made while we watch are watched from a moment after they were made; what they hold by then is
found by a scan and told as "put", and a file that is being written during that scan may be told twice. Symbolic links
are not followed. A queue that overflows ends the watch with HarnessError.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from inotify_simple import Event, INotify, flags  # type: ignore[import-untyped, unused-ignore]

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FaultKind
from marker_sim.worlds.file_permissions import CUT, PermissionEvents
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

Moment = Literal["create", "modify", "close-write", "moved-to", "delete", "moved-from", "cut"]
WHOLE: tuple[Moment, ...] = ("close-write", "moved-to", "delete", "moved-from")
_FLAGS: dict[Moment, int] = {
    "create": flags.CREATE,
    "modify": flags.MODIFY,
    "close-write": flags.CLOSE_WRITE,
    "moved-to": flags.MOVED_TO,
    "delete": flags.DELETE,
    "moved-from": flags.MOVED_FROM,
    "cut": flags.MODIFY | flags.CLOSE_WRITE | flags.DELETE,
}
_PUTS = ("create", "modify", "close-write", "moved-to")
_ALWAYS = flags.CREATE | flags.MOVED_TO | flags.MOVED_FROM | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
_WAKE_MS = 50
_END_S = 5.0
_FIRST = -20
_State = tuple[int, int, int]


class Watch:
    """Watches a directory tree while the block runs, in a thread of its own; what was there before is not reported.

    told: an interceptor whose faults count every call, or a function that returns whether a process was killed;
        called in the order of the kernel's events, and by another thread for calls that are held.
    gate: whose faults decide which calls to hold, when `told` is a function.
    process, role: the process that is assumed to make the calls at this moment (the kernel does not say). Paths of
        calls are relative to the root.
    operations: those that faults may name besides put and delete, with "cut" among the moments.
    exact: whether its caller is held at a cut. HarnessError at the end of the block, or from `check`, when something
        was missed.
    """

    def __init__(
        self,
        root: Path,
        told: Interceptor | Callable[[StorageCall], object],
        *,
        process: Callable[[], str] = lambda: "",
        role: str = "timeline-server",
        moments: tuple[Moment, ...] = WHOLE,
        interceptor: Interceptor | None = None,
    ) -> None:
        unknown = [moment for moment in moments if moment not in _FLAGS]
        if unknown or not moments:
            raise UsageError(f"{moments} are not moments of a file; there are {', '.join(_FLAGS)}")
        self.told = 0
        self._root = str(root)
        self._tell = _passing(told) if isinstance(told, Interceptor) else told
        self._process = process
        self._role = role
        self._moments = moments
        self._mask = _ALWAYS
        for moment in moments:
            self._mask |= _FLAGS[moment] if moment != CUT else 0
        self._sizes: dict[str, int] = {}
        self._short_from: dict[str, int] = {}
        self._permissions: PermissionEvents | None = None
        self.operations: tuple[str, ...] = ()
        self._interceptor = told if isinstance(told, Interceptor) else interceptor
        self._folders: dict[int, str] = {}
        self._scanned: dict[str, _State] = {}
        self._trouble: list[BaseException] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watch")

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None:
            self.check()

    def start(self) -> None:
        """Watch from now on; for those who cannot use a block. HarnessError when the root cannot be watched."""
        if CUT in self._moments:
            self._permissions = PermissionEvents(Path(self._root), self._held)
            self.operations = tuple(dict.fromkeys((CUT, *self._permissions.operations)))
            self._mask |= 0 if self.exact else _FLAGS[CUT]
            if self._interceptor is not None:
                self._interceptor.aimed = self._hold
        try:
            self._inotify = INotify(nonblocking=True)
            self._add("", tell=False)
        except OSError as error:
            raise HarnessError(f"{self._root} cannot be watched: {error.strerror or error}") from error
        if not self._folders:
            raise HarnessError(f"{self._root} cannot be watched: it is no directory")
        self._thread.start()

    @property
    def exact(self) -> bool:
        """Whether the writer of a file is held while a cut of it is reported."""
        return self.holds(CUT)

    def holds(self, operation: str) -> bool:
        """Whether calls of a kind are reported while their callers are held, by the thread that lets callers go on."""
        return self._permissions is not None and operation in self._permissions.operations

    def stayed_short(self, path: str) -> bool:
        """Whether a file is shorter now than before it was last cut, or gone: its writer did not finish."""
        full = self._full(path)
        try:
            size = os.stat(full).st_size
        except FileNotFoundError:
            size = 0
        held = self._permissions.short_from.get(full, 0) if self._permissions is not None and self.exact else 0
        return size < (held or self._short_from.get(path, 0))

    def close(self) -> None:
        """Report no more calls, and let every held one continue."""
        if self._permissions is not None:
            self._permissions.close()
        self._over.set()
        self._thread.join(_END_S)
        self._inotify.close()

    def check(self) -> None:
        """HarnessError when events were lost, or when telling one failed."""
        if self._permissions is not None and self._permissions.trouble is not None:
            self._trouble.append(self._permissions.trouble)
        if self._trouble:
            error = self._trouble[0]
            raise HarnessError(f"the watch of {self._root} ended early: {error}") from error

    def _watch(self) -> None:
        with contextlib.suppress(OSError):  # Who may not be quicker than others is as quick as they are.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST)
        try:
            while not self._over.is_set():
                for event in self._inotify.read(timeout=_WAKE_MS):
                    self._happened(event)
        except BaseException as error:
            self._trouble.append(error)

    def _happened(self, event: Event) -> None:
        if event.mask & flags.Q_OVERFLOW:
            raise HarnessError("the kernel's queue of events overflowed")
        folder = self._folders.get(event.wd)
        if folder is None:
            return
        if event.mask & flags.IGNORED:
            del self._folders[event.wd]
            return
        path = f"{folder}/{event.name}" if folder else event.name
        if event.mask & flags.ISDIR:
            if event.mask & flags.MOVED_FROM:
                self._forget(path)
            elif event.mask & (flags.CREATE | flags.MOVED_TO):
                self._add(path, tell=True)
            return
        if CUT in self._moments and not self.exact:
            self._follow(event, path)
        for moment in self._moments:
            if moment != CUT and event.mask & _FLAGS[moment]:
                if moment in _PUTS and self._was_scanned(path):
                    continue
                self._say("put" if moment in _PUTS else "delete", path)

    def _follow(self, event: Event, path: str) -> None:
        """Keep the sizes of files; report as cut one that is shorter than before and was not made anew."""
        if event.mask & (flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO):
            self._sizes.pop(path, None)
        try:
            size = os.stat(self._full(path), follow_symlinks=False).st_size
        except OSError:
            return
        held = self._sizes.get(path, 0)
        if event.mask & flags.MODIFY and size < held:
            self._short_from[path] = held
            self._say(CUT, path)
        else:
            self._sizes[path] = size

    def _hold(self, armed: tuple[ArmedFault, ...]) -> None:
        """Hold calls only while a fault waits for them: each costs its caller a fraction of a millisecond."""
        assert self._permissions is not None
        wanted = {operation for each in armed for operation in each.call.operations}
        if wanted & set(self._permissions.operations):
            self._permissions.hold(wanted, [self._full(folder) for folder in list(self._folders.values())])
        else:
            self._permissions.release()

    def _held(self, operation: str, full: str) -> object:
        return self._say(operation, full[len(self._root) + 1 :])

    def _add(self, path: str, tell: bool) -> None:
        """Watch a directory and all below it, then look for what came before the watch. One that is gone is fine."""
        try:
            number = self._inotify.add_watch(self._full(path), self._mask)
        except (FileNotFoundError, NotADirectoryError):
            return
        if self._folders.get(number) == path:
            return  # The scan of its parent found it before the event of its making was read.
        self._folders[number] = path
        if self._permissions is not None:
            self._permissions.add(self._full(path))
        for name, is_folder, state in _entries(self._full(path)):
            below = f"{path}/{name}" if path else name
            if is_folder:
                self._add(below, tell)
                continue
            self._sizes[below] = state[1]
            if tell:
                self._scanned[below] = state
                self._say("put", below)

    def _was_scanned(self, path: str) -> bool:
        """Whether an event reports what a scan reported already: the file is still as the scan found it."""
        known = self._scanned.get(path)
        if known is None:
            return False
        try:
            return known == _state(os.stat(self._full(path), follow_symlinks=False))
        except OSError:
            return False

    def _forget(self, path: str) -> None:
        """A directory went elsewhere: its watches would tell wrong paths."""
        for number, folder in list(self._folders.items()):
            if folder == path or folder.startswith(f"{path}/"):
                del self._folders[number]
                try:
                    self._inotify.rm_watch(number)
                except OSError:
                    continue  # The directory is gone, and the watch with it.

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _say(self, operation: str, path: str) -> object:
        self.told += 1
        return self._tell(StorageCall(self._process(), self._role, operation, path))


def signals(recorder: Recorder, pids: Callable[[], Iterable[int]]) -> Callable[[ArmedFault, StorageCall], None]:
    """The effect of a fault: SIGKILL or SIGSTOP for these processes, recorded as a fault of the call's process.

    A pause is begun and not ended: whoever armed it sends SIGCONT and records the end. AssertionError for a fault
    of another kind, which a storage that nobody stands in front of cannot do.
    """

    def inject(armed: ArmedFault, call: StorageCall) -> None:
        assert armed.kind in (FaultKind.KILL, FaultKind.PAUSE), f"{armed.kind} cannot be done from outside"
        kill = armed.kind is FaultKind.KILL
        number = signal.SIGKILL if kill else signal.SIGSTOP

        def send() -> None:
            for pid in pids():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

        recorder.fault(call.process, armed.kind.value, None if kill else "begin", path=call.path, act=send)

    return inject


def _passing(interceptor: Interceptor) -> Callable[[StorageCall], bool]:
    """A call passes the interceptor when it is over or held: faults before and after it strike at the same moment."""

    def told(call: StorageCall) -> bool:
        with interceptor.lock:
            armed = interceptor.strike(call)
            interceptor.passed_by(armed, call)
            return armed is not None

    return told


def _entries(folder: str) -> Iterator[tuple[str, bool, _State]]:
    """Names in a directory, sorted, whether each is a directory, and the state of each; what is gone is left out."""
    try:
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        try:
            yield entry.name, entry.is_dir(follow_symlinks=False), _state(entry.stat(follow_symlinks=False))
        except OSError:
            continue


def _state(stat: os.stat_result) -> _State:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns

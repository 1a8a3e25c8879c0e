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

The first four are told as the operation "put", the last two as "delete", each moment as a call of its own: whoever aims
at the n-th file chooses the moment that happens once for each, by `moments`.
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
from marker_sim.real.gate import Aim, Call, Gate
from marker_sim.real.recorder import Recorder

Moment = Literal["create", "modify", "close-write", "moved-to", "delete", "moved-from"]
WHOLE: tuple[Moment, ...] = ("close-write", "moved-to", "delete", "moved-from")
_FLAGS: dict[Moment, int] = {
    "create": flags.CREATE,
    "modify": flags.MODIFY,
    "close-write": flags.CLOSE_WRITE,
    "moved-to": flags.MOVED_TO,
    "delete": flags.DELETE,
    "moved-from": flags.MOVED_FROM,
}
_PUTS = ("create", "modify", "close-write", "moved-to")
_ALWAYS = flags.CREATE | flags.MOVED_TO | flags.MOVED_FROM | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
_WAKE_MS = 50
_END_S = 5.0
_FIRST = -20
_State = tuple[int, int, int]


class Watch:
    """Watches a directory tree while the block runs, in a thread of its own; what was there before is not told.

    told: a gate whose aims count every call, or a function; called in the order of the kernel's events. process: who is
    held to have made a call made at this moment (the kernel does not say), role: what that process is. Paths of calls
    are relative to the root. HarnessError at the end of the block, or from `check`, when something was missed.
    """

    def __init__(
        self,
        root: Path,
        told: Gate | Callable[[Call], object],
        *,
        process: Callable[[], str] = lambda: "",
        role: str = "timeline-server",
        moments: tuple[Moment, ...] = WHOLE,
    ) -> None:
        unknown = [moment for moment in moments if moment not in _FLAGS]
        if unknown or not moments:
            raise UsageError(f"{moments} are not moments of a file; there are {', '.join(_FLAGS)}")
        self.told = 0
        self._root = str(root)
        self._tell = _passing(told) if isinstance(told, Gate) else told
        self._process = process
        self._role = role
        self._moments = moments
        self._mask = _ALWAYS
        for moment in moments:
            self._mask |= _FLAGS[moment]
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
        try:
            self._inotify = INotify(nonblocking=True)
            self._add("", tell=False)
        except OSError as error:
            raise HarnessError(f"{self._root} cannot be watched: {error.strerror or error}") from error
        if not self._folders:
            raise HarnessError(f"{self._root} cannot be watched: it is no directory")
        self._thread.start()

    def close(self) -> None:
        """Nothing more is told."""
        self._over.set()
        self._thread.join(_END_S)
        self._inotify.close()

    def check(self) -> None:
        """HarnessError when events were lost, or when telling one failed."""
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
        for moment in self._moments:
            if event.mask & _FLAGS[moment]:
                if moment in _PUTS and self._was_scanned(path):
                    continue
                self._say("put" if moment in _PUTS else "delete", path)

    def _add(self, path: str, tell: bool) -> None:
        """Watch a directory and all below it, then look for what came before the watch. One that is gone is fine."""
        try:
            number = self._inotify.add_watch(self._full(path), self._mask)
        except (FileNotFoundError, NotADirectoryError):
            return
        if self._folders.get(number) == path:
            return  # The scan of its parent found it before the event of its making was read.
        self._folders[number] = path
        for name, is_folder, state in _entries(self._full(path)):
            below = f"{path}/{name}" if path else name
            if is_folder:
                self._add(below, tell)
            elif tell:
                self._scanned[below] = state
                self._say("put", below)

    def _was_scanned(self, path: str) -> bool:
        """Whether an event tells what a scan told already: the file is still what the scan found."""
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

    def _say(self, operation: str, path: str) -> None:
        self.told += 1
        self._tell(Call(self._process(), self._role, operation, path))


def signals(recorder: Recorder, pids: Callable[[], Iterable[int]]) -> Callable[[Aim, Call], None]:
    """What a gate does at an aim: SIGKILL or SIGSTOP for these processes, recorded as a fault of the call's process.

    A pause is begun and not ended: whoever armed it sends SIGCONT and records the end. AssertionError for an aim
    of another kind, which a storage that nobody stands in front of cannot do.
    """

    def hurt(aim: Aim, call: Call) -> None:
        assert aim.kind in (FaultKind.KILL, FaultKind.PAUSE), f"{aim.kind} cannot be done from outside"
        kill = aim.kind is FaultKind.KILL
        number = signal.SIGKILL if kill else signal.SIGSTOP

        def send() -> None:
            for pid in pids():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

        recorder.fault(call.process, aim.kind.value, None if kill else "begin", path=call.path, act=send)

    return hurt


def _passing(gate: Gate) -> Callable[[Call], None]:
    """A call passes a gate when it is over: aims before and after it strike at the same moment."""

    def told(call: Call) -> None:
        with gate.lock:
            gate.passed_by(gate.strike(call), call)

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

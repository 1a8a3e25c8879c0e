"""A local directory under runs of real servers.

It is made to fail without destroying what was answered: directories stand where the marker files of a marker directory
that has none yet would be written, or RLIMIT_FSIZE of the servers' processes is lowered to the size of the largest
marker file (writes beyond it fail with EFBIG, as on a full disk; SIGXFSZ is left to the server's runtime, and JVM and
Python ignore it). A plan that asks for a disk without a free block has a small file system of its own (small_disk.py).

Kills and pauses come as soon as the kernel reports a complete file, which is after the call; kills also when a file
with content is cut, and before a file is opened, as far as file_watch.py can see that.
"""

from __future__ import annotations

import contextlib
import re
import resource
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.names import MarkerDirectory, marker_file
from marker_sim.worlds.file_permissions import CUT
from marker_sim.worlds.http.file_rewrites import Rewrites
from marker_sim.worlds.http.local_reader import LocalReader
from marker_sim.worlds.http.small_disk import SmallDisk
from marker_sim.worlds.http.stage import RunStage
from marker_sim.worlds.http.world import DirectoryReader, Surroundings
from marker_sim.worlds.interceptor import Interceptor, StorageCall

if TYPE_CHECKING:
    from marker_sim.worlds.file_watch import Watch
    from marker_sim.worlds.proxies.toxiproxy import ProxiedWire

HANDS_S = 10.0  # Longer than a kill and a look at storage take.
IO_ERROR, DISK_FULL, NO_SPACE = FaultKind.IO_ERROR.value, FaultKind.DISK_FULL.value, FaultKind.NO_SPACE.value
FORMS: dict[str, Callable[[Path], str]] = {
    "path": str,
    "file": lambda path: f"file:{path}",
}


class LocalWorld:
    """A directory below `root`: a server may have its storage for itself while another run goes on.

    form: a key of `FORMS`.
    command: the user's reader, or "".
    """

    def __init__(self, stage: RunStage, root: Path, form: str, command: str) -> None:
        self.interceptor: Interceptor | None = None
        self.whens: tuple[When, ...] = ()
        self.rewrites: Rewrites | None = None
        self.wire: ProxiedWire | None = None
        self._root = root / stage.storage
        self._form = FORMS[form]
        self._command = command
        self._layout = "names" if command else "hudi"
        self._full: list[tuple[int, tuple[int, int]]] = []
        self._removed = 0
        self._disk: SmallDisk | None = None
        if stage.small_disk:
            self._root.mkdir(parents=True)
            self._disk = SmallDisk(self._root)
        self._watch: Watch | None = None
        self.bind(stage)

    def bind(self, stage: RunStage) -> LocalWorld:
        """The next run below the same root."""
        self.end_run()
        self._stage = stage
        self._filled: Counter[FaultKind] = Counter()
        self._obstacles: list[str] = []
        self.reader: DirectoryReader = LocalReader(
            stage.recorder, self._root, stage.injector.pids, self._command, stage.rng
        )
        self._mine = self._root / stage.table
        self._mine.mkdir(parents=True)
        self.whens = ("after",)
        if not self._command:  # Triggers go by the names of Hudi's files.
            self._aim_at_files(stage)
        return self

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""
        return {
            "storage": "local",
            "witness": "reads",
            "layout": self._layout,
            "capabilities": {"put_if_absent": True, "atomic_replace": True},
        }

    def address(self, place: MarkerDirectory) -> str:
        """The directory in the form asked for."""
        return self._form(self._root / place.path)

    def surroundings(self, process: str) -> Surroundings:
        """{storage} is the root, and nothing is in the environment."""
        return Surroundings({"storage": str(self._root)}, {})

    def echo(self) -> None:
        """Nothing: the file system is no part of the kit, so its delays are not the kit's."""

    def begin(self, fault: Fault) -> bool:
        """The disk is full for all servers that live, or marker files cannot be written, if any is to be made."""
        if fault.kind is FaultKind.IO_ERROR:
            return self._obstruct(fault)
        if fault.kind is FaultKind.NO_SPACE and (self._disk is None or not self._disk.mounted):
            return False
        self._filled[fault.kind] += 1
        if self._filled[fault.kind] == 1:
            self._fill_disk(fault.kind)
        return True

    def heal(self, fault: Fault) -> None:
        """The files can be written again, or the disk has room, unless another fault fills it too."""
        if fault.kind is FaultKind.IO_ERROR:
            while self._obstacles:
                self._remove_obstacle(self._obstacles.pop())
            return
        if not self._filled[fault.kind]:
            return  # It met nothing.
        self._filled[fault.kind] -= 1
        if not self._filled[fault.kind]:
            self._free_disk(fault.kind)

    def remove(self, place: MarkerDirectory, process: str) -> None:
        """Remove a marker directory; readers see it vanish in one step."""
        self._removed += 1
        away = self._root / f".removed-{self._removed}"
        with contextlib.suppress(FileNotFoundError):
            (self._root / place.path).rename(away)
            for _ in range(5):  # A server that has the directory open may put a file into it meanwhile.
                shutil.rmtree(away, ignore_errors=True)

    def end_run(self) -> None:
        """End the watch on the files of the last run."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def close(self) -> None:
        """Remove what was stored."""
        self.end_run()
        if self._disk is not None:
            self._disk.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def _aim_at_files(self, stage: RunStage) -> None:
        """Report complete files to the interceptor; under `hands`, so that no read of storage is disturbed."""
        from marker_sim.worlds.file_watch import Watch

        injector = stage.injector
        interceptor = self.interceptor = Interceptor(stage.recorder, injector.inject)

        def told(call: StorageCall) -> bool:
            put, below = call.operation == "put", call.path
            if put and not rewrites.put(below):
                return False  # Made and not written yet; a file that is linked to its name is made whole.
            # The holder of `hands` may open a file here, which the thread that holds calls has to allow: it never waits
            # for `hands`. It waits for the recorder's lock alone, under which nobody opens a file that is watched.
            if not injector.hands.acquire(timeout=0 if watch.holds(call.operation) else HANDS_S):
                return False
            try:
                with interceptor.lock:
                    armed = interceptor.strike(call := call._replace(path=f"{stage.table}/{below}"))
                    interceptor.passed_by(armed, call)
                    struck = armed is not None
                    if call.operation == CUT:
                        rewrites.cut(below, struck)
                    return struck
            finally:
                injector.hands.release()

        watch = self._watch = Watch(
            self._mine,
            told,
            process=lambda: next((server.name for server in injector.servers), ""),
            moments=("create", "close-write", "moved-to", "cut"),
            interceptor=interceptor,
        )
        rewrites = self.rewrites = Rewrites(self._mine, watch)
        watch.start()

    def _obstruct(self, fault: Fault) -> bool:
        """Make writing the marker files of a fault fail that do not exist so far.

        Where nobody knows how files are called, a file stands where the directory would be made, if none is there.
        """
        assert isinstance(fault.trigger, Call)
        below, injector = re.compile(fault.trigger.pattern), self._stage.injector
        for place in self._stage.places:
            files = tuple(map(marker_file, range(injector.num_threads)))
            names = tuple(name for name in files if below.search(f"{place.path}/{name}"))
            for name in names[:1] and ("",) if self._command else names:
                path = f"{place.path}/{name}"
                with contextlib.suppress(FileExistsError):
                    (self._root / path).parent.mkdir(parents=True, exist_ok=True)
                    (self._root / path).touch(exist_ok=False) if self._command else (self._root / path).mkdir()
                    injector.recorder.fault(f"storage-{len(self._obstacles)}", IO_ERROR, "begin", path)
                    self._obstacles.append(path)
        return bool(self._obstacles)

    def _remove_obstacle(self, path: str) -> None:
        recorder = self._stage.injector.recorder
        try:
            if self._command:
                (self._root / path).unlink()
            else:
                (self._root / path).rmdir()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass  # The server did away with what stood in its way, for itself or with its whole directory.
        except OSError:
            recorder.fault("storage", "damage", path=path)
            shutil.rmtree(self._root / path)
        recorder.fault(f"storage-{len(self._obstacles)}", IO_ERROR, "end", path)

    def _fill_disk(self, kind: FaultKind) -> None:
        """Fill the disk, or limit the size of each server's files to that of the largest marker file."""
        injector = self._stage.injector
        if kind is FaultKind.NO_SPACE:
            assert self._disk is not None
            injector.recorder.fault("storage", NO_SPACE, "begin", act=self._disk.fill)
            injector.note("no space left")
            return
        sizes = [path.stat().st_size for path in self._mine.rglob("MARKERS*") if path.is_file()]
        size_bytes = max(sizes, default=0)
        injector.recorder.fault("storage", DISK_FULL, "begin")
        for pid in injector.pids():
            try:
                before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, before[1]))
            except (ProcessLookupError, PermissionError):
                continue
            self._full.append((pid, before))
        injector.note("disk full")

    def _free_disk(self, kind: FaultKind) -> None:
        injector = self._stage.injector
        if kind is FaultKind.NO_SPACE:
            assert self._disk is not None
            injector.recorder.fault("storage", NO_SPACE, "end", act=self._disk.free)
            return
        for pid, before in self._full:
            try:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            except (ProcessLookupError, PermissionError):
                continue
        self._full.clear()
        injector.recorder.fault("storage", DISK_FULL, "end")

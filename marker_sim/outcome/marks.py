"""Finds coverage goals in the events of a run; coverage/goals.py has their sentences.

process_phase.py feeds it the events of one run in order; `seen` counts by name. The memory of a server is inferred:
all batch files were being written when a create arrived if each was then written without its name, because any later
batch would include every waiting name.
"""

from __future__ import annotations

from collections import Counter

from marker_sim.history import APPLICATION_ENDED, Event, History
from marker_sim.history.index.calls import DAMAGE, DEADLY, LISTINGS, MS
from marker_sim.history.index.presence import directory_of
from marker_sim.names import TEMP, TYPE_BATCHED, TYPE_FILE, data_path, is_append, marker_file_index

_SERVER = "timeline-server"
_MANY_TASKS = 100
_Place = tuple[str | None, str | None]


class PendingRequest:
    """A request that a server received and has not answered.

    written: the effect that stored its name, -1 for none.
    missed: marker files that were written without it since it arrived.
    """

    __slots__ = ("line", "missed", "name", "operation", "place", "written")

    def __init__(self, invoke: Event) -> None:
        self.operation = invoke.operation
        self.place = f"{invoke.table}{TEMP}{invoke.instant}"
        self.name = invoke.path or ""
        self.line = self.name.encode("utf-8", "surrogatepass") + b"\n"
        self.written = -1
        self.missed: set[str] = set()


class CoverageMarks:
    """What must be known of one run to find coverage goals. of_writes: whether a write client acts in it."""

    def __init__(self, history: History) -> None:
        header = history.header
        self.seen: Counter[str] = Counter()
        plan = header.plan
        begun = (event for event in history.events if event.operation == "begin")
        self.of_writes = any(begun) if plan is None else bool(plan.get("writes"))
        self.started: dict[str, int] = {}
        self.waiting: dict[str, dict[int, PendingRequest]] = {}
        self.attempts: dict[int, str] = {}
        self.replied: set[int] = set()
        self._threads = header.num_threads
        self._own_format = header.layout == "names"  # Its histories do not show when a batch was written.
        self._timeout_ns = header.storage_timeout_ms * MS
        self._rest_ns = self._timeout_ns + header.late_effect_ms * MS
        self._invokes: dict[int, Event] = {}
        self._received: dict[int, PendingRequest] = {}
        self._servers: dict[int, str] = {}
        self._dead: set[str] = set()
        self._asking: dict[tuple[_Place, str | None], dict[int, Event]] = {}
        self._met: dict[int, Event] = {}
        self._creators: dict[tuple[_Place, str | None], object] = {}
        self._open_creates: Counter[_Place] = Counter()
        self._open_deletes: Counter[_Place] = Counter()
        self._open_lists: Counter[str] = Counter()
        self._deleted: set[_Place] = set()
        self._files: dict[str, bytes] = {}
        self._below: dict[str, set[str]] = {}
        self._writers: dict[str, list[str]] = {}
        self._torn: set[str] = set()
        self._damaged: dict[str, int] = {}
        self._stray: set[str] = set()
        self._earlier: dict[_Place, str] = {}
        self._paths: dict[str, Event] = {}
        self._zombies: set[str] = set()
        self._finalized: set[_Place] = set()
        self._stages: dict[_Place, set[str]] = {}
        self._tasks: Counter[_Place] = Counter()
        self._succeeded: Counter[tuple[_Place, str]] = Counter()
        self._rolling: dict[_Place, int] = {}
        self._began: dict[str, int] = {}
        self._modes: dict[_Place, str] = {}
        self._taken_back: dict[str, list[_Place]] = {}
        self._late: dict[tuple[str, str], int] = {}

    # Queries of process_phase.py.

    def server_phase(self, process: str) -> tuple[str, int | None]:
        """The phase that a server is in, and the batch that it has written and not answered in that phase."""
        asked = self.waiting.get(process)
        if not asked:
            return "idle", None
        requests = asked.values()
        if any(request.operation == "delete" for request in requests):
            return "deleting", None
        creates = [request for request in requests if request.operation == "create"]
        if not creates:
            return "listing", None
        batch = max(request.written for request in creates)
        if batch >= 0:
            return "written and not answered", batch
        if any(self._unread(process, request.place) for request in creates):
            return "recovering", None
        return "batch pending", None

    def _unread(self, process: str, place: str) -> bool:
        """Whether a server life has written nothing yet to a directory that others wrote to."""
        writers = self._writers.get(place, ())
        return bool(writers) and process not in writers

    # Events.

    def invoked(self, event: Event) -> None:
        """Take in the start of a call."""
        index, process, operation, path = event.index, event.process, event.operation, event.path
        place = (event.table, event.instant)
        self._invokes[index] = event
        if operation == "create":
            others = self._asking.setdefault((place, path), {})
            if others:
                self._met[index] = next(iter(others.values()))
            others[index] = event
            self._open_creates[place] += 1
            if self._open_deletes[place]:
                self.seen["deletion-met-creates"] += 1
            self._marker_asked(process, path, "marker asked for")
        elif operation == "delete":
            self._open_deletes[place] += 1
            if self._open_creates[place]:
                self.seen["deletion-met-creates"] += 1
        elif operation in LISTINGS:
            self._open_lists[f"{event.table}{TEMP}{event.instant}"] += 1
        elif operation == "attempt":
            self._attempt(event, place)
        elif operation == "begin":
            self._began[process] = event.time_ns
            self._taken_back[process] = []
        elif operation == "rollback":
            if self._began.get(process) is not None and event.time_ns - self._began[process] >= self._rest_ns > 0:
                self.seen["successor-waited"] += 1
            if place in self._rolling:
                self.seen["rollback-again"] += 1
            self._rolling[place] = index
            self._taken_back.setdefault(process, []).append(place)
        elif operation == "finalize":
            self._finalized.add(place)

    def _attempt(self, event: Event, place: _Place) -> None:
        self.attempts[event.index] = "marker asked for"
        self._paths[f"{event.table}/{event.path}"] = event
        self._tasks[place] += 1
        if self._tasks[place] == _MANY_TASKS:
            self.seen["many-attempts"] += 1
        stages = self._stages.setdefault(place, set())
        stages.add(str(event.value).split("-")[1] if str(event.value).count("-") == 2 else "")
        if len(stages) == 2:
            self.seen["stage-again"] += 1

    def _marker_asked(self, process: str, name: str | None, state: str) -> None:
        if name is None or not self._paths:
            return
        path = data_path(name)
        for index, was in self.attempts.items():
            attempt = self._invokes[index]
            if was != "after the data" and attempt.path == path and attempt.process == process:
                self.attempts[index] = state

    def arrived(self, event: Event) -> None:
        """Take in that a server received a request."""
        cause = event.caused_by
        invoke = self._invokes.get(cause if cause is not None else -1)
        if invoke is None or invoke.operation == "hostile":
            return
        if cause in self._servers:
            self.seen["request-twice" if self._servers[cause] == event.process else "request-in-two-lives"] += 1
        self._servers[invoke.index] = event.process
        self._received[invoke.index] = self.waiting.setdefault(event.process, {})[invoke.index] = PendingRequest(invoke)

    def ended(self, invoke: Event, event: Event) -> None:
        """Take in the end of a call."""
        index, kind, operation, place = invoke.index, event.kind, invoke.operation, (invoke.table, invoke.instant)
        asked = self._received.pop(index, None)
        if asked is not None:
            self.waiting.get(self._servers[index], {}).pop(index, None)
        if (event.error or "").startswith("503"):
            self.seen["throttled-for-good"] += 1
        if operation == "create":
            self._open_creates[place] -= 1
            self._asking[place, invoke.path].pop(index, None)
            if kind == "ok":
                self._created(invoke, event, asked)
        elif operation == "delete":
            self._open_deletes[place] -= 1
            if kind == "ok":
                self._deleted.add(place)
        elif operation in LISTINGS:
            home = f"{invoke.table}{TEMP}{invoke.instant}"
            self._open_lists[home] -= 1
            if kind == "ok" and self._damaged.get(home, index) < index:
                self.seen["damaged-type-read"] += 1
            if kind == "ok" and home in self._stray:
                self.seen["stray-files-listed"] += 1
            if place in self._rolling and isinstance(event.value, tuple):
                self._rolled_back(invoke, event.value)
        elif operation == "attempt":
            self.attempts.pop(index, None)
            if kind == "ok":
                key = (place, str(invoke.value).partition("-")[0])
                self._succeeded[key] += 1
                if self._succeeded[key] == 2:
                    self.seen["copies-succeeded"] += 1
        elif operation == "rollback" and kind == "ok":
            self._rolling.pop(place, None)
            if place in self._earlier:
                self.seen["earlier-instant-rolled-back"] += 1
        elif operation == "commit" and kind == "ok" and self._earlier:
            states = {state for (table, _), state in self._earlier.items() if table == invoke.table}
            for state in states - {"left"}:
                self.seen[f"{state}-before"] += 1
        elif operation == "hostile" and kind == "fail":
            self.seen["hostile-refused"] += 1

    def _rolled_back(self, invoke: Event, names: tuple[str, ...]) -> None:
        """Take in that a rollback has listed the markers of its instant."""
        for name in names:
            path = data_path(name)
            attempt, log = self._paths.get(f"{invoke.table}/{path}"), path.rpartition("/")[2].startswith(".")
            if attempt is not None and attempt.instant != invoke.instant:
                self.seen[f"marker-of-another-{'log' if log else 'file'}"] += 1
            elif is_append(name) != log:
                self.seen["marker-of-another-kind"] += 1

    def _created(self, invoke: Event, event: Event, asked: PendingRequest | None) -> None:
        place, key = (invoke.table, invoke.instant), ((invoke.table, invoke.instant), invoke.path)
        if asked is not None and asked.written >= 0:
            self.replied.add(asked.written)
            if len(asked.missed) >= self._threads:
                self.seen["all-batch-files-busy"] += 1
        met = self._met.get(invoke.index)
        if met is not None and (asked is None or asked.written >= 0 or self._own_format):
            self.seen["duplicate-waited"] += 1
            if invoke.value is not None and met.value == invoke.value:
                self.seen["resend-met-flush"] += 1
        if event.value == "exists":
            self.seen["name-collided"] += 1
        elif invoke.value is not None:
            if self._creators.get(key) == invoke.value:
                self.seen["resend-told-created"] += 1
            self._creators[key] = invoke.value
        if place in self._deleted:
            self.seen["created-after-deletion"] += 1
            self._deleted.discard(place)
        self._marker_asked(invoke.process, invoke.path, "between marker and data")

    def effect(self, event: Event, inside: str) -> None:
        """Take in a change of storage. inside: the operation that its process is performing."""
        index, time_ns, process = event.index, event.time_ns, event.process
        path, content = event.path or "", event.value
        if process in self._dead:
            self.seen["applied-after-death"] += 1
        due = self._late.pop((process, path), None)
        if due is not None and time_ns >= due:
            self.seen["late-request-applied"] += 1
        home = directory_of(path)
        if home is None:
            if "/.hoodie/" not in path:
                self._data(event, inside, path)
            return
        name = path[len(home) + 1 :]
        if name == TYPE_FILE and content == TYPE_BATCHED:
            self._damaged.pop(home, None)
        if content is None:
            below = self._below.get(home, set())
            below.discard(path)
            self._files.pop(path, None)
            if not below:
                self._writers.pop(home, None)
        elif isinstance(content, bytes) and marker_file_index(name) is not None:
            below = self._below.setdefault(home, set())
            below.add(path)
            self._batch(index, process, home, path, content)
            self._files[path] = content
            if len(below) >= self._threads > 1:
                self.seen["all-batch-files-used"] += 1

    def _batch(self, index: int, process: str, home: str, path: str, content: bytes) -> None:
        """Take in a marker file that a server wrote."""
        before = self._files.get(path)
        grown = content.count(b"\n") - (before or b"").count(b"\n")
        if grown > 1:
            self.seen["batch-of-several"] += 1
        if before is not None and self._open_lists[home]:
            self.seen["listing-met-rewrite"] += 1
        writers = self._writers.setdefault(home, [])
        if process not in writers:
            if any(other not in self._dead for other in writers):
                self.seen["two-servers-wrote"] += 1
            if any(other in self._dead for other in writers):
                self.seen["server-recovered"] += 1
                if home in self._torn:
                    self.seen["torn-left-recovered"] += 1
            writers.append(process)
        for request in self.waiting.get(process, {}).values():
            if request.place == home and request.operation == "create" and request.written < 0:
                if content.startswith(request.line) or b"\n" + request.line in content:
                    request.written = index
                else:
                    request.missed.add(path)

    def _data(self, event: Event, inside: str, path: str) -> None:
        """Take in a data file that was written or deleted."""
        if event.value is None:
            if inside in ("finalize", "rollback", "sweep"):
                self.seen[f"{inside}-deleted"] += 1
            if inside == "rollback" and path.rpartition("/")[2].startswith("."):
                self.seen["rollback-deleted-log"] += 1
            return
        attempt = self._paths.get(path)
        if attempt is None:
            return
        if attempt.index in self.attempts:
            self.attempts[attempt.index] = (
                "after the data" if event.operation in ("put", "overwrite-end") else "writing"
            )
        if (attempt.table, attempt.instant) in self._finalized:
            self.seen["wrote-after-finalize"] += 1
        if path in self._zombies:
            self.seen["zombie-wrote"] += 1

    def fault(self, event: Event) -> None:
        """Take in a fault."""
        process, kind = event.process, event.operation
        if kind == "zombie" and event.path:
            self._zombies |= {path for path in self._paths if path.endswith(f"/{event.path}")}
        elif kind == "timeout-late" and event.path:
            self._late[process, event.path] = event.time_ns + self._timeout_ns
        elif kind == "stray-files" and event.path:
            self._stray.add(directory_of(event.path) or "")
        elif kind == DAMAGE and event.path:
            self._damaged[event.path.removesuffix(f"/{TYPE_FILE}")] = event.index
        elif kind == "torn-write":
            self._torn |= {home for home, writers in self._writers.items() if process in writers}
        if kind in DEADLY or (kind == "second-server" and event.value == "end"):
            self._gone(process)

    def _gone(self, process: str) -> None:
        self._dead.add(process)
        self.waiting.pop(process, None)

    def observed(self, event: Event) -> None:
        """Take in an observation of the kit."""
        match event.operation:
            case "earlier":
                self._earlier[event.table, event.instant] = event.path or ""
            case "started":
                self.started[event.process] = event.index
            case "exited":
                if event.role == "driver" and event.error != APPLICATION_ENDED:
                    self.seen["driver-gave-up"] += 1
                self._gone(event.process)
            case "job-failed":
                self.seen["write-abandoned" if event.value == "abandoned" else "tasks-failed-for-good"] += 1
            case "mode":
                if event.error:
                    self.seen["fell-back"] += 1
                if event.instant is not None:
                    self._mode((event.table, event.instant), str(event.value))

    def _mode(self, place: _Place, mode: str) -> None:
        self._modes[place] = mode
        for taken in self._taken_back.values():
            if any(self._modes.get(other, mode) != mode for other in taken):
                self.seen["other-format-rolled-back"] += 1
            taken.clear()

"""Finds coverage goals in the events of a run; coverage/goals.py has their sentences.

process_phase.py feeds it the events of one run in order; `seen` counts by name. The memory of a server is inferred:
all batch files were being written when a create arrived if each was then written without its name, because any later
batch would include every waiting name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from marker_sim.history import APPLICATION_ENDED, Event, History
from marker_sim.history.index.calls import DAMAGE, DEADLY, MS
from marker_sim.history.index.presence import directory_of
from marker_sim.names import TEMP, TYPE_BATCHED, TYPE_FILE, data_path, is_append, marker_file_index

_MANY_TASKS = 100


class PendingRequest:
    """A request that a server received and has not answered.

    written: index of the effect that stored its name, -1 for none.
    missed: marker files that were written without its name since it arrived.
    """

    __slots__ = ("line", "missed", "operation", "place", "server", "written")

    def __init__(self, invoke: Event, place: _Directory, server: str) -> None:
        self.operation = invoke.operation
        self.place = place
        self.server = server
        self.line = (invoke.path or "").encode("utf-8", "surrogatepass") + b"\n"
        self.written = -1
        self.missed: set[str] = set()


@dataclass(slots=True)
class _Directory:
    """A marker directory, and the state of its instant.

    creates, deletes, listings: numbers of open calls. asking: the open creates of each name; creators: the last creator
    of each name.
    files: marker files with their content. writers: servers that wrote one since the directory was last empty.
    damaged: the event at which its type file was lost or emptied. rolling: whether a rollback is in progress.
    """

    table: str | None
    creates: int = 0
    deletes: int = 0
    listings: int = 0
    asking: dict[str | None, dict[int, Event]] = field(default_factory=dict)
    creators: dict[str | None, object] = field(default_factory=dict)
    deleted: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    writers: list[str] = field(default_factory=list)
    torn: bool = False
    damaged: int | None = None
    stray: bool = False
    earlier: str | None = None
    finalized: bool = False
    stages: set[str] = field(default_factory=set)
    tasks: int = 0
    succeeded: Counter[str] = field(default_factory=Counter)
    rolling: bool = False
    mode: str | None = None


class CoverageMarks:
    """The state of one run that is needed to find coverage goals. of_writes: whether a write client acts in it."""

    def __init__(self, history: History) -> None:
        header = history.header
        self.seen: Counter[str] = Counter()
        plan = header.plan
        begun = (event for event in history.events if event.operation == "begin")
        self.of_writes = any(begun) if plan is None else bool(plan.get("writes"))
        self.started: set[str] = set()
        self.waiting: dict[str, dict[int, PendingRequest]] = {}
        self.attempts: dict[int, str] = {}
        self.replied: set[int] = set()
        self._events = history.events
        self._threads = header.num_threads
        # The history of a store with its own format does not show when a batch was written.
        self._own_format = header.layout == "names"
        self._timeout_ns = header.storage_timeout_ms * MS
        self._rest_ns = self._timeout_ns + header.late_effect_ms * MS
        self._directories: dict[str, _Directory] = {}
        self._received: dict[int, PendingRequest] = {}
        self._dead: set[str] = set()
        self._met: dict[int, Event] = {}
        self._paths: dict[str, Event] = {}
        self._zombies: set[str] = set()
        self._began: dict[str, int] = {}
        self._taken_back: dict[str, list[_Directory]] = {}
        self._late: dict[tuple[str, str], int] = {}

    def _saw(self, name: str, really: object = True) -> None:
        if really:
            self.seen[name] += 1

    def _of(self, event: Event) -> _Directory:
        return self._below(f"{event.table}{TEMP}{event.instant}", event.table)

    def _below(self, home: str, table: str | None = None) -> _Directory:
        known = self._directories.get(home)
        if known is None:
            known = self._directories[home] = _Directory(table)
        return known

    # Queries of process_phase.py.

    def server_phase(self, process: str) -> tuple[str, int | None]:
        """The current phase of a server, and the batch that it has written but not answered in that phase."""
        requests = self.waiting.get(process, {}).values()
        creates = [request for request in requests if request.operation == "create"]
        if not requests:
            return "idle", None
        if any(request.operation == "delete" for request in requests):
            return "deleting", None
        if not creates:
            return "listing", None
        batch = max(request.written for request in creates)
        if batch >= 0:
            return "written and not answered", batch
        # This server life has not yet written to a directory to which others wrote.
        unread = any(request.place.writers and process not in request.place.writers for request in creates)
        return "recovering" if unread else "batch pending", None

    # Events.

    def invoked(self, event: Event) -> None:
        """Process the invocation of a call."""
        process, at = event.process, self._of(event)
        match event.operation:
            case "create":
                others = at.asking.setdefault(event.path, {})
                if others:
                    self._met[event.index] = next(iter(others.values()))
                others[event.index] = event
                at.creates += 1
                self._saw("deletion-met-creates", at.deletes)
                self._marker_asked(event, "marker asked for")
            case "delete":
                at.deletes += 1
                self._saw("deletion-met-creates", at.creates)
            case "list" | "list-data" | "list-log":
                at.listings += 1
            case "attempt":
                self._attempt(event, at)
            case "begin":
                self._began[process] = event.time_ns
                self._taken_back[process] = []
            case "rollback":
                waited_ns = event.time_ns - self._began.get(process, event.time_ns)
                self._saw("successor-waited", waited_ns >= self._rest_ns > 0)
                self._saw("rollback-again", at.rolling)
                at.rolling = True
                self._taken_back.setdefault(process, []).append(at)
            case "finalize":
                at.finalized = True

    def _attempt(self, event: Event, at: _Directory) -> None:
        self.attempts[event.index] = "marker asked for"
        self._paths[f"{event.table}/{event.path}"] = event
        at.tasks += 1
        self._saw("many-attempts", at.tasks == _MANY_TASKS)
        token = str(event.value).split("-")
        at.stages.add(token[1] if len(token) == 3 else "")
        self._saw("stage-again", len(at.stages) == 2)

    def _marker_asked(self, event: Event, state: str) -> None:
        if event.path is None or not self._paths:
            return
        path = data_path(event.path)
        for index, was in self.attempts.items():
            attempt = self._events[index]
            if was != "after the data" and attempt.path == path and attempt.process == event.process:
                self.attempts[index] = state

    def arrived(self, event: Event) -> None:
        """Process the arrival of a request at a server."""
        cause, process = event.caused_by, event.process
        if cause is None or self._events[cause].operation == "hostile":
            return
        before, invoke = self._received.get(cause), self._events[cause]
        if before is not None:
            self._saw("request-twice" if before.server == process else "request-in-two-lives")
        request = self._received[cause] = PendingRequest(invoke, self._of(invoke), process)
        self.waiting.setdefault(process, {})[cause] = request

    def ended(self, invoke: Event, event: Event) -> None:
        """Process the end of a call."""
        at, well, asked = self._of(invoke), event.kind == "ok", self._received.get(invoke.index)
        if asked is not None:
            self.waiting.get(asked.server, {}).pop(invoke.index, None)
        self._saw("throttled-for-good", (event.error or "").startswith("503"))
        match invoke.operation:
            case "create":
                at.creates -= 1
                at.asking[invoke.path].pop(invoke.index, None)
                if well:
                    self._created(at, invoke, event, asked)
            case "delete":
                at.deletes -= 1
                at.deleted |= well
            case "list" | "list-data" | "list-log":
                at.listings -= 1
                self._saw("damaged-type-read", well and at.damaged is not None and at.damaged < invoke.index)
                self._saw("stray-files-listed", well and at.stray)
                if at.rolling and isinstance(event.value, tuple):
                    self._rolled_back(invoke, event.value)
            case "attempt":
                self.attempts.pop(invoke.index, None)
                task = str(invoke.value).partition("-")[0]
                at.succeeded[task] += well
                self._saw("copies-succeeded", well and at.succeeded[task] == 2)
            case "rollback" if well:
                at.rolling = False
                self._saw("earlier-instant-rolled-back", at.earlier is not None)
            case "commit" if well:
                own = {other.earlier for other in self._directories.values() if other.table == invoke.table}
                self.seen.update(f"{state}-before" for state in own - {"left", None})
            case "hostile":
                self._saw("hostile-refused", event.kind == "fail")

    def _rolled_back(self, invoke: Event, names: tuple[str, ...]) -> None:
        """Process the listing of an instant's markers by its rollback."""
        for name in names:
            path = data_path(name)
            attempt, log = self._paths.get(f"{invoke.table}/{path}"), path.rpartition("/")[2].startswith(".")
            if attempt is not None and attempt.instant != invoke.instant:
                self._saw(f"marker-of-another-{'log' if log else 'file'}")
            else:
                self._saw("marker-of-another-kind", is_append(name) != log)

    def _created(self, at: _Directory, invoke: Event, event: Event, asked: PendingRequest | None) -> None:
        met, written = self._met.get(invoke.index), asked is not None and asked.written >= 0
        if asked is not None and written:
            self.replied.add(asked.written)
            self._saw("all-batch-files-busy", len(asked.missed) >= self._threads)
        if met is not None and (asked is None or written or self._own_format):
            self._saw("duplicate-waited")
            self._saw("resend-met-flush", invoke.value is not None and met.value == invoke.value)
        if event.value == "exists":
            self._saw("name-collided")
        elif invoke.value is not None:
            self._saw("resend-told-created", at.creators.get(invoke.path) == invoke.value)
            at.creators[invoke.path] = invoke.value
        self._saw("created-after-deletion", at.deleted)
        at.deleted = False
        self._marker_asked(invoke, "between marker and data")

    def effect(self, event: Event, inside: str) -> None:
        """Process a storage effect. inside: the operation that its process is performing."""
        process, path, content = event.process, event.path or "", event.value
        self._saw("applied-after-death", process in self._dead)
        due = self._late.pop((process, path), None)
        self._saw("late-request-applied", due is not None and event.time_ns >= due)
        home = directory_of(path)
        if home is None:
            if "/.hoodie/" not in path:
                self._data(event, inside, path)
            return
        at, name = self._below(home), path[len(home) + 1 :]
        if name == TYPE_FILE and content == TYPE_BATCHED:
            at.damaged = None
        if content is None:
            at.files.pop(path, None)
            if not at.files:
                at.writers.clear()
        elif isinstance(content, bytes) and marker_file_index(name) is not None:
            self._batch(event.index, process, at, path, content)
            at.files[path] = content
            self._saw("all-batch-files-used", len(at.files) >= self._threads > 1)

    def _batch(self, index: int, process: str, at: _Directory, path: str, content: bytes) -> None:
        """Process the write of a marker file by a server."""
        before = at.files.get(path)
        self._saw("batch-of-several", content.count(b"\n") - (before or b"").count(b"\n") > 1)
        self._saw("listing-met-rewrite", before is not None and at.listings)
        if process not in at.writers:
            dead = self._dead.intersection(at.writers)
            self._saw("two-servers-wrote", len(dead) < len(at.writers))
            self._saw("server-recovered", dead)
            self._saw("torn-left-recovered", dead and at.torn)
            at.writers.append(process)
        for request in self.waiting.get(process, {}).values():
            if request.place is at and request.operation == "create" and request.written < 0:
                if content.startswith(request.line) or b"\n" + request.line in content:
                    request.written = index
                else:
                    request.missed.add(path)

    def _data(self, event: Event, inside: str, path: str) -> None:
        """Process the write or deletion of a data file."""
        attempt = self._paths.get(path)
        if event.value is None:
            self._saw(f"{inside}-deleted", inside in ("finalize", "rollback", "sweep"))
            self._saw("rollback-deleted-log", inside == "rollback" and path.rpartition("/")[2].startswith("."))
        elif attempt is not None:
            if attempt.index in self.attempts:
                whole = event.operation in ("put", "overwrite-end")
                self.attempts[attempt.index] = "after the data" if whole else "writing"
            self._saw("wrote-after-finalize", self._of(attempt).finalized)
            self._saw("zombie-wrote", path in self._zombies)

    def fault(self, event: Event) -> None:
        """Process a fault."""
        process, path = event.process, event.path or ""
        match event.operation:
            case "zombie" if path:
                self._zombies |= {known for known in self._paths if known.endswith(f"/{path}")}
            case "timeout-late" if path:
                self._late[process, path] = event.time_ns + self._timeout_ns
            case "stray-files" if path:
                self._below(directory_of(path) or "").stray = True
            case _ if event.operation == DAMAGE and path:
                self._below(path.removesuffix(f"/{TYPE_FILE}")).damaged = event.index
            case "torn-write":
                for at in self._directories.values():
                    at.torn |= process in at.writers
        if event.operation in DEADLY or (event.operation == "second-server" and event.value == "end"):
            self._gone(process)

    def _gone(self, process: str) -> None:
        self._dead.add(process)
        self.waiting.pop(process, None)

    def observed(self, event: Event) -> None:
        """Process an observation by the kit."""
        match event.operation:
            case "earlier":
                self._of(event).earlier = event.path or ""
            case "started":
                self.started.add(event.process)
            case "exited":
                self._saw("driver-gave-up", event.role == "driver" and event.error != APPLICATION_ENDED)
                self._gone(event.process)
            case "job-failed":
                self._saw("write-abandoned" if event.value == "abandoned" else "tasks-failed-for-good")
            case "mode":
                self._saw("fell-back", event.error)
                if event.instant is not None:
                    self._mode(self._of(event), str(event.value))

    def _mode(self, at: _Directory, mode: str) -> None:
        at.mode = mode
        for taken in self._taken_back.values():
            self._saw("other-format-rolled-back", any(other.mode not in (None, mode) for other in taken))
            taken.clear()

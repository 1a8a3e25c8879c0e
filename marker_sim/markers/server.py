"""The timeline server's marker part: requests queue, a dispatcher makes batches, workers flush, and only then answer.

    request handler ─ creates ► inbox ─► owner ─ every interval, per directory: Job ─► worker (at most num_threads)
          ▲                               │ ▲                                            │ storage calls only
          └────────── answer ─────────────┘ └──────────────── Outcome ───────────────────┘

One owner actor holds all state; workers are actors that live for one job. They are bounded per directory by the file
indices, not by a pool for the whole server: one directory on a slow or failing storage must not hold the workers of
the others (guarantee isolation; Hudi 0.15.0 shares one pool). Lists and existence need no state and are read from
storage by the request handler itself, so they see what other servers wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar

from marker_sim.markers.batches import DirectoryState, Job, Outcome, Waiter
from marker_sim.markers.files import (
    Contents,
    PathsOfNames,
    delete_directory,
    is_stored,
    read_directory,
    replace,
    write_type_file,
)
from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import check_marker_name, decode_names, is_marker_name
from marker_sim.options import MarkerOptions
from marker_sim.seams import Mailbox, PreconditionFailed, Runtime, Storage, StorageError

T = TypeVar("T")


class _Create(NamedTuple):
    directory: str
    waiters: Sequence[Waiter]


class _Delete(NamedTuple):
    directory: str
    answer: Mailbox


class _Loaded(NamedTuple):
    directory: str
    result: Contents | Exception


class _Deleted(NamedTuple):
    directory: str
    answer: Mailbox
    result: bool | Exception


class _Flushed(NamedTuple):
    job: Job
    outcome: Outcome


class TimelineServer:
    """Serves the markers of any number of directories; lives as long as its process."""

    def __init__(self, storage: Storage, runtime: Runtime, options: MarkerOptions) -> None:
        self._storage = storage
        self._runtime = runtime
        self._interval_ms = float(options.batch_interval_ms)
        self._num_threads = options.batch_num_threads
        self._delete_at_once = options.delete_parallelism
        self._inbox = runtime.mailbox()
        self._directories: dict[str, DirectoryState] = {}
        self._first_create_ms: float | None = None
        # How long a request of a server that died may still be applied.
        self._rest_ms: float = storage.capabilities.request_timeout_ms + storage.capabilities.late_effect_ms
        runtime.spawn("dispatcher", self._own)

    # Called by request handlers, concurrently.

    def create(self, directory: str, name: str, request: str) -> Created:
        """Queue a create and wait until its batch is flushed."""
        answer = self._runtime.mailbox()
        self.queue(directory, (Waiter(name, request, answer),))
        created: Created = self._answer(answer)
        return created

    def queue(self, directory: str, waiters: Sequence[Waiter]) -> None:
        """Queue creates together; each is answered after the flush of its batch."""
        self._inbox.put(_Create(directory, waiters))

    def delete(self, directory: str) -> bool:
        """Delete a directory after the batches in progress; False when there was none."""
        answer = self._runtime.mailbox()
        self._inbox.put(_Delete(directory, answer))
        result: bool = self._answer(answer)
        return result

    def _answer(self, answer: Mailbox) -> Any:
        result = answer.get()
        if isinstance(result, Exception):
            raise result
        return result

    # The owner: the only actor that touches state.

    def _own(self) -> None:
        tick_ms: float | None = None
        while True:
            now_ms = self._runtime.now_ms()
            message = self._inbox.get(None if tick_ms is None else max(0.0, tick_ms - now_ms))
            if message is not None:
                self._accept(message)
            now_ms = self._runtime.now_ms()
            if tick_ms is not None and now_ms >= tick_ms:
                tick_ms = None
                for path in sorted(self._directories):
                    self._dispatch(self._directories[path])
            if tick_ms is None and any(d.pending for d in self._directories.values()):
                tick_ms = self._next_tick(now_ms)

    def _next_tick(self, now_ms: float) -> float:
        """The next tick, at fixed intervals since the first create, as in Hudi's fixed-rate schedule."""
        if self._first_create_ms is None:
            self._first_create_ms = now_ms
        periods = int((now_ms - self._first_create_ms) / self._interval_ms) + 1
        return self._first_create_ms + periods * self._interval_ms

    def _accept(self, message: object) -> None:
        match message:
            case _Create(path, waiters):
                state = self._state(path)
                state.pending.extend(waiters)
            case _Delete(path, answer):
                state = self._state(path)
                state.deletions.append(answer)
            case _Flushed(job, outcome):
                state = self._directories[job.directory]
                if outcome.conflict or outcome.gone:
                    self._rest_ms = inf  # Another server is at work, which may be paused for long in a deletion.
                self._reply(state.finish(job, outcome, self._runtime.now_ms() + self._rest_ms))
            case _Loaded(path, result):
                state = self._directories[path]
                state.occupied = False
                if isinstance(result, Exception):
                    self._reply(state.fail_pending(result))
                else:
                    state.load(result, self._runtime.now_ms() + self._rest_ms)
            case _Deleted(path, answer, result):
                state = self._directories[path]
                state.occupied = False
                if isinstance(result, Exception):
                    state.loaded = False
                else:
                    state.clear()
                answer.put(result)
            case _:
                raise AssertionError(message)
        self._advance(state)

    def _advance(self, state: DirectoryState) -> None:
        """Start a job that needs the directory exclusively: a deletion, or a load."""
        if not state.idle:
            return
        path = state.path
        if state.deletions:
            answer = state.deletions.pop(0)
            state.occupied = True
            self._runtime.spawn("delete", lambda: self._delete(path, answer))
        elif state.pending and not state.loaded:
            state.occupied = True
            self._runtime.spawn("load", lambda: self._load(path))
        elif state.forgettable:
            del self._directories[path]

    def _dispatch(self, state: DirectoryState) -> None:
        job = state.next_job(self._runtime.now_ms())
        if job is not None:
            self._runtime.spawn(f"flush-{job.file_index}", lambda: self._flush(job))

    def _state(self, path: str) -> DirectoryState:
        if path not in self._directories:
            self._directories[path] = DirectoryState(path, self._num_threads)
        return self._directories[path]

    def _reply(self, answers: list[tuple[Waiter, Created | Exception]]) -> None:
        for waiter, result in answers:
            waiter.answer.put(result)

    # Workers: storage calls only, and one message when they are done.

    def _flush(self, job: Job) -> None:
        try:
            gone = self._missing(job)
            version = None
            if job.untyped and (job.data is not None or len(gone) < len(job.known)):
                write_type_file(self._storage, self._runtime, job.directory)
            if job.data is not None:
                version = replace(self._storage, self._runtime, job.path, job.data, job.expected)
                if job.untyped:
                    # Another server's deletion may meanwhile have removed only the type file.
                    write_type_file(self._storage, self._runtime, job.directory)
            outcome = Outcome(version=version, gone=gone)
        except PreconditionFailed:
            outcome = Outcome(conflict=True, gone=frozenset(name for name, _ in job.known))
        except StorageError as error:
            outcome = Outcome(error=error)
        self._inbox.put(_Flushed(job, outcome))

    def _missing(self, job: Job) -> frozenset[str]:
        """Names believed to be stored that storage lacks; EXISTS is never answered from memory alone."""
        found: dict[str, frozenset[str]] = {}
        for name, path in job.known:
            if path not in found:
                content = is_stored(self._storage, self._runtime, path)
                if content is None:
                    found[path] = frozenset()
                else:
                    found[path] = frozenset({name} if is_marker_name(path) else decode_names(content.data))
        return frozenset(name for name, path in job.known if name not in found[path])

    def _load(self, path: str) -> None:
        contents = _attempt(lambda: read_directory(self._storage, self._runtime, path))
        self._inbox.put(_Loaded(path, contents))

    def _delete(self, path: str, answer: Mailbox) -> None:
        result = _attempt(lambda: delete_directory(self._storage, self._runtime, path, self._delete_at_once))
        self._inbox.put(_Deleted(path, answer, result))


def _attempt(call: Callable[[], T]) -> T | Exception:
    try:
        return call()
    except StorageError as error:
        return error


class ServedMarkers(PathsOfNames):
    """The markers of one directory, as the request handlers of a timeline server use them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        if "timeline-server" not in context.process:
            context.process["timeline-server"] = TimelineServer(context.storage, context.runtime, context.options)
        self._server: TimelineServer = context.process["timeline-server"]

    def create(self, name: str, request: str = "") -> Created:
        """Create a marker; answered after its flush. `request` makes a resend recognisable."""
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        return self._server.create(self._context.directory, name, request)

    def queue(self, waiters: Sequence[Waiter]) -> None:
        """Queue several creates without an actor for each; every answer is put to its waiter."""
        accepted: list[Waiter] = []
        for waiter in waiters:
            try:
                check_marker_name(waiter.name)
            except ValueError as error:
                waiter.answer.put(Rejected(str(error)))
            else:
                accepted.append(waiter)
        if accepted:
            self._server.queue(self._context.directory, accepted)

    def list_all(self) -> tuple[str, ...]:
        """Every marker stored, sorted."""
        contents = read_directory(self._context.storage, self._context.runtime, self._context.directory)
        return tuple(sorted(contents.names()))

    def exists(self) -> bool:
        """Whether anything is stored below the marker directory."""
        return bool(self._context.storage.list(self._context.directory + "/"))

    def delete(self) -> bool:
        """Delete the marker directory; False when there was none."""
        return self._server.delete(self._context.directory)


def served_markers(context: Context) -> ServedMarkers:
    """The factory of the reference's timeline-server mode, for the server's process."""
    return ServedMarkers(context)

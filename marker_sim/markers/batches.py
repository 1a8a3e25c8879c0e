"""The state of one marker directory in a timeline server: stored names, names being flushed, waiting requests.

One actor owns it, so it needs no lock and does no I/O: the owner takes the next job from it, gives the job to a worker
and reports the outcome. Source of the mechanism: Hudi 0.15.0 MarkerDirState; unlike it, a name counts as stored only
after its flush, requests for a name that is being flushed wait, and every error path releases its file index.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Protocol

from marker_sim.markers.files import ABSENT, BatchFile, Contents
from marker_sim.markers.store import Created
from marker_sim.names import decode_names, encode_names, marker_file
from marker_sim.seams import Mailbox

CONFLICTS_MAX = 8
DIRECT = -1


class Answers(Protocol):
    """The receiver of a create's answer: a mailbox, or the connection of its client."""

    def put(self, item: Created | Exception) -> None: ...


class Waiter(NamedTuple):
    """A create that waits for its answer."""

    name: str
    request: str
    answer: Answers
    conflicts: int = 0


class Job(NamedTuple):
    """The work for a batch: look for `known` names in their files, then replace one file.

    known: (name, path of the file that should hold it).
    data: the whole new content, None when nothing is new.
    untyped: whether the type file may be missing.
    begun_ms: when the job was taken.
    """

    directory: str
    file_index: int
    known: tuple[tuple[str, str], ...]
    path: str
    data: bytes | None
    expected: str | None
    untyped: bool
    begun_ms: float


class Outcome(NamedTuple):
    """The result of a job.

    version: of the file written.
    gone: known names that storage no longer has.
    """

    version: str | None = None
    gone: frozenset[str] = frozenset()
    conflict: bool = False
    error: Exception | None = None


class DirectoryState:
    """Batches, answers and file indices of one marker directory."""

    def __init__(self, path: str, num_threads: int) -> None:
        self.path = path
        self.loaded = False
        self.occupied = False  # a load or a deletion is running
        self.pending: list[Waiter] = []
        self.deletions: list[Mailbox] = []
        self._num_threads = num_threads
        self._next_index = 0
        self._files: dict[int, BatchFile] = {}
        self._checked_ms = -1.0  # when the last job was taken that looked for the type file
        self._alone_ms = inf  # from when on a type file stays
        self._names: dict[str, int] = {}
        self._creators: dict[str, str] = {}
        self._waiting: dict[int, dict[str, list[Waiter]]] = {}
        self._known: dict[int, list[Waiter]] = {}
        self._flying: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether no worker is busy with this directory."""
        return not (self.occupied or self._waiting)

    @property
    def forgettable(self) -> bool:
        """Whether the state can be dropped and loaded again without loss."""
        return self.idle and not self.pending and not self.deletions and not self._names

    def load(self, contents: Contents, alone_ms: float) -> None:
        """Load the stored names; known creators are kept. alone_ms: as of `finish`."""
        self._files = dict(contents.batches)
        self._alone_ms = alone_ms
        self._names = dict.fromkeys(contents.direct, DIRECT)
        for index, batch in sorted(contents.batches.items()):
            self._names.update(dict.fromkeys(decode_names(batch.data), index))
        self._creators = {name: who for name, who in self._creators.items() if name in self._names}
        self.loaded = True

    def clear(self) -> None:
        """Forget everything: the directory was deleted."""
        self._files, self._names, self._creators = {}, {}, {}
        self.loaded = True

    def next_job(self, now_ms: float) -> Job | None:
        """The job for all pending creates; None when there is nothing to do or no file index is free."""
        if not self.pending or not self.loaded or self.occupied or self.deletions:
            return None
        index = self._free_index()
        if index is None:
            return None
        fresh: dict[str, list[Waiter]] = {}
        known: list[Waiter] = []
        held: list[Waiter] = []
        for waiter in self.pending:
            if waiter.name in self._flying:
                # Its flush began before this request, and another server may delete the name meanwhile: read after the
                # flush.
                held.append(waiter)
            elif waiter.name in self._names:
                known.append(waiter)
            else:
                fresh.setdefault(waiter.name, []).append(waiter)
        self.pending = held
        if not fresh and not known:
            return None
        self._next_index = (index + 1) % self._num_threads
        self._waiting[index], self._known[index] = fresh, known
        self._flying.update(fresh)
        file = self._files.get(index, ABSENT)
        return Job(
            directory=self.path,
            file_index=index,
            known=tuple((name, self._place(name)) for name in dict.fromkeys(w.name for w in known)),
            path=f"{self.path}/{marker_file(index)}",
            data=file.data + encode_names(fresh) if fresh else None,
            expected=file.version,
            # A new file writes it again, because another server may have deleted the directory. So does each batch
            # until a dead server's late request can no longer remove it, and the first batch after that.
            untyped=file.version is None or self._checked_ms < self._alone_ms,
            begun_ms=now_ms,
        )

    def finish(self, job: Job, outcome: Outcome, alone_ms: float) -> list[tuple[Waiter, Created | Exception]]:
        """Release the file index of a job, and return the answers that its outcome decides.

        alone_ms: from when on no request to storage can be applied that a dead server sent until now. A deletion that
        has seen any file removes it before the type file, and its server is noticed; one that has not seen a new file
        can take its type file away until then.
        """
        fresh = self._waiting.pop(job.file_index)
        known = self._known.pop(job.file_index)
        self._flying.difference_update(fresh)
        if outcome.error is not None:
            # It may have been applied: storage is read again before the next batch.
            self.loaded = False
            return [(w, outcome.error) for w in known + [w for ws in fresh.values() for w in ws]]
        answers: list[tuple[Waiter, Created | Exception]] = [
            (w, self._known_answer(w)) for w in known if w.name not in outcome.gone
        ]
        again = [w for w in known if w.name in outcome.gone]
        if outcome.conflict:
            again += [w for ws in fresh.values() for w in ws]
        elif job.data is not None:
            self._files[job.file_index] = BatchFile(job.data, outcome.version)
            if job.untyped:
                self._checked_ms = job.begun_ms
            if job.expected is None:
                self._alone_ms = alone_ms
            answers += self._store(job.file_index, fresh)
        if again or outcome.conflict:
            self.loaded = False
            answers += self._again(again)
        return answers

    def fail_pending(self, error: Exception) -> list[tuple[Waiter, Created | Exception]]:
        """Fail every waiting request with the error: the directory cannot be read."""
        waiters, self.pending = self.pending, []
        return [(waiter, error) for waiter in waiters]

    def _store(self, index: int, fresh: dict[str, list[Waiter]]) -> list[tuple[Waiter, Created | Exception]]:
        answers: list[tuple[Waiter, Created | Exception]] = []
        for name, waiters in fresh.items():
            self._names[name] = index
            self._creators[name] = waiters[0].request
            answers.append((waiters[0], Created.CREATED))
            answers += [(w, self._known_answer(w)) for w in waiters[1:]]
        return answers

    def _known_answer(self, waiter: Waiter) -> Created:
        """The answer for a stored name: CREATED again to a resend of the request that created it, else EXISTS."""
        resent = waiter.request and self._creators.get(waiter.name) == waiter.request
        return Created.CREATED if resent else Created.EXISTS

    def _again(self, waiters: list[Waiter]) -> list[tuple[Waiter, Created | Exception]]:
        """Queue creates again after another server changed the directory, a limited number of times."""
        tired = [w for w in waiters if w.conflicts >= CONFLICTS_MAX]
        self.pending = [w._replace(conflicts=w.conflicts + 1) for w in waiters if w not in tired] + self.pending
        return [(w, RuntimeError(f"{self.path} was changed by others {CONFLICTS_MAX} times")) for w in tired]

    def _free_index(self) -> int | None:
        for offset in range(self._num_threads):
            index = (self._next_index + offset) % self._num_threads
            if index not in self._waiting:
                return index
        return None

    def _place(self, name: str) -> str:
        index = self._names[name]
        return f"{self.path}/{name if index == DIRECT else marker_file(index)}"

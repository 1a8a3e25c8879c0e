"""The driver's part of a write: recovery of unfinished instants, then begin, finalize, commit.

    begin      roll back every instant that was begun and not completed; sweep late files of those that are over;
               then requested and inflight of a new instant
    finalize   list the markers; delete every file that they name and no accepted attempt wrote
    commit     the completed instant, then the marker directory
    rollback   its record; list the markers on storage; delete every file that they name; the instant off the timeline;
               the rollback completed; then the marker directory. Each part can be repeated, so an interrupted
               rollback is run again, under the same record, with the same result.
    after both the same files are deleted once more: an abandoned attempt may have written its file meanwhile, and one
               that writes it later finds no marker directory and deletes it (worlds/spark/tasks.py)

One writer for each table, and eager rollback. Before a driver takes over from one that may be dead, it waits until no
request of the other can still be applied: a completed instant must not appear while it is being rolled back.
Source: Hudi 0.15.0 BaseHoodieWriteClient, BaseRollbackActionExecutor, MarkerBasedRollbackStrategy; the wait, the sweep
and the deletion of log files are our decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from marker_sim.history import Value
from marker_sim.markers.files import retry_until_decided
from marker_sim.markers.several import for_each
from marker_sim.markers.store import Context, MarkerStore, Rejected
from marker_sim.names import MarkerDirectory, data_path
from marker_sim.seams import SeamError
from marker_sim.timeline import (
    COMMIT,
    HOODIE,
    ROLLBACK,
    Entry,
    State,
    WriteStat,
    encode_commit,
    encode_rollback,
    instant_at,
    parse_data_file,
)
from marker_sim.writer.records import Records, Timeline
from marker_sim.writer.slices import Group, Slice, latest_slices

ASK_TRIES = 6
ASK_PAUSE_MS = 200.0
UNDONE = (State.INFLIGHT, State.REQUESTED)  # The order in which a rollback removes the entries of an instant.


class Markers(Protocol):
    """The markers of an instant, by marker directory.

    store: the marker store of this write's mode.
    stored: every name that a fresh reader finds, in the format of any earlier write (Hudi HUDI-2305); raises when
    storage
        cannot be read, and never returns an incomplete list.
    """

    def store(self, directory: str) -> MarkerStore: ...
    def stored(self, directory: str) -> tuple[str, ...]: ...


class Journal(Protocol):
    """Runs `body`, records it as a step of a write, and returns its result."""

    def __call__(self, operation: str, instant: str | None, value: Value, body: Callable[[], Any]) -> Any: ...


def no_journal(operation: str, instant: str | None, value: Value, body: Callable[[], Any]) -> Any:
    """A journal that records nothing."""
    return body()


class WriteClient:
    """The writes of one driver to one table, one after another. A write fails with the errors of the seams.

    action: "commit" for a COPY_ON_WRITE table, "deltacommit" for a MERGE_ON_READ one.
    slices: the table's slices when the last write began.
    """

    def __init__(
        self,
        table: str,
        context: Context,
        markers: Markers,
        action: str = COMMIT,
        journal: Journal = no_journal,
    ) -> None:
        self.slices: dict[Group, Slice] = {}
        self._deleted: tuple[str, list[str]] = ("", [])
        self._commits: dict[str, tuple[WriteStat, ...]] | None = None
        self._table = table
        self._storage = context.storage
        self._runtime = context.runtime
        self._options = context.options
        self._markers = markers
        self._action = action
        self._journal = journal
        self._records = Records(context.storage, context.runtime, table)

    def begin(self) -> str:
        """Recover unfinished instants and put a new one on the timeline; returns its string."""
        instant: str = self._journal("begin", None, None, self._begin)
        return instant

    def finalize(self, instant: str, stats: tuple[WriteStat, ...]) -> None:
        """Delete all data files of the instant except those of the accepted write stats (reconcile)."""
        accepted = tuple(sorted(stat.path for stat in stats))
        self._journal("finalize", instant, accepted, lambda: self._reconcile(instant, frozenset(accepted)))

    def commit(self, instant: str, stats: tuple[WriteStat, ...], extra: dict[str, str] | None = None) -> None:
        """Complete the instant, then delete its markers; a failed deletion is ignored (Hudi I 4635)."""
        paths = tuple(sorted(stat.path for stat in stats))
        entry = Entry(instant, self._action, State.COMPLETED)
        data = encode_commit(stats, extra or {})
        self._journal("commit", instant, paths, lambda: self._complete(entry, data))
        self._delete_markers(instant)
        self._delete_again(instant)

    def _begin(self) -> str:
        self._commits = None
        timeline = self._records.read()
        if timeline.pending() or timeline.rollbacks(completed=False):
            self._wait_for_the_dead()
            timeline = self._records.read()
            for instant, action in self._failed(timeline).items():
                self._journal("rollback", instant, None, lambda i=instant, a=action: self._roll_back(i, a))  # type: ignore[misc]
            timeline = self._records.read()
        commits = self._commits = {entry.instant: self._records.commit(entry) for entry in timeline.completed()}
        self._sweep(timeline, commits)
        self.slices = latest_slices(commits.items())
        instant = instant_at(self._runtime.now_ms(), timeline.newest)
        for state in (State.REQUESTED, State.INFLIGHT):
            self._records.write(Entry(instant, self._action, state), b"")
        return instant

    def _wait_for_the_dead(self) -> None:
        capabilities = self._storage.capabilities
        self._runtime.sleep(capabilities.request_timeout_ms + capabilities.late_effect_ms)

    def _failed(self, timeline: Timeline) -> dict[str, str]:
        """The instants to roll back, with their actions: pending, or partly rolled back."""
        failed = timeline.pending()
        for rollback in timeline.rollbacks(completed=False):
            target = self._records.target(rollback, completed=False)
            if target is not None:
                failed[target[0]] = target[1]
        return failed

    def _roll_back(self, instant: str, action: str) -> None:
        timeline = self._records.read()
        record, rollback = encode_rollback(instant, action), ""
        for pending in timeline.rollbacks(completed=False):
            if self._records.target(pending, completed=False) == (instant, action):
                rollback = pending
        rollback = rollback or instant_at(self._runtime.now_ms(), timeline.newest)
        for state in (State.REQUESTED, State.INFLIGHT):
            self._records.write(Entry(rollback, ROLLBACK, state), record)
        self._undo(instant, action)
        self._records.write(Entry(rollback, ROLLBACK, State.COMPLETED), record)
        self._delete_markers(instant)
        self._delete_again(instant)

    def _undo(self, instant: str, action: str) -> None:
        """Delete the files of an instant, then remove it from the timeline."""
        self._delete_files(instant, {data_path(name) for name in self._markers.stored(self._directory(instant))})
        for state in UNDONE:
            self._records.remove(Entry(instant, action, state))

    def _complete(self, entry: Entry, data: bytes) -> None:
        """Put the completed instant on the timeline."""
        self._records.write(entry, data)

    def _sweep(self, timeline: Timeline, commits: dict[str, tuple[WriteStat, ...]]) -> None:
        """Remove markers left behind by completed or rolled-back instants, and files that only they name."""
        directories = [i for i in self._records.instants_with_markers() if i not in timeline.pending()]
        if not directories:
            return
        rolled_back = {self._records.target(r, completed=True) for r in timeline.rollbacks(completed=True)}
        over = {target[0] for target in rolled_back if target is not None}
        for instant in directories:
            if instant in commits or instant in over:
                keep = frozenset(stat.path for stat in commits.get(instant, ()))
                self._journal("sweep", instant, None, lambda i=instant, k=keep: self._clear(i, k))  # type: ignore[misc]

    def _clear(self, instant: str, keep: frozenset[str]) -> None:
        names = self._markers.stored(self._directory(instant))
        self._delete_files(instant, {data_path(name) for name in names} - keep)
        self._delete_markers(instant)
        self._delete_again(instant)

    def _reconcile(self, instant: str, accepted: frozenset[str]) -> None:
        names = self._ask(self._markers.store(self._directory(instant)).list_all)
        self._delete_files(instant, {data_path(name) for name in names} - accepted)

    def _ask(self, listing: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The result of a listing, tried up to `ASK_TRIES` times while the marker store fails."""
        for _ in range(ASK_TRIES - 1):
            try:
                return listing()
            except SeamError:
                self._runtime.sleep(ASK_PAUSE_MS)
        return listing()

    def _delete_files(self, instant: str, paths: set[str]) -> None:
        """Delete data files; a missing one is fine, one that may remain is an error (Hudi P 13088).

        A file that the instant cannot have written is kept, whatever a marker says, because it may be committed data.
        """
        for_each(self._runtime, self._options.finalize_parallelism, self._to_delete(instant, paths), self._delete_file)

    def _to_delete(self, instant: str, paths: set[str]) -> list[str]:
        """The paths that the instant may have written; `_delete_again` deletes them once more."""
        own = {path for path in paths if _may_be_of(instant, path)}
        logs = {path: file.instant for path in own if (file := parse_data_file(path)) and file.version is not None}
        if logs:
            own -= self._of_others(instant, logs)
        self._deleted = (instant, sorted(own))
        return self._deleted[1]

    def _of_others(self, instant: str, logs: dict[str, str]) -> set[str]:
        """Log files that a completed commit names, or whose base file belongs to no commit on the timeline.

        The name of a log file does not say which write made it. Files of the second kind belong to archived commits.
        logs: the instant of the base file, by path.
        """
        if self._commits is None:
            self._commits = {entry.instant: self._records.commit(entry) for entry in self._records.read().completed()}
        named = {stat.path for stats in self._commits.values() for stat in stats}
        return {path for path, base in logs.items() if path in named or base not in (instant, *self._commits)}

    def _delete_again(self, instant: str) -> None:
        """Delete files that late attempts wrote meanwhile; the instant is over, so errors are ignored."""
        last, paths = self._deleted
        for path in paths if last == instant else ():
            try:
                self._delete_file(path)
            except SeamError:
                return

    def _delete_file(self, path: str) -> None:
        retry_until_decided(self._storage, self._runtime, lambda: self._storage.delete(f"{self._table}/{path}"))

    def _delete_markers(self, instant: str) -> None:
        """Delete the markers of a finished instant; a directory that remains is swept by the next write."""
        try:
            self._markers.store(self._directory(instant)).delete()
        except (SeamError, Rejected):
            return

    def _directory(self, instant: str) -> str:
        return MarkerDirectory(self._table, instant).path


def _may_be_of(instant: str, path: str) -> bool:
    """Whether an instant may have written a data path: not below .hoodie, and no base file of another instant."""
    file = parse_data_file(path)
    if file is not None and file.version is None and file.instant != instant:
        return False
    return not path.startswith(f"{HOODIE}/")

"""The timeline of a table on storage: list, add and delete entries.

An entry is written once and never changed. Where the storage can put if absent, a second content under the same name
is refused, so that a late driver cannot overwrite the entry of another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from marker_sim.markers.files import create_if_absent, is_stored, retry_until_decided
from marker_sim.seams import Runtime, Storage
from marker_sim.timeline import HOODIE, ROLLBACK, Entry, State, WriteStat, decode_commit, decode_rollback, parse_entry


class Conflict(RuntimeError):
    """The timeline has another entry under the name that this driver wanted to write."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The entries of a table, sorted by instant, as one listing showed them."""

    entries: tuple[Entry, ...]

    @property
    def newest(self) -> str:
        """The latest instant, "" when there is none."""
        return self.entries[-1].instant if self.entries else ""

    def completed(self) -> tuple[Entry, ...]:
        """Completed commits, in the order of their instants."""
        completed = State.COMPLETED
        return tuple(e for e in self.entries if e.state is completed and e.action != ROLLBACK)

    def rollbacks(self, completed: bool) -> tuple[str, ...]:
        """The instants of the rollbacks that are completed, or of those that are not."""
        over = {e.instant for e in self.entries if e.action == ROLLBACK and e.state is State.COMPLETED}
        known = dict.fromkeys(e.instant for e in self.entries if e.action == ROLLBACK)
        return tuple(instant for instant in known if (instant in over) == completed)

    def pending(self) -> dict[str, str]:
        """The action of each instant that began and is not completed."""
        over = {entry.instant for entry in self.completed()}
        return {e.instant: e.action for e in self.entries if e.action != ROLLBACK and e.instant not in over}


class Records:
    """Reads and writes the timeline of one table."""

    def __init__(self, storage: Storage, runtime: Runtime, table: str) -> None:
        self._storage = storage
        self._runtime = runtime
        self._table = table

    def read(self) -> Timeline:
        """The present content of the timeline."""
        prefix = f"{self._table}/{HOODIE}/"
        found = []
        for path in retry_until_decided(self._storage, self._runtime, lambda: self._storage.list(prefix)):
            entry = parse_entry(path) if "/" not in path[len(prefix) :] else None
            if entry is not None:
                found.append(entry)
        return Timeline(tuple(sorted(found, key=attrgetter("instant"))))  # Paths may sort differently from instants.

    def instants_with_markers(self) -> tuple[str, ...]:
        """The instants that have a marker directory, sorted."""
        prefix = f"{self._table}/{HOODIE}/.temp/"
        paths = retry_until_decided(self._storage, self._runtime, lambda: self._storage.list(prefix))
        return tuple(sorted({path[len(prefix) :].partition("/")[0] for path in paths}))

    def write(self, entry: Entry, data: bytes) -> None:
        """Put an entry on the timeline; an equal one is fine, Conflict for a different one."""
        path = entry.path(self._table)
        if not self._storage.capabilities.put_if_absent:
            retry_until_decided(self._storage, self._runtime, lambda: self._storage.put(path, data))
            return
        if not create_if_absent(self._storage, self._runtime, path, data):
            there = is_stored(self._storage, self._runtime, path)
            if there is None or there.data != data:
                raise Conflict(f"{path} is there already and says something else")

    def remove(self, entry: Entry) -> None:
        """Remove an entry from the timeline; a missing one is fine."""
        retry_until_decided(self._storage, self._runtime, lambda: self._storage.delete(entry.path(self._table)))

    def commit(self, entry: Entry) -> tuple[WriteStat, ...]:
        """The write stats of a completed commit."""
        return decode_commit(self._content(entry))

    def target(self, rollback: str, completed: bool) -> tuple[str, str] | None:
        """The instant and action that a rollback reverts; None while its record cannot be read."""
        state = State.COMPLETED if completed else State.REQUESTED
        content = is_stored(self._storage, self._runtime, Entry(rollback, ROLLBACK, state).path(self._table))
        return None if content is None else decode_rollback(content.data)

    def _content(self, entry: Entry) -> bytes:
        path = entry.path(self._table)
        content = is_stored(self._storage, self._runtime, path)
        if content is None:
            raise Conflict(f"{path} was listed and is gone")
        return content.data

"""A table as an audit judges it: what its timeline says, what is stored, and when it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from marker_sim.tables.entries import TableEntry
from marker_sim.tables.instants import Instants
from marker_sim.tables.parts import MarkerDirectoryContent
from marker_sim.tables.sources import StoredFile
from marker_sim.timeline import UNDOING


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAtRest:
    """A table, or the metadata table in it, as it is judged.

    settled: instants that were completed before the files were listed.
    stored: data files by path; described: folders with a partition's metadata.
    metadata: whether it is a metadata table; enabled: the partitions that it is to have.
    owner: the instant in the first block of a log file, "" when it has no block, None when it cannot be read.
    markers: directories by instant. heartbeats: files by instant. now_s: since 1970.
    files: data files that no commit names, by pending instant.
    """

    instants: Instants
    settled: frozenset[str]
    stored: Mapping[str, StoredFile]
    described: frozenset[str]
    metadata: bool
    enabled: frozenset[str]
    owner: Callable[[str], str | None]
    markers: dict[str, MarkerDirectoryContent]
    heartbeats: Mapping[str, StoredFile]
    now_s: float
    stuck_after_s: float
    files: Mapping[str, list[StoredFile]] = field(default_factory=dict)

    def targets(self, instant: str) -> list[str]:
        """The data files that the markers of an instant name, sorted."""
        return self.markers[instant].targets if instant in self.markers else []

    @property
    def undoes_commits(self) -> bool:
        """Whether a rollback that is pending or would begin deletes stored files of completed commits.

        One by markers does not delete a log file of layout 1, which may be of several writes.
        """
        claims, bears_base = self.instants.claims, self.instants.bears_base
        for instant, entries in self.instants.unfinished.items():
            paths = {path for entry in entries if entry.action in UNDOING for path in entry.of("will-delete")}
            named = (path for path in self.targets(instant) if path in claims)
            paths.update(path for path in named if (file := claims[path].file) and not bears_base(file))
            if any(path in claims and path in self.stored for path in paths):
                return True
        return False

    def idle_s(self, instant: str) -> float:
        """Since when nothing of a pending instant changed: no entry, data file, marker or heartbeat."""
        files: list[TableEntry | StoredFile] = [*self.instants.unfinished[instant], *self.files.get(instant, ())]
        if instant in self.markers:
            files += self.markers[instant].files.values()
        if instant in self.heartbeats:
            files.append(self.heartbeats[instant])
        return self.now_s - max(file.modified_s for file in files)

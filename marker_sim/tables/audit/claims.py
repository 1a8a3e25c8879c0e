"""What an audit knows from the entries of a timeline, beyond what they say together. Pure.

    pending       unfinished, of any action
    covered       the readable timeline reaches back to it: were it ever requested, an entry or a rollback would say so

The timeline reaches back to the first archived instant; without an archive to the first active one that no savepoint
keeps there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from marker_sim.tables.entries import TableEntry
from marker_sim.tables.instants import Claim, Instants
from marker_sim.tables.parts import MarkerDirectoryContent
from marker_sim.tables.sources import StoredFile
from marker_sim.timeline import COMMITS, UNDOING, DataFile


class AuditedInstants(Instants):
    """A timeline, indexed for an audit."""

    @cached_property
    def unread(self) -> dict[str, TableEntry]:
        """Completed commits whose files are not known, by instant."""
        commits = (e for entries in self.completed.values() for e in entries if e.action in COMMITS and e.error)
        return {entry.instant: entry for entry in commits}

    @cached_property
    def beside(self) -> dict[str, frozenset[str]]:
        """The files that the commits of an instant know of without having them among those they wrote."""
        found: dict[str, frozenset[str]] = {}
        for instant, entries in self.completed.items():
            paths = frozenset(path for entry in entries for path in entry.of("beside"))
            if paths:
                found[instant] = paths
        return found

    def record(self, path: str, claim: Claim) -> TableEntry | None:
        """The newest clean, rollback or restore that says it deleted a file of a commit, or that plans to."""
        dropped = self.saying("dropped").get(claim.file.partition if claim.file else "", ())
        found = [*(entry for entry in dropped if entry.instant > claim.instant), *self.deleting(path)]
        return found[-1] if found else None

    def replaced(self, group: tuple[str, str]) -> str:
        """The newest instant that replaced a file group, by partition and file id; "" when none did."""
        entries = self.saying("replaced").get("|".join(group))
        return entries[-1].instant if entries else ""

    def forgotten(self, file: DataFile) -> TableEntry | None:
        """The archived commit that replaced the group of a committed file, where no active one did: readers know only
        of active ones, so they see the group again.
        """
        entries = [e for e in self.saying("replaced").get("|".join(file[:2]), ()) if e.instant > file.instant]
        return entries[-1] if entries and all(entry.archived for entry in entries) else None

    @cached_property
    def newest_base(self) -> dict[tuple[str, str], str]:
        """The instant of the newest committed base file of a file group, by partition and file id."""
        found: dict[tuple[str, str], str] = {}
        for claim in self.claims.values():
            file = claim.file
            if file is not None and not file.log:
                group = file.partition, file.file_id
                found[group] = max(file.instant, found.get(group, ""))
        return found

    def is_current(self, file: DataFile) -> bool:
        """Whether a committed file is in the newest slice of its group, as far as commits can be read.

        A log file that bears its own instant is in the newest slice whose base file was begun before the log file's
        commit was completed. Where that time is of another length than the newest base file's instant, the instant
        counts (HoodieFileGroup.getBaseInstantTime and CompletionTimeQueryViewV2 of 1.2.0).
        """
        newest = self.newest_base.get(file[:2], "")
        own = file.log and not self.bears_base(file)
        completed = self.committed[file.instant].completion if own and file.instant in self.committed else ""
        return (completed if len(completed) == len(newest) else file.instant) >= newest

    def convicts(self, claim: Claim) -> bool:
        """Whether the active timeline proves that readers need the file of a commit, whatever was recorded of it.

        Not where a later commit cannot be read, which may have made a newer slice, nor where entries between may be
        gone, as behind a savepoint.
        """
        known = not claim.archived and self.covers(claim.instant) and max(self.unread, default="") <= claim.instant
        return known and claim.file is not None and self.is_needed(claim.file)

    def is_needed(self, file: DataFile) -> bool:
        """Whether readers need a committed file: it is in the newest slice of a group that nothing replaced."""
        return self.is_current(file) and not self.replaced(file[:2]) >= file.instant

    @cached_property
    def command_groups(self) -> frozenset[tuple[str, str]]:
        """The file groups with a command block of a completed rollback, by partition and file id."""
        return self.groups(self.saying("appended"))

    @cached_property
    def first(self) -> str:
        """The instant from which on the timeline is known; "" when nothing is."""
        archived = [entry.instant for entry in self.entries if entry.archived]
        active = {entry.instant for entry in self.entries if not entry.archived}
        kept = {entry.instant for entry in self.entries if entry.action == "savepoint" and not entry.archived}
        if archived and not self.archive_error:
            return min(archived)
        return min(active - kept, default="")

    def covers(self, instant: str) -> bool:
        """Whether the timeline would know of an instant."""
        return bool(self.first) and instant >= self.first

    @cached_property
    def hides_cleans(self) -> str:
        """The reason why a file may have been deleted without a readable record or plan, "" when it cannot."""
        return self.hidden("clean", *UNDOING, pending=True)


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

    instants: AuditedInstants
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

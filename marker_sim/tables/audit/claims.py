"""What an audit knows from the entries of a timeline, beyond what they say together. Pure.

    pending       unfinished, of any action
    rolled back   a rollback or restore that is completed names it, by its record or by its plan, and it is neither
                  unfinished nor committed now
    covered       the readable timeline reaches back to it: were it ever requested, an entry or a rollback would say so

The timeline reaches back to the first archived instant; without an archive to the first active one that no savepoint
keeps there.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from marker_sim.tables.entries import TableEntry
from marker_sim.tables.instants import Instants
from marker_sim.tables.timeline_reader import TableTimeline
from marker_sim.timeline import COMMITS, UNDOING, DataFile, stored_path


class Claim(NamedTuple):
    """What a commit says of a file it wrote. size: -1 when unknown; file: None where the name is none of Hudi's."""

    instant: str
    size: int
    archived: bool
    file: DataFile | None


class AuditedInstants(Instants):
    """A timeline, indexed for an audit."""

    def __init__(self, timeline: TableTimeline, layout: int) -> None:
        super().__init__(timeline.entries, layout)
        self.archive_error = timeline.archive_error

    def without_claims(self) -> AuditedInstants:
        """A copy for other processes, without the files that commits wrote: claims are sent with their partition."""
        left_out = ("wrote", "size", "least")
        slim = (
            entry._replace(facts={word: each for word, each in entry.facts.items() if word not in left_out})
            for entry in self.entries
        )
        kept = AuditedInstants(TableTimeline(tuple(slim), self.archive_error), self.layout)
        kept.__dict__.update(bases=self.bases, newest_base=self.newest_base)
        return kept

    @cached_property
    def rolled_back(self) -> dict[str, TableEntry]:
        """The rollback or restore by which an instant is over."""
        found = {
            instant: entry
            for instant, entries in self.saying("rolled-back").items()
            for entry in entries
            if entry.instant in self.completed
        }
        return {i: entry for i, entry in found.items() if i not in self.unfinished and i not in self.committed}

    @cached_property
    def unread(self) -> dict[str, TableEntry]:
        """Completed commits whose files are not known, by instant."""
        commits = (e for entries in self.completed.values() for e in entries if e.action in COMMITS and e.error)
        return {entry.instant: entry for entry in commits}

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The files that completed commits wrote, by the path where they are stored; of several commits the newest,
        and the largest of their sizes.
        """
        found: dict[str, Claim] = {}
        for instant in sorted(self.completed):
            for entry in self.completed[instant]:
                if entry.action not in COMMITS:
                    continue
                sizes = {**entry.numbers("least"), **entry.numbers("size")}
                for named in entry.of("wrote"):
                    path = stored_path(named)
                    before = found[path].size if path in found else -1
                    size = max(before, int(sizes.get(named, -1)))
                    found[path] = Claim(instant, size, entry.archived, self.parse(named))
        return found

    @cached_property
    def beside(self) -> dict[str, frozenset[str]]:
        """The files that the commits of an instant know of without having them among those they wrote."""
        found: dict[str, frozenset[str]] = {}
        for instant, entries in self.completed.items():
            paths = frozenset(path for entry in entries for path in entry.of("beside"))
            if paths:
                found[instant] = paths
        return found

    def deleting(self, path: str, claim: Claim) -> TableEntry | None:
        """The newest clean, rollback or restore that says it deleted a file of a commit, or that plans to."""
        dropped = self.saying("dropped").get(claim.file.partition if claim.file else "", ())
        found = [
            *(entry for entry in dropped if entry.instant > claim.instant),
            *self.saying("will-delete").get(path, ()),
            *self.saying("deleted").get(path, ()),
        ]
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

    @cached_property
    def completions(self) -> dict[str, str]:
        """The times when commits were completed, by instant, as far as they are known."""
        return {instant: entry.completion for instant, entry in self.committed.items() if entry.completion}

    def is_current(self, file: DataFile) -> bool:
        """Whether a committed file is in the newest slice of its group, as far as commits can be read.

        A log file that bears its own instant is in the newest slice whose base file was begun before the log file's
        commit was completed. Where that time is of another length than the newest base file's instant, the instant
        counts (HoodieFileGroup.getBaseInstantTime and CompletionTimeQueryViewV2 of 1.2.0).
        """
        newest = self.newest_base.get(file[:2], "")
        own = file.log and not self.bears_base(file)
        completed = self.completions.get(file.instant, "") if own else ""
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
        """The reason why a file may have been deleted without a readable record, "" when it cannot."""
        if self.archive_error:
            return self.archive_error
        for entry in self.entries:
            if entry.error and entry.action in ("clean", *UNDOING):
                return f"{entry.path}: {entry.error}"
        return ""

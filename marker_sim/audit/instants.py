"""What the entries of a timeline say together. Pure.

    completed     by any action; a compaction completes as a commit, a clustering as a replacecommit
    pending       requested or inflight, and not completed
    rolled back   a completed rollback or restore names it, and it is neither pending nor completed now
    covered       the readable timeline reaches back to it: were it ever requested, an entry or a rollback would say so

The timeline reaches back to the first archived instant; without an archive to the first active one that no savepoint
keeps there.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from marker_sim.audit.names import parse_file_name
from marker_sim.audit.timeline import TableTimeline, TimelineAction
from marker_sim.tables.entries import COMMITS

UNDOING = frozenset({"rollback", "restore"})


class Claim(NamedTuple):
    """What a commit says of a file it wrote. size: -1 when unknown; exact: whether it may not have grown since."""

    instant: str
    size: int
    exact: bool
    archived: bool


class Instants:
    """A timeline, indexed. Paths are relative to the table."""

    def __init__(self, timeline: TableTimeline) -> None:
        self.actions = timeline.actions
        self.archive_error = timeline.archive_error
        self.completed: dict[str, list[TimelineAction]] = {}
        for action in self.actions:
            if action.state == "completed":
                self.completed.setdefault(action.instant, []).append(action)

    def without_claims(self) -> Instants:
        """The same for other processes, without what commits wrote: claims are sent to whom they concern."""
        left_out = ("wrote", "size", "least")
        slim = (
            action._replace(facts={word: each for word, each in action.facts.items() if word not in left_out})
            for action in self.actions
        )
        kept = Instants(TableTimeline(tuple(slim), self.archive_error, 0))
        kept.__dict__.update(bases=self.bases, newest_base=self.newest_base)
        return kept

    @cached_property
    def pending(self) -> dict[str, list[TimelineAction]]:
        """The entries of instants that are not completed."""
        found: dict[str, list[TimelineAction]] = {}
        for action in self.actions:
            if action.state != "completed" and not action.archived and action.instant not in self.completed:
                found.setdefault(action.instant, []).append(action)
        return found

    @cached_property
    def rolled_back(self) -> dict[str, TimelineAction]:
        """The completed rollback or restore of each instant that is over by it; its plan names them as well."""
        found = {}
        for action in self.actions:
            if action.action in UNDOING and action.instant in self.completed:
                found.update(dict.fromkeys(action.of("rolled-back"), action))
        return {i: a for i, a in found.items() if i not in self.pending and not self._committed(i)}

    def _committed(self, instant: str) -> bool:
        return any(action.action in COMMITS for action in self.completed.get(instant, ()))

    @cached_property
    def unread(self) -> dict[str, TimelineAction]:
        """Completed commits whose files are not known, by instant."""
        commits = (a for actions in self.completed.values() for a in actions if a.action in COMMITS and a.error)
        return {action.instant: action for action in commits}

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The files that completed commits wrote; of several commits the newest, and the largest of their sizes."""
        found: dict[str, Claim] = {}
        for instant in sorted(self.completed):
            for action in self.completed[instant]:
                if action.action not in COMMITS:
                    continue
                exact = _sizes(action.of("size"))
                least = _sizes(action.of("least"))
                for path in action.of("wrote"):
                    size = exact.get(path, least.get(path, -1))
                    before = found.get(path)
                    if before is not None:
                        size = max(size, before.size)
                    found[path] = Claim(instant, size, path in exact, action.archived)
        return found

    @cached_property
    def beside(self) -> dict[str, frozenset[str]]:
        """The files that the commits of an instant know of without having them among those they wrote."""
        found: dict[str, frozenset[str]] = {}
        for instant, actions in self.completed.items():
            paths = frozenset(path for action in actions for path in action.of("beside"))
            if paths:
                found[instant] = paths
        return found

    @cached_property
    def command_blocks(self) -> frozenset[str]:
        """Log files by which rollbacks made blocks invisible."""
        return frozenset(path for a in self.actions if a.state == "completed" for path in a.of("appended"))

    @cached_property
    def undone(self) -> frozenset[str]:
        """Log files that a completed rollback knows of and made invisible by a command block."""
        return frozenset(path for a in self.actions if a.state == "completed" for path in a.of("undone"))

    @cached_property
    def deleted(self) -> frozenset[str]:
        """Files that a clean, a rollback or a restore deleted, or may be deleting by its plan."""
        words = ("deleted", "will-delete")
        return frozenset(path for action in self.actions for word in words for path in action.of(word))

    @cached_property
    def dropped(self) -> frozenset[str]:
        """Partitions that a clean removed as a whole."""
        return frozenset(part for action in self.actions for part in action.of("dropped"))

    @cached_property
    def saved(self) -> frozenset[str]:
        """Files that a savepoint keeps."""
        return frozenset(path for action in self.actions for path in action.of("saved"))

    @cached_property
    def replaced(self) -> dict[str, str]:
        """The newest instant that replaced a file group, by `partition|file id`."""
        found: dict[str, str] = {}
        for instant in sorted(self.completed):
            for action in self.completed[instant]:
                found.update(dict.fromkeys(action.of("replaced"), instant))
        return found

    @cached_property
    def newest_base(self) -> dict[tuple[str, str], str]:
        """The instant of the newest committed base file of a file group, by partition and file id."""
        found: dict[tuple[str, str], str] = {}
        for path in self.claims:
            file = parse_file_name(path)
            if file is not None and not file.log:
                group = file.partition, file.file_id
                found[group] = max(file.instant, found.get(group, ""))
        return found

    @cached_property
    def bases(self) -> frozenset[tuple[str, str, str]]:
        """Partition, file id and instant of the committed base files."""
        files = (parse_file_name(path) for path in self.claims)
        return frozenset((f.partition, f.file_id, f.instant) for f in files if f is not None and not f.log)

    @cached_property
    def command_groups(self) -> frozenset[tuple[str, str]]:
        """The file groups with a command block of a completed rollback, by partition and file id."""
        files = map(parse_file_name, self.command_blocks)
        return frozenset((f.partition, f.file_id) for f in files if f is not None)

    @cached_property
    def first(self) -> str:
        """The instant from which on the timeline is known; "" when nothing is."""
        archived = [action.instant for action in self.actions if action.archived]
        active = {action.instant for action in self.actions if not action.archived}
        kept = {action.instant for action in self.actions if action.action == "savepoint" and not action.archived}
        if archived and not self.archive_error:
            return min(archived)
        return min(active - kept, default="")

    def covers(self, instant: str) -> bool:
        """Whether the timeline would know of an instant."""
        return bool(self.first) and instant >= self.first

    @cached_property
    def hides_cleans(self) -> str:
        """Why a file may have been deleted without a readable record, "" when it may not."""
        if self.archive_error:
            return self.archive_error
        for action in self.actions:
            if action.error and action.action in ("clean", *UNDOING):
                return f"{action.path}: {action.error}"
        return ""


def _sizes(facts: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for fact in facts:
        path, _, size = fact.rpartition(" ")
        found[path] = int(size)
    return found

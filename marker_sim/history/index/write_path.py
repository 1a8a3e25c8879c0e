"""The write path of a run: writes, data files and timeline entries, and when each was in storage.

    data file   an effect below a table, not below .hoodie; no `.hoodie_partition_metadata`, no temporary file
    owner       the instant of the latest attempt at that path, of the process whose effect it is if that made one; else
                that in a base file's name, or those whose markers asked for a log file (named after its base file)
    completed   an entry of the timeline is in storage, whether or not its driver was answered

Judges use the appearance of a file, from absent to present, and not its first effect alone: a put that is applied late
restores a deleted file, and the process that deleted it is not to blame.
Only the witness "effects" gives the order; a completed entry that is written in place counts from the end of that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.history.index.calls import Directory, RecordedCall, WriteStep
from marker_sim.history.index.event_reader import EventReader, content_of
from marker_sim.history.index.presence import NEVER, present
from marker_sim.names import TEMP, data_path
from marker_sim.timeline import (
    HOODIE,
    PARTITION_METADATA,
    ROLLBACK,
    Entry,
    State,
    WriteStat,
    decode_commit,
    decode_rollback,
    parse_data_file,
    parse_entry,
    write_ordinal,
)

Key = tuple[str, str]
_index = attrgetter("index")
_INSIDE = f"{HOODIE}/"
_MARKERS = f"{HOODIE}/.temp/"


class Appearance(NamedTuple):
    """A data file put where none was, or where another instant's was. path: relative to the table."""

    start: int
    path: str


class Completion(NamedTuple):
    """A commit or rollback that is completed on the timeline from event `at` on.

    stats: of a commit, None when it cannot be read.
    ordinal: which write of its plan a commit says it is, or None.
    """

    at: int
    key: Key
    process: str
    stats: tuple[WriteStat, ...] | None
    ordinal: int | None = None


class CommittedDataChange(NamedTuple):
    """An effect that removed or changed a committed file or the commit itself. path: full."""

    at: int
    process: str
    path: str
    key: Key


class ObservedWrite(NamedTuple):
    """A write that began. committed: the `ok` of its commit, NEVER when there is none."""

    begin: WriteStep
    key: Key
    committed: int


class WritePathIndex:
    """The actions of write clients. Keys are (table, instant), because two tables may have equal instants.

    files: appearances by owner.
    first: the first effect of each owner on each path; last_put: the last one on any.
    began, stated: the first timeline entry of an instant, (event, process), and of each of its states.
    marker_effects: effects in marker directories.
    commits, rollbacks: by event.
    harms: removals and changes of committed files.
    end: the number of events.
    """

    def __init__(self, reading: EventReader) -> None:
        self._reading = reading
        self.end = reading.end
        self.steps = sorted(reading.steps)
        tables = {step.table for step in self.steps if step.operation == "begin"}
        self.prefixes = sorted((f"{table}/" for table in tables), key=lambda prefix: (-len(prefix), prefix))
        self.files: dict[Key, list[Appearance]] = {}
        self.first: dict[Key, dict[str, int]] = {}
        self.last_put: dict[Key, int] = {}
        self.began: dict[Key, tuple[int, str]] = {}
        self.marker_effects: list[Event] = []
        self.commits: list[Completion] = []
        self.rollbacks: list[Completion] = []
        self.stated: dict[Key, dict[State, int]] = {}
        self.harms: list[CommittedDataChange] = []
        self._spans: dict[str, list[int]] = {}
        self._contents: dict[str, bytes | None] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._named: dict[str, Key] = {}
        self._before: dict[str, Key] = {}
        self._completed: dict[Key, list[str]] = {}
        self._pending: dict[Key, dict[str, None]] = {}
        self._attempts: dict[Key, list[WriteStep]] = {}
        self._about: dict[Key, list[WriteStep]] = {}
        self._by_process: dict[tuple[str, bool], list[WriteStep]] = {}  # Attempts and parts of drivers apart.
        self._ends: dict[str, list[int]] = {}  # Of the attempts of a process, until when any so far lasts.
        self._shown: dict[int, frozenset[str]] = {}
        for step in self.steps:
            self._by_process.setdefault((step.process, step.operation == "attempt"), []).append(step)
            self._about.setdefault((step.table, step.instant), []).append(step)
            if step.operation == "attempt":
                self._attempts.setdefault((step.table, step.path), []).append(step)
        self._fold()
        self.writes = tuple(self._find_writes())

    def of(self, *operations: str) -> list[WriteStep]:
        """The steps of these kinds, in order of invocation."""
        return [step for step in self.steps if step.operation in operations]

    def about(self, key: Key, *operations: str) -> list[WriteStep]:
        """The steps of these kinds that name an instant, in order of invocation."""
        return [step for step in self._about.get(key, ()) if step.operation in operations]

    def directory(self, key: Key) -> Directory | None:
        """The calls of an instant's marker directory."""
        return self._reading.directories.get(f"{key[0]}{TEMP}{key[1]}")

    def there(self, table: str, path: str, moment: int) -> bool:
        """Whether a data file is stored at an event. path: relative to the table."""
        return present(self._spans.get(f"{table}/{path}"), moment) is not None

    def gone(self, table: str, path: str, moment: int) -> int | None:
        """The event that removed a data file not stored at an event, None for a file that never existed."""
        return max((at for at in self._spans.get(f"{table}/{path}", ())[1::2] if at <= moment), default=None)

    def answer(self, done: Completion) -> int | None:
        """The end of the commit that stored a completion; where it did not end, the end of its finalize."""
        steps = [step for step in self.about(done.key, "finalize", "commit") if step.invoke < done.at]
        return next((step.done for step in reversed(steps) if step.done != NEVER), None)

    def marked(self, key: Key, file: str, before: int = NEVER) -> tuple[int, ...]:
        """Invocation and end of the first answered create of a file's marker, else of its first attempt that ended,
        NEVER for an open one; empty without either. file: relative to the table. before: when they had ended.
        """
        directory = self.directory(key)
        created = [call[:2] for call in (directory.answers if directory else ()) if data_path(call.name) == file]
        attempts = sorted((s[:2] for s in self.about(key, "attempt") if s.path == file), key=itemgetter(1))
        ended = [each for each in (*created, *attempts) if each[1] < before or before == NEVER]
        return next(iter(ended), ())

    def committed(self, key: Key, moment: int) -> bool:
        """Whether the completed commit of an instant is in storage at an event."""
        return any(present(self._spans[path], moment) is not None for path in self._completed.get(key, ()))

    def committed_for_good(self, key: Key) -> int:
        """The event since which an instant is committed for good, NEVER when it is not."""
        spans = [self._spans[path] for path in self._completed.get(key, ())]
        return min((span[-1] for span in spans if len(span) % 2), default=NEVER)

    def rolled_back(self, key: Key, moment: int) -> bool:
        """Whether a completed rollback of an instant was stored before an event."""
        return any(done.key == key and done.at < moment for done in self.rollbacks)

    def pending(self, key: Key, moment: int) -> bool:
        """Whether an instant is on the timeline at an event and not completed."""
        listed = any(present(self._spans[path], moment) is not None for path in self._pending.get(key, ()))
        return listed and not self.committed(key, moment)

    def over(self, key: Key, moment: int) -> bool:
        """Whether an instant is finished at an event: committed, rolled back, or removed from the timeline."""
        if self.committed(key, moment) or self.rolled_back(key, moment):
            return True
        return key in self.began and self.began[key][0] < moment and not self.pending(key, moment)

    def left_since(self, key: Key, before: int, moment: int) -> list[Appearance]:
        """The instant's data files stored before an event and kept until a later one."""
        left = []
        for file in self.files.get(key, ()):
            if file.start < before:
                to = present(self._spans.get(f"{key[0]}/{file.path}"), file.start)
                if to is not None and to > moment:
                    left.append(file)
        return left

    def residues(self, moments: Iterable[int]) -> dict[int, dict[Key, list[str]]]:
        """For each of these events: the files below each instant's marker directory, where there are any."""
        found: dict[int, dict[Key, list[str]]] = {}
        there: dict[str | None, None] = {}
        at, effects = 0, self.marker_effects
        for moment in sorted(moments):
            upto = bisect_right(effects, moment, key=_index)
            for event in effects[at:upto]:
                if event.value is None:
                    there.pop(event.path, None)
                else:
                    there[event.path] = None
            at = upto
            left: dict[Key, list[str]] = {}
            found[moment] = left
            for path in filter(None, there):
                table, _, below = path.partition(f"/{_MARKERS}")
                if not path.endswith("/"):
                    left.setdefault((table, below.partition("/")[0]), []).append(path)
        return found

    def marker_puts(self, key: Key, after: int) -> list[int]:
        """The events after a given one that stored files in an instant's marker directory, latest first."""
        home = f"{key[0]}/{_MARKERS}{key[1]}/"
        at = bisect_right(self.marker_effects, after, key=_index)
        puts = [e.index for e in self.marker_effects[at:] if e.value is not None and (e.path or "").startswith(home)]
        return puts[::-1]

    def listings(self, step: WriteStep) -> list[RecordedCall]:
        """The listings of the instant's markers that a step's own process made during the step."""
        directory = self.directory((step.table, step.instant))
        events = self._reading.events
        calls = directory.listings if directory else []
        return sorted(c for c in calls if step.surrounds(c.invoke) and events[c.invoke].process == step.process)

    def listed(self, step: WriteStep, file: str = "", answered: bool = False) -> tuple[int, int] | None:
        """The events at which a step's last round of listings was invoked first and was over, NEVER when it never was;
        None without one. A round is the last listing of each kind, so that one which failed and was made again counts
        once; for a data path only those that can show it; answered: only those that ended ok.
        """
        useless = ""
        if file:
            useless = "list-data" if file.rpartition("/")[2].startswith(".") else "list-log"
        calls = (call for call in self.listings(step) if call.outcome == "ok" or not answered)
        last = {call.operation: call for call in calls if call.operation != useless}
        if not last:
            return None
        return min(call.invoke for call in last.values()), max(call.done for call in last.values())

    def known_from(self, step: WriteStep, file: str, answered: bool = False) -> int:
        """The event before which a data file must have been stored for a step to know it: the answer of its listing for
        a file whose marker it shows, the listing's invocation for another one, the step's own without a listing.
        """
        listed = self.listed(step, file, answered)
        if listed is None:
            return step.invoke
        shown = self._shows(step, file) if listed[1] != NEVER else False
        return listed[1] if shown else listed[0]

    def _shows(self, step: WriteStep, file: str) -> bool:
        for call in self.listings(step):
            if call.outcome == "ok" and isinstance(call.value, tuple):
                if call.invoke not in self._shown:
                    names = map(data_path, call.value) if call.operation == "list" else call.value
                    self._shown[call.invoke] = frozenset(names)
                if file in self._shown[call.invoke]:
                    return True
        return False

    def acting(self, process: str, index: int) -> WriteStep | None:
        """The innermost step of a driver to which an effect of its process belongs."""
        own = self._by_process.get((process, False), [])
        return next((step for step in reversed(own) if step.may_act(index)), None)

    def attempting(self, process: str, index: int) -> WriteStep | None:
        """The first attempt of a process that surrounds an event."""
        own = self._by_process.get((process, True), [])
        ends = self._ends.get(process) or [*accumulate((step.done for step in own), max)]
        at = bisect_right(self._ends.setdefault(process, ends), index)
        return own[at] if at < len(own) and own[at].invoke < index else None

    def _fold(self) -> None:
        for event in self._reading.earlier:
            key = (event.table or "", event.instant or "")
            for known in (self._before, self._named) if event.path == "archived" else (self._before,):
                known |= {f"{key[0]}/{path}": key for path in event.texts}
        places = [(prefix, f"{prefix}{_MARKERS}", f"{prefix}{_INSIDE}") for prefix in self.prefixes]
        for event in self._reading.events:
            if event.kind != "effect" or event.path is None:
                continue
            path = event.path
            for prefix, markers, inside in places:
                if path.startswith(prefix):
                    if path.startswith(markers):
                        self.marker_effects.append(event)
                    elif path.startswith(inside):
                        self._entry(event, prefix[:-1], path[len(prefix) :])
                    elif not path.endswith((PARTITION_METADATA, f".{event.index}.tmp")):  # The latter is of a torn put.
                        self._data(event, prefix[:-1], path[len(prefix) :])
                    break

    def _entry(self, event: Event, table: str, relative: str) -> None:
        index, path = event.index, event.path
        assert path is not None
        entry = parse_entry(relative)
        content = content_of(event.value)
        if entry is None or event.operation in ("overwrite-begin", "overwrite-piece"):
            return
        before = self._contents.get(path)
        if path in self._named and content != before:
            self.harms.append(CommittedDataChange(index, event.process, path, self._named.pop(path)))
        self._span(index, path, content is not None)
        self._contents[path] = content
        if content is not None and content != before:
            self._add_entry(event, table, entry, content)

    def _add_entry(self, event: Event, table: str, entry: Entry, content: bytes) -> None:
        index, path, process = event.index, event.path, event.process
        assert path is not None
        key = (table, entry.instant)
        if entry.action == ROLLBACK:
            if entry.state is State.COMPLETED:
                try:
                    target = decode_rollback(content)[0]
                except ValueError:
                    return  # Its target cannot be read, so it rolls nothing back.
                self.rollbacks.append(Completion(index, (table, target), process, None))
            return
        self.began.setdefault(key, (index, process))
        self.stated.setdefault(key, {}).setdefault(entry.state, index)
        if entry.state is not State.COMPLETED:
            self._pending.setdefault(key, {})[path] = None
            return
        try:
            stats = decode_commit(content)
        except ValueError:
            stats = None
        self.commits.append(Completion(index, key, process, stats, write_ordinal(content)))
        self._completed.setdefault(key, []).append(path)
        self._named[path] = key
        for stat in stats or ():
            self._named.setdefault(f"{table}/{stat.path}", key)

    def _data(self, event: Event, table: str, relative: str) -> None:
        index, process, path, content = event.index, event.process, event.path, content_of(event.value)
        assert path is not None
        before = self._contents.get(path)
        if before is not None and content != before and path in self._named:
            self.harms.append(CommittedDataChange(index, process, path, self._named[path]))
        if content is None:
            self._span(index, path, False)
            self._contents.pop(path, None)
            return
        self._contents[path] = content
        attempts = self._attempts.get((table, relative), ())
        if len(attempts) == 1 and attempts[0].invoke < index:
            owners: tuple[str, ...] = (attempts[0].instant,)
        else:
            owners = self._owners_of(table, relative, process, index)
        if self._span(index, path, True) > 0 or owners != self._owners[path]:
            self._owners[path] = owners
            for owner in owners:
                self.files.setdefault((table, owner), []).append(Appearance(index, relative))
                self.first.setdefault((table, owner), {}).setdefault(relative, index)
        for owner in owners:
            self.last_put[table, owner] = index

    def _span(self, index: int, path: str, stored: bool) -> int:
        """Note whether a file is there from now on; 1 when it came, -1 when it went, 0 when nothing changed."""
        span = self._spans.setdefault(path, [])
        if stored == bool(len(span) % 2):
            return 0
        span.append(index)
        return 1 if stored else -1

    def _owners_of(self, table: str, path: str, process: str, index: int) -> tuple[str, ...]:
        before = [step for step in self._attempts.get((table, path), ()) if step.invoke < index]
        if before:
            own = [step for step in before if step.process == process]
            return ((own or before)[-1].instant,)
        file = parse_data_file(path)
        if file is not None and file.version is None:
            return (file.instant,)
        if index < self._reading.start:
            return (self._before.get(f"{table}/{path}", ("", ""))[1],)
        asked = [
            directory.path.rpartition("/")[2]
            for directory in self._reading.directories.values()
            if directory.path.startswith(f"{table}{TEMP}")
            and any(data_path(call.name) == path for call in directory.creates)
        ]
        return tuple(sorted(asked)) or ("",)

    def _find_writes(self) -> Iterator[ObservedWrite]:
        for begin in self.of("begin"):
            if begin.outcome == "ok" and begin.instant:
                key = (begin.table, begin.instant)
                done = [s.done for s in self.about(key, "commit") if s.outcome == "ok" and s.invoke > begin.done]
                yield ObservedWrite(begin, key, min(done, default=NEVER))

"""When each name was stored: intervals of presence from storage effects, or from files as they were read.

Two views of the same run. At rest: a file that is being written in place keeps its previous content until the writing
ends, or its writer dies and leaves the torn content. Raw: every effect as it is, for rewrite-atomic alone. Presence is
a flat list of event indices for each name, [from, to, from, to, ...]; its length is odd if the name is still stored.

With the witness "effects" a name is present from the effect that stored it on. With "reads" presence is known at
snapshots only; `DirectoryPresence.look` gives the snapshot that decides for a given moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from marker_sim.history import Event, Header
from marker_sim.names import TEMP, TYPE_BATCHED, TYPE_FILE, decode_names, is_marker_name, marker_file_index

NEVER = 1 << 62
_BATCH, _TYPE, _DIRECT, _OTHER = range(4)


@dataclass(slots=True, eq=False)
class DirectoryPresence:
    """One marker directory in storage.

    spans: presence by name.
    batch_high: the most marker files at one time, and the event that reached it.
    untyped: events after which a marker file was there without a valid type file; typed_at: puts of valid ones.
    filled: direct marker files that were not empty.
    direct, batch, types: paths of each kind that were ever there, with the event that first showed them.
    begun, seen: the stable snapshots, by when their reading began and by their own index; with `reads` only they count.
    """

    path: str
    reads: bool
    holders: dict[str, int] = field(default_factory=dict)
    spans: dict[str, list[int]] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    batch_files: int = 0
    batch_high: tuple[int, int] = (0, 0)
    typed: bool = False
    typed_at: list[int] = field(default_factory=list)
    untyped: list[int] = field(default_factory=list)
    filled: list[tuple[int, str]] = field(default_factory=list)
    direct: dict[str, int] = field(default_factory=dict)
    batch: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def seen_at(self, moment: int) -> int | None:
        """The event at which storage shows the state of `moment`; None when storage was not read after it."""
        if not self.reads:
            return moment
        at = bisect_left(self.begun, moment)
        return self.seen[at] if at < len(self.seen) else None

    def began(self, index: int) -> int:
        """The start of the reading that an event belongs to; the event itself where effects are known."""
        at = bisect_left(self.seen, index)
        return min(index, self.begun[at]) if at < len(self.seen) else index

    def gone_from(self, name: str, answered: int, until: int) -> int | None:
        """Since when an answered name was last missing before an event; None when it is stored.

        One that was never stored is missing from the answer on, and one that was not looked for until then, then.
        """
        span = self.spans.get(name)
        looked = self.seen_at(answered) or until
        if present(span, max(until, looked)) is not None:
            return None
        return max((end for end in (span or ())[1::2] if end <= until), default=min(looked, until))

    def snapshot(self, index: int, begun: int, names: Iterable[str] | None) -> None:
        """Add a reading of storage. names: its content where the format is not Hudi's."""
        if self.begun and begun < self.begun[-1]:
            return  # It began before the previous snapshot, so a missing name proves nothing.
        now = frozenset(names) if names is not None else frozenset(n for n, held in self.holders.items() if held)
        for name in now - self.present:
            self.spans.setdefault(name, []).append(index)
        for name in self.present - now:
            self.spans[name].append(index)
        self.present = now
        self.begun.append(begun)
        self.seen.append(index)
        self.note_files(index)

    def note_files(self, index: int) -> None:
        """Record the current number of marker files, and whether the type file is missing."""
        if self.batch_files > self.batch_high[0]:
            self.batch_high = (self.batch_files, index)
        if self.batch_files and not self.typed:
            self.untyped.append(index)

    def hold(self, index: int, names: Iterable[str]) -> None:
        """Count one more file that holds these names."""
        holders, spans, reads = self.holders, self.spans, self.reads
        for name in names:
            held = holders.get(name, 0)
            holders[name] = held + 1
            if not held and not reads:
                span = spans.get(name)
                if span is None:
                    spans[name] = [index]
                else:
                    span.append(index)

    def release(self, index: int, names: Iterable[str]) -> None:
        """Count one file less that holds these names."""
        for name in names:
            held = self.holders[name] - 1
            self.holders[name] = held
            if not held and not self.reads:
                self.spans[name].append(index)


class _File:
    """One file below a marker directory."""

    __slots__ = ("content", "home", "kind", "names", "relative", "torn", "writers")

    def __init__(self, home: DirectoryPresence, relative: str) -> None:
        self.home = home
        self.relative = relative
        self.content: bytes | None = None
        self.torn: bytes | None = None
        self.names: set[str] = set()
        self.writers: set[str] = set()
        if relative.startswith("MARKERS") and marker_file_index(relative) is not None:
            self.kind = _BATCH
        elif relative.endswith(TYPE_FILE) and relative.rpartition("/")[2] == TYPE_FILE:
            self.kind = _TYPE
        else:
            self.kind = _DIRECT if is_marker_name(relative) else _OTHER


class PresenceIndex:
    """All marker directories of a run; fed with effects or file observations in order."""

    __slots__ = ("_files", "_reads", "_rewriting", "homes")

    def __init__(self, reads: bool) -> None:
        self.homes: dict[str, DirectoryPresence] = {}
        self._reads = reads
        self._files: dict[str, _File | None] = {}
        self._rewriting: dict[str, _File] = {}

    def home(self, path: str) -> DirectoryPresence:
        """A marker directory by path; an empty one when nothing was ever stored in it."""
        home = self.homes.get(path)
        if home is None:
            home = self.homes[path] = DirectoryPresence(path, self._reads)
        return home

    def put(self, index: int, path: str, content: bytes | None) -> None:
        """Add an effect: a file has this content from now on; None: it is removed."""
        file = self._files[path] if path in self._files else self._open(path)
        if file is None:
            return
        if file.writers:
            file.writers.clear()  # After an atomic replace or a delete, a writer in place writes to an unlinked file.
            del self._rewriting[path]
        self._become(index, file, content)

    def rewrite(self, index: int, path: str, content: bytes | None, process: str, ends: bool) -> None:
        """Add a step of writing in place; the view at rest changes only when the last writer has finished."""
        file = self._files[path] if path in self._files else self._open(path)
        if file is None:
            return
        file.torn = content
        file.writers.add(process)
        self._rewriting[path] = file
        if ends:
            self._leave(index, path, process)

    def died(self, index: int, process: str) -> None:
        """Add the death of a process: what it was writing in place stays as it is."""
        for path in [path for path, file in self._rewriting.items() if process in file.writers]:
            self._leave(index, path, process)

    def created(self, index: int, directory: str, name: str) -> None:
        """Add an answer "created": a file being written in place that alone has the name is as its writer wants it.

        Else a server that takes a failed write back, and goes on adding to the file, would never be done with it.
        """
        for path, file in list(self._rewriting.items()):
            if file.home.path == directory and name not in file.names and name in decode_names(file.torn or b""):
                for process in tuple(file.writers):
                    self._leave(index, path, process)

    def contents(self, directory: str) -> dict[str, bytes]:
        """Every file at rest below a directory, without files that are being rewritten."""
        return {
            path: file.content
            for path, file in self._files.items()
            if file is not None and file.content is not None and file.home.path == directory and not file.writers
        }

    def rewriting(self) -> frozenset[str]:
        """Paths that are being written in place."""
        return frozenset(self._rewriting)

    def _leave(self, index: int, path: str, process: str) -> None:
        file = self._rewriting[path]
        file.writers.discard(process)
        if not file.writers:
            del self._rewriting[path]
            self._become(index, file, file.torn)

    def _open(self, path: str) -> _File | None:
        """Find the marker directory of a path; None for files elsewhere."""
        directory = directory_of(path)
        file = None if directory is None else _File(self.home(directory), path[len(directory) + 1 :])
        self._files[path] = file
        return file

    def _become(self, index: int, file: _File, content: bytes | None) -> None:
        before, file.content = file.content, content
        kind, home = file.kind, file.home
        if kind == _BATCH:
            _rebatch(index, file, before, content)
        elif kind == _DIRECT:
            if content is None:
                if before is not None:
                    home.release(index, (file.relative,))
                return
            if before is None:
                home.direct.setdefault(file.relative, index)
                home.hold(index, (file.relative,))
            if content:
                home.filled.append((index, file.relative))
        elif kind == _TYPE:
            home.types.setdefault(file.relative, index)
            if file.relative == TYPE_FILE:
                typed, home.typed = home.typed, content == TYPE_BATCHED
                if home.typed and not typed:
                    home.typed_at.append(index)
                if not home.reads:
                    home.note_files(index)


def _rebatch(index: int, file: _File, before: bytes | None, content: bytes | None) -> None:
    """Update the names of a changed marker file; when it only grew, only the new part is parsed."""
    home, names = file.home, file.names
    if content is None:
        if before is not None:
            home.release(index, names)
            names.clear()
            home.batch_files -= 1
        return
    if before is None:
        home.batch_files += 1
        home.batch.setdefault(file.relative, index)
    if before and before.endswith(b"\n") and content.startswith(before):
        fresh = set(decode_names(content[len(before) :]))
        fresh -= names
    else:
        now = set(decode_names(content))
        gone = names - now
        fresh = now - names
        if gone:
            home.release(index, gone)
            names -= gone
    home.hold(index, fresh)
    names |= fresh
    if not home.reads and (not home.typed or home.batch_files > home.batch_high[0]):
        home.note_files(index)


def directory_of(path: str) -> str | None:
    """The marker directory that contains a storage path, None when there is none."""
    at = path.find(TEMP)
    end = path.find("/", at + len(TEMP)) if at > 0 else -1
    return path[:end] if end > 0 else None


def stores_elsewhere(header: Header, events: Iterable[Event]) -> bool:
    """Whether a server with a format of its own changed nothing below marker directories, where changes are seen."""
    seen = header.layout == "names" and header.witness == "effects"
    return seen and not any(event.kind == "effect" and directory_of(event.path or "") for event in events)


def present(span: Sequence[int] | None, moment: int) -> int | None:
    """The end of the interval in which the name is stored at `moment` (NEVER: no end); None when it is absent then."""
    span = span or ()
    at = bisect_right(span, moment)
    if at % 2 == 0:
        return None
    return span[at] if at < len(span) else NEVER


def periods(span: Sequence[int]) -> Iterator[tuple[int, int]]:
    """From when until when something was there, NEVER for no end, of a flat list of events."""
    return zip_longest(span[::2], span[1::2], fillvalue=NEVER)

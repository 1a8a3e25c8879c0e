"""The entries of a table's timeline, active and archived, as actions with facts.

Facts are those of `marker_sim.tables.entries`, and some that only an audit needs:

    least PATH BYTES    a commit wrote a log file, which had at least so many bytes
    beside PATH         a commit knows of the file without having written it: a change log, another log file of a slice
    saved PATH          a savepoint keeps the file
    dropped PARTITION   a clean removed a whole partition
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from marker_sim.audit.archive import ARCHIVE_LOG, MANIFEST, ArchivedEntry, read_log, read_parquet, valid_files
from marker_sim.audit.properties import TableProperties
from marker_sim.audit.sources import StoredFile, TableSource
from marker_sim.tables.entries import (
    COMMITS,
    EntryName,
    Unreadable,
    completed_facts,
    decode,
    entry_name,
    file_path,
    planned_facts,
)

_BASE_FILES = (".parquet", ".orc", ".hfile", ".lance")
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, EOFError, IndexError, OverflowError, RecursionError)
_PLANS = frozenset({"rollback", "clean", "compaction", "logcompaction"})
_AGAIN_AFTER_S = 0.5


class TimelineAction(NamedTuple):
    """One entry.

    path: of its file, or of the archive that has it.
    facts: by their first word.
    error: why it cannot be read, "" when it can.
    size: -1 of an archived one.
    """

    instant: str
    action: str
    state: str
    completion: str
    path: str
    facts: Mapping[str, tuple[str, ...]]
    error: str
    size: int
    modified_s: float
    archived: bool

    def of(self, word: str) -> tuple[str, ...]:
        """The values of its facts of a kind."""
        return self.facts.get(word, ())


class TableTimeline(NamedTuple):
    """All entries. archive_error: why a part of the archive cannot be read, "" when it can; archives: its files."""

    actions: tuple[TimelineAction, ...]
    archive_error: str
    archives: int


class TimelineReader:
    """Reads a timeline as often as it is asked; what did not change is not read again.

    root: "" or the folder of the metadata table with a slash.
    """

    def __init__(self, source: TableSource, properties: TableProperties, root: str = "") -> None:
        self._source = source
        self._properties = properties
        self._root = root
        self._known: dict[StoredFile, TimelineAction] = {}
        self._archives: dict[StoredFile, tuple[TimelineAction, ...] | str] = {}

    def read(self) -> TableTimeline:
        """The timeline as it is now; the archive after the active entries, which move there."""
        files = self._source.folder(self._root + self._properties.timeline)
        entries = {file: place for file in files if (place := entry_name(posixpath.basename(file.path)))}
        new = [file for file in entries if file not in self._known]
        paths = {file.path: file for file in new if _tells(entries[file])}
        self._known |= {file: _active(entries[file], file, b"") for file in new if file.path not in paths}
        for path, content in zip(paths, self._source.each(self._source.read, paths), strict=True):
            file = paths[path]
            if content is not None:
                self._known[file] = _active(entries[file], file, content)
        actions = [self._known[file] for file in entries if file in self._known]
        archived, error, count = self._archived()
        return TableTimeline(tuple(sorted((*actions, *archived), key=lambda a: (a.instant, a.path))), error, count)

    def settle(self, timeline: TableTimeline) -> TableTimeline:
        """The same, read once more after a moment when a part cannot be read: it may be in the making."""
        if not timeline.archive_error and not any(a.error and not a.archived for a in timeline.actions):
            return timeline
        time.sleep(_AGAIN_AFTER_S)
        self._known = {file: action for file, action in self._known.items() if not action.error}
        self._archives = {file: read for file, read in self._archives.items() if not isinstance(read, str)}
        return self.read()

    def _archived(self) -> tuple[list[TimelineAction], str, int]:
        found: list[TimelineAction] = []
        error, count = "", 0
        for folder in self._properties.archives:
            files = {posixpath.basename(f.path): f for f in self._source.folder(self._root + folder)}
            try:
                valid = self._valid(files)
            except Unreadable as unreadable:
                error = f"{folder}: {unreadable}"
                continue
            for name in valid:
                file = files.get(name)
                if file is None:
                    error = f"{folder}: {name} is missing"
                    continue
                count += 1
                result = self._archives.get(file) or self._read_archive(file)
                self._archives[file] = result
                if isinstance(result, str):
                    error = result
                else:
                    found += result
        known = {(a.instant, a.action) for a in found if a.state == "completed" and not a.error}
        return [a for a in found if not a.error or (a.instant, a.action) not in known], error, count

    def _valid(self, files: Mapping[str, StoredFile]) -> list[str]:
        """The files of an archive folder that hold entries."""
        logs = sorted(name for name in files if ARCHIVE_LOG.match(name))
        wanted = [name for name in files if MANIFEST.match(name) or name == "_version_"]
        if self._properties.layout == 1 or not wanted:
            return logs  # Upgraded tables may still have their archive of layout 1 as well.
        read = {name: self._source.read(files[name].path) or b"" for name in wanted}
        manifests = {name: content for name, content in read.items() if name != "_version_"}
        return [*logs, *valid_files(frozenset(files), read.get("_version_"), manifests)]

    def _read_archive(self, file: StoredFile) -> tuple[TimelineAction, ...] | str:
        content = self._source.read(file.path)
        if content is None:
            return f"{file.path} is missing"
        read = read_parquet if file.path.endswith(".parquet") else read_log
        try:
            return tuple(_of_archive(entry, file.path) for entry in read(content))
        except Unreadable as error:
            return f"{file.path}: {error}"


def _tells(place: EntryName) -> bool:
    """Whether an entry's content is read; that of inflight entries and of the requests of writes says nothing here."""
    return place.state == "completed" or (place.state == "requested" and place.action in _PLANS)


def _active(place: EntryName, file: StoredFile, content: bytes) -> TimelineAction:
    """An entry of the active timeline."""
    found: list[str] = []
    error = ""
    try:
        if place.state == "completed":
            if not content:
                raise Unreadable("it is empty")
            record = _record(place, content)
            found += completed_facts(place.action, record)
            found += _more_facts(place.action, record)
        elif place.state == "requested" and place.action in _PLANS:
            if not content:
                raise Unreadable("its plan is empty")
            found += planned_facts(place.action, decode(content))
    except Unreadable as unreadable:
        error = str(unreadable)
    except _MALFORMED as malformed:
        error = f"{type(malformed).__name__}: {malformed}"[:200]
    facts = _by_word(found)
    return TimelineAction(
        place.instant, place.action, place.state, place.completion, file.path, facts, error, file.size,
        file.modified_s, False,
    )  # fmt: skip


def _record(place: EntryName, content: bytes) -> Mapping[str, Any]:
    """The record of a completed entry; that of an index or a schema is not looked at."""
    known = (*COMMITS, "rollback", "clean", "restore", "savepoint")
    return decode(content) if place.action in known else {}


def _of_archive(entry: ArchivedEntry, path: str) -> TimelineAction:
    found: list[str] = []
    error = ""
    try:
        if entry.state == "completed" and entry.record is not None:
            found += completed_facts(entry.action, entry.record)
            found += _more_facts(entry.action, entry.record)
        elif entry.error:
            error = entry.error
        elif entry.state == "completed" and entry.action in (*COMMITS, "clean", "rollback"):
            error = "the archive holds no content of it"
        if entry.plan is not None:
            found += planned_facts(entry.action, entry.plan)
    except _MALFORMED as malformed:
        error = f"{type(malformed).__name__}: {malformed}"[:200]
    return TimelineAction(
        entry.instant, entry.action, entry.state, entry.completion, path, _by_word(found), error, -1, 0.0, True
    )


def _more_facts(action: str, record: Mapping[str, Any]) -> Iterator[str]:
    if action in COMMITS:
        for partition, stats in (record.get("partitionToWriteStats") or {}).items():
            for stat in stats:
                yield from _of_stat(partition, stat)
    elif action == "savepoint":
        for partition, saved in (record.get("partitionMetadata") or {}).items():
            where = saved.get("partitionPath", partition)
            yield from (f"saved {file_path(where, name)}" for name in saved.get("savepointDataFile") or ())
    elif action == "clean":
        for partition, cleaned in (record.get("partitionMetadata") or {}).items():
            if cleaned.get("isPartitionDeleted"):
                yield f"dropped {partition}"


def _of_stat(partition: str, stat: Mapping[str, Any]) -> Iterator[str]:
    path, size = stat.get("path"), int(stat.get("fileSizeInBytes") or 0)
    if path and size > 0 and not path.endswith(_BASE_FILES[0]):
        yield f"least {file_path(partition, path)} {size}"
    yield from (f"beside {file_path(partition, name)}" for name in stat.get("logFiles") or ())
    yield from (f"beside {file_path(partition, name)}" for name in stat.get("cdcStats") or ())


def _by_word(found: Iterable[str]) -> dict[str, tuple[str, ...]]:
    facts: dict[str, list[str]] = {}
    for fact in found:
        word, _, rest = fact.partition(" ")
        facts.setdefault(word, []).append(rest)
    return {word: tuple(values) for word, values in facts.items()}

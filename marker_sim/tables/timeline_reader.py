"""A reader of the entries of a table's timeline, active and archived."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Mapping

from marker_sim.tables.archive import ARCHIVE_LOG, ERROR_MAX, MANIFEST, read_archive, valid_files
from marker_sim.tables.entries import TableEntry, Unreadable, by_word, facts_of, has_plan
from marker_sim.tables.instants import Instants
from marker_sim.tables.parts import TableProperties
from marker_sim.tables.sources import StoredFile, TableSource
from marker_sim.timeline import Entry, State, table_entry

AGAIN_AFTER_S = 0.5


class TimelineReader:
    """Reads a timeline as often as it is asked; what did not change is not read again.

    root: "" or the folder of the metadata table with a slash.
    """

    def __init__(self, source: TableSource, properties: TableProperties, root: str = "") -> None:
        self._source = source
        self._properties = properties
        self._root = root
        self._known: dict[StoredFile, TableEntry] = {}
        self._archives: dict[StoredFile, tuple[TableEntry, ...] | str] = {}

    def read(self) -> Instants:
        """The timeline as it is now; the archive after the active entries, which move there."""
        files, _ = self._source.level(self._root + self._properties.timeline)
        entries = {file: place for file in files if (place := table_entry(posixpath.basename(file.path)))}
        new = [file for file in entries if file not in self._known]
        paths = [file.path for file in new if entries[file].state == State.COMPLETED or has_plan(entries[file])]
        contents = dict(zip(paths, self._source.each(self._source.read, paths), strict=True))
        for file in new:
            content = contents.get(file.path, b"")
            if content is not None:
                self._known[file] = _active(entries[file], file, content)
        active = [self._known[file] for file in entries if file in self._known]
        archived, error = self._archived()
        known = sorted((*active, *archived), key=lambda each: (each.instant, each.path))
        return Instants(known, self._properties.layout, error)

    def settled(self) -> Instants:
        """The timeline as it is now, read again after a moment where a part cannot be read: it may be half written."""
        timeline = self.read()
        if not timeline.archive_error and not any(each.error and not each.archived for each in timeline.entries):
            return timeline
        time.sleep(AGAIN_AFTER_S)
        self._known = {file: entry for file, entry in self._known.items() if not entry.error}
        self._archives = {file: read for file, read in self._archives.items() if not isinstance(read, str)}
        return self.read()

    def _archived(self) -> tuple[list[TableEntry], str]:
        found: list[TableEntry] = []
        error = ""
        for folder in self._properties.archives:
            files = {posixpath.basename(f.path): f for f in self._source.level(self._root + folder)[0]}
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
                result = self._archives.get(file) or read_archive(self._source.read(file.path), file.path)
                self._archives[file] = result
                if isinstance(result, str):
                    error = result
                else:
                    found += result
        known = {(a.instant, a.action) for a in found if a.state == "completed" and not a.error}
        return [a for a in found if not a.error or (a.instant, a.action) not in known], error

    def _valid(self, files: Mapping[str, StoredFile]) -> list[str]:
        """The files of an archive folder that hold entries."""
        logs = sorted(name for name in files if ARCHIVE_LOG.match(name))
        wanted = [name for name in files if MANIFEST.match(name) or name == "_version_"]
        if self._properties.layout == 1 or not wanted:
            return logs  # Upgraded tables may still have their archive of layout 1 as well.
        return [*logs, *valid_files({name: self._source.read(files[name].path) or b"" for name in wanted})]


def _active(entry: Entry, file: StoredFile, content: bytes) -> TableEntry:
    """An entry of the active timeline; the content of one that is neither completed nor a plan is not looked at."""
    found, error = facts_of(entry, content)
    return TableEntry(
        instant=entry.instant,
        action=entry.action,
        state=entry.state,
        path=file.path,
        facts=by_word(found),
        error=error[:ERROR_MAX],
        size=file.size,
        modified_s=file.modified_s,
        completion=entry.completion,
    )

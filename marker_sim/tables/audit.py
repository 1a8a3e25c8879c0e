"""Records the content of a table at rest: its timeline, its data files and its markers.

    observe audit "begin"      before anything is read
    observe entry              each entry of the data table's timeline, with the facts of `entries.py`
    observe archive            each file of archived entries; none of them is read
    observe data-file          each file outside .hoodie, its size in bytes
    observe marker-file        each file below a marker directory

Partition metadata and Hadoop's side files (`.<name>.crc`) are no data files. The metadata table, a Hudi table below
`.hoodie/metadata`, is Hudi's own index of the same files and is not read: readers show its errors. There must be no
writer meanwhile. The caller records the rows that readers find, and the end of the audit.
"""

from __future__ import annotations

from typing import Protocol

from marker_sim.history import Kind, Value
from marker_sim.names import MarkerDirectory
from marker_sim.tables.entries import Unreadable, facts, is_archive, place_of
from marker_sim.tables.tree import Tree

KIT = "kit"
_HOODIE = ".hoodie/"
_MARKERS = ".hoodie/.temp/"
_PARTITION_METADATA = ".hoodie_partition_metadata"


class AuditRecorder(Protocol):
    """What keeps the history in the making: `marker_sim.worlds.recorder.Recorder`, as far as it is needed here."""

    def record(
        self,
        process: str,
        role: str,
        kind: Kind,
        operation: str,
        place: MarkerDirectory | None = None,
        path: str | None = None,
        value: Value = None,
        error: str | None = None,
        caused_by: int | None = None,
    ) -> int:
        """Add an event and return its index."""


def observe_table(recorder: AuditRecorder, table: str, files: Tree, caused_by: int) -> None:
    """Record the content of a table, from `audit` "begin" on. table: its storage path; caused_by: the write before.

    OSError when the storage cannot be read; an entry that cannot be read is an `entry` with an error.
    """
    place = MarkerDirectory(table, "")
    recorder.record(KIT, KIT, "observe", "audit", place, value="begin", caused_by=caused_by)
    prefix = f"{table}/"
    mine = [path for path in files.list() if path.startswith(prefix)]
    for path in mine:
        relative = path[len(prefix) :]
        if relative.startswith(_MARKERS):
            instant, _, below = relative[len(_MARKERS) :].partition("/")
            if below:
                recorder.record(KIT, KIT, "observe", "marker-file", MarkerDirectory(table, instant), path=relative)
        elif relative.startswith(_HOODIE):
            _observe_entry(recorder, table, path, relative, files)
        elif not _is_side_file(relative):
            recorder.record(KIT, KIT, "observe", "data-file", place, path=relative, value=files.size(path))


def _observe_entry(recorder: AuditRecorder, table: str, path: str, relative: str, files: Tree) -> None:
    if is_archive(relative):
        recorder.record(KIT, KIT, "observe", "archive", MarkerDirectory(table, ""), path=path)
    entry = place_of(relative)
    if entry is None:
        return
    value: Value = (f"action {entry.action}", f"state {entry.state}")
    error = None
    try:
        value = facts(entry, files.read(path))
    except Unreadable as unreadable:
        error = str(unreadable)
    recorder.record(
        KIT, KIT, "observe", "entry", MarkerDirectory(table, entry.instant), path=path, value=value, error=error
    )


def _is_side_file(relative: str) -> bool:
    name = relative.rpartition("/")[2]
    return name.startswith(_PARTITION_METADATA) or (name.startswith(".") and name.endswith(".crc"))

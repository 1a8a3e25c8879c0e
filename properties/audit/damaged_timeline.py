"""Damages of markers and of timeline entries: what a writer, a timeline server or a rollback leaves when it dies."""

from __future__ import annotations

import shutil
from pathlib import Path

from properties.audit.damage import damage
from properties.audit.disk import BaseName, Disk, Unfit


@damage("markers-left", 5, "leftover-marker-directory")
def markers_left(table: Path) -> str:
    """A driver died between its commit and the deletion of its markers, which a server kept."""
    disk = Disk(table)
    instant = disk.newest_write().instant
    disk.put_markers(instant, disk.marker_names(instant))
    return f"marker directory of the completed {instant}"


@damage("markers-left-direct", 5, "leftover-marker-directory")
def markers_left_direct(table: Path) -> str:
    """The same with direct markers."""
    disk = Disk(table)
    instant = disk.newest_write().instant
    for name in disk.marker_names(instant):
        disk.put(disk.temp / instant / name, b"")
    return f"direct markers of the completed {instant}"


@damage("markers-of-unknown", 5, "leftover-marker-directory")
def markers_of_unknown(table: Path) -> str:
    """A marker directory of an instant that the timeline does not have."""
    disk = Disk(table)
    instant = disk.free_instant()
    disk.put_markers(instant, ("gone/f_0-1-1_1.parquet.marker.CREATE",))
    return f"marker directory of the unknown {instant}"


@damage("glued-without-line-feed", 6, "glued-marker-names")
def glued_without_line_feed(table: Path) -> str:
    """Two names of one batch run together."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=2)
    disk.put_markers(instant, [names[0] + names[1], *names[2:]])
    return f"{names[0]}{names[1]} in one line of the pending {instant}"


@damage("glued-by-restart", 6, "glued-marker-names")
def glued_by_restart(table: Path) -> str:
    """A server was started again on the directory: what it read is joined by commas, the next name follows at once."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=2)
    raw = ",".join(names[:-1]) + names[-1] + "\n"
    disk.put_markers(instant, raw=raw.encode())
    return f"{raw!r} is all that the pending {instant} has"


@damage("glued-by-comma", 6, "glued-marker-names", "marker-file-unreadable")
def glued_by_comma(table: Path) -> str:
    """The same before any further name."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=2)
    disk.put_markers(instant, raw=",".join(names).encode())
    return f"names of the pending {instant} joined by commas"


@damage("marker-file-cut", 7, "marker-file-unreadable")
def marker_file_cut(table: Path) -> str:
    """A kill while the file was written: it ends in half a name."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    raw = "".join(f"{name}\n" for name in names).encode()
    disk.put_markers(instant, raw=raw[: len(raw) - len(names[-1]) // 2])
    return f"MARKERS0 of the pending {instant} ends in half a name"


@damage("marker-file-zeros", 7, "marker-file-unreadable")
def marker_file_zeros(table: Path) -> str:
    """The file has its length and only zeros, as after a power cut."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    disk.put_markers(instant, raw=bytes(sum(len(name.encode()) + 1 for name in names)))
    return f"MARKERS0 of the pending {instant} is all zeros"


@damage("marker-file-no-text", 7, "marker-file-unreadable")
def marker_file_no_text(table: Path) -> str:
    """A few bytes in the middle are no UTF-8."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    raw = "".join(f"{name}\n" for name in names).encode()
    disk.put_markers(instant, raw=raw[:7] + b"\xff\xfe\x80" + raw[10:])
    return f"MARKERS0 of the pending {instant} has bytes that are no UTF-8"


@damage("type-file-missing", 8, "no-type-file")
def type_file_missing(table: Path) -> str:
    """The type file was refused by the store and taken for written."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    disk.put_markers(instant, names, kind=None)
    return f"no MARKERS.type in the directory of the pending {instant}"


@damage("type-file-empty", 8, "no-type-file")
def type_file_empty(table: Path) -> str:
    """A kill between making the type file and writing to it."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    disk.put_markers(instant, names, kind=b"")
    return f"MARKERS.type of the pending {instant} is empty"


@damage("commit-empty", 9, "empty-completed-instant")
def commit_empty(table: Path) -> str:
    """A driver died between making the completed entry and writing to it; its markers stay as well."""
    disk = Disk(table)
    write = disk.newest_write()
    disk.put_markers(write.instant, disk.marker_names(write.instant))
    disk.cut(write.path, 0)
    return f"{write.path.name} is empty"


@damage("commit-cut", 0, "unreadable-instant")
def commit_cut(table: Path) -> str:
    """The completed entry lost its second half."""
    disk = Disk(table)
    write = disk.newest_write()
    disk.cut(write.path, write.path.stat().st_size // 2)
    return f"{write.path.name} cut to half"


@damage("commit-zeros", 0, "unreadable-instant")
def commit_zeros(table: Path) -> str:
    """The completed entry has its length and only zeros."""
    disk = Disk(table)
    write = disk.newest_write()
    disk.put(write.path, bytes(write.path.stat().st_size))
    return f"{write.path.name} is all zeros"


@damage("stuck-in-flight", 10, "pending-instant")
def stuck_in_flight(table: Path) -> str:
    """A driver died right before its commit three days ago, without a write since; markers and data files are whole."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    disk.put_markers(instant, names)
    disk.age(3)
    return f"{instant} is in flight with {len(names)} files"


@damage("stuck-requested", 10, "pending-instant")
def stuck_requested(table: Path) -> str:
    """A driver died right after it had requested its instant, two years ago."""
    disk = Disk(table)
    write = disk.newest_write()
    instant = "20240102030405678"
    disk.put(disk.timeline / f"{instant}.{write.action}.requested", b"")
    disk.age(650)
    return f"{instant} is requested, and no more"


@damage("rollback-left-file", 11, "rollback-left-files")
def rollback_left_file(table: Path) -> str:
    """A rollback is completed and a file that it was to delete is there."""
    disk = Disk(table)
    target, rollback = disk.rolled_back()
    path = disk.newest_bases()[0]
    left = path.with_name(f"{BaseName.of(path).file_id}_3-999-9999_{target}{path.suffix}")
    shutil.copy(path, left)
    return f"{disk.relative(left)} of {target}, which {rollback} rolled back"


@damage("rollback-unfinished", 0, "unfinished-rollback")
def rollback_unfinished(table: Path) -> str:
    """A driver died in a rollback: both it and what it rolls back are in flight, and one file is not deleted yet."""
    disk = Disk(table)
    target, rollback = disk.rolled_back()
    entry = next(each for each in disk.entries() if each.instant == rollback and each.state == "completed")
    disk.remove(entry.path)
    write = disk.newest_write()
    path = disk.newest_bases()[0]
    disk.put(disk.timeline / f"{target}.{write.action}.requested", b"")
    flight = "inflight" if write.action == "commit" else f"{write.action}.inflight"
    disk.put(disk.timeline / f"{target}.{flight}", b"{}")
    left = path.with_name(f"{BaseName.of(path).file_id}_3-999-9999_{target}{path.suffix}")
    shutil.copy(path, left)
    disk.put_markers(target, (f"{disk.relative(left)}.marker.MERGE",))
    return f"rollback {rollback} of {target} is in flight"


@damage("marker-lost", 0, "unmarked-data-file", "unnamed-data-file")
def marker_lost(table: Path) -> str:
    """A pending instant has a data file that no marker names: a rollback would leave it."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=2)
    disk.put_markers(instant, names[1:])
    return f"{names[0]} is missing in the pending {instant}"


@damage("marker-file-emptied", 0, "unnamed-data-file", "marker-file-unreadable")
def marker_file_emptied(table: Path) -> str:
    """A kill when a marker file was emptied to be written again: no name is left, the data files are there."""
    disk = Disk(table)
    instant, _ = disk.undo_commit(least=1)
    disk.put_markers(instant, raw=b"")
    return f"MARKERS0 of the pending {instant} is empty"


@damage("empty-marker-name", 0, "marker-file-unreadable", "glued-marker-names")
def empty_marker_name(table: Path) -> str:
    """An empty name was answered and stored, which Hudi's readers take for a marker of no file."""
    disk = Disk(table)
    instant, names = disk.undo_commit(least=1)
    disk.put_markers(instant, raw=b"\n" + "".join(f"{name}\n" for name in names).encode())
    return f"MARKERS0 of the pending {instant} begins with an empty line"


@damage("rolled-back-markers-left", 5, "leftover-marker-directory")
def rolled_back_markers_left(table: Path) -> str:
    """A rollback was cut short behind its completed entry: the markers of what it rolled back stay."""
    disk = Disk(table)
    target, _ = disk.rolled_back()
    disk.put_markers(target, ("p0/f_0-1-1_1.parquet.marker.CREATE",))
    return f"marker directory of the rolled-back {target}"


@damage("marker-file-lost", 0, "unmarked-data-file", "unnamed-data-file")
def marker_file_lost(table: Path) -> str:
    """One of several marker files of a write that died is gone."""
    disk = Disk(table)
    found = sorted(path for path in disk.temp.glob("*/MARKERS[0-9]*") if path.stat().st_size)
    if len(found) < 2:
        raise Unfit("no pending write has several marker files")
    disk.remove(found[-1])
    return f"{disk.relative(found[-1])} removed"

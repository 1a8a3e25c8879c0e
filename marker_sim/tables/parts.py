"""The parts of a Hudi table: hoodie.properties, the timeline's folders, marker directories, heartbeats, data files.

    .hoodie/hoodie.properties        the properties of the table
    .hoodie/.temp/<instant>/         the markers of an instant
    .hoodie/.heartbeat/<instant>     touched by the writer of an instant while it lives
    .hoodie/metadata/                its metadata table, a Hudi table as well: Hudi's own index of the same files
    all that is not below .hoodie    data files and side files

Paths are relative to the table. Source: HoodieTableConfig of Hudi 0.15.0 and 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from marker_sim.errors import HarnessError
from marker_sim.names import TEMP, TYPE_FILE, data_path, decode_names, is_marker_name, marker_file_index
from marker_sim.tables.archive import NO_SCHEMA, first_instant, is_archive, read_archive, valid_files
from marker_sim.tables.entries import Unreadable, recorded_facts
from marker_sim.tables.sources import Files, StoredFile, TableSource
from marker_sim.timeline import HEARTBEATS, HOODIE, entry_at, is_side_file

METADATA = ".hoodie/metadata/"
MARKERS = TEMP[1:]
_BELOW_HOODIE = f"{HOODIE}/"
_HEAD_BYTES = 1 << 20
NAME = ".hoodie/hoodie.properties"
BACKUP = f"{NAME}.backup"
LAYOUT_2_FROM = 8
VERSIONS = range(10)
_KEY_GENERATORS = ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """The properties of a table that decide how it is read.

    name: of the table, "" where the file is not whole. version: of the table, 0 when it is not said.
    kind: COPY_ON_WRITE or MERGE_ON_READ, "" when it is not said.
    timeline, archives: folders relative to the table.
    metadata_partitions: of its metadata table.
    metadata: whether it is a metadata table itself.
    bootstrapped: whether it shows files that were there before it.
    trouble: why the file is not reliable, "" when it is.
    """

    name: str
    version: int
    kind: str
    timeline: str
    archives: tuple[str, ...]
    metadata_partitions: frozenset[str]
    metadata: bool
    bootstrapped: bool
    trouble: str

    @property
    def layout(self) -> int:
        """The layout of the timeline: 1 up to table version 7, 2 from 8."""
        return 2 if self.version >= LAYOUT_2_FROM else 1


def parse_properties(content: bytes, folders: frozenset[str] = frozenset()) -> TableProperties:
    """The properties in a file. folders: those below .hoodie, which decide the version when none is said."""
    values: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, found, value = line.strip().partition("=")
        if found and not key.startswith(("#", "!")):
            values[_plain(key.strip())] = _plain(value.strip())
    said = values.get("hoodie.table.version", "")
    version = int(said) if said.isdigit() else LAYOUT_2_FROM if "timeline" in folders else 0
    timeline = ".hoodie"
    archive = values.get("hoodie.archivelog.folder", "archived").strip("/")
    archives = [".hoodie/archived", f".hoodie/{archive}".rstrip("/")]
    if version >= LAYOUT_2_FROM:
        timeline = f".hoodie/{values.get('hoodie.timeline.path', 'timeline').strip('/')}".rstrip("/")
        history = values.get("hoodie.timeline.history.path", "history").strip("/")
        archives = [f"{timeline}/{history}", ".hoodie/archived"]
    partitions = values.get("hoodie.table.metadata.partitions", "")
    return TableProperties(
        name=values.get("hoodie.table.name", ""),
        version=version,
        kind=values.get("hoodie.table.type", ""),
        timeline=timeline,
        archives=tuple(dict.fromkeys(archives)),
        metadata_partitions=frozenset(part for part in partitions.split(",") if part),
        metadata=any("metadata" in values.get(key, "").lower() for key in _KEY_GENERATORS),
        bootstrapped=bool(values.get("hoodie.bootstrap.base.path")),
        trouble=_trouble(values, version),
    )


def _trouble(values: dict[str, str], version: int) -> str:
    if not values.get("hoodie.table.name"):
        return "is missing, empty or names no table"
    said = values.get("hoodie.table.version", "0")  # The first releases say none.
    known = said == str(version) and version in VERSIONS
    return "" if known else f"says table version {said}, and not one of 0 to 9 that fits its folders"


def _plain(text: str) -> str:
    """Text without the escapes of Java's properties."""
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else m[1], text)


class TableFiles(NamedTuple):
    """The files of one table, by their part in it; paths are relative to it.

    data: outside .hoodie.
    heartbeats: by instant.
    markers: by instant.
    """

    data: tuple[StoredFile, ...]
    heartbeats: dict[str, StoredFile]
    markers: dict[str, list[StoredFile]]


def split(files: list[StoredFile], root: str) -> TableFiles:
    """The files of a table. root: "" for the data table, else its metadata table's folder with a slash."""
    data: list[StoredFile] = []
    heartbeats: dict[str, StoredFile] = {}
    markers: dict[str, list[StoredFile]] = {}
    for file in files:
        if not file.path.startswith(root):
            continue
        mine = file._replace(path=file.path[len(root) :]) if root else file
        if not mine.path.startswith(_BELOW_HOODIE):
            data.append(mine)
        elif mine.path.startswith(HEARTBEATS):
            heartbeats[mine.path[len(HEARTBEATS) :]] = mine
        elif instant := marked_instant(mine.path):
            markers.setdefault(instant, []).append(mine)
    return TableFiles(tuple(data), heartbeats, markers)


def marked_instant(path: str) -> str:
    """The instant whose marker directory a file lies in, "" for every other file."""
    instant, found, _ = path[len(MARKERS) :].partition("/") if path.startswith(MARKERS) else ("", "", "")
    return instant if found else ""


class MarkerDirectoryContent(NamedTuple):
    """A marker directory as it is stored.

    files: those below it, by path relative to it.
    batches: contents of MARKERS.type and MARKERS<n>.
    """

    instant: str
    path: str
    files: Mapping[str, StoredFile]
    batches: Mapping[str, bytes]

    @property
    def targets(self) -> list[str]:
        """The data files that its markers name, sorted, as far as these can be read: also one in a last line that was
        cut off, which a rollback may read. What a server has stored is decided by `names.stored_names`, where such a
        line is none.
        """
        names = [name for name in self.files if not name.startswith(".")]
        for name, content in self.batches.items():
            names += decode_names(content, torn=True) if name != TYPE_FILE else ()
        return sorted({data_path(name) for name in names if is_marker_name(name)})


def read_markers(source: TableSource, root: str, files: TableFiles) -> dict[str, MarkerDirectoryContent]:
    """Every marker directory, with the contents of its batched files."""
    found = {}
    for instant, below in sorted(files.markers.items()):
        path = f"{MARKERS}{instant}"
        by_name = {file.path[len(path) + 1 :]: file for file in below}
        by_name = {name: file for name, file in by_name.items() if not is_side_file(name)}
        wanted = [name for name in by_name if name == TYPE_FILE or marker_file_index(name) is not None]
        contents = source.each(source.read, [f"{root}{path}/{name}" for name in wanted])
        batches = {name: content for name, content in zip(wanted, contents, strict=True) if content is not None}
        if by_name:
            found[instant] = MarkerDirectoryContent(instant, path, by_name, batches)
    return found


def read_directory(source: TableSource, root: str, instant: str) -> MarkerDirectoryContent | None:
    """One marker directory as it is now, None when it is gone."""
    path = f"{root}{MARKERS}{instant}"
    return read_markers(source, root, split(source.tree(path), root)).get(instant)


def log_owner(source: TableSource, path: str) -> str | None:
    """The instant in the first block of a log file, "" when it has no block, None when it is not there."""
    head = source.read(path, 0, _HEAD_BYTES)
    return None if head is None else first_instant(head)


class ObservedPart(NamedTuple):
    """A part of a table as an event of a history: an entry, an archive, a data file or a marker file."""

    operation: str
    instant: str
    path: str
    value: int | tuple[str, ...] | None = None
    error: str | None = None


def _archived(files: Files, path: str) -> tuple[tuple[str, ...], str | None]:
    """What the records of an archive say was deleted, and why one cannot be read; nothing of an archive that no
    manifest names, which its writer left, nor of records that an upgrade moved.
    """
    folder, _, name = path.rpartition("/")
    index = {file.path.rpartition("/")[2]: files.read(file.path) or b"" for file in files.tree(folder)}
    counts = not name.endswith(".parquet")
    with suppress(Unreadable):
        counts = counts or name in valid_files(index)
    entries = read_archive(index[name], path) if counts else ()
    if isinstance(entries, str):
        return (), entries
    errors = (f"{e.action} of {e.instant}: {e.error}" for e in entries if e.error not in ("", NO_SCHEMA))
    return tuple(sorted({path for entry in entries for path in entry.of("deleted")})), next(errors, None)


def observed(files: Files, table: str) -> Iterator[ObservedPart]:
    """What a table at rest holds, by path (docs/history.md). table: its storage path. No writer may be at work.

    The metadata table is not read: readers show its errors. An entry that cannot be read has an error, and an archive
    with one; HarnessError when the storage cannot be read.
    """
    for file in sorted(files.tree(table)):
        relative = file.path[len(table) + 1 :]
        if not relative.startswith(_BELOW_HOODIE):
            if not is_side_file(relative):
                yield ObservedPart("data-file", "", relative, file.size)
        elif instant := marked_instant(relative):
            yield ObservedPart("marker-file", instant, relative)
        elif is_archive(relative) and not is_side_file(relative):
            yield ObservedPart("archive", "", file.path, *_archived(files, file.path))
        elif entry := entry_at(relative):
            value: tuple[str, ...] = (f"action {entry.action}", f"state {entry.state}")
            error = None
            content = files.read(file.path)
            if content is None:
                raise HarnessError(f"{file.path} was deleted while the table was read")
            try:
                value = tuple(sorted((*recorded_facts(entry, content), f"sum {crc32(content):08x}")))
            except Unreadable as unreadable:
                error = str(unreadable)
            yield ObservedPart("entry", entry.instant, file.path, value, error)

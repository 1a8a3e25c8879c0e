"""A table as it is read: its timeline, then its files, then its timeline once more.

The second timeline decides: every stored file was begun by an instant that it has, or by one that a rollback in it
names, and every deletion before the listing has its plan in it. What was committed only after the first timeline is not
looked for among the files, which may have been listed before.
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.audit.archive import block_instants
from marker_sim.audit.data_files import FileRules
from marker_sim.audit.entries import HEARTBEATS
from marker_sim.audit.instants import Instants
from marker_sim.audit.markers import TEMP, MarkerDirectoryContent, instant_of
from marker_sim.audit.properties import TableProperties
from marker_sim.audit.sources import StoredFile, TableSource
from marker_sim.names import TYPE_FILE, marker_file_index

METADATA = ".hoodie/metadata/"
_HOODIE = ".hoodie/"
_HEAD_BYTES = 1 << 20


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
        if not mine.path.startswith(_HOODIE):
            data.append(mine)
        elif mine.path.startswith(HEARTBEATS):
            heartbeats[mine.path[len(HEARTBEATS) :]] = mine
        elif instant := instant_of(mine.path):
            markers.setdefault(instant, []).append(mine)
    return TableFiles(tuple(data), heartbeats, markers)


def read_markers(source: TableSource, root: str, files: TableFiles) -> dict[str, MarkerDirectoryContent]:
    """Every marker directory, with the contents of its batched files."""
    found = {}
    for instant, below in sorted(files.markers.items()):
        path = f"{TEMP}{instant}"
        by_name = {file.path[len(path) + 1 :]: file for file in below}
        by_name = {name: file for name, file in by_name.items() if not name.rpartition("/")[2].endswith(".crc")}
        wanted = [name for name in by_name if name == TYPE_FILE or marker_file_index(name) is not None]
        contents = source.each(source.read, [f"{root}{path}/{name}" for name in wanted])
        batches = {name: content for name, content in zip(wanted, contents, strict=True) if content is not None}
        if by_name:
            found[instant] = MarkerDirectoryContent(instant, path, by_name, batches)
    return found


def read_directory(source: TableSource, root: str, instant: str) -> MarkerDirectoryContent | None:
    """One marker directory as it is now, None when it is gone."""
    path = f"{root}{TEMP}{instant}"
    return read_markers(source, root, split(source.tree(path), root)).get(instant)


def log_owner(source: TableSource, path: str) -> str | None:
    """The instant in the first block of a log file, "" when it has no block, None when it is not there."""
    head = source.read(path, 0, _HEAD_BYTES)
    return None if head is None else next(iter(block_instants(head)), "")


def rules_of(
    source: TableSource, root: str, properties: TableProperties, instants: Instants, settled: frozenset[str],
    enabled: frozenset[str], wanted: frozenset[str],
) -> FileRules:  # fmt: skip
    """What the files of a table are judged by."""

    def owner(path: str) -> str | None:
        return log_owner(source, root + path)

    return FileRules(
        instants=instants, layout=properties.layout, settled=settled, metadata=bool(root) or properties.metadata,
        enabled=enabled, wanted=wanted, owner=owner,
    )  # fmt: skip

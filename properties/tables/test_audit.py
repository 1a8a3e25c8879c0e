"""A table as events: the same from every kind of storage, and nothing of what is not the table's."""

from __future__ import annotations

from pathlib import Path

import pytest

from properties.faces.tables import DirectorySource, Files, ObjectFiles
from properties.faces.worlds import Recorder, observe_table
from properties.tables.frozen import TABLE, TABLES, Frozen, frozen

OTHERS = {
    "a/.hoodie_partition_metadata": 96,
    "a/.hoodie_partition_metadata.parquet": 96,
    "a/.0_0-1-2_001.parquet.crc": 12,
}
NOT_ITS = {
    ".hoodie/metadata/.hoodie/20200101000000000.deltacommit": b"{}",
    ".hoodie/metadata/.hoodie/.temp/20200101000000000/MARKERS0": b"x",
    ".hoodie/metadata/files/files-0_0-1-2_001.hfile": b"x",
    ".hoodie/.aux/20200101000000000.compaction.requested": b"",
}
MARKER = ".hoodie/.temp/001/a/0_0-1-2_001.parquet.marker.CREATE"


def objects(content: dict[str, bytes]) -> Files:
    """Objects by key, as the front keeps them."""
    return ObjectFiles(lambda prefix: {key: value for key, value in content.items() if key.startswith(prefix)})


def everything(tree: Frozen) -> dict[str, bytes]:
    files = {**tree.files, **{path: bytes(size % 97) for path, size in tree.sizes.items()}, MARKER: b""}
    files |= {path: bytes(size) for path, size in OTHERS.items()} | NOT_ITS
    return {f"{TABLE}/{path}": content for path, content in files.items()} | {f"{TABLE}2/a/0_0-1-2_001.parquet": b"x"}


def events(files: Files) -> list[tuple[object, ...]]:
    recorder = Recorder()
    observe_table(recorder, TABLE, files, 7)
    return [(e.operation, e.table, e.instant, e.path, e.value, e.error, e.caused_by) for e in recorder.events]


@pytest.mark.parametrize("name", TABLES)
def test_local_files_and_objects_are_told_alike(name: str, tmp_path: Path) -> None:
    tree = frozen(name)
    content = everything(tree)
    for path, data in content.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    local = events(DirectorySource(tmp_path, 1))
    directories = {f"{TABLE}/": b"", f"{TABLE}/a/": b"", f"{TABLE}/.hoodie/.temp/002/": b""}
    assert local == events(objects(content | directories))
    assert local[0] == ("audit", TABLE, "", None, "begin", None, 7)
    kinds = [event[0] for event in local]
    assert kinds.count("data-file") == len(tree.sizes) and kinds.count("marker-file") == 1
    assert kinds.count("entry") == len(tree.files) - 1 and not any(event[5] for event in local)
    assert {event[1] for event in local} == {TABLE}


def test_what_cannot_be_read_is_told_and_does_not_end_the_look() -> None:
    tree = frozen("1.0.2-cow")
    path = max(path for path in tree.files if path.endswith(".commit"))
    tree.files[path] = b"\x00"
    told = [event for event in events(tree) if event[5]]
    assert len(told) == 1 and told[0][3] == f"{TABLE}/{path}" and told[0][4] == ("action commit", "state completed")


def test_an_archive_is_told() -> None:
    tree = frozen("1.0.2-cow")
    tree.files[".hoodie/timeline/history/001_002_0.parquet"] = b"x"
    assert [event[3] for event in events(tree) if event[0] == "archive"] == [
        f"{TABLE}/.hoodie/timeline/history/001_002_0.parquet"
    ]

"""What an audit of a run records of archives: what their records say was deleted, and why one cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from properties.audit.real_tables import unpack
from properties.faces.tables import DirectorySource, ObservedPart, observed


def archives(table: Path) -> list[ObservedPart]:
    """The archives of a table as an audit of a run records them."""
    return [part for part in observed(DirectorySource(table.parent, 1), table.name) if part.operation == "archive"]


@pytest.mark.parametrize("name", ["0.15.0-cow-archived", "1.0.2-cow-upgraded-archived", "1.2.0-mor-archived"])
def test_archives_of_both_layouts_can_be_read_and_side_files_are_none(tmp_path: Path, name: str) -> None:
    found = archives(unpack(name, tmp_path))
    assert found and not [part.error for part in found if part.error]


def test_an_archive_that_is_cut_has_an_error_and_one_that_no_manifest_names_has_none(tmp_path: Path) -> None:
    table = unpack("1.2.0-mor-archived", tmp_path)
    (*_, path) = sorted((table / ".hoodie" / "timeline" / "history").glob("*.parquet"))
    half = path.read_bytes()[: path.stat().st_size // 2]
    shutil.copy(path, path.with_name("1_2_0.parquet"))
    path.with_name("1_2_0.parquet").write_bytes(half)
    assert not [part.error for part in archives(table) if part.error], "its writer died before it was named"
    path.write_bytes(half)
    assert [part.path for part in archives(table) if part.error] == [path.relative_to(tmp_path).as_posix()]

"""The advice of a finding destroys nothing that another finding of the same report needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from properties.audit.hand_table import HandTable, of_kind
from properties.faces.tables import KINDS, TableFinding


@pytest.fixture(params=[6, 8], ids=["layout-1", "layout-2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HandTable:
    """Two commits of two groups."""
    made = HandTable(tmp_path / "t", request.param)
    made.commit(1, made.base(1), made.base(1, "f1"))
    made.commit(2, made.base(2))
    return made


def _one(table: HandTable, kind: str) -> TableFinding:
    [finding] = of_kind(table.audit(), kind)
    return finding


def _mark(table: HandTable, number: int, *paths: str) -> None:
    table.markers(number, {f"{path}.marker.CREATE": b"" for path in paths})


def test_a_finding_that_stands_alone_has_the_advice_of_its_kind(table: HandTable) -> None:
    _mark(table, 2, table.base(2))
    table.age()
    finding = _one(table, "leftover-marker-directory")
    assert finding.next_step == KINDS["leftover-marker-directory"] and "delete the directory" in finding.next_step


@pytest.mark.parametrize("content", [b"", b'{"partitionToWriteStats": {'])
def test_markers_of_a_commit_that_cannot_be_read_are_not_to_be_deleted(table: HandTable, content: bytes) -> None:
    table.begin(3)
    table.entry(3, "commit", "completed", content)
    table.store(table.base(3))
    _mark(table, 3, table.base(3))
    table.age()
    assert "Do not delete" in _one(table, "leftover-marker-directory").next_step
    [files] = of_kind(table.audit(), "unnamed-data-file")
    assert files.level == "undecided" and "Delete none" in files.next_step


def test_markers_are_kept_until_the_files_of_their_instant_are_settled(table: HandTable) -> None:
    table.store(table.base(2, "f9"))
    _mark(table, 2, table.base(2, "f9"))
    table.age()
    assert "Keep the directory" in _one(table, "leftover-marker-directory").next_step


def test_markers_are_kept_while_something_is_undecided(table: HandTable) -> None:
    table.store(table.base(0, "f9"))  # Older than the timeline.
    _mark(table, 2, table.base(2))
    table.age()
    assert "Keep the directory" in _one(table, "leftover-marker-directory").next_step


def test_an_orphan_beside_a_loss_of_its_group_is_not_to_be_deleted(table: HandTable) -> None:
    twin = table.base(2).replace("0-1-2", "0-1-7")
    table.store(twin, table.base(2, "f8"))
    (table.root / table.base(2)).unlink()
    found = {f.path: f.next_step for f in of_kind(table.audit(), "unnamed-data-file")}
    assert "Do not delete" in found[twin]
    assert found[table.base(2, "f8")] == KINDS["unnamed-data-file"]


def test_no_write_is_advised_that_rolls_back_by_damaged_markers(table: HandTable) -> None:
    table.begin(3)
    table.store(table.base(3))
    table.markers(3, {"MARKERS0": f"{table.base(3)}.marker.CREATE\n".encode()})
    table.age()
    assert "Start no write" in _one(table, "pending-instant").next_step


def test_a_missing_type_is_not_to_be_written_over_direct_markers(table: HandTable) -> None:
    table.begin(3)
    table.markers(3, {"MARKERS0": b"p/a_0-1-2_3.parquet.marker.CREATE\n"})
    assert _one(table, "no-type-file").next_step == KINDS["no-type-file"]
    _mark(table, 3, table.base(3))
    assert "TIMELINE_SERVER_BASED" not in _one(table, "no-type-file").next_step


def test_no_write_is_advised_that_finishes_a_rollback_of_committed_files(table: HandTable) -> None:
    table.begin(3)
    target = {"commitTime": table.instant(3), "action": "commit"}
    others = [table.base(3, f"f{number}") for number in range(30)]  # More than evidence shows.
    table.store(*others)
    request = {"partitionPath": "p", "filesToBeDeleted": [*others, table.base(2)]}
    table.entry(4, "rollback", "requested", {"instantToRollback": target, "RollbackRequests": [request]})
    table.age()
    for kind in ("pending-instant", "unfinished-rollback"):
        assert "Start no write" in _one(table, kind).next_step


def test_no_write_is_advised_that_rolls_back_by_markers_of_committed_files(table: HandTable) -> None:
    table.begin(3)
    _mark(table, 3, table.base(2))
    table.age()
    assert "Start no write" in _one(table, "pending-instant").next_step


def test_an_instant_that_its_rollback_left_names_the_rollback(table: HandTable) -> None:
    table.begin(3)
    table.rollback(4, 3)
    table.age()
    assert f"rollback {table.instant(4)}" in _one(table, "pending-instant").message


def test_a_commit_without_its_fields_is_said_in_words(table: HandTable) -> None:
    table.entry(3, "commit", "completed", {})
    assert "has no 'partitionToWriteStats'" in _one(table, "unreadable-instant").message


def test_folders_of_an_object_store_are_no_files(table: HandTable) -> None:
    (table.root / "p_$folder$").touch()
    _mark(table, 2, "p_$folder$")
    directory = table.root / ".hoodie" / ".temp" / table.instant(2)
    for path in [*directory.rglob("*.CREATE")]:
        path.rename(path.with_name("p_$folder$"))
    table.age()
    assert table.audit().findings == ()
    assert table.audit().counts["files"] == 3


def test_properties_of_a_later_version_are_not_to_be_restored(table: HandTable) -> None:
    properties = table.root / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("version=", "version=1"))
    assert "Change nothing" in _one(table, "unreadable-properties").next_step


def test_what_a_rollback_left_is_deleted_before_readers_find_it(tmp_path: Path) -> None:
    """Repair has a deadline: once the failed instant is older than the timeline, readers take its file for committed,
    and a clean keeps that as the newest version of its group, and deletes the right one.
    """
    table = HandTable(tmp_path / "t", 8)
    first = table.commit(1, table.base(1), table.base(1, "f1"))
    table.store(table.base(2), table.base(2, "new"))
    table.rollback(3, 2)
    second = table.commit(4, table.base(4, "f1"))
    table.commit(5, table.base(5, "f1"))

    def advice() -> dict[str, str]:
        return {finding.path: finding.next_step for finding in of_kind(table.audit(), "rollback-left-files")}

    left, new = table.base(2), table.base(2, "new")
    assert advice() == dict.fromkeys((left, new), KINDS["rollback-left-files"])
    assert "before its instant is archived" in KINDS["rollback-left-files"]
    saved = table.entry(1, "savepoint", "completed", b"")
    table.archive((4, "commit", second))
    assert all("before the next clean" in text for text in advice().values()), "a savepoint keeps its commit active"
    saved.unlink()
    table.archive((1, "commit", first), (4, "commit", second), number=2)
    assert all("before the next clean" in text for text in advice().values())
    table.clean(6, table.base(1))
    assert "Do not delete it" in advice()[left], "its group's committed file is gone"
    assert "before the next clean" in advice()[new], "no write that completed had this group"

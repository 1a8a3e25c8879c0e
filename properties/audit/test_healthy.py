"""What healthy tables have is not accused: archives, cleans, services, restores, log files, concurrent writers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marker_sim.tables.audit import audit as auditing
from properties.audit.hand_table import HandTable, audit_at, of_kind
from properties.faces.tables import DirectorySource


@pytest.fixture(params=[6, 8], ids=["layout-1", "layout-2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HandTable:
    return HandTable(tmp_path / "t", request.param)


def test_cleaned_files_may_be_gone_also_when_clean_and_commit_are_archived(table: HandTable) -> None:
    first = table.commit(1, table.base(1), table.base(1, "f1"))
    second = table.commit(2, table.base(2))
    clean = table.clean(3, table.base(1))
    assert table.found() == []
    table.commit(4, table.base(4))
    table.archive((1, "commit", first), (2, "commit", second), (3, "clean", clean))
    assert table.found() == []
    (table.root / table.base(1, "f1")).unlink()  # Only the archive knows of it.
    assert table.found() == [("missing-file", "damage", table.base(1, "f1"))]


def test_an_archive_tells_owners_of_files(table: HandTable) -> None:
    first = table.commit(1, table.base(1))
    undone = table.rollback(3, 2)
    table.commit(4, table.base(4))
    table.archive((1, "commit", first), (3, "rollback", undone))
    assert table.found() == []
    table.store(table.base(2), table.base(1, "f9"))
    assert {found[::2] for found in table.found()} == {
        ("rollback-left-files", table.base(2)), ("unnamed-data-file", table.base(1, "f9")),
    }  # fmt: skip


def test_an_archive_that_cannot_be_read_makes_old_files_undecided(table: HandTable) -> None:
    first = table.commit(1, table.base(1))
    table.commit(4, table.base(4))
    archive = table.archive((1, "commit", first))
    archive.write_bytes(archive.read_bytes()[:-20])
    found = table.found()
    assert [(kind, level) for kind, level, _ in found] == [
        ("unnamed-data-file", "undecided"), ("unreadable-archive", "undecided"),
    ]  # fmt: skip


def test_an_upgraded_archive_is_read_where_it_came_from(tmp_path: Path) -> None:
    """The upgrade from layout 1 moved entries without their schema, and left the archive that has it."""
    table = HandTable(tmp_path / "t", 6)
    first = table.commit(1, table.base(1))
    table.commit(4, table.base(4))
    old = table.archive((1, "commit", first))
    table.upgrade((1, "commit", b"\x02\x96bare"))
    assert table.found() == []
    old.unlink()
    assert [found[:2] for found in table.found()] == [("unnamed-data-file", "undecided")]
    shutil.rmtree(table.timeline / "history")
    (table.timeline / "history").mkdir()
    (table.timeline / "history" / "_version_").write_text("7")
    assert ("unreadable-archive", "undecided") in [found[:2] for found in table.found()]


def test_the_files_of_a_pending_clean_may_be_gone(table: HandTable) -> None:
    table.commit(1, table.base(1))
    table.commit(2, table.base(2))
    plan = {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/x/{table.base(1)}"}]}}
    table.entry(3, "clean", "requested", plan)
    (table.root / table.base(1)).unlink()
    assert table.found() == []


def test_replaced_groups_and_compactions_are_fine(table: HandTable) -> None:
    table.commit(1, table.base(1), table.base(1, "f1"))
    table.commit(2, table.base(2, "f2"), action="replacecommit", replaced={"p": ["f0", "f1"]})
    table.entry(3, "compaction", "requested", {"plan": 1})
    table.entry(3, "compaction", "inflight")
    table.entry(3, "commit", "completed", {"partitionToWriteStats": {"p": [{"path": table.base(3, "f2")}]}})
    table.store(table.base(3, "f2"))
    table.clean(4, table.base(1))
    table.age()
    assert table.found() == []


def test_a_restore_takes_back_commits_and_their_files(table: HandTable) -> None:
    table.commit(1, table.base(1))
    table.entry(1, "savepoint", "completed", {"partitionMetadata": {"p": {"savepointDataFile": [table.base(1)]}}})
    rolled = {"commitsRollback": [table.instant(2)], "partitionMetadata": {}}
    restored = {"instantsToRollback": [table.instant(2)], "hoodieRestoreMetadata": {table.instant(2): [rolled]}}
    table.entry(3, "restore", "completed", restored)
    assert table.found() == []
    (table.root / table.base(1)).unlink()
    [finding] = of_kind(table.audit(), "missing-file")
    assert "savepoint" in finding.message


def test_log_files_belong_to_the_write_in_their_blocks(table: HandTable) -> None:
    table.commit(1, table.base(1))
    named = table.log(1, 2)
    table.store_log(named, 2)
    size = (table.root / named).stat().st_size
    table.commit(2, named, action="deltacommit", size=size, stored=False)
    assert table.found() == []
    extra = table.log(1, 2, version=2)
    table.store_log(extra, 2)
    assert table.found() == [("unnamed-data-file", "damage", extra)]


def test_a_log_file_of_layout_1_that_was_rolled_back_by_a_command_block_stays(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", 6, "MERGE_ON_READ")
    table.commit(1, table.base(1))
    undone, block = table.log(1, 2), table.log(1, 3, version=2)
    table.store_log(undone, 2)
    table.rollback(3, 2, appended=[block])
    assert table.found() == []
    table.store_log(table.log(1, 2, file_id="f7"), 2)  # No command block lies in this group.
    assert [found[0] for found in table.found()] == ["rollback-left-files"]


def test_side_files_are_not_looked_at_and_foreign_ones_are_a_note(table: HandTable) -> None:
    table.commit(1, table.base(1))
    name = table.base(1).rpartition("/")[2]
    table.store("p/.hoodie_partition_metadata", "p/.hoodie_partition_metadata.parquet", f"p/.{name}.crc")
    assert table.found() == []
    table.store("p/_SUCCESS", "notes.txt")
    assert [found[:2] for found in table.found()] == [("foreign-file", "note")]


def test_bootstrapped_files_are_named_by_their_commit(table: HandTable) -> None:
    table.timeline.joinpath(
        "00000000000001_00000000000002.commit" if table.layout == 2 else "00000000000001.commit"
    ).write_text(
        '{"partitionToWriteStats": {"p": [{"path": "p/f_1-2-3_00000000000001.parquet", "fileSizeInBytes": 120}]}}'
    )
    table.store("p/f_1-2-3_00000000000001.parquet")
    assert table.found() == []


class _Busy(DirectorySource):
    """A table in which something happens right after its files were listed, or before."""

    def __init__(self, root: Path, before: Callable[[], Any], after: Callable[[], Any]) -> None:
        super().__init__(root, 2)
        self._before, self._after = before, after

    def tree(self, path: str = "") -> Any:
        if path:  # One folder again, at the end.
            return super().tree(path)
        self._before()
        found = super().tree(path)
        self._after()
        return found


def test_a_writer_and_a_cleaner_at_work_are_not_accused(table: HandTable) -> None:
    table.commit(1, table.base(1))
    table.commit(2, table.base(2))

    def before() -> None:
        table.begin(3)
        table.markers(
            3, {"MARKERS.type": b"TIMELINE_SERVER_BASED", "MARKERS0": f"{table.base(3)}.marker.MERGE\n".encode()}
        )
        table.store(table.base(3))  # Listed, and requested only after the first look at the timeline.
        plan = {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": table.base(1)}]}}
        table.entry(4, "clean", "requested", plan)
        (table.root / table.base(1)).unlink()

    def after() -> None:
        table.commit(3, table.base(3))
        shutil.rmtree(table.root / ".hoodie" / ".temp")
        table.commit(5, table.base(5))  # Never listed.

    report = auditing.audit_table(_Busy(table.root, before, after), "t", now_s=2e9, stuck_after_s=1e9)
    assert report.findings == ()


def test_an_audit_changes_nothing_and_needs_no_right_to_write(table: HandTable) -> None:
    table.commit(1, table.base(1))
    table.begin(2)
    table.markers(2, {"MARKERS0": b"x"})
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in [table.root, *table.root.rglob("*")]}
    contents = {path: path.read_bytes() for path in table.root.rglob("*") if path.is_file()}
    assert table.audit().findings
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in [table.root, *table.root.rglob("*")]} == before
    assert {path: path.read_bytes() for path in table.root.rglob("*") if path.is_file()} == contents


def test_a_metadata_table_is_audited_too(table: HandTable) -> None:
    table.commit(1, table.base(1))
    inner = HandTable(table.root / ".hoodie" / "metadata", 8 if table.layout == 2 else 6)
    inner.commit(1, "files/files-0000-0_0-1-2_2026010112010000.hfile")
    with (table.root / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.metadata.partitions=files\n")
    inner.store("files/.files-0000-0_00000000000000000.log.1_0-0-0")  # Its making does not name it.
    assert table.found() == []
    with (inner.root / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.keygenerator.type=HOODIE_TABLE_METADATA\n")
    assert inner.found() == []
    shutil.rmtree(inner.root / "files")
    path = ".hoodie/metadata/files/files-0000-0_0-1-2_2026010112010000.hfile"
    assert table.found() == [("missing-file", "damage", path)]
    assert audit_at(f"file:{table.root}").verdict == "damaged"

"""Each kind of damage is found in tables of both layouts, and the same table without it is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.names import TYPE_BATCHED
from properties.audit.hand_table import HandTable, of_kind
from properties.faces.tables import KINDS

BATCHED = {"MARKERS.type": TYPE_BATCHED}


@pytest.fixture(params=[6, 8], ids=["layout-1", "layout-2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HandTable:
    """Two commits, the second of which rewrites a file of the first."""
    made = HandTable(tmp_path / "t", request.param)
    made.commit(1, made.base(1), made.base(1, "f1"))
    made.commit(2, made.base(2))
    return made


def test_a_table_without_damage_is_clean(table: HandTable) -> None:
    report = table.audit()
    assert (report.verdict, report.findings) == ("clean", ())
    assert report.counts["files"] == 3 and report.counts["bytes"] == 360
    assert report.layout == table.layout


def test_a_file_that_its_commit_does_not_name_is_damage(table: HandTable) -> None:
    table.store(table.base(2, "f9"))
    assert table.found() == [("unnamed-data-file", "damage", table.base(2, "f9"))]


def test_a_file_of_an_instant_that_never_was_is_damage(table: HandTable) -> None:
    table.commit(4, table.base(4))
    table.store(table.base(3, "f9"))
    assert table.found() == [("unnamed-data-file", "damage", table.base(3, "f9"))]


def test_files_older_than_the_timeline_are_undecided_in_one_finding(table: HandTable) -> None:
    table.store(table.base(0, "f8"), table.base(0, "f9"))
    [finding] = table.audit().findings
    assert (finding.kind, finding.level, len(finding.evidence)) == ("unnamed-data-file", "undecided", 2)


@pytest.mark.parametrize("number", [1, 2])
def test_a_named_file_that_is_gone_is_damage(table: HandTable, number: int) -> None:
    (table.root / table.base(number)).unlink()
    assert table.found() == [("missing-file", "damage", table.base(number))]


def test_a_short_file_is_damage(table: HandTable) -> None:
    table.store(table.base(2), size=119)
    assert table.found() == [("short-file", "damage", table.base(2))]


def test_a_marker_directory_of_a_completed_instant_is_damage(table: HandTable) -> None:
    table.markers(2, {f"{table.base(2)}.marker.MERGE": b""})
    assert {f.level for f in table.audit().findings} == {"undecided"}
    table.age()
    [finding] = table.audit().findings
    assert (finding.kind, finding.level, finding.path) == (
        "leftover-marker-directory", "damage", f".hoodie/.temp/{table.instant(2)}",
    )  # fmt: skip


def test_a_marker_directory_of_no_instant_is_damage(table: HandTable) -> None:
    table.markers(9, {f"{table.base(9)}.marker.CREATE": b""})
    table.age()
    assert [kind for kind, *_ in table.found()] == ["leftover-marker-directory"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"p/f9_0-1-2_3.parquet.marker.CREATE\np/f8", "marker-file-unreadable"),
        (b"", "marker-file-unreadable"),
        (b"\xff\xfe\n", "marker-file-unreadable"),
        (b"p/f9.parquet\n", "marker-file-unreadable"),
        (b"p/a.parquet.marker.CREATEp/b.parquet.marker.MERGE\n", "glued-marker-names"),
    ],
)
def test_a_batched_marker_file_that_hudi_cannot_read_is_damage(table: HandTable, content: bytes, kind: str) -> None:
    table.begin(3)
    table.markers(3, {**BATCHED, "MARKERS0": content})
    path = f".hoodie/.temp/{table.instant(3)}/MARKERS0"
    assert (kind, "damage", path) in table.found()


@pytest.mark.parametrize("kind", [None, b"", b"DIRECT"])
def test_batched_markers_without_their_type_are_damage(table: HandTable, kind: bytes | None) -> None:
    table.begin(3)
    files = {"MARKERS0": f"{table.base(3)}.marker.CREATE\n".encode()}
    table.markers(3, files if kind is None else {**files, "MARKERS.type": kind})
    assert ("no-type-file", "damage") in [found[:2] for found in table.found()]


def test_a_pending_instant_says_what_a_rollback_would_delete_and_leave(table: HandTable) -> None:
    table.begin(3)
    table.store(table.base(3), table.base(3, "f7"))
    table.markers(3, {**BATCHED, "MARKERS3": f"{table.base(3)}.marker.CREATE\n".encode()})
    [young] = of_kind(table.audit(), "pending-instant")
    assert young.level == "note"
    table.age()
    [old] = of_kind(table.audit(), "pending-instant")
    assert old.level == "damage"
    assert f"would undo {table.base(3)}" in old.evidence and f"would leave {table.base(3, 'f7')}" in old.evidence


def test_a_file_of_a_pending_instant_without_a_marker_is_damage_however_young(table: HandTable) -> None:
    table.begin(3)
    table.store(table.base(3), table.base(3, "f7"))
    table.markers(3, {**BATCHED, "MARKERS3": f"{table.base(3)}.marker.CREATE\n".encode()})
    assert ("unmarked-data-file", "damage", table.base(3, "f7")) in table.found()
    table.markers(3, {**BATCHED, "MARKERS4": f"{table.base(3, 'f7')}.marker.CREATE\n".encode()})
    assert [found[:2] for found in table.found()] == [("pending-instant", "note")]


def test_a_pending_write_that_was_overtaken_without_a_heartbeat_is_undecided(table: HandTable) -> None:
    table.begin(3)
    table.commit(4, table.base(4))
    assert [found[:2] for found in table.found()] == [("pending-instant", "undecided")]
    beat = table.root / ".hoodie" / ".heartbeat" / table.instant(3)
    beat.parent.mkdir()
    beat.touch()
    assert [found[:2] for found in table.found()] == [("pending-instant", "note")]


@pytest.mark.parametrize("action", ["compaction", "clustering", "logcompaction", "indexing"])
def test_a_planned_service_waits_for_its_turn(table: HandTable, action: str) -> None:
    table.entry(3, action, "requested", {"plan": 1})
    table.age()
    assert table.found() == []


def test_an_empty_completed_instant_and_one_that_is_no_record_are_damage(table: HandTable) -> None:
    table.begin(3)
    empty = table.entry(3, "commit", "completed")
    table.begin(4)
    torn = table.entry(4, "commit", "completed", b'{"partitionToWriteStats": {')
    table.store(table.base(4, "f4"))
    kinds = {(kind, level, path.rpartition("/")[2]) for kind, level, path in table.found()}
    assert kinds >= {
        ("empty-completed-instant", "damage", empty.name), ("unreadable-instant", "damage", torn.name),
    }  # fmt: skip
    assert [f.level for f in of_kind(table.audit(), "unnamed-data-file")] == ["undecided"]


def test_a_rollback_that_left_a_file_is_damage(table: HandTable) -> None:
    table.rollback(4, 3, table.base(3, "gone"))
    assert table.found() == []
    table.store(table.base(3))
    assert table.found() == [("rollback-left-files", "damage", table.base(3))]


def test_a_rollback_that_was_begun_and_never_ended_is_damage(table: HandTable) -> None:
    table.begin(3)
    target = {"commitTime": table.instant(3), "action": "commit"}
    request = {"partitionPath": "p", "filesToBeDeleted": [table.base(3)]}
    table.entry(4, "rollback", "requested", {"instantToRollback": target, "RollbackRequests": [request]})
    table.store(table.base(3))
    table.age()
    [rollback] = of_kind(table.audit(), "unfinished-rollback")
    assert rollback.level == "damage" and table.base(3) in rollback.evidence


def test_properties_that_do_not_say_what_the_table_is_are_never_clean(table: HandTable) -> None:
    properties = table.root / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    properties.write_text(text.replace("version=", "version=1"))
    assert ("unreadable-properties", "undecided") in [found[:2] for found in table.found()]
    properties.write_text("")
    assert ("unreadable-properties", "damage") in [found[:2] for found in table.found()]
    properties.unlink()
    properties.with_name("hoodie.properties.backup").write_text(text)
    assert [found[:2] for found in table.found()] == [("unreadable-properties", "undecided")]


def test_a_log_file_of_a_pending_instant_without_a_marker_is_damage_in_layout_2(table: HandTable) -> None:
    table.begin(3, "deltacommit")
    table.store_log(table.log(2, 3), 3)
    damaged = [("unmarked-data-file", "damage", table.log(2, 3))] if table.layout == 2 else []
    assert [found for found in table.found() if found[1] == "damage"] == damaged
    table.markers(3, {f"{table.log(2, 3)}.marker.APPEND": b""})
    assert [found[:2] for found in table.found()] == [("pending-instant", "note")]


def test_every_kind_says_what_to_do() -> None:
    assert all(text.endswith(".") for text in KINDS.values())

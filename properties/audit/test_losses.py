"""What was lost is named, although a record excuses it, a log file is older than its slice, or a name is unusual."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from properties.audit.hand_table import HandTable, by_partition, commit_content, of_kind


@pytest.fixture(params=[6, 8], ids=["layout-1", "layout-2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HandTable:
    """Two commits, the second of which rewrites the file of the first."""
    made = HandTable(tmp_path / "t", request.param)
    made.commit(1, made.base(1))
    made.commit(2, made.base(2))
    return made


def test_a_rollback_that_deleted_a_file_of_a_completed_commit_is_no_excuse(table: HandTable) -> None:
    (table.root / table.base(2)).unlink()
    table.rollback(3, 2, table.base(2))
    [finding] = of_kind(table.audit(), "missing-file")
    assert (finding.level, finding.path) == ("damage", table.base(2))
    assert f"rollback {table.instant(3)}" in finding.message


def test_a_rollback_of_another_instant_is_no_excuse(table: HandTable) -> None:
    (table.root / table.base(2)).unlink()
    table.rollback(4, 3, table.base(2))
    assert table.found() == [("missing-file", "damage", table.base(2))]


@pytest.mark.parametrize("pending", [False, True])
def test_a_clean_of_the_newest_slice_is_no_excuse(table: HandTable, pending: bool) -> None:
    if pending:
        plan = {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/x/{table.base(2)}"}]}}
        table.entry(3, "clean", "requested", plan)
        (table.root / table.base(2)).unlink()
    else:
        table.clean(3, table.base(2))
    assert table.found() == [("missing-file", "damage", table.base(2))]


def test_a_clean_of_a_replaced_group_may_delete_its_newest_slice(table: HandTable) -> None:
    table.commit(3, table.base(3, "f1"), action="replacecommit", replaced={"p": ["f0"]})
    table.clean(4, table.base(1), table.base(2))
    assert table.found() == []


def test_a_clean_is_an_excuse_where_a_later_commit_cannot_be_read(table: HandTable) -> None:
    """That commit may have made the newest slice."""
    table.entry(3, "commit", "completed", b'{"partitionToWriteStats": {')
    table.clean(4, table.base(2))
    assert of_kind(table.audit(), "missing-file") == []


def test_a_log_file_belongs_to_the_slice_that_its_completion_falls_into(tmp_path: Path) -> None:
    """A delta commit that began before a compaction and completed after it is not in what was compacted."""
    table = HandTable(tmp_path / "t", 8, "MERGE_ON_READ")
    table.commit(1, table.base(1))
    late, early = table.log(1, 2), table.log(1, 3, version=2)
    for path in (late, early):
        table.store(path)
    table.begin(2, "deltacommit")
    table.begin(3, "deltacommit")
    table.entry(3, "deltacommit", "completed", commit_content([early]))
    table.commit(4, table.base(4))
    done = table.entry(2, "deltacommit", "completed", commit_content([late]))
    done.rename(done.with_name(f"{table.instant(2)}_{table.instant(5)}.deltacommit"))
    table.entry(6, "clean", "completed", {"partitionMetadata": by_partition([early, late], "deletePathPatterns")})
    (table.root / early).unlink()
    assert table.found() == []
    (table.root / late).unlink()
    assert table.found() == [("missing-file", "damage", late)]


NAMES = ["f7_0-1-0-2_{}.parquet", "f7_abc_{}.orc", ".f7_{}.log.1_0-1-0-2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_that_hudi_accepts_is_missed(table: HandTable, name: str) -> None:
    path = f"p/{name.format(table.instant(3))}"
    table.commit(3, path)
    assert table.found() == []
    (table.root / path).unlink()
    assert table.found() == [("missing-file", "damage", path)]


@pytest.mark.parametrize("name", NAMES[:2])
def test_an_orphan_of_any_name_that_hudi_accepts_is_found(table: HandTable, name: str) -> None:
    path = f"p/{name.format(table.instant(2))}"
    table.store(path)
    assert table.found() == [("unnamed-data-file", "damage", path)]


@pytest.mark.parametrize(("suffix", "folder"), [("", ""), ("_fg%3Da%2Fb", "a/b/")])
def test_a_file_that_another_writer_made_is_stored_under_its_own_name(
    table: HandTable, suffix: str, folder: str
) -> None:
    path = f"p/{folder}part_0.parquet"
    table.commit(3, f"p/part_0.parquet_{table.instant(3)}{suffix}_hudiext", stored=False)
    table.store(path)
    assert table.found() == []
    (table.root / path).unlink()
    assert table.found() == [("missing-file", "damage", path)]


def test_committed_files_whose_group_is_not_known_are_not_checked(table: HandTable) -> None:
    table.commit(3, "p/whatever.parquet", stored=False)
    report = table.audit()
    assert report.findings == ()
    assert any("1 " in line and "name" in line for line in report.not_checked[-1:])


def test_two_base_files_of_a_group_in_one_commit_are_damage(table: HandTable) -> None:
    twin = table.base(3).replace("0-1-2", "0-9-9")
    table.commit(3, table.base(3), twin)
    [finding] = table.audit().findings
    assert (finding.kind, finding.level, finding.path) == ("group-named-twice", "damage", table.base(3))
    assert twin in finding.evidence
    (table.root / twin).unlink()
    assert table.found() == [("missing-file", "damage", twin)]


@pytest.mark.parametrize("archived", [True, False])
def test_a_replaced_group_that_is_stored_when_its_replacement_is_archived_is_damage(
    tmp_path: Path, archived: bool
) -> None:
    table = HandTable(tmp_path / "t", 8)
    first = table.commit(1, table.base(1))
    second = table.commit(2, table.base(2, "f1"), action="replacecommit", replaced={"p": ["f0"]})
    table.commit(3, table.base(3, "f1"))
    entries = ((1, "commit", first), (2, "replacecommit", second))
    table.archive(*entries[: 2 if archived else 1])
    assert table.found() == [("replaced-group-visible", "damage", table.base(1))] * archived
    (table.root / table.base(1)).unlink()
    assert of_kind(table.audit(), "replaced-group-visible") == []


@pytest.mark.parametrize("listed", ["", "files,column_stats"])
def test_a_partition_without_its_metadata_is_not_seen_by_readers(table: HandTable, listed: str) -> None:
    """Also where a metadata table lists the files: it is made anew by listing partitions."""
    (table.root / "p" / ".hoodie_partition_metadata").unlink()
    with (table.root / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write(f"hoodie.table.metadata.partitions={listed}\n")
    assert table.found() == [("no-partition-metadata", "damage", "p/.hoodie_partition_metadata")]


def test_a_file_of_another_writer_needs_no_partition_metadata(table: HandTable) -> None:
    table.commit(3, f"q/a.parquet_{table.instant(3)}_hudiext", stored=False)
    table.store("q/a.parquet")
    (table.root / "q" / ".hoodie_partition_metadata").unlink()
    assert table.found() == []


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_pending_compaction_whose_base_file_is_not_there_is_damage(table: HandTable, state: str) -> None:
    lost = table.base(2).replace("0-1-2", "0-1-1")
    operations = [
        {"partitionPath": "p", "dataFilePath": path.rpartition("/")[2] if path else None}
        for path in (lost, table.base(1), table.base(9, "f9"), "")  # The last but one is of an instant to come.
    ]
    table.entry(3, "compaction", "requested", {"operations": operations})
    if state == "inflight":
        table.entry(3, "compaction", "inflight")
    [finding] = of_kind(table.audit(), "compaction-input-missing")
    assert (finding.level, finding.instant, finding.evidence[1:]) == ("damage", table.instant(3), (lost,))
    table.store(lost)
    assert of_kind(table.audit(), "compaction-input-missing") == []


def test_a_file_that_a_savepoint_keeps_must_not_be_cleaned(table: HandTable) -> None:
    kept = {"partitionMetadata": {"p": {"savepointDataFile": [table.base(1)]}}}
    table.entry(1, "savepoint", "completed", kept)
    table.clean(3, table.base(1))
    assert table.found() == [("missing-file", "damage", table.base(1))]


def test_a_completion_time_of_another_length_than_the_newest_slice_does_not_decide(tmp_path: Path) -> None:
    """Then Hudi compares instants, so the log file is in an older slice, and a clean may delete it."""
    table = HandTable(tmp_path / "t", 8, "MERGE_ON_READ")
    log, short = table.log(1, 2), table.instant(3)[:14]
    table.store(log, f"p/f0_0-1-2_{short}.parquet")
    table.begin(2, "deltacommit")
    done = table.entry(2, "deltacommit", "completed", commit_content([log]))
    done.rename(done.with_name(f"{table.instant(2)}_{table.instant(5)}.deltacommit"))
    content = json.dumps(commit_content([f"p/f0_0-1-2_{short}.parquet"]))
    table.timeline.joinpath(f"{short}_{short}.commit").write_text(content)
    table.clean(6, log)
    assert table.found() == []


@pytest.mark.parametrize("version", ["", *range(5)])
def test_tables_of_the_first_versions_are_judged(tmp_path: Path, version: int | str) -> None:
    table = HandTable(tmp_path / "t", version or 0)  # type: ignore[arg-type]
    if version == "":
        properties = table.root / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("hoodie.table.version=0\n", ""))
    table.commit(1, table.base(1))
    assert (table.audit().verdict, table.audit().layout) == ("clean", 1)
    (table.root / table.base(1)).unlink()
    assert table.found() == [("missing-file", "damage", table.base(1))]


def test_a_commit_made_of_an_older_file_than_the_one_before_it_is_damage(table: HandTable) -> None:
    """What two writers of a group leave when a lock or a check of conflicts fails: rows of the second are not read."""
    table.commit(3, table.base(3), merged=table.instant(1))
    [finding] = table.audit().findings
    assert (finding.kind, finding.level, finding.path) == ("lost-update", "damage", table.base(3))
    assert table.instant(2) in finding.message
    assert table.base(2) in finding.evidence[0]


@pytest.mark.parametrize("state", ["pending", "rolled back", "of another group", "whole"])
def test_a_commit_made_of_the_newest_committed_file_is_clean(table: HandTable, state: str) -> None:
    if state == "pending":
        table.begin(3)
    elif state == "rolled back":
        table.rollback(4, 3)
    elif state == "of another group":
        table.commit(3, table.base(3, "f1"), merged="null")
    else:
        table.commit(3, table.base(3), merged=table.instant(2))
        table.commit(5, table.base(5), merged=table.instant(3))
        assert table.found() == []
        return
    table.commit(5, table.base(5), merged=table.instant(2))
    assert {kind for kind, level, _ in table.found() if level == "damage"} == set()


def test_a_commit_made_of_a_newer_file_is_damage(table: HandTable) -> None:
    """What a writer leaves that was stopped between its request and its look at the timeline."""
    table.commit(5, table.base(5, "f1"), merged="null")
    table.commit(4, table.base(4, "f1"), merged=table.instant(5))
    [finding] = table.audit().findings
    assert (finding.kind, finding.path) == ("lost-update", table.base(4, "f1"))
    assert f"newer file of {table.instant(5)}" in finding.message and table.base(5, "f1") in finding.evidence[0]


def test_a_clustering_that_keeps_the_id_of_a_group_adds_no_rows(table: HandTable) -> None:
    """SparkSingleFileSortExecutionStrategy beside SparkAllowUpdateStrategy."""
    table.commit(3, table.base(3), action="replacecommit", merged="null")
    table.commit(4, table.base(4), merged=table.instant(2))
    assert table.found() == []


def test_a_completed_commit_that_a_later_rollback_says_it_undid_is_damage(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", 8)
    table.commit(1, table.base(1))
    table.commit(2, table.base(2), merged=table.instant(1))
    table.rollback(3, 2)
    [finding] = table.audit().findings
    assert (finding.kind, finding.level, finding.instant) == ("rolled-back-commit", "damage", table.instant(2))
    assert table.instant(3) in finding.message


def test_a_compaction_that_was_rolled_back_before_it_was_completed_is_clean(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", 8, "MERGE_ON_READ")
    table.commit(1, table.base(1))
    table.commit(2, table.base(2), merged=table.instant(1))
    done = next(table.timeline.glob(f"{table.instant(2)}_*"))
    done.rename(done.with_name(f"{table.instant(2)}_{table.instant(5)}.commit"))
    table.rollback(3, 2)
    assert table.found() == []


@pytest.mark.parametrize(("done", "wrong"), [(4, True), (6, False)])
@pytest.mark.parametrize("service", [False, True])
def test_a_rollback_that_ended_after_its_instant_was_completed_is_damage(
    tmp_path: Path, done: int, wrong: bool, service: bool
) -> None:
    """It was planned before; a rollback of a compaction may be told late, for it is completed under its instant."""
    table = HandTable(tmp_path / "t", 8, "MERGE_ON_READ")
    table.commit(1, table.base(1))
    table.commit(2, table.base(2), merged=table.instant(1))
    if service:
        table.entry(2, "compaction", "requested", {"operations": []})
    for number, action, at in ((2, "commit", done), (3, "rollback", 5)):
        if number == 3:
            table.rollback(3, 2)
        entry = next(table.timeline.glob(f"{table.instant(number)}_*"))
        entry.rename(entry.with_name(f"{table.instant(number)}_{table.instant(at)}.{action}"))
    kinds = [kind for kind, _, _ in table.found()]
    assert kinds == (["rolled-back-commit"] if wrong and not service else [])

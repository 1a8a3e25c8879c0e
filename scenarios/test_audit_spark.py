"""An audit on Spark's executors finds what the same audit in one process finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from properties.audit.hand_table import HandTable
from properties.faces.tables import TableFinding, TableReport, audit_table, listing_on_spark, open_source
from scenarios.quick_spark import use_quick_settings

pytestmark = pytest.mark.spark
NOW_S = 4e9


@pytest.fixture(autouse=True)
def quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_settings(tmp_path / "conf", monkeypatch)


def _damaged(root: Path) -> HandTable:
    table = HandTable(root, 6)
    table.commit(1, *(table.base(1, f"f{n}", f"year={n % 3}/day={n % 5}") for n in range(40)))
    table.commit(2, table.base(2, "f1", "year=1/day=1"), "top_0-1-2_20260101120200000.parquet")
    table.store(table.base(2, "stray", "year=9/day=9"), table.base(0, "old"), "year=1/_SUCCESS")
    (table.root / table.base(1, "f3", "year=0/day=3")).unlink()
    table.store(table.base(1, "f4", "year=1/day=4"), size=3)
    table.store_log(table.log(1, 2, file_id="f5", partition="year=2/day=0"), 2)
    table.begin(3)
    table.store(table.base(3))
    table.markers(
        3, {"MARKERS.type": b"TIMELINE_SERVER_BASED", "MARKERS0": f"{table.base(3)}.marker.CREATE\n".encode()}
    )
    return table


def _audit(table: str, master: str = "") -> TableReport:
    source = open_source(table, None, 4)
    try:
        if not master:
            return audit_table(source, table, now_s=NOW_S)
        with listing_on_spark(master, table, None) as listing:
            return audit_table(source, table, now_s=NOW_S, listing=listing)
    finally:
        source.close()


def _told(findings: tuple[TableFinding, ...]) -> list[TableFinding]:
    return [replace(finding, evidence=tuple(sorted(finding.evidence))) for finding in findings]


def test_the_findings_are_those_of_one_process(tmp_path: Path) -> None:
    table = _damaged(tmp_path / "t")
    alone = _audit(str(table.root))
    kinds = {finding.kind for finding in alone.findings}
    assert kinds >= {"unnamed-data-file", "missing-file", "short-file", "pending-instant", "foreign-file"}
    shared = _audit(str(table.root), "local[1]")
    assert _told(shared.findings) == _told(alone.findings)
    assert [shared.counts[key] for key in ("files", "bytes", "instants")] == [
        alone.counts[key] for key in ("files", "bytes", "instants")
    ]


def test_a_master_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    table = _damaged(tmp_path / "t")
    with pytest.raises(HarnessError, match="no master answers at spark:"):
        _audit(str(table.root), "spark://127.0.0.1:1")

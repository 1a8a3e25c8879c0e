"""Tables that Hudi 0.15.0 to 1.2.0 wrote: `marker-sim audit` accuses none of them and finds what is done to them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from marker_sim.audit.audit import audit_table
from marker_sim.audit.findings import TableFinding, TableReport
from marker_sim.audit.sources import DirectorySource
from properties.audit.damages import DAMAGES, Damage
from properties.audit.disk import Unfit
from properties.audit.real_tables import names, pack, unpack

NAMES = names()
TIMES = 3


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, TableReport]]:
    """Each table unpacked, and what is said of it."""
    folder = tmp_path_factory.mktemp("tables")
    tables = {name: unpack(name, folder) for name in NAMES}
    return {name: (table, _audit(table)) for name, table in tables.items()}


def _audit(table: Path) -> TableReport:
    source = DirectorySource(table, 2)
    try:
        return audit_table(source, str(table), now_s=time.time())
    finally:
        source.close()


def _identity(finding: TableFinding) -> tuple[str, ...]:
    return finding.kind, finding.level, finding.instant, finding.path


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_table_is_not_accused(name: str, healthy: dict[str, tuple[Path, TableReport]]) -> None:
    report = healthy[name][1]
    assert report.verdict == "clean", report.findings
    assert report.counts["instants"] > 1 and report.counts["files"] > 1


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damage_is_found(damage: Damage, healthy: dict[str, tuple[Path, TableReport]], tmp_path: Path) -> None:
    """Up to TIMES of the tables that it fits, others for each damage; both layouts when both fit."""
    turn = list(DAMAGES).index(damage.name) % len(NAMES)
    fitting = 0
    for name in (*NAMES[turn:], *NAMES[:turn]):
        table, before = healthy[name]
        copy = tmp_path / name
        shutil.copytree(table, copy, copy_function=shutil.copy)
        try:
            done = damage.do(copy)
        except Unfit:
            continue
        report = _audit(copy)
        known = {_identity(finding) for finding in before.findings}
        found = [finding for finding in report.findings if _identity(finding) not in known]
        assert {finding.kind for finding in found} & {*damage.told_by}, (name, done, report.findings)
        assert report.verdict != "clean", (name, done, report.findings)
        fitting += 1
        if fitting == TIMES:
            return
    assert fitting, "no packed table fits"


def test_packing_is_deterministic(tmp_path: Path) -> None:
    table = unpack(NAMES[0], tmp_path)
    for name in ("one", "two"):
        pack(table, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()

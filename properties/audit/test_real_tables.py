"""Tables that Hudi 0.15.0 to 1.2.0 wrote: `marker-sim audit` accuses none of them and finds what is done to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from properties.audit.damages import DAMAGES, Damage
from properties.audit.disk import Unfit
from properties.audit.hand_table import audit_at
from properties.audit.real_tables import names, pack, unpack
from properties.faces.tables import TableFinding, TableReport
from properties.real.fronts import fronted
from properties.volume import volume

NAMES = names()
TIMES = volume(3, quick=1)


class Tables(dict[str, tuple[Path, TableReport]]):
    """Each table unpacked, and what is said of it, once it is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> tuple[Path, TableReport]:
        table = unpack(name, self._folder)
        self[name] = table, audit_at(str(table))
        return self[name]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("tables"))


def _identity(finding: TableFinding) -> tuple[str, ...]:
    return finding.kind, finding.level, finding.instant, finding.path


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_table_is_not_accused(name: str, healthy: Tables) -> None:
    report = healthy[name][1]
    assert report.verdict == "clean", report.findings
    assert report.counts["instants"] > 1 and report.counts["files"] > 1


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damage_is_found(damage: Damage, healthy: Tables, tmp_path: Path) -> None:
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
        report = audit_at(str(copy))
        known = {_identity(finding) for finding in before.findings}
        found = [finding for finding in report.findings if _identity(finding) not in known]
        assert {finding.kind for finding in found} & {*damage.told_by}, (name, done, report.findings)
        assert report.verdict != "clean", (name, done, report.findings)
        fitting += 1
        if fitting == TIMES:
            return
    assert fitting, "no packed table fits"


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(("odd-names", "cow-killed", "mor-logs"))])
def test_a_bucket_says_what_a_directory_says(
    name: str, healthy: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table behind moto, healthy and without one of its data files."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "server-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    copy = shutil.copytree(healthy[name][0], tmp_path / "t")
    DAMAGES["log-missing" if "mor" in name else "base-missing"].do(copy)
    with fronted() as stage:
        for prefix, table in (("lake/healthy", healthy[name][0]), ("lake/damaged", copy)):
            for path in table.rglob("*"):
                if path.is_file():
                    stage.front.change(f"{prefix}/{path.relative_to(table).as_posix()}", path.read_bytes())
        told = [audit_at(f"s3a://lake/lake/{each}", stage.front.endpoint) for each in ("healthy", "damaged")]
    assert told[0].verdict == "clean"
    assert [*map(_identity, told[1].findings)] == [*map(_identity, audit_at(str(copy)).findings)] != []


def test_packing_is_deterministic(tmp_path: Path) -> None:
    table = unpack(NAMES[0], tmp_path)
    for name in ("one", "two"):
        pack(table, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()

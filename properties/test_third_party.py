"""The two classes of docs/third-party.md: the correct one is not accused, the faulty one is caught."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from marker_sim.campaign import Campaign
from marker_sim.judges.profiles import load_profile
from marker_sim.search.campaign import run_simulated

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "third-party.md"
CORRECT, FAULTY = "markers_of_mine:Markers", "hasty_markers:Hasty"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The modules of the guide, in a folder of their own from which they can be imported."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert {name for name, _ in blocks} == {"markers_of_mine.py", "hasty_markers.py"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, _ in blocks:
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    return tmp_path


def search(sut: str, modes: tuple[str, ...], storages: tuple[str, ...], runs: int, seed: int) -> Campaign:
    return run_simulated(
        sut=sut,
        modes=modes,
        storages=storages,
        budget_s=90.0,
        seed=seed,
        guarantees=None,
        profile=load_profile("python"),
        progress=lambda line: None,
        runs_max=runs,
    )


@pytest.mark.usefixtures("modules")
def test_the_correct_class_is_not_accused_and_not_blamed_for_a_storage_it_cannot_use(chaos_seed: int) -> None:
    campaign = search(CORRECT, ("direct", "timeline"), ("s3", "local", "s3-unconditional"), 900, chaos_seed)
    assert campaign.failures == ()
    assert campaign.tally.runs >= 500
    assert [line for line in campaign.left_out if "s3-unconditional" in line]
    judged = {row.id for row in campaign.tally.rows(load_profile("python")) if row.judged}
    assert judged >= {f"G{number}" for number in (1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)}


@pytest.mark.usefixtures("modules")
def test_the_faulty_class_is_caught_as_a_store_and_by_what_becomes_of_writes(chaos_seed: int) -> None:
    campaign = search(FAULTY, ("direct",), ("s3",), 450, chaos_seed)
    broken = {failure.guarantee for failure in campaign.failures}
    assert "G1" in broken and broken & {"G14", "G15", "G16", "G17"}, broken


@pytest.mark.parametrize(("sut", "code"), [(CORRECT, 0), (FAULTY, 1)])
def test_verify_says_so_by_its_exit_code(modules: Path, sut: str, code: int) -> None:
    words = ["verify", "--sut", sut, "--mode", "direct", "--storage", "s3", "--budget", "12s", "--seed", "3"]
    command = [sys.executable, "-m", "marker_sim.cli", *words]
    done = subprocess.run(command, check=False, cwd=modules, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr

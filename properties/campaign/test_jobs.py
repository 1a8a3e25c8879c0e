"""A campaign by several processes: the same result, nothing left running, and nothing lost when one of them ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.plan import MODES, STORAGES
from properties.busy import VARIABLE as VARIABLE_OF_BUSY
from properties.busy import busy_processes
from properties.faces.campaign import PIECE, run_campaign
from properties.faces.judges import Known, load_profile
from properties.faces.outcome import Campaign
from properties.faces.surroundings import VARIABLE, in_order, portable, workers
from properties.faces.targets import CampaignRequest, parse_target
from properties.volume import CI_ONLY, PROFILE, volume

ROOT = Path(__file__).resolve().parents[2]
MUTANT = "mutant:ack-before-flush"
# Of the five that it breaks two by default: making their plans small takes most of the time.
JUDGED_OF_MUTANT = ("--guarantees", "G1,G13") if PROFILE == "quick" else ()
JOBS = str(volume(3, quick=2))
SAME = ("verdict.json", "history.parquet", "history.jsonl", "plan.json")
# Correct for a while in each process; then something happens that no plan says.
BAD = """
import os, signal, time
import marker_sim.worlds.simulated.watchdog as watchdog
from marker_sim.markers.direct import DirectMarkers

watchdog.watched.__wrapped__.__defaults__ = (2.0,)

class Bad(DirectMarkers):
    asked = 0

    def create(self, name):
        Bad.asked += 1
        if Bad.asked == 1500:
            WHAT
        return super().create(name)
"""


def _environment(cwd: Path) -> dict[str, str]:
    """Of a command whose pools are told from those of commands that run beside it: they lie below `cwd`."""
    (cwd / "tmp").mkdir(exist_ok=True)
    return os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(cwd / "tmp")}


def _verify(*words: str, cwd: Path, hash_seed: str = "1") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "marker_sim", "verify", *words],
        cwd=cwd,
        env=_environment(cwd) | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _result(report: Path) -> dict[str, object]:
    """What a report says, without its time."""
    verdict = json.loads((report / "verdict.json").read_text(encoding="utf-8"))
    del verdict["duration_s"]
    files = {name: (report / name).read_bytes() for name in SAME[1:] if (report / name).exists()}
    return {"verdict.json": verdict, **files}


def _campaign(**changes: object) -> Campaign:
    asked: dict[str, object] = {
        "target": parse_target("reference"), "modes": MODES, "storages": STORAGES, "seed": 1,
        "profile": load_profile("reference"), "canaries": False,
    }  # fmt: skip
    return run_campaign(CampaignRequest(**(asked | changes)), lambda line: None)  # type: ignore[arg-type]


def _marked(cwd: Path) -> list[int]:
    """Processes of pools of a command that ran with `_environment(cwd)`."""
    word, found = f"{VARIABLE}={cwd.resolve()}/tmp/marker-sim-workers-".encode(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                words = Path(entry.path, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(entry.name)] if any(each.startswith(word) for each in words) else []
    return found


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def test_a_guarantee_of_two_runs_can_be_judged_alone() -> None:
    campaign = _campaign(guarantees=frozenset({"G21"}), runs=24)
    assert campaign.runs == 24 and not campaign.left_out
    assert campaign.statistics.judged_in("G21", "both", "s3")


@pytest.mark.parametrize(
    ("sut", "runs"), [pytest.param("reference", 2 * PIECE + 4, marks=CI_ONLY), (MUTANT, PIECE + 4)]
)
def test_with_a_number_of_runs_neither_jobs_nor_hash_seed_change_a_byte(sut: str, runs: int, tmp_path: Path) -> None:
    results, judged = [], JUDGED_OF_MUTANT if sut == MUTANT else ()
    for jobs, hash_seed in (("1", "1"), (JOBS, "4242")):
        words = ("--sut", sut, "--runs", str(runs), "--seed", "12345", "--jobs", jobs, "--report", "r", *judged)
        done = _verify(*words, cwd=tmp_path, hash_seed=hash_seed)
        assert done.returncode == (1 if sut == MUTANT else 3), done.stdout + done.stderr
        results.append(_result(tmp_path / "r"))
        assert results[-1].keys() == set(SAME if sut == MUTANT else SAME[:3])
        shutil.rmtree(tmp_path / "r")
    assert results[0] == results[1]


def test_neighbouring_seeds_come_to_other_counts() -> None:
    operations = [_campaign(seed=seed, runs=12).statistics.operations for seed in (1, 2, 3)]
    assert operations[0] != operations[1] != operations[2] != operations[0]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "the worker ended with signal 9"),
        pytest.param("os._exit(0)", "the worker ended with exit code 0", marks=CI_ONLY),
        ("time.sleep(600)", "did not give control back within 2 s"),
    ],
)
def test_a_worker_that_ends_or_hangs_is_the_kit_s_trouble_and_what_was_found_is_kept(
    what: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text(BAD.replace("WHAT", what), encoding="utf-8")
    words = ("--sut", "bad:Bad", "--mode", "direct", "--storage", "s3", "--runs", "5000", "--seed", "3", "--jobs", "2")
    done = _verify(*words, "--report", "r", cwd=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert said in done.stdout
    verdict = json.loads((tmp_path / "r" / "verdict.json").read_text(encoding="utf-8"))
    assert PIECE <= verdict["runs"] < 5000 and verdict["verdict"] == "inconclusive"
    assert said in verdict["trouble"]
    assert not _marked(tmp_path)


def test_a_worker_that_somebody_kills_is_named_and_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    for ending, code in ((signal.SIGKILL, 4), (signal.SIGINT, 130)):
        report, busy = tmp_path / ending.name, tmp_path / f"busy-{code}"
        busy.mkdir()
        words = ("--sut", "properties.busy:SYSTEM", "--jobs", "2", "--budget", "5m", "--report", str(report))
        process = subprocess.Popen(
            [sys.executable, "-m", "marker_sim", "verify", *words],
            env=_environment(tmp_path) | {VARIABLE_OF_BUSY: str(busy)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            ours = sorted(busy_processes(busy, 2, process))
            assert ours == sorted(pid for pid in _marked(tmp_path) if _parent(pid) == process.pid)
            os.kill(ours[0] if ending is signal.SIGKILL else process.pid, ending)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == code, out + err
        assert json.loads((report / "verdict.json").read_text(encoding="utf-8"))["runs"] >= PIECE
        assert ("signal 9" in out) == (code == 4)
        assert not set(ours) & set(_marked(tmp_path))


def test_it_stops_at_the_first_violation_wherever_the_workers_are() -> None:
    asked = {"target": parse_target(MUTANT), "runs": 200, "seed": 4, "stop_at_first": True, "shrinking": False}
    one, two = (_campaign(**asked, jobs=jobs) for jobs in (1, 2))
    assert one.runs == two.runs < 200 and one.failures
    assert [failure.plan for failure in one.failures] == [failure.plan for failure in two.failures]
    assert max(failure.history.header.seed for failure in one.failures) == one.last.header.seed  # type: ignore[union-attr]


def test_what_the_baseline_knows_does_not_stop_it() -> None:
    asked = {"target": parse_target(MUTANT), "runs": 60, "seed": 4, "stop_at_first": True, "shrinking": False}
    rows = _campaign(**{**asked, "stop_at_first": False}).statistics.rows(load_profile("reference"))
    known = frozenset(
        Known(guarantee=row.id, mode=row.mode, storage=row.storage, under=under)
        for row in rows
        for under, count in row.under.items()
        if count
    )
    assert _campaign(**asked).runs < _campaign(**asked, baseline=known).runs == 60


def test_a_search_with_seconds_uses_them() -> None:
    seconds = float(volume(2, quick=1))
    campaign = _campaign(budget_s=seconds, canaries=False)
    assert seconds - 0.1 <= campaign.duration_s <= seconds + 2.0


def square(number: int) -> int:
    if number < 0:
        raise _Unsendable(number, "no root")
    time.sleep(0.05 if number % 3 == 0 else 0)
    return number * number


class _Unsendable(Exception):
    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"{number}: {why}")


def test_a_pool_answers_in_order_and_an_error_comes_with_where_it_came_from() -> None:
    with workers(square, 3) as pool:
        assert list(in_order(iter(range(20)), pool)) == [number**2 for number in range(20)]
        leaving = in_order(iter(range(20)), pool)
        assert next(leaving) == 0
        leaving.close()
        assert list(in_order([7, 8], pool)) == [49, 64], "answers to who left are nobody's"
        with pytest.raises(RuntimeError, match="_Unsendable: -1: no root") as caught:
            list(in_order([1, -1, 2], pool))
        assert "raise _Unsendable" in caught.value.__notes__[0]


def test_an_error_that_can_be_sent_stays_what_it_is() -> None:
    assert isinstance(portable(HarnessError("x")), HarnessError)

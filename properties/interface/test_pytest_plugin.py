"""`pytest --marker-sut`: an item for each guarantee and place, short failures, one error for a wrong name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from marker_sim.cli import main
from marker_sim.faults import FAULT_CLASSES
from marker_sim.plan import PLACES
from properties.faces.interface import judge_place, parse_judging
from properties.volume import CI_ONLY, PROFILE

HASTY = """
from marker_sim.markers.direct import DirectMarkers
from marker_sim.markers.store import Created

class Hasty(DirectMarkers):
    def create(self, name):
        self._runtime.spawn("later", lambda: super(Hasty, self).create(name))
        return Created.CREATED
"""
PLANS = Path(".hypothesis") / "marker-sim" / "mine_Hasty" / "direct-s3"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All places for a system that is given; by default test_machine.py attacks the reference in two others."""
    if metafunc.function is test_the_system_under_test_survives_the_state_machines:
        given = metafunc.config.getoption("--marker-sut") not in (None, "reference")
        places = [place for place in PLACES if place[1] != "s3-unconditional"]
        marks = {place: () if given or place == ("direct", "local") else (CI_ONLY,) for place in places}
        metafunc.parametrize(("mode", "storage"), [pytest.param(*place, marks=marks[place]) for place in places])


@pytest.mark.draws(runs=50, one_in=15)
def test_the_system_under_test_survives_the_state_machines(
    marker_sut: str, chaos_seed: int, mode: str, storage: str, tmp_path: Path
) -> None:
    judging = parse_judging(marker_sut, None, chaos_seed)
    if (mode, storage) not in judging.places:
        pytest.skip(f"{marker_sut} has no factory for {mode} markers on {storage}; give it one")
    outcome = judge_place(judging, mode, storage, tmp_path)
    broken = [(row.id, row.message, row.replay) for row in outcome.rows if row.verdict == "violated"]
    assert not broken and not outcome.campaign.trouble
    if outcome.campaign.left_out:
        pytest.skip(outcome.campaign.left_out[0])
    assert sum(row.judged for row in outcome.rows) > 100, "nothing judged is not a pass"


@pytest.mark.parametrize(("mode", "storage"), [("direct", "s3"), pytest.param("timeline", "local", marks=CI_ONLY)])
def test_answers_from_memory_after_a_deletion_are_found_and_told_by_their_shortest_plan(
    mode: str, storage: str, tmp_path: Path
) -> None:
    judging = parse_judging("properties.interface.test_machine:Remembering", None, 1)
    outcome = judge_place(judging, mode, storage, tmp_path)
    broken = {row.id: row for row in outcome.rows if row.verdict == "violated"}
    assert {"G2", "G4"} <= set(broken)
    plans = [failure.plan for failure in outcome.failures if failure.plan is not None]
    assert min(plan.entries for plan in plans) <= 3, "create, delete, create"
    replay = shlex.split(broken["G2"].replay)
    assert replay[:2] == ["marker-sim", "replay"] and main(replay[1:]) == 1
    assert main(["replay", str(next(tmp_path.glob("*/*")))]) == 1, "what a place leaves is a report directory"


@pytest.fixture(autouse=True, scope="module")
def _constants_are_read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hypothesis parses the kit for constants, a third of a session; the next one finds what it found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(tmp_path_factory.getbasetemp() / "hypothesis"))
        yield


def session_of_a_third_party(folder: Path, *arguments: str, shrinking: bool = False) -> tuple[int, str]:
    """pytest in a project that has nothing but a class, with its exit code and output.

    shrinking: whether its Hypothesis profile makes examples small, which takes most of the time.
    """
    phases = "" if shrinking else ", phases=[Phase.generate]"
    (folder / "conftest.py").write_text(
        "from hypothesis import Phase, settings\n"
        f'settings.register_profile("short", max_examples=4, database=None{phases})\n'
        'settings.load_profile("short")\npytest_plugins = ("marker_sim.pytest_plugin",)\n',
        encoding="utf-8",
    )
    (folder / "mine.py").write_text(HASTY, encoding="utf-8")
    (folder / "test_own.py").write_text("def test_own():\n    pass\n", encoding="utf-8")
    # The work tree, where the package is not installed; harmless where it is.
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "120"}
    for name in ("PYTEST_ADDOPTS", "CI", "BUILD_NUMBER"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--chaos-seed=3", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """The folder, exit code and output of a session that finds what is wrong with Hasty and makes it small."""
    folder = tmp_path_factory.mktemp("hasty")
    asked = ("--marker-sut", "mine:Hasty", "-k", "own or direct-s3")
    return folder, *session_of_a_third_party(folder, *asked, shrinking=True)


def failed(output: str) -> list[str]:
    return sorted(line.split()[1] for line in output.splitlines() if line.startswith("FAILED "))


def test_a_third_party_needs_one_option_and_sees_nothing_without_it(tmp_path: Path) -> None:
    code, output = session_of_a_third_party(tmp_path)
    assert code == 0 and "1 passed" in output and "marker-sim ===" not in output
    code, output = session_of_a_third_party(tmp_path, "--marker-sut", "mine:Hasty", "test_own.py")
    assert code == 0 and "1 passed" in output, "who names files gets those files"
    code, output = session_of_a_third_party(tmp_path, "--marker-sut", "reference", "-k", "own or timeline-local")
    assert code == 0 and "failed" not in output and "test_own.py ." in output and "marker-sim ...." in output, output


@CI_ONLY
def test_a_failure_is_the_story_of_a_short_plan_and_says_what_was_not_played(hasty: tuple[Path, int, str]) -> None:
    folder, code, output = hasty
    assert code == 1 and "marker-sim::G4-exact-set[direct-s3]" in failed(output), output
    summary = next(line for line in output.splitlines() if line.startswith("FAILED marker-sim::G5-"))
    assert " - two requests were answered" in summary, "the reason"
    assert f"replay: marker-sim replay {PLANS}/" in output and "  plan (seed" in output
    for frames in ("Traceback", "state.teardown()", "/hypothesis/", "conformance.py:", "mine.py:"):
        assert frames not in output
    assert "not played: " in output and "direct-s3: " in output
    assert (folder / PLANS / "report.html").is_file()
    assert (folder / ".hypothesis" / ".gitignore").read_text(encoding="utf-8").endswith("*\n")


@CI_ONLY
def test_known_violations_are_expected_and_entries_that_nothing_shows_are_told(
    hasty: tuple[Path, int, str], tmp_path: Path
) -> None:
    rows = json.loads((hasty[0] / PLANS / "verdict.json").read_text(encoding="utf-8"))["guarantees"]
    place = {"mode": "direct", "storage": "s3"}
    known = [
        {"guarantee": row["id"], **place, "under": under, "story": "docs/hasty.md"}
        for row in rows
        for under in FAULT_CLASSES
        if row["verdict"] == "violated"
    ]
    held = next(row["id"] for row in rows if row["verdict"] == "holds")
    known.append({"guarantee": held, **place, "under": "none"})
    (tmp_path / "known.json").write_text(json.dumps({"schema": 1, "known": known}), encoding="utf-8")
    asked = ("--marker-sut", "mine:Hasty", "-k", "direct-s3")
    code, output = session_of_a_third_party(tmp_path, *asked, "-rx", "--expect", "known.json")
    assert code == 0, output
    assert "XFAIL marker-sim::G4-exact-set[direct-s3]" in output
    assert "known: G4, direct mode on s3, under " in output and "docs/hasty.md" in output
    assert f"in the baseline and not seen: {held}, direct mode on s3, under none" in output


@CI_ONLY
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    asked = ("--marker-sut", "mine:Hasty", "-k", "direct-hdfs and (G2- or G4- or G5-)")
    found = []
    grouped = () if PROFILE == "quick" else (("-n", "2", "--dist", "loadgroup"),)
    for number, split in enumerate(((), ("-n", "2"), *grouped)):
        (tmp_path / str(number)).mkdir()
        code, output = session_of_a_third_party(tmp_path / str(number), *asked, *split)
        assert code == 1 and output.count("direct-hdfs: ") == 1, "what was played is told once"
        found.append([name.partition("@")[0] for name in failed(output)])
    assert found[0] and found == [found[0]] * len(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-n", "2", "--marker-sut", "mein:Hasty"), "--marker-sut mein:Hasty: module 'mein' cannot be imported"),
        pytest.param(("--marker-sut", "mine:Hasti"), "mine has no factory 'Hasti'", marks=CI_ONLY),
        pytest.param(
            ("--marker-sut", "mine:Hasty", "--expect", "none.json"), "baseline none.json cannot be read", marks=CI_ONLY
        ),
        (("--expect", "none.json"), "--expect was given without --marker-sut"),
    ],
    ids=["module", "factory", "baseline", "alone"],
)
def test_a_wrong_name_is_one_usage_error(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, output = session_of_a_third_party(tmp_path, *arguments)
    lines = [line for line in output.splitlines() if line.strip()]
    assert code == 4 and len(lines) == 1 and lines[0].startswith("ERROR: ") and said in lines[0], output

"""Stored failures run again: one for each cause or every one, often, with real processes, and by their own profile."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marker_sim.campaign import replay as searching
from marker_sim.cli import main
from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import read_jsonl
from marker_sim.plan import Op, Plan, write_plan
from properties.faces.cli import SIMULATED_ONLY, failures_at
from properties.faces.judges import BY_ID, SHIPPED, Profile, load_profile, parse_profile, unshipped
from properties.faces.surroundings import TimeLimit

ROOT = Path(__file__).parents[2]
# Answers before it stores, takes hostile names, and leaves a marker behind when it deletes.
DEFECTS = """
from marker_sim.markers.store import Created
from marker_sim.names import data_path, is_append
from marker_sim.seams import Condition, StorageError

class Many:
    def __init__(self, context):
        self.storage, self.prefix = context.storage, f"{context.directory}/"
        self.runtime, self.known = context.runtime, set()
    def create(self, name):
        if name in self.known:
            return Created.EXISTS
        self.known.add(name)
        self.runtime.spawn("write", lambda: self.write(name))
        return Created.CREATED
    def write(self, name):
        try:
            self.storage.put(self.prefix + name, b"", Condition.IF_ABSENT)
        except StorageError:
            return
    def list_all(self):
        return tuple(path.removeprefix(self.prefix) for path in self.storage.list(self.prefix))
    def list_data_paths(self):
        return tuple({data_path(name) for name in self.list_all() if not is_append(name)})
    def list_log_paths(self):
        return tuple({data_path(name) for name in self.list_all() if is_append(name)})
    def exists(self):
        return bool(self.list_all())
    def delete(self):
        paths = self.storage.list(self.prefix)
        for path in paths[1:]:
            self.storage.delete(path)
        return bool(paths)
"""
SUT = "many_defects_for_test:Many"
BROKEN = {"G1", "G4", "G10", "G11", "G12"}
HELD = {"G1", "G4", "G12"}
PROFILE = '[[promise]]\nguarantee = ["G1", "G4", "G12"]\nsource = "my own word"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "many_defects_for_test.py").write_text(DEFECTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "many_defects_for_test", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the reports of all tests, each made once."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def verify(here: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """A function that leaves the report `r` of the system with many defects, and returns its verdict."""

    def verified(*words: str, runs: int = 60) -> dict[str, Any]:
        made = kept / " ".join((str(runs), *words))
        if not made.exists():
            common = ("verify", "--sut", SUT, "--runs", str(runs), "--seed", "1", "--storage", "local", "--json")
            assert main((*common, "--jobs", "1", "--report", "r", *words)) == 1
            capsys.readouterr()
            shutil.copytree(here / "r", made)
        else:
            shutil.copytree(made, here / "r")
        verdict: dict[str, Any] = json.loads((here / "r" / "verdict.json").read_text(encoding="utf-8"))
        return verdict

    return verified


def _replay(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """The exit code and the lines that are no details."""
    code = main(("replay", *words))
    return code, [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]


def test_one_failure_is_run_for_each_cause_and_all_when_asked(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = verify("--guarantees", ",".join(sorted(BROKEN)), runs=80)
    assert len({failure["guarantee"] for failure in verdict["failures"]}) >= 3
    assert all((here / "r" / failure["plan"]).is_file() for failure in verdict["failures"])
    stories = {failure["story"] for failure in verdict["failures"]}
    assert all(verdict["failures"][told]["story"] == told for told in stories)
    assert len(stories) < len(verdict["failures"]), "one defect breaks several, so that there is something to leave out"
    code, lines = _replay(capsys, "r")
    assert code == 1
    assert sum(line.startswith("STILL VIOLATED") for line in lines) == len(stories)
    assert "more with the same causes were not run (--all runs them)" in lines[-1]
    code, lines = _replay(capsys, "r", "--all")
    assert code == 1 and len(lines) == len(verdict["failures"]) + 1
    assert lines[-1].startswith(f"{len(verdict['failures'])} failures: ") and "--all" not in lines[-1]


def test_a_cause_is_called_fixed_only_when_all_its_failures_are(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = verify("--guarantees", "G12", "--mode", "timeline", runs=100)
    first = verdict["failures"][0]
    shutil.copy(here / "r" / first["plan"], here / "r" / "other.json")
    harmless = json.loads((here / "r" / first["plan"]).read_text(encoding="utf-8")) | {"ops": [], "faults": []}
    (here / "r" / first["plan"]).write_text(json.dumps(harmless), encoding="utf-8")
    verdict["failures"] = [first, first | {"plan": "other.json"}, first | {"plan": "other.json"}]
    (here / "r" / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    code, lines = _replay(capsys, "r")
    words = [line.partition(":")[0] for line in lines[:-1]]
    assert code == 1 and len(words) == 2 and words[0] != "STILL VIOLATED" and words[1] == "STILL VIOLATED"
    assert "1 more with the same causes were not run" in lines[-1]


def test_failures_of_one_story_that_came_out_alike_are_one_line(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = verify("--guarantees", ",".join(sorted(BROKEN)), runs=80)
    stories = {failure["story"] for failure in verdict["failures"]}
    code, lines = _replay(capsys, "r", "--sut", "reference")
    assert code == 0 and len(lines) == len(stories) + 1 < len(verdict["failures"])
    (line, *_) = (line for line in lines if line.startswith("FIXED: ") and " more of its story: " in line)
    assert {*line.partition("no longer breaks ")[2].split(", ")} <= BROKEN
    assert lines[-1] == f"{len(verdict['failures'])} failures: {len(verdict['failures'])} fixed"
    assert len(_replay(capsys, "r", "--sut", "reference", "--all")[1]) == len(verdict["failures"]) + 1


def test_plans_on_a_storage_that_the_system_cannot_use_are_left_out(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    verify("--guarantees", "G4", "--mode", "timeline")
    code, lines = _replay(capsys, "r", "--sut", "properties.correct.one_object:Markers")
    assert code == 0 and "LEFT OUT" not in "".join(lines)
    for path in (here / "r").rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"storage": "local"', '"storage": "hdfs"'), encoding="utf-8")
    code, lines = _replay(capsys, "r", "--sut", "properties.correct.one_object:Markers")
    assert code == 3
    assert lines[0].startswith("LEFT OUT: timeline mode on hdfs: the system needs put-if-unchanged")


def test_a_plan_is_run_as_often_as_asked_and_says_in_how_many_it_broke(
    here: Path,
    verify: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verify("--guarantees", "G4", "--mode", "timeline")
    code, lines = _replay(capsys, "r", "--times", "3")
    assert code == 1 and lines[0].startswith("STILL VIOLATED, 3 of 3: ") and lines[0].endswith(SUT)
    code, lines = _replay(capsys, "r", "--times", "2", "--sut", "reference")
    assert code == 0 and lines[0].startswith("FIXED, 0 of 2: ") and lines[0].endswith("reference no longer breaks G4")
    for wrong in ("0", "-1", "many", "1001"):
        assert main(("replay", "r", f"--times={wrong}")) == 2
        assert "write a whole number from 1 to 1000" in capsys.readouterr().err


def test_each_run_may_take_what_a_run_in_real_time_may(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Spark application of a night took 229 s on a busy machine, and two of them more than their limit was."""
    limits: list[float] = []
    monkeypatch.setattr(TimeLimit, "set", lambda self, seconds, what: limits.append(seconds))
    write_plan(Plan(), here / "plan.json")
    main(["replay", str(here / "plan.json"), "--times", "2"])
    assert max(limits) >= 2 * searching.LONG_S, capsys.readouterr().out


def test_real_processes_are_played_when_asked_for_and_not_otherwise(
    here: Path,
    verify: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verify("--guarantees", "G4", "--mode", "timeline")
    monkeypatch.setitem(sys.modules, "urllib3", None)
    for words, said in ((("r",), False), (("r", "--real"), True)):
        assert main(("replay", *words)) == 1
        out = capsys.readouterr().out
        assert (f"  {SIMULATED_ONLY} real processes need the Python package urllib3" in out) is said


def test_a_system_that_is_gone_is_one_sentence_before_anything_runs(
    here: Path,
    verify: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verify("--guarantees", "G4", "--mode", "timeline")
    monkeypatch.setattr(searching, "findings_of", _never)
    (here / "many_defects_for_test.py").unlink()
    monkeypatch.delitem(sys.modules, "many_defects_for_test", raising=False)
    assert main(("replay", "r")) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "cannot be imported" in err


def _never(*_: object) -> None:
    raise AssertionError("a plan was run")


def test_a_report_of_another_schema_says_what_to_do_with_it(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = verify("--guarantees", "G4", "--mode", "timeline")
    listed = {key: value for key, value in verdict.items() if key != "failures"}
    for other in (verdict | {"schema": 2}, verdict | {"schema": 0}, listed):
        (here / "r" / "verdict.json").write_text(json.dumps(other), encoding="utf-8")
        assert main(["replay", "r"]) == 2
        said = capsys.readouterr().err
        assert "is not a verdict of schema 1, which alone this version reads" in said and "marker-sim verify" in said


def test_a_report_is_judged_and_replayed_by_the_profile_it_was_made_with(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.toml").write_text(PROFILE, encoding="utf-8")
    verdict = verify("--profile", "mine.toml", "--mode", "timeline")
    held = {row["id"] for row in verdict["guarantees"] if row["verdict"] == "violated"}
    assert held and held <= HELD
    assert any(row["violations"] and row["verdict"] == "not-promised" for row in verdict["guarantees"])
    (here / "mine.toml").unlink()
    for target in ("r", "r/history.jsonl", "r/history.parquet"):
        assert main(("judge", target, "--json")) == 1
        judged = json.loads(capsys.readouterr().out)
        broken = {row["id"] for row in judged["guarantees"] if row["violations"]}
        assert {row["id"] for row in judged["guarantees"] if row["verdict"] == "violated"} == broken & HELD
        assert judged["profile"] == verdict["profile"]
    code, lines = _replay(capsys, "r", "--all")
    shown = {line.split()[2] for line in lines if line.startswith("STILL VIOLATED")}
    assert code == 1 and shown == held
    shutil.copy(here / "r" / "plan.json", here / "r" / "mine.json")  # Of no failure that the verdict lists.
    plan = failures_at(here / "r" / "mine.json")[0]
    assert plan.profile is not None and plan.profile.to_dict() == verdict["profile"]


def test_a_history_whose_profile_nobody_has_says_what_to_give(
    here: Path, verify: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """As reports were before they held the profile itself."""
    (here / "mine.toml").write_text('name = "mine"\n' + PROFILE, encoding="utf-8")
    verify("--profile", "mine.toml", "--guarantees", "G4", "--mode", "timeline")
    file = here / "r" / "history.jsonl"
    header, *events = file.read_text(encoding="utf-8").splitlines()
    old = {key: value for key, value in json.loads(header).items() if key != "promises"}
    file.write_text("\n".join([json.dumps(old), *events]) + "\n", encoding="utf-8")
    assert read_jsonl(file).header.promises is None
    assert main(("judge", str(file))) == 2
    assert "the profile 'mine', which is not stored in it; give its file with --profile" in capsys.readouterr().err
    assert main(("judge", str(file), "--profile", "mine.toml")) == 1


def _some(words: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), unique=True)


_RULES = st.fixed_dictionaries(
    {"guarantee": st.lists(st.sampled_from(sorted(BY_ID)), min_size=1, unique=True) | st.just("*")},
    optional={
        "mode": _some(["direct", "timeline", "both"]),
        "storage": _some(["s3", "local"]),
        "under": _some(list(FAULT_CLASSES)),
        "promised": st.booleans(),
        "applicable": st.booleans(),
        "source": st.text(max_size=5),
    },
)


@given(st.lists(_RULES, max_size=4), st.text(max_size=5))
def test_a_stored_profile_is_the_profile(rules: list[dict[str, Any]], name: str) -> None:
    profile = parse_profile({"name": name, "promise": rules}, "test")
    stored = unshipped(profile)
    assert stored == json.loads(json.dumps(stored)) and stored is not None
    assert parse_profile(stored, "test") == profile


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_stored_by_its_name_and_one_of_the_same_name_is_not(name: str) -> None:
    shipped = load_profile(name)
    raw = tomllib.loads((files("marker_sim.judges") / "promises" / f"{name}.toml").read_text(encoding="utf-8"))
    assert raw["name"] == name and unshipped(shipped) is None
    assert unshipped(Profile(name=name, rules=shipped.rules[1:])) is not None


def test_a_plan_that_somebody_wrote_is_for_servers_where_the_system_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode, why in (
        ("timeline", "nothing beside it says how the server is started"),
        ("direct", "runs in real time"),
    ):
        (tmp_path / f"{mode}.json").write_text(json.dumps(Plan(mode=mode, storage="local").to_dict()))
        assert main(["replay", str(tmp_path / f"{mode}.json"), "--sut", "http"]) == 4
        assert why in capsys.readouterr().out


def test_a_failure_that_chaos_stored_is_handed_over_as_one_of_a_report(tmp_path: Path) -> None:
    stored, script = ROOT / "docs" / "tutorial" / "code" / "glued.json", tmp_path / "show.py"
    assert main(["replay", str(stored), "--script", str(script)]) == 0
    text = script.read_text(encoding="utf-8")
    assert "G3 acked-marker-survives" in text and "hudi:1.2.0" in text and "d.parquet.marker.CREATE" in text


def test_a_plan_of_which_no_failure_is_known_is_not_called_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(mode="direct", storage="local", ops=(Op(actor="executor-0", kind="create", name="a.marker.CREATE"),))
    write_plan(plan, tmp_path / "plan.json")
    assert main(["replay", str(tmp_path / "plan.json")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("NO FAILURE KNOWN: plan.json: reference breaks no guarantee") and "FIXED" not in out


def test_a_stored_finding_is_opened_with_its_guarantee_and_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "scenarios" / "findings" / "stored"
    for file in sorted(folder.glob("*.json")):
        raw = json.loads(file.read_bytes())
        if "plan" not in raw:
            assert main(["replay", str(file)]) == 2
            assert raw["missed"] in capsys.readouterr().err
            continue
        (found,) = failures_at(file)
        assert (found.guarantee, found.cause, found.sut, found.world) == (
            raw["guarantee"],
            raw["cause"],
            raw["sut"],
            "server",
        )
        assert found.plan == Plan.from_dict(raw["plan"], "test")
    glued = folder / "names-glued-together-after-a-restart.json"
    assert main(["replay", str(glued), "--script", str(tmp_path / "show.py")]) == 0
    assert main(["replay", str(glued), "--sut", "reference"]) == 0
    assert "FIXED: G2 exists-is-durable, names-glued-together-after-a-restart.json" in capsys.readouterr().out
    (tmp_path / "half.json").write_text(json.dumps({"name": "half", "plan": {"ops": []}}))
    assert main(["replay", str(tmp_path / "half.json")]) == 2
    assert "is no whole finding: 'guarantee' is missing" in capsys.readouterr().err

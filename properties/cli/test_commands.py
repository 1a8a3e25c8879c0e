"""The commands end to end, in processes of their own: real runs of the reference and of a mutant."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from marker_sim import __version__
from marker_sim.cli import main
from marker_sim.errors import HarnessError
from marker_sim.history import write_jsonl
from marker_sim.targets import hudi, hudi_java
from marker_sim.worlds.proxies import install as toxiproxy
from properties.busy import VARIABLE, busy_processes
from properties.cli.campaigns import history
from properties.faces.cli import Check
from properties.faces.surroundings import CACHE_VARIABLE, REQUIREMENTS
from properties.faces.targets import Jars
from properties.tools import java, needs

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 120
MUTANT = "mutant:ack-before-flush"
RUNS = "60"  # Most of them show it.

# A factory that fails with an unexpected error: the kit prints one sentence and keeps the traceback.
BROKEN_MODULE = """
from marker_sim.system import System

class Exploding:
    def __get__(self, instance, owner):
        raise ZeroDivisionError("boom")

class Odd(System):
    direct = Exploding()

system = object.__new__(Odd)
"""


def _run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "marker_sim", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _row(verdict: dict[str, Any], guarantee: str, mode: str, storage: str) -> dict[str, Any]:
    rows = verdict["guarantees"]
    found: dict[str, Any] = next(r for r in rows if (r["id"], r["mode"], r["storage"]) == (guarantee, mode, storage))
    return found


def test_python_m_marker_sim_is_the_command_and_its_exit_code(tmp_path: Path) -> None:
    done = _run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n"), done.stderr
    wrong = _run("verify", "--mode", "none", cwd=tmp_path)
    assert wrong.returncode == 2 and wrong.stderr.startswith("marker-sim: --mode was given 'none'")


def test_verify_judges_the_reference_and_prints_nothing_but_the_verdict_with_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("verify", "--runs", "100", "--seed", "1", "--json", "--guarantees", "G1,G4", "--storage", "s3")
    code, said = main((*words, "--jobs", "1")), capsys.readouterr()
    verdict = json.loads(said.out)
    assert (code, verdict["verdict"]) == (0, "holds"), said
    assert verdict == json.loads((tmp_path / "marker-sim-report" / "verdict.json").read_text(encoding="utf-8"))
    assert {row["id"] for row in verdict["guarantees"]} == {"G1", "G4"}
    assert {row["storage"] for row in verdict["guarantees"]} == {"s3", "s3-unconditional"}
    assert _row(verdict, "G1", "timeline", "s3")["judged"] > 0
    assert verdict["faults"], "a run without faults says little"


@pytest.fixture(scope="module")
def caught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the report `r` of a mutant that was caught, and what the command printed."""
    words = ("verify", "--sut", MUTANT, "--mode", "timeline", "--storage", "local", "--guarantees", "G1", "--seed", "1")
    folder, out = tmp_path_factory.mktemp("caught"), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.chdir(folder)
        assert main((*words, "--runs", RUNS, "--jobs", "1", "--report", "r")) == 1
    return folder, out.getvalue()


def test_a_mutant_is_caught_replayed_and_found_fixed_in_the_reference(
    caught: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path, said = caught
    monkeypatch.chdir(tmp_path)
    assert "replay: marker-sim replay r/plan.json" in said
    verdict = json.loads((tmp_path / "r" / "verdict.json").read_text(encoding="utf-8"))
    assert _row(verdict, "G1", "timeline", "local")["replay"] == "marker-sim replay r/plan.json"
    for target in ("r", "r/plan.json", "r/history.jsonl"):
        assert main(("replay", target)) == 1
        assert capsys.readouterr().out.startswith("STILL VIOLATED: ")
    assert main(("replay", "r", "--sut", "reference")) == 0
    assert capsys.readouterr().out.startswith("FIXED: ")
    for target in ("r", "r/history.jsonl", "r/history.parquet"):
        assert main(("judge", target, "--guarantees", "G1", "--json")) == 1
        assert _row(json.loads(capsys.readouterr().out), "G1", "timeline", "local")["violations"] > 0


def test_a_baseline_of_what_is_known_makes_a_violation_pass(
    caught: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path, _ = caught
    monkeypatch.chdir(tmp_path)
    judge = ("judge", "r", "--guarantees", "G1")
    assert main((*judge, "--json")) == 1
    row = _row(json.loads(capsys.readouterr().out), "G1", "timeline", "local")
    places = [
        {"guarantee": "G1", "mode": "timeline", "storage": "local", "under": u} for u, n in row["under"].items() if n
    ]
    assert places
    for known, code in ((places, 0), ([], 1)):
        (tmp_path / "known.json").write_text(json.dumps({"schema": 1, "known": known}), encoding="utf-8")
        assert main((*judge, "--expect", "known.json")) == code


def test_what_is_interrupted_still_writes_its_report_and_is_code_130(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        report, busy = tmp_path / number.name, tmp_path / f"busy-{number.name}"
        busy.mkdir()
        words = ("--sut", "properties.busy:SYSTEM", "--budget", "5m", "--jobs", "1")  # Of workers: test_jobs.py.
        process = subprocess.Popen(
            [sys.executable, "-m", "marker_sim", "verify", *words, "--report", str(report)],
            env=os.environ | {"PYTHONPATH": str(ROOT), VARIABLE: str(busy)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            busy_processes(busy, 1, process)
            process.send_signal(number)
            out, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 130
        assert "interrupted" in out
        assert json.loads((report / "verdict.json").read_text(encoding="utf-8"))["runs"] > 0


def test_an_unexpected_exception_is_one_sentence_and_its_traceback_is_kept(tmp_path: Path) -> None:
    (tmp_path / "odd_module_for_test.py").write_text(BROKEN_MODULE, encoding="utf-8")
    done = _run("verify", "--sut", "odd_module_for_test:system", "--budget", "1s", cwd=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "unexpected ZeroDivisionError: boom" in done.stderr
    log = Path(done.stderr.strip().rpartition(" is in ")[2])
    assert "Traceback" in log.read_text(encoding="utf-8")
    log.unlink()
    assert not (tmp_path / "marker-sim-report").exists(), "nothing ran, so an earlier report would be untouched"


def test_a_full_disk_is_one_sentence_and_code_4(tmp_path: Path) -> None:
    """A file-size limit of the process stands for the disk: writing beyond it fails in the same call."""
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16));"
        "from marker_sim.cli import main; sys.exit(main(['verify', '--budget', '1s']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and "cannot be written (File too large)" in done.stderr
    assert not (tmp_path / "marker-sim-report" / "verdict.json").exists()


def test_a_history_without_a_plan_cannot_run_again_and_says_what_can_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history()
    header = type(made.header)(storage="local", world="foreign", sut="http")
    write_jsonl(history(header=header), tmp_path / "history.jsonl")
    assert main(("replay", str(tmp_path / "history.jsonl"))) == 4
    assert capsys.readouterr().out.startswith("CANNOT RUN: history.jsonl: a history without a plan; `marker-sim judge")


def test_doctor_names_everything_and_how_to_get_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("doctor", "--json")) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    packages = {each.package: each for each in REQUIREMENTS.values()}
    assert {*packages, "java", "go", "toxiproxy-server"} <= checks.keys()
    assert all(checks[name]["found"] for name, each in packages.items() if not each.extra)
    assert all(check["how"] and check["needed_for"] for check in checks.values())
    assert main(("doctor",)) == 0
    assert "`marker-sim verify` can run here" in capsys.readouterr().out


def test_doctor_says_that_java_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(("doctor", "--json")) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["java"]["found"] == "" and "install a JDK 17" in checks["java"]["how"]


def test_doctor_finds_the_bundles_that_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "jars").mkdir()
    (jar,) = hudi.bundle("1.0.2").paths()
    jar.write_bytes(b"")
    hudi.S3A.paths()[0].write_bytes(b"")
    assert main(("doctor", "--json")) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["hudi 1.0.2 bundle"]["found"] == str(jar)
    for name in ("hudi 1.1.1 bundle", "hadoop s3a"):
        missing = checks[name]
        assert missing["found"] == "" and "marker-sim doctor --install" in missing["how"]


@needs(java())
def test_a_bundle_that_cannot_be_fetched_is_one_sentence_and_code_4(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(jars: Jars, _progress: Callable[[str], None]) -> tuple[Path, ...]:
        raise HarnessError(f"{jars.what} cannot be fetched")

    monkeypatch.setattr(toxiproxy, "find_server", lambda: Path("/here"))
    monkeypatch.setattr(Jars, "find", unreachable)
    assert main(("doctor", "--install")) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"marker-sim: the bundle of Hudi 0.15.0 cannot be fetched; {hudi.S3A.what} cannot be fetched\n"


def test_without_go_doctor_says_so_and_installs_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("marker_sim.cli.doctor._java", lambda: Check(name="java", found="17", needed_for="", how=""))
    found: list[Jars] = []
    monkeypatch.setattr(Jars, "find", lambda jars, _progress: found.append(jars))
    assert main(("doctor", "--install", "--json")) == 0
    out, err = capsys.readouterr()
    assert err.startswith("toxiproxy: left out, because there is no go on PATH") and err.count("\n") == 1
    assert len(found) == len(hudi.VERSIONS) + len(hudi_java.VERSIONS) + 1
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert checks[toxiproxy.PROGRAM]["found"] == "" and "doctor --install" in checks[toxiproxy.PROGRAM]["how"]


@pytest.mark.parametrize(
    ("extras", "said"),
    [
        (
            (),
            [
                "toxiproxy: left out, because this needs the Python package urllib3, which is",
                "the bundles of Hudi: left out, because this needs the Python packages urllib3, pyspark,"
                " which are not installed; pip install '.[hudi]'",
                "S3A for Hudi: left out, because this needs the Python packages",
            ],
        ),
        (
            ("foreign",),
            [
                "the bundles of Hudi: left out, because this needs the Python package pyspark, which is",
                "S3A for Hudi: left out, because this needs the Python packages pyspark, boto3, moto, which",
            ],
        ),
        (
            ("foreign", "hudi"),
            ["S3A for Hudi: left out, because this needs the Python packages boto3, moto, which"],
        ),
        (("foreign", "hudi", "s3"), []),
    ],
)
def test_doctor_installs_what_the_extras_that_are_here_can_use_and_complains_of_nothing_else(
    extras: tuple[str, ...], said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, requirement in REQUIREMENTS.items():
        if requirement.extra and requirement.extra not in extras:
            monkeypatch.setitem(sys.modules, module, None)
    done: list[str] = []
    monkeypatch.setattr("marker_sim.cli.doctor._java", lambda: Check(name="java", found="17", needed_for="", how=""))
    monkeypatch.setattr("marker_sim.cli.doctor.shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(toxiproxy, "find_server", lambda: None)
    monkeypatch.setattr(toxiproxy, "install_server", lambda _progress: done.append("toxiproxy"))
    monkeypatch.setattr(Jars, "find", lambda jars, _progress: done.append(jars.what))
    assert main(("doctor", "--install")) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert len(lines) == len(said) and all(line.startswith(words) for line, words in zip(lines, said, strict=True)), err
    assert "`marker-sim verify` can run here" in out
    wanted = {"foreign": ["toxiproxy"], "hudi": [f"the bundle of Hudi {each}" for each in hudi.VERSIONS]}
    wanted["hudi"] += [f"the Java client of Hudi {each}" for each in hudi_java.VERSIONS]
    wanted["s3"] = [hudi.S3A.what]
    assert done == [what for extra in extras for what in wanted[extra]]


def test_without_java_doctor_leaves_the_bundles_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(("doctor", "--install")) == 0
    err = capsys.readouterr().err
    assert "the bundles of Hudi: left out, because this needs Java; install a JDK 17" in err


def test_a_failed_build_of_toxiproxy_does_not_keep_the_rest_from_being_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_progress: Callable[[str], None]) -> Path:
        raise HarnessError("toxiproxy cannot be built")

    found: list[Jars] = []
    monkeypatch.setattr(toxiproxy, "find_server", lambda: None)
    monkeypatch.setattr(toxiproxy, "install_server", broken)
    monkeypatch.setattr("marker_sim.cli.doctor._java", lambda: Check(name="java", found="17", needed_for="", how=""))
    monkeypatch.setattr("marker_sim.cli.doctor.shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(Jars, "find", lambda jars, _progress: found.append(jars))
    assert main(("doctor", "--install")) == 4
    assert capsys.readouterr() == ("", "marker-sim: toxiproxy cannot be built\n")
    assert found


def test_doctor_finds_the_toxiproxy_server_that_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    program = tmp_path / "toxiproxy" / f"{toxiproxy.PROGRAM}-{toxiproxy.VERSION}"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert main(("doctor", "--json")) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks[toxiproxy.PROGRAM]["found"] == str(program)

"""`--sut hudi:VERSION`: the real timeline server of a released Hudi, and what is said when it cannot be had.

Tests marked `jvm` start a real JVM; they need Java 17 and `pip install '.[hudi]'`, and fetch the bundle once.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from marker_sim.campaign import Campaign
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.profiles import load_profile
from marker_sim.sut import hudi


def campaign(tmp_path: Path, version: str, budget_s: float, kinds: tuple[str, ...]) -> Campaign:
    return hudi.run_hudi(
        version,
        storage="local",
        budget_s=budget_s,
        seed=1,
        report_dir=tmp_path,
        profile=load_profile("hudi"),
        progress=lambda line: None,
        kinds=kinds,
    )


@pytest.mark.jvm
def test_a_restart_of_hudi_1_0_2_loses_answered_markers_and_joins_names(tmp_path: Path) -> None:
    """Known: MarkerDirState joins the names of a file by commas when it loads them (docs/findings.md)."""
    done = campaign(tmp_path, "1.0.2", 20.0, ("crash",))
    assert done.tally.faults["kill"] > 0
    assert done.tally.faults["restart"] > 0
    rows = {row.id: row for row in done.tally.rows(load_profile("hudi"))}
    for guarantee in ("G3", "G4"):
        assert rows[guarantee].verdict == "violated"
        assert rows[guarantee].under["restart"] > 0
    assert rows["G8"].verdict == "holds"
    assert not left_over()


@pytest.mark.jvm
def test_every_listed_version_starts_and_answers(tmp_path: Path) -> None:
    for version in hudi.VERSIONS:
        done = campaign(tmp_path, version, 1.0, ("churn",))
        assert done.runs == 1
        assert done.tally.operations["create"]["ok"] > 20
        assert done.sut_version == version
    assert not left_over()


def left_over() -> list[list[str]]:
    found = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [words for words in found if any(word.endswith(hudi.LAUNCHER) for word in words)]


def test_a_version_without_a_bundle_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"hudi:0\.9\.0 has no bundle.*0\.15\.0, 1\.0\.2, 1\.1\.1 or 1\.2\.0"):
        campaign(tmp_path, "0.9.0", 1.0, ("crash",))


def test_a_missing_java_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HarnessError, match="needs Java and there is no java on PATH; install a JDK 17"):
        campaign(tmp_path, "1.0.2", 1.0, ("crash",))


def test_an_old_java_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "java", 'echo "openjdk version \\"11.0.2\\"" >&2')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(HarnessError, match=r"11\.0\.2.* is too old; install a JDK 17"):
        hudi.find_java()


def test_a_missing_pyspark_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HarnessError, match=r"PySpark 3\.5, which is not installed; install it with pip install"):
        hudi.spark_home()


def test_a_bundle_that_cannot_be_resolved_is_said_with_the_resolvers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "spark-submit", "echo 'unresolved dependency: org.apache.hudi: not found'; exit 1")
    monkeypatch.setattr(hudi, "spark_home", lambda: tmp_path)
    monkeypatch.setenv(hudi.CACHE_VARIABLE, str(tmp_path / "cache"))
    with pytest.raises(HarnessError, match=r"1\.1\.1 cannot be resolved: unresolved dependency"):
        hudi.find_bundle("1.1.1", lambda line: None)


def test_a_bundle_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = "$ivy/jars/org.apache.hudi_hudi-spark3.5-bundle_2.12-1.1.1.jar"
    calls = tmp_path / "calls"
    program(
        tmp_path / "bin" / "spark-submit",
        f'echo called >> {calls}; ivy="{tmp_path}/cache/ivy"; mkdir -p "$ivy/jars"; echo jar > "{jar}"',
    )
    monkeypatch.setattr(hudi, "spark_home", lambda: tmp_path)
    monkeypatch.setenv(hudi.CACHE_VARIABLE, str(tmp_path / "cache"))
    lines: list[str] = []
    first = hudi.find_bundle("1.1.1", lines.append)
    assert first == hudi.find_bundle("1.1.1", lines.append) == hudi.cached_bundle("1.1.1")
    assert first.read_text() == "jar\n"
    assert calls.read_text() == "called\n"
    assert len(lines) == 1


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)

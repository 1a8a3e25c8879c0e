"""`--sut hudi:VERSION`: the real timeline server of a released Hudi, and what is said when it cannot be had.

Tests marked `jvm` start a real JVM; they need Java 17 and `pip install '.[hudi]'`, and fetch the bundle once.
"""

from __future__ import annotations

import gzip
import os
import shlex
import sys
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import psutil
import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.plan import Op, Plan
from marker_sim.targets import hudi
from properties.faces.campaign import broken_in, run_campaign
from properties.faces.judges import load_profile
from properties.faces.outcome import Campaign
from properties.faces.surroundings import find_java, spark_home
from properties.faces.targets import CampaignRequest
from properties.faces.worlds import (
    ArmedFault,
    Command,
    Fleet,
    Interceptor,
    Recorder,
    S3Front,
    ServerPlace,
    Surroundings,
    environment,
    probe,
)


def campaign(tmp_path: Path, version: str, budget_s: float, storage: str = "local") -> Campaign:
    request = CampaignRequest(
        target=hudi.HudiTarget(sut=f"hudi:{version}", version=version),
        modes=("timeline",),
        storages=(storage,),
        budget_s=budget_s,
        seed=1,
        profile=load_profile("hudi"),
        report=tmp_path,
    )
    return run_campaign(request, lambda line: None)


@pytest.mark.jvm
def test_a_restart_of_hudi_1_0_2_loses_answered_markers_and_joins_names(tmp_path: Path) -> None:
    """Known: MarkerDirState joins the names of a file by commas when it loads them (docs/findings.md)."""
    names = (f"p/f{number}_0-0-0_001.parquet.marker.CREATE" for number in range(4))
    plan = Plan(
        mode="timeline", storage="local", num_threads=1, interval_ms=50,
        ops=tuple(Op(actor="executor-0", kind="create", name=name) for name in names),
        faults=(Fault.of(FaultKind.KILL, "server", Site("server: reply", 2)),),
    )  # fmt: skip
    profile = load_profile("hudi")
    request = CampaignRequest(
        target=hudi.HudiTarget(sut="hudi:1.0.2", version="1.0.2"), modes=("timeline",), storages=("local",), seed=1,
        profile=profile, budget_s=600.0, report=tmp_path,
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as opened:
        runs = [broken_in(opened.again(plan, time.monotonic() + 120).history, plan, profile) for _ in range(3)]
    for guarantee in ("G3", "G4"):
        assert all(any(kind[0] == guarantee for kind in broken) for broken in runs), runs
    assert all(each.breach.under == "restart" for broken in runs for kind, each in broken.items() if kind[0] == "G3")
    assert not left_over()


@pytest.mark.jvm
@pytest.mark.parametrize("version", hudi.VERSIONS)
def test_hudi_answers_created_for_a_put_that_s3_refused(tmp_path: Path, version: str) -> None:
    """Known: MarkerDirState.flushMarkersToFile closes the file quietly, and S3A puts it at the close."""
    interceptor = Interceptor(Recorder())
    with (
        S3Front(interceptor, bucket="lake") as front,
        Fleet(hudi_command(version), tmp_path / "work", tmp_path / "logs") as fleet,
    ):
        around = Surroundings({"storage": "s3a://lake"}, environment(front.endpoint, "server-1"))
        place = "s3a://lake/probe/.hoodie/.temp/000"
        port = fleet.start(ServerPlace(lambda name: around, 1, 50), "first", lambda port: probe(port, place)).door
        assert create(port, "a") == b"true"
        refused = ArmedFault(Fault.of(FaultKind.SERVER_ERROR, "", Call(r"/MARKERS0$", ("put",))))
        interceptor.arm(refused)
        assert (create(port, "b"), refused.fired) == (b"true", 1)
        assert create(port, "b") == b"false"
        assert stored(front) == b"a.parquet.marker.CREATE\n", "neither answer was true"


def hudi_command(version: str) -> Command:
    jars, s3a = hudi.bundle(version).find(print), hudi.S3A.find(print)
    return Command(text=hudi.start_command(version, find_java(), jars, s3a))


def create(port: int, name: str) -> bytes:
    asked = {"markerdirpath": "s3a://lake/t/.hoodie/.temp/001", "markername": f"{name}.parquet.marker.CREATE"}
    url = f"http://127.0.0.1:{port}/v1/hoodie/marker/create?{urlencode(asked)}"
    with urlopen(Request(url, method="POST"), timeout=30.0) as reply:
        body: bytes = reply.read()
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def stored(front: S3Front) -> bytes:
    return front.objects("t/.hoodie/.temp/001/")["t/.hoodie/.temp/001/MARKERS0"]


@pytest.mark.jvm
@pytest.mark.parametrize("storage", ["local", "s3"])
def test_every_listed_version_starts_and_answers(tmp_path: Path, storage: str) -> None:
    for version in hudi.VERSIONS:
        done = campaign(tmp_path, version, 1.0, storage)
        assert done.runs == 1
        assert done.statistics.operations["create"]["ok"] > 0
        assert done.sut_version == version
    assert not left_over()


LAUNCHERS = {Path(name).stem for name in (hudi.LAUNCHER, hudi.STORAGE_LAUNCHER)}


def left_over() -> list[list[str]]:
    """Servers that this process started, or without a parent; other runs on the machine may judge Hudi too."""
    found = []
    for process in psutil.process_iter(["cmdline", "ppid"]):
        words = process.info["cmdline"] or []
        if any(Path(word).stem in LAUNCHERS for word in words) and process.info["ppid"] in (1, os.getpid()):
            found.append(words)
    return found


def test_a_version_without_a_bundle_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"hudi:0\.9\.0 has no bundle.*0\.15\.0, 1\.0\.2, 1\.1\.1 or 1\.2\.0"):
        campaign(tmp_path, "0.9.0", 1.0)


def test_a_missing_java_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HarnessError, match="needs Java and there is no java on PATH; install a JDK 17"):
        campaign(tmp_path, "1.0.2", 1.0)


def test_an_old_java_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "java", 'echo "openjdk version \\"11.0.2\\"" >&2')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(HarnessError, match=r"11\.0\.2.* is too old; install a JDK 17"):
        find_java()


def test_a_missing_pyspark_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(HarnessError, match=r"package pyspark, which is not installed; pip install '\.\[hudi\]'"):
        spark_home()


def test_only_the_command_for_s3_has_s3a_and_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hudi, "spark_home", lambda: tmp_path)
    jars = (tmp_path / "bundle.jar",)
    words = shlex.split(hudi.start_command("1.0.2", "java", jars, (tmp_path / "s3a.jar",)))
    bundle, settings, s3a, spark = words[words.index("-cp") + 1].split(os.pathsep)
    assert (bundle, s3a, spark) == (str(jars[0]), str(tmp_path / "s3a.jar"), str(tmp_path / "jars" / "*"))
    values = {
        element.findtext("name"): element.findtext("value")
        for element in ElementTree.parse(f"{settings}/core-site.xml").iter("property")
    }
    assert values["fs.s3a.endpoint"] == "${env.AWS_ENDPOINT_URL}"
    assert values["fs.s3a.path.style.access"] == "true"
    assert values["fs.s3a.retry.limit"] == "0", "a failing PUT is seen within the kit's bounds"
    local = hudi.start_command("0.15.0", "java", jars)
    assert "s3a" not in local and hudi.LAUNCHER in local
    told = shlex.split(hudi.start_command("0.15.0", "java", jars, (tmp_path / "s3a.jar",)))
    assert told[told.index(next(word for word in told if word.endswith(hudi.STORAGE_LAUNCHER))) + 1] == "{storage}"


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)

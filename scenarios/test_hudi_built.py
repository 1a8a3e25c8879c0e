"""`--sut hudi:PATH` and `hudi-spark:PATH`: a bundle built by the user, and the messages about other files.

Tests marked `jvm` start a real JVM; they need a JDK 17 and `pip install '.[hudi]'`, and fetch the bundle once.
"""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.judges import judge
from marker_sim.plan import Op, Plan
from marker_sim.targets import hudi
from properties.faces.cli import main, parse_request
from properties.faces.judges import compare
from properties.faces.outcome import Statistics
from properties.faces.targets import ADAPTER, SERVICE, CampaignRequest, HudiSparkTarget, parse_target
from scenarios.by_hand.hudi_mended import mend

BUNDLE = "META-INF/maven/org.apache.hudi/hudi-spark3.5-bundle_2.12/pom.properties"
SNAPSHOT = "1.3.0-SNAPSHOT"


def jar(path: Path, **said: str) -> Path:
    """A jar with the classes that are looked for. said: `manifest`, `pom`, and a class to leave `out`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as made:
        if "manifest" in said:
            made.writestr(
                "META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nImplementation-Version: {said['manifest']}\r\n"
            )
        if "pom" in said:
            made.writestr(said.get("place", BUNDLE), f"artifactId=hudi\nversion={said['pom']}\n")
        for entry in (SERVICE, ADAPTER):
            if entry != said.get("out"):
                made.writestr(entry, b"")
    return path


def test_the_version_is_what_the_jar_says_and_its_file_name_when_it_says_nothing(tmp_path: Path) -> None:
    manifest = jar(tmp_path / "a.jar", manifest=SNAPSHOT, pom="9.9")
    assert parse_target(f"hudi:{manifest}").version == SNAPSHOT
    assert parse_target(f"hudi:{jar(tmp_path / 'b.jar', pom=SNAPSHOT)}").version == SNAPSHOT
    assert parse_target(f"hudi-spark:{jar(tmp_path / 'hudi-mine.jar')}").version == "hudi-mine"


def test_a_relative_path_stands_for_the_same_jar_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = jar(tmp_path / "packaging" / "bundle.jar", manifest=SNAPSHOT)
    monkeypatch.chdir(tmp_path)
    target = parse_target("hudi-spark:./packaging/bundle.jar")
    monkeypatch.chdir("/")
    assert target == parse_target(target.sut) and isinstance(target, HudiSparkTarget) and target.built == built


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("hudi:{dir}/none.jar", "there is no file"),
        ("hudi:{dir}/folder", r"which is a folder; .* for example .*/folder/hudi-spark3\.5-bundle_2\.12-1\.jar"),
        ("hudi:{dir}/text.jar", r"which is no jar \(File is not a zip file\)"),
        ("hudi:{dir}/torn.jar", "which is no jar"),
        ("hudi:{dir}/without.jar", "without Hudi's timeline service .*; build the bundle: mvn package"),
        ("hudi-spark:{dir}/other-spark.jar", "a bundle for another Spark than 3.5"),
        ("hudi-spark:{dir}/other-scala.jar", "a bundle for Scala 2.13"),
        ("hudi:1.2", None),
        ("hudi:mine", "write hudi:VERSION, for example hudi:1.0.2, or hudi: and the path of a bundle's jar"),
    ],
)
def test_what_is_no_bundle_gets_one_sentence(
    tmp_path: Path, word: str, says: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    jar(tmp_path / "folder" / "hudi-spark3.5-bundle_2.12-1.jar")
    jar(tmp_path / "folder" / "hudi-spark3.5-bundle_2.12-1-sources.jar")
    (tmp_path / "text.jar").write_text("no jar")
    whole = jar(tmp_path / "whole.jar").read_bytes()
    (tmp_path / "torn.jar").write_bytes(whole[: len(whole) // 2])
    jar(tmp_path / "without.jar", out=SERVICE)
    jar(tmp_path / "other-spark.jar", out=ADAPTER)
    jar(tmp_path / "other-scala.jar", pom="1", place=BUNDLE.replace("2.12", "2.13"))
    word = word.format(dir=tmp_path)
    if says is None:  # A version, of which a campaign says that it has no bundle.
        assert parse_target(word).version == "1.2"
        return
    with pytest.raises(UsageError, match=says):
        parse_target(word)
    assert main(["verify", "--sut", word]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.jvm
def test_a_mended_bundle_makes_an_entry_of_the_shipped_baseline_stale_and_breaks_nothing_new(tmp_path: Path) -> None:
    """The same plan on the released 1.2.0 and on a copy of it in which a restart glues no names together."""
    released = hudi.bundle("1.2.0").find(print)[0]
    mended = tmp_path / "hudi-spark3.5-bundle_2.12-mended.jar"
    mend(released, mended)
    before, after = (differences(tmp_path, f"hudi:{each}") for each in (released, mended))
    assert before == (set(), set()), "the released one shows what its baseline has"
    assert after[0] == set(), "nothing is broken that was not before"
    assert after[1] == {("G3", "restart", "glued"), ("G4", "restart", "glued")}


def differences(tmp_path: Path, sut: str) -> tuple[set[tuple[str, str, str]], set[tuple[str, str, str]]]:
    """What is new and what is stale, of three runs of a plan that kills the server twice, about glued names."""
    names = (f"p/f{number}_0-0-0_001.parquet.marker.CREATE" for number in range(6))
    plan = Plan(
        mode="timeline", storage="local", num_threads=1, interval_ms=50,
        ops=tuple(Op(actor="executor-0", kind="create", name=name) for name in names),
        faults=tuple(Fault.of(FaultKind.KILL, "server", Site("server: reply", n)) for n in (2, 4)),
    )  # fmt: skip
    request: CampaignRequest = parse_request(
        sut=sut, mode="timeline", storage="local", budget="10m", seed="1", guarantees=None, profile=None,
        expect="hudi-1.2.0-local", report=str(tmp_path), argv=(),
    )  # fmt: skip
    assert request.target.version == "1.2.0" and request.baseline is not None
    statistics = Statistics()
    with request.target.real_runs(request, lambda line: None) as runs:
        for _ in range(3):
            history = runs.again(plan, time.monotonic() + 120).history
            statistics.add(history, judge(history, None))
    found = compare(statistics.rows(request.profile), request.baseline, request.profile, statistics.faults)
    new = {(known.guarantee, known.under, known.cause) for known in found.unexpected}
    return new, {(known.guarantee, known.under, known.cause) for known in found.stale if known.cause == "glued"}

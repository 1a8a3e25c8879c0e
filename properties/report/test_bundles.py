"""Jars are fetched by name from a repository, each held against its SHA-1, and nothing else is asked."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marker_sim.cli import main
from marker_sim.errors import HarnessError, UsageError
from marker_sim.targets import hudi
from properties.faces.surroundings import CACHE_VARIABLE
from properties.faces.targets import ADAPTER, CLIENT, REPOSITORY_VARIABLE, SERVICE, HudiJavaTarget, parse_target

PATHS = (
    "org/apache/hadoop/hadoop-aws/3.3.4/hadoop-aws-3.3.4.jar",
    "com/amazonaws/aws-java-sdk-bundle/1.12.262/aws-java-sdk-bundle-1.12.262.jar",
)


class _Repository(SimpleHTTPRequestHandler):
    """Files of a folder; the paths asked for are in `asked` of its server."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path.removeprefix("/"))  # type: ignore[attr-defined]
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was asked of the repository in `tmp_path`/maven, beside a home whose Maven has poms without their jars."""
    for name in ("maven", "home"):
        (tmp_path / name).mkdir()
    for path in PATHS:
        pom = tmp_path / "home" / ".m2" / "repository" / path.replace(".jar", ".pom")
        pom.parent.mkdir(parents=True)
        pom.write_text("<project/>", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Repository, directory=str(tmp_path / "maven"))) as server:
        server.asked = []  # type: ignore[attr-defined]
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
        monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.asked  # type: ignore[attr-defined]
        server.shutdown()
        thread.join(10)


def _publish(folder: Path, path: str, data: bytes, digest: str = "") -> None:
    jar = folder / "maven" / path
    jar.parent.mkdir(parents=True, exist_ok=True)
    jar.write_bytes(data)
    said = digest or hashlib.sha1(data, usedforsecurity=False).hexdigest()
    jar.with_suffix(".jar.sha1").write_text(f"{said}  {jar.name}\n", encoding="ascii")


def test_the_jars_that_are_named_are_fetched_once_and_nothing_else_is_asked(tmp_path: Path, asked: list[str]) -> None:
    for number, path in enumerate(PATHS):
        _publish(tmp_path, path, b"jar %d" % number * 1000)
    lines: list[str] = []
    found = hudi.S3A.find(lines.append)
    assert [path.read_bytes() for path in found] == [b"jar 0" * 1000, b"jar 1" * 1000]
    assert found == hudi.S3A.find(lines.append) == hudi.S3A.cached() == hudi.S3A.paths()
    assert sorted(asked) == sorted(path + end for path in PATHS for end in ("", ".sha1"))
    assert len(lines) == 1 and {path.name for path in (tmp_path / "cache" / "jars").iterdir()} == {
        path.name for path in found
    }


def test_a_jar_that_cannot_be_had_is_a_sentence_and_can_be_had_later(tmp_path: Path, asked: list[str]) -> None:
    _publish(tmp_path, PATHS[0], b"one")
    first, second = (path.name for path in hudi.S3A.paths())
    with pytest.raises(HarnessError, match=rf"S3A .* cannot be fetched: .*404.* put {first} and {second} into"):
        hudi.S3A.find(lambda line: None)
    assert hudi.S3A.cached() == ()
    _publish(tmp_path, PATHS[1], b"two", digest="0" * 40)
    with pytest.raises(HarnessError, match=r"1\.12\.262\.jar was not received as its \.sha1 says"):
        hudi.S3A.find(lambda line: None)
    assert [path.name for path in (tmp_path / "cache" / "jars").iterdir()] == [first], "a torn jar gets no name"
    _publish(tmp_path, PATHS[1], b"two")
    assert [path.read_bytes() for path in hudi.S3A.find(lambda line: None)] == [b"one", b"two"]
    assert asked.count(PATHS[0]) == 1


def test_doctor_shows_the_version_of_java_and_not_what_java_took_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    java = tmp_path / "java"
    lines = (
        "NOTE: Picked up JDK_JAVA_OPTIONS: -Dx",
        "Picked up JAVA_TOOL_OPTIONS: -Da",
        'openjdk version "17.0.9"',
    )
    java.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in lines), encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(("doctor", "--json")) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["java"]["found"] == 'openjdk version "17.0.9"'


def built_jar(path: Path, version: str, *entries: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\nImplementation-Version: {version}\n")
        for entry in entries:
            jar.writestr(entry, "")


CLIENT_JAR, BUNDLE_JAR = "hudi-java-client-1.3.0.jar", "hudi-spark3.5-bundle_2.12-1.3.0.jar"


@pytest.mark.parametrize("maven", [False, True])
def test_a_java_client_that_was_built_is_found_with_its_bundle(tmp_path: Path, maven: bool) -> None:
    places = ("hudi-client/hudi-java-client/target", "packaging/hudi-spark-bundle/target") if maven else (".", ".")
    jars = [tmp_path / place / name for place, name in zip(places, (CLIENT_JAR, BUNDLE_JAR), strict=True)]
    built_jar(jars[0], "1.3.0", CLIENT)
    built_jar(jars[1], "1.3.0", SERVICE, ADAPTER)
    built_jar(jars[0].with_name("hudi-java-client-1.3.0-sources.jar"), "1.3.0")
    target = parse_target(f"hudi-java:{tmp_path}/")
    assert isinstance(target, HudiJavaTarget)
    assert (target.sut, target.version) == (f"hudi-java:{tmp_path}", "1.3.0")
    assert [path.resolve() for path in target.built] == [jar.resolve() for jar in jars]


def test_a_folder_from_which_no_java_client_can_be_run_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    def refused(word: str) -> str:
        with pytest.raises(UsageError) as error:
            parse_target(f"hudi-java:{word}")
        return str(error.value)

    need = "write hudi-java: and a folder with hudi-java-client-*.jar and hudi-spark3.5-bundle_2.12-*.jar"
    assert f"'hudi-java:{tmp_path}/x', and {tmp_path}/x is not there; {need}" in refused(f"{tmp_path}/x")
    assert f"where one hudi-java-client-*.jar is needed and there is none; {need}" in refused(str(tmp_path))
    built_jar(tmp_path / BUNDLE_JAR, "1.3.0", SERVICE, ADAPTER)
    assert f"{BUNDLE_JAR} is no folder; {need}" in refused(str(tmp_path / BUNDLE_JAR))
    (tmp_path / CLIENT_JAR).write_bytes(b"")
    assert f"where {CLIENT_JAR} cannot be read" in refused(str(tmp_path))
    built_jar(tmp_path / CLIENT_JAR, "1.3.0")
    assert f"where {CLIENT_JAR} has no {CLIENT}" in refused(str(tmp_path))
    built_jar(tmp_path / CLIENT_JAR, "1.2.0", CLIENT)
    assert "with a client of 1.2.0 and a bundle of 1.3.0; build both at once" in refused(str(tmp_path))
    built_jar(tmp_path / "hudi-java-client-1.2.0.jar", "1.2.0", CLIENT)
    assert f"there is hudi-java-client-1.2.0.jar and {CLIENT_JAR}" in refused(str(tmp_path))
    assert "write hudi-java: and 1.1.1 or 1.2.0, or the path of a folder" in refused("1.0.2")

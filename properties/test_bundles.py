"""Jars are fetched by name from a repository, each held against its SHA-1, and nothing else is asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marker_sim.cli import main
from marker_sim.errors import HarnessError
from marker_sim.surroundings.files import CACHE_VARIABLE
from marker_sim.targets import hudi
from marker_sim.targets.jvm.bundles import REPOSITORY_VARIABLE

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

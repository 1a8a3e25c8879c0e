"""Quick starts of Java servers where they cannot be had; where they can, scenarios/test_hudi.py starts servers so."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from properties.faces.surroundings import CACHE_VARIABLE
from properties.faces.targets import ARCHIVE, archived, quick_start


def test_a_launcher_that_cannot_be_prepared_is_started_as_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    said: list[str] = []
    launcher = tmp_path / "Launcher.java"
    command = f"{shlex.join([f'{tmp_path}/java', '-cp', f'{tmp_path}/a.jar', str(launcher)])} -p {{port}}"
    assert quick_start(command, said.append) == command
    launcher.write_text("class Launcher {}")
    (tmp_path / "a.jar").write_bytes(b"")
    (tmp_path / "java").write_text("#!/bin/sh\necho no compiler here\nexit 3\n")
    (tmp_path / "java").chmod(0o755)
    assert quick_start(command, said.append) == command
    assert "no compiler here" in said[-1], said


def test_a_program_whose_classes_cannot_be_archived_is_started_as_it_was_told(tmp_path: Path) -> None:
    said: list[str] = []
    words = [f"{tmp_path}/java", "-cp", "a.jar", "Program"]
    assert archived(words, tmp_path / "launcher.jar", "{}\n", said.append) == words
    assert "Program starts slowly" in said[-1], said


def test_a_program_is_archived_once_with_the_lines_that_it_is_asked(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(f'#!/bin/sh\necho once >> "{tmp_path}/starts"\ncat > "${{1#*=}}"\n')
    java.chmod(0o755)
    words = [str(java), "-cp", "a.jar", "Program"]
    for _ in range(2):
        quick = archived(words, tmp_path / "launcher.jar", "asked\n", lambda line: None)
        assert quick == [words[0], f"-XX:SharedArchiveFile={tmp_path / ARCHIVE}", *words[1:]]
    assert (tmp_path / ARCHIVE).read_text() == "asked\n" and (tmp_path / "starts").read_text() == "once\n"

"""Quick starts of Java servers where they cannot be had; where they can, scenarios/test_hudi.py starts servers so."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.surroundings.files import CACHE_VARIABLE
from marker_sim.targets.jvm.java_start import quick_start


def test_a_launcher_that_cannot_be_prepared_is_started_as_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    said: list[str] = []
    launcher = tmp_path / "Launcher.java"
    command = f"{tmp_path}/java -cp {tmp_path}/a.jar {launcher} -p {{port}}"
    assert quick_start(command, said.append) == command
    launcher.write_text("class Launcher {}")
    (tmp_path / "a.jar").write_bytes(b"")
    (tmp_path / "java").write_text("#!/bin/sh\necho no compiler here\nexit 3\n")
    (tmp_path / "java").chmod(0o755)
    assert quick_start(command, said.append) == command
    assert "no compiler here" in said[-1], said

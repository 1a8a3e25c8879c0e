"""Documents say what the code and its jobs say."""

from __future__ import annotations

import re
from pathlib import Path

from marker_sim.history import Event, Header
from marker_sim.judges.guarantees import GUARANTEES

ROOT = Path(__file__).parent.parent


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = " ".join((ROOT / ".ci" / "run").read_text(encoding="utf-8").split())
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    section = readme.split("## Two commands", 1)[1].split("\n## ", 1)[0]
    commands = [line for block in re.findall(r"```sh\n(.*?)```", section, re.S) for line in block.strip().splitlines()]
    assert len(commands) == 2, "a fresh machine needs exactly two commands"
    verify, tests = commands
    assert verify.endswith("marker-sim verify") and "step verify marker-sim verify" in ci
    assert tests.endswith("pytest -n auto") and "step tests pytest -n auto" in ci and "pytest -n auto" in tox
    assert "'.[test]'" in tests and "'.[test]'" in ci
    assert all("python3 -m venv" in command for command in commands)


def test_every_guarantee_is_documented() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    for guarantee in GUARANTEES:
        assert re.search(rf"\b{guarantee.id}\b[^\n]*{guarantee.slug}", text), (
            f"{guarantee.id} is not in docs/guarantees.md"
        )


def test_every_column_and_header_key_is_documented() -> None:
    text = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    for name in (*Event._fields, *Header.__dataclass_fields__):
        assert f"`{name}`" in text, f"{name} is not in docs/history.md"

"""Documents say what the code and its jobs say."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from marker_sim.cli import main
from marker_sim.history import Event, Header
from properties.faces.cli import build_app
from properties.faces.judges import GUARANTEES
from properties.house.test_tidy import LAYERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "marker_sim"
# What tools and campaigns leave in the tree is no document of it.
MADE = {"build", "chaos", "dist", "marker-sim-report"}


def _documents() -> list[Path]:
    found = (path for path in ROOT.rglob("*.md") if not MADE & {*path.relative_to(ROOT).parts})
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(ROOT).parts))


def _prose(path: Path) -> str:
    """The text of a document without its blocks of code."""
    return re.sub(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def _links(path: Path) -> Iterator[str]:
    """The targets of the links and pictures of a document that lead to a place in the project."""
    text = re.sub(r"`[^`\n]*`", "code", _prose(path))
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"^\[[^\]]+\]:\s*(\S+)", text, flags=re.M)
    return (target for target in targets if not re.match(r"[a-z+]+:", target))


@cache
def _anchors(path: Path) -> frozenset[str]:
    """The anchors that a forge gives to the headings of a document, and those that it has itself."""
    prose = _prose(path)
    anchors = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", prose)
    for heading in re.findall(r"^#{1,6} +(.*?)[ #]*$", prose, flags=re.M):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words.replace("*", "")).replace(" ", "-")
        times = sum(1 for each in anchors if each == slug or re.fullmatch(re.escape(slug) + r"-\d+", each))
        anchors.append(f"{slug}-{times}" if times and slug in anchors else slug)
    return frozenset(anchors)


def test_every_link_of_every_document_leads_to_a_file_and_a_heading_that_there_are() -> None:
    wrong, followed = [], 0
    for path in _documents():
        for target in _links(path):
            followed += 1
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            if not there.exists() or (anchor and there.suffix == ".md" and anchor not in _anchors(there)):
                wrong.append(f"{path.relative_to(ROOT)}: {target}")
    assert not wrong, "\n".join(wrong)
    assert followed > 100, "links are no longer seen"


# What a recipe of CONTRIBUTING.md makes.
WRITTEN_BY_READERS = {"marker_sim/targets/served.py"}


def _named_paths(text: str) -> set[str]:
    """Files and folders of the package, modules with a folder, and what `python -m` starts, by their paths.

    A star stands for any name. Other files without `marker_sim/` may be those of readers and reports.
    """
    of_package = re.findall(r"(?<![\w./])marker_sim/[\w*./-]*[\w*/]", text)
    modules = re.findall(r"(?<![\w./*-])(?:[\w*.-]+/)+[\w*-]+\.py\b", text)
    started = re.findall(r"\bpython3? -m ((?:properties|scenarios|benchmarks|tools|marker_sim)[\w.]*\w)", text)
    return {*of_package, *modules, *(name.replace(".", "/") for name in started)}


@cache
def _exists(path: str, beside: Path = PACKAGE) -> bool:
    """Whether a path leads somewhere from the top, or from a folder of the package or below that of the document."""
    found = (places for name in (path, f"{path}.py") for places in (ROOT.glob(name), PACKAGE.rglob(name)))
    return any(map(any, found)) or (beside != ROOT and any(beside.rglob(path)))


def test_every_file_that_a_document_names_is_there() -> None:
    wrong, named = [], 0
    for path in _documents():
        paths = _named_paths(path.read_text(encoding="utf-8")) - WRITTEN_BY_READERS
        named += len(paths)
        wrong += [
            f"{path.relative_to(ROOT)}: {each}"
            for each in sorted(paths)
            if not _exists(re.sub(r"^(\.\./)+", "", each), path.parent)
        ]
    assert not wrong, "\n".join(wrong)
    assert named > 150, "paths are no longer seen"


def test_items_of_lists_are_on_lines_of_their_own() -> None:
    lines = ((path, line) for path in _documents() for line in _prose(path).splitlines())
    merged = [f"{path.relative_to(ROOT)}: {line}" for path, line in lines if re.search(r"[.:;`)] - (\*|[a-z])", line)]
    assert merged == []


def test_the_architecture_has_every_folder_and_the_order_of_layers() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("\n| part |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([^`]+?)(?:/|\.py)`", row.split("|")[1]) for row in table.splitlines()[2:]]
    layers = [[part.removeprefix("marker_sim.").replace(".", "/") for part in layer] for layer in LAYERS]
    layers[0].remove("marker_sim")
    assert rows == layers
    folders = [inner.parent.relative_to(PACKAGE).as_posix() for inner in PACKAGE.rglob("*/__init__.py")]
    named = re.findall(r"`((?:\w+/)*\w+)/`", text)
    assert [each for each in folders if not any(f"/{each}".endswith(f"/{name}") for name in named)] == []
    assert [name for name in named if not _exists(name)] == []


def _commands(text: str) -> list[str]:
    """What stands behind `marker-sim` in the code of a document, a command each."""
    spans = re.findall(r"`marker-sim ([^`]+)`", text)
    return spans + re.findall(r"^(?:\S*/)?marker-sim (.+)$", text, flags=re.M)


def test_the_commands_of_the_readme_are_accepted() -> None:
    app: Any = get_command(build_app())
    commands = _commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(commands) > 10
    for command in commands:
        name, *words = shlex.split(command)
        app.commands[name].make_context(name, words, obj=(name, *words))


def test_the_first_failure_of_the_readme_is_what_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## The first failure\n")[2].partition("\n## ")[0]
    command, said = re.findall(r"```(?:sh)?\n(.*?)```", section, flags=re.S)
    assert main([*shlex.split(command)[1:], "--report", str(tmp_path / "r")]) == 1
    printed = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.strip() not in printed] == []


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    played = (ROOT / ".ci" / "readme").read_text(encoding="utf-8")
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    section = readme.split("## Two commands", 1)[1].split("\n## ", 1)[0]
    commands = [line for block in re.findall(r"```sh\n(.*?)```", section, re.S) for line in block.strip().splitlines()]
    assert len(commands) == 2, "a fresh machine needs exactly two commands"
    verify, tests = commands
    assert verify.endswith("marker-sim verify") and tests.endswith("pytest -n auto") and "pytest -n auto" in tox
    assert "'.[test]'" in tests and "'.[test]'" in ci
    reads = re.search(r"^commands=\$\((.*)\)$", played, re.M)
    assert reads and ci.index("step readme readme") < ci.index("pip install"), "before anything else is installed"
    found = subprocess.run(["bash", "-c", reads[1]], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == commands
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

"""docs/tutorial: each page is played as a reader would, and shows what it says and what the files of its demo have.

    ```console   `$ COMMAND`, the lines that it prints, and [exit code N] unless that is 0. `…` in a line stands for any
                 text, `…` alone on a line for any lines, and so does ⟨what differs from run to run⟩, an example
    ```python    begins with `# FILE`: lines of code/FILE, in order; a line that is `# …` stands for lines left out
    ```diff      from code/FILE to code/mended/FILE, all of it

Tests marked `jvm` start a real JVM; they need a JDK 17 and `pip install '.[hudi]'`, and fetch the bundle once.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from properties.volume import CI_ONLY

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorial"
CODE = TUTORIAL / "code"
BEGINNING = TUTORIAL / "README.md"
PAGES = sorted(page for page in TUTORIAL.glob("*.md") if page != BEGINNING)
OF_JAVA = "6-real-hudi.md"
# A page on a server takes a minute; test_plans_on_servers.py shows by default what its commands do and print.
BY_DAY = ("1-hasty-class.md", OF_JAVA)
MARKS = {page.name: [] if page.name in BY_DAY else [CI_ONLY] for page in PAGES} | {OF_JAVA: [pytest.mark.jvm]}
PAGE_S = 1_500
ENDED = "\x1e"
EXAMPLE = re.compile("⟨[^⟩]*⟩")
EXIT = re.compile(r"\[exit code (\d+)(?: or (\d+))?\]")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, the lines that it is said to print, and the exit codes that it may have."""

    command: str
    lines: tuple[str, ...]
    codes: tuple[int, ...]


def blocks(page: Path, language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def shown_in(page: Path) -> list[Shown]:
    """The commands of a page, in order."""
    found = []
    for part in re.split(r"^\$ ", "".join(blocks(page, "console")), flags=re.MULTILINE)[1:]:
        command, said = re.match(r"((?:.*\\\n)*.*)\n((?:.|\n)*)", part).groups()  # type: ignore[union-attr]
        lines = said.splitlines()
        last = EXIT.fullmatch(lines[-1]) if lines else None
        codes = tuple(int(code) for code in last.groups() if code) if last else (0,)
        found.append(Shown(command, tuple(lines[:-1] if last else lines), codes))
    return found


def shows(shown: tuple[str, ...], printed: str) -> bool:
    """Whether the lines of a page are what was printed."""
    lines = printed.splitlines()
    ends = {0}  # After how many printed lines the lines of the page can be at an end.
    for one in shown:
        if one == "…" or EXAMPLE.fullmatch(one):
            ends = set(range(min(ends), len(lines) + 1)) if ends else ends
            continue
        wanted = re.compile(re.escape(EXAMPLE.sub("…", one)).replace("…", ".*"))
        ends = {end + 1 for end in ends if end < len(lines) and wanted.fullmatch(lines[end])}
    return len(lines) in ends


def play(commands: list[Shown], folder: Path) -> list[tuple[str, int]]:
    """Type the commands into one shell in a folder that has docs/ of this clone: what each printed, its exit code."""
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    typed = "".join(f"{each.command}\nprintf '{ENDED}%d{ENDED}' $?\n" for each in commands)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash"], input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment,
        encoding="utf-8", timeout=PAGE_S, check=False,
    )  # fmt: skip
    parts = done.stdout.split(ENDED)
    assert len(parts) == 2 * len(commands) + 1, done.stdout
    return [(said, int(code)) for said, code in zip(parts[::2], parts[1::2], strict=False)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=MARKS.get(page.name, []), id=page.stem) for page in PAGES],
)
def test_each_command_of_a_page_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    commands = [*shown_in(BEGINNING), *shown_in(page)]
    assert len(commands) > len(shown_in(BEGINNING)), "a page without commands shows nothing"
    wrong = []
    for shown, (said, code) in zip(commands, play(commands, tmp_path), strict=True):
        if code not in shown.codes or not shows(shown.lines, said):
            page_shows = "\n".join(shown.lines)
            wrong.append(f"$ {shown.command}\n{said}[exit code {code}]\n\nand {page.name} shows\n\n{page_shows}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_and_the_diffs_of_a_page_are_those_of_its_files(page: Path) -> None:
    for block in blocks(page, "python"):
        name, *lines = block.splitlines()
        text = (CODE / name.removeprefix("# ")).read_text(encoding="utf-8")
        parts = re.split(r"^ *# …\n", "".join(f"{line}\n" for line in lines), flags=re.MULTILINE)
        assert re.search(".*".join(re.escape(part) for part in parts), text, re.DOTALL), f"{page.name}: {block}"
    for block in blocks(page, "diff"):
        before, after = (line[4:] for line in block.splitlines()[:2])
        old, new = ((CODE / name).read_text(encoding="utf-8").splitlines() for name in (before, after))
        diffs = ["\n".join(difflib.unified_diff(old, new, before, after, lineterm="", n=n)) for n in range(6)]
        assert block.rstrip("\n") in diffs, f"{page.name}: should be\n{diffs[1]}"


def test_every_page_has_its_step_on_the_staircase_and_every_mended_file_its_diff() -> None:
    text = BEGINNING.read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d[^)]*\.md)\)", text) == [page.name for page in PAGES]
    mended = {block.splitlines()[1].removeprefix("+++ ") for page in PAGES for block in blocks(page, "diff")}
    assert mended == {f"mended/{path.name}" for path in (CODE / "mended").glob("*.py")}


def test_what_a_page_shows_is_not_taken_for_anything() -> None:
    page = ("a … b", "…", "c")
    assert shows(("a ⟨12⟩ b", "⟨x⟩", "c"), "a 3 b\ny\ny\nc\n") and not shows(("a ⟨12⟩ b",), "a 3 c\n")
    assert all(shows(page, printed) for printed in ("a 12 b\nx\ny\nc\n", "a 12 b\nc", "a 1 b\nc\nc\n"))
    assert not any(shows(page, printed) for printed in ("", "a 1 c\nc\n", "a 1 b\n", "a 1 b\nc\nd\n", "x\na 1 b\nc\n"))

"""Each recipe of CONTRIBUTING.md, applied to a copy of the tree and run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from properties.volume import CI_ONLY

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120.0


class Hunk(NamedTuple):
    """A change of one file: `before`, which occurs once, becomes `after`."""

    file: str
    before: str
    after: str


class Recipe(NamedTuple):
    """A section of CONTRIBUTING.md.

    title: "A mutant".
    stated, written: how many lines the title says are to be written, and how many the diff has.
    command: without "marker-sim".
    """

    title: str
    stated: int
    written: int
    files: int
    hunks: tuple[Hunk, ...]
    command: tuple[str, ...]


def recipes() -> Iterator[Recipe]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for section in text.split("\n### ")[1:]:
        (diff,) = re.findall(r"```diff\n(.*?)```", section, re.DOTALL)
        (command,) = re.findall(r"```sh\nmarker-sim (.*?)\n```", section, re.DOTALL)
        stated = re.match(r"(.*) \((\d+) lines in (\d+) files?\)\n", section)
        assert stated is not None, section.splitlines()[0]
        hunks = tuple(_hunks(diff))
        written = len(re.findall(r"^\+", diff, re.MULTILINE))
        yield Recipe(stated[1], int(stated[2]), written, int(stated[3]), hunks, tuple(shlex.split(command)))


def _hunks(diff: str) -> Iterator[Hunk]:
    """A hunk ends where the next file begins, or where a line that stays or goes follows one that comes."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        file, _, body = part.partition("\n")
        for lines in re.findall(r"(?:^[ -].*\n)*(?:^\+.*\n)+(?:^ .*\n(?!\+))?", body, flags=re.MULTILINE):
            rows = lines.splitlines(keepends=True)
            before = "".join(row[1:] for row in rows if row[0] in " -")
            yield Hunk(file, before, "".join(row[1:] for row in rows if row[0] in " +"))


RECIPES = {recipe.title: recipe for recipe in recipes()}


def apply(recipe: Recipe, tree: Path) -> None:
    """Copy the package, compiled as it is, and the documents, and change the copy."""
    for folder in ("marker_sim", "docs"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("*-pytest-*.pyc"))
    for hunk in recipe.hunks:
        path = tree / hunk.file
        text = path.read_text(encoding="utf-8") if hunk.before else ""
        assert hunk.before or not path.exists(), f"{hunk.file} is there, and a hunk says nothing of where it belongs"
        assert text.count(hunk.before) == 1, f"{hunk.file} has {text.count(hunk.before)} times {hunk.before!r}"
        path.write_text(text.replace(hunk.before, hunk.after), encoding="utf-8")


def run(recipe: Recipe, tree: Path) -> tuple[int, str]:
    """The exit code and output of the recipe's command, with the copied package."""
    done = subprocess.run(
        [sys.executable, "-m", "marker_sim", *recipe.command, "--report", str(tree / "report"), "--jobs", "1"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_has_the_length_that_it_states(title: str) -> None:
    recipe = RECIPES[title]
    assert len({hunk.file for hunk in recipe.hunks}) == recipe.files
    assert recipe.written == recipe.stated


# What the command shows of what was added, and its exit code: violations are found, a new storage is judged.
SHOWS = {
    "A guarantee": (1, r"G33 +lines-are-whole +timeline +violated"),
    "A fault": (0, r'"read-error": [1-9]'),
    "A mutant": (1, r"G4 +exact-set +timeline +violated"),
    "A target": (3, r"G1 +flushed-before-ack +timeline +inconclusive +local +[1-9]"),
    "A storage model": (0, r"G1 +flushed-before-ack +timeline +holds +s3-slow +[1-9]"),
}


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=() if title in ("A guarantee", "A mutant") else CI_ONLY) for title in RECIPES]
)
def test_a_recipe_does_what_it_says(title: str, tmp_path: Path) -> None:
    apply(RECIPES[title], tmp_path)
    code, output = run(RECIPES[title], tmp_path)
    wanted, shown = SHOWS[title]
    assert re.search(shown, output), output
    assert code == wanted, output

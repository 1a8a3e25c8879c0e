"""How large the package and its folders may be: numbers that only fall. What a module may look like: test_tidy.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "marker_sim"
MODULES = tuple(sorted(PACKAGE.rglob("*.py")))
PACKAGE_LINES_MAX = 60_225
FOLDER_FILES_MAX = 15
# Folders that have more files, and how many; lowered as they shrink.
LARGE_FOLDERS: dict[str, int] = {}
# Modules so short need a reason (a table, what must not import what its neighbours do, a module that mutants replace);
# the face of a package is none of them.
SHORT_LINES = 100
SHORT_MODULES_MAX = 55


def test_the_package_does_not_grow() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    assert lines <= PACKAGE_LINES_MAX, (
        f"marker_sim has {lines:,} lines, {PACKAGE_LINES_MAX:,} are allowed; make something else simpler, or say in"
        " docs/decisions.md what is worth them"
    )


def test_folders_have_few_files() -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in files)
    assert {folder: count for folder, count in counts.items() if count > FOLDER_FILES_MAX} == LARGE_FOLDERS


def test_short_modules_become_fewer() -> None:
    short = [
        path
        for path in MODULES
        if path.name != "__init__.py" and path.read_text(encoding="utf-8").count("\n") < SHORT_LINES
    ]
    assert len(short) <= SHORT_MODULES_MAX, (
        f"{len(short)} modules have fewer than {SHORT_LINES} lines, {SHORT_MODULES_MAX} are allowed; let a new one join"
        " the module that it belongs to"
    )

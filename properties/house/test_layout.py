"""How large the package, its rooms and folders may be: sums that only fall. How a module may look: test_tidy.py."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "marker_sim"
MODULES = tuple(sorted(PACKAGE.rglob("*.py")))
LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
TOKENS_MAX = 424_735
# The tokens of each folder and module below the package, without comments, docstrings and layout.
ROOMS = {
    "__init__.py": 235,
    "__main__.py": 16,
    "campaign": 47_850,
    "cli": 17_767,
    "command": 5_508,
    "errors.py": 57,
    "faults": 5_557,
    "history": 17_192,
    "interface": 3_955,
    "judges": 51_461,
    "loading.py": 588,
    "markers": 7_184,
    "mutants": 5_883,
    "names.py": 1_035,
    "options.py": 504,
    "outcome": 12_751,
    "plan.py": 2_590,
    "pytest_plugin.py": 788,
    "reading.py": 567,
    "report": 26_432,
    "seams.py": 820,
    "search": 34_180,
    "serve": 7_821,
    "storages": 4_103,
    "surroundings": 6_578,
    "system.py": 491,
    "tables": 17_423,
    "targets": 23_498,
    "timeline.py": 1_666,
    "unusual_names.py": 636,
    "worlds": 114_202,
    "writer": 5_397,
}
FOLDER_FILES_MAX = 15
# Folders that have more files, and how many; lowered as they shrink.
LARGE_FOLDERS: dict[str, int] = {}
# Modules so short need a reason (a table, what must not import what its neighbours do, a module that mutants replace);
# the face of a package is none of them.
SHORT_LINES = 100
SHORT_MODULES_MAX = 55


def tokens_of(path: Path) -> int:
    """How many tokens a module has without comments, docstrings and layout."""
    text = path.read_text(encoding="utf-8")
    told: set[int] = set()  # The lines of docstrings.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
                told |= {*range(first.lineno, first.end_lineno + 1)} if isinstance(first.value.value, str) else set()
    read = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in LAYOUT and token.start[0] not in told for token in read)


def test_the_package_does_not_grow() -> None:
    rooms: Counter[str] = Counter()
    for path in MODULES:
        rooms[path.relative_to(PACKAGE).parts[0]] += tokens_of(path)
    assert sum(ROOMS.values()) <= TOKENS_MAX, "a room that grows needs one that shrinks"
    assert dict(rooms) == ROOMS, {room: rooms[room] - ROOMS.get(room, 0) for room in rooms.keys() | ROOMS.keys()}


def test_folders_have_few_files() -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in files)
    assert {folder: count for folder, count in counts.items() if count > FOLDER_FILES_MAX} == LARGE_FOLDERS


def test_tests_of_parts_lie_in_folders() -> None:
    assert sorted(path.name for path in PACKAGE.parent.joinpath("properties").glob("test_*.py")) == []


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

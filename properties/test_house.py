"""One of each: mechanisms that stood in the package more than once, and may not do so again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from properties.test_layout import MODULES, PACKAGE

CLASSES = tuple(
    node
    for path in MODULES
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
)
# Functions of a complexity above 12 (ruff C901), by file: a list that only becomes shorter.
COMPLEX = {
    "history/index/event_reader.py": 2,
    "judges/store/durability.py": 1,
    "outcome/process_phase.py": 1,
    "plan.py": 2,
    "worlds/disk.py": 1,
    "worlds/s3_front/requests.py": 1,
    "worlds/simulated/storage.py": 1,
}


def methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def test_one_class_enumerates_numbered_calls() -> None:
    walks = {node.name: bases(node) for node in CLASSES if methods(node) >= {"next", "took"}}
    assert walks == {"Walk": {"CallWalk"}, "TableWalk": {"CallWalk"}}


def test_one_pool_performs_tasks_in_parallel() -> None:
    assert [node.name for node in CLASSES if methods(node) >= {"give", "answers"}] == ["TaskPool"]


def test_the_time_limit_needs_no_process() -> None:
    text = (PACKAGE / "surroundings" / "time_limit.py").read_text(encoding="utf-8")
    assert "subprocess" not in text and "fork" not in text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_code_is_formatted_and_says_where_it_is_complex(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "fmt: skip" not in text and text.count("fmt: off") == (path.name == "app.py" and path.parent.name == "cli")
    assert text.count("noqa: C901") == COMPLEX.get(path.relative_to(PACKAGE).as_posix(), 0)


def test_judges_read_errors_of_calls_by_their_enum() -> None:
    for path in MODULES:
        if not {"judges", "index", "outcome"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
                texts = [each for each in node.args if isinstance(each, ast.Constant)]
                assert not texts or ".error" not in ast.unparse(node.func.value), f"{path}:{node.lineno}"

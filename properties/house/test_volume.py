"""What CI plays again is what does more there: `depending` sees each way in which a test has its volume."""

from __future__ import annotations

import ast
from pathlib import Path

from properties.package_tree import ROOT, text_of, tree_of
from properties.volume import depending

SUITES = tuple(sorted(path for folder in ("properties", "scenarios") for path in (ROOT / folder).rglob("*.py")))
MODULE = """
from properties.volume import CI_ONLY, part, volume as how_many
RUNS = how_many(4)
SHORT = 1
LONG = RUNS + 1

@pytest.fixture
def campaign(): return LONG

@pytest.fixture
def other(): return SHORT

class Stand:
    def runs(self): return RUNS

def test_by_a_fixture(campaign): ...

@pytest.mark.usefixtures("campaign")
def test_by_the_name_of_a_fixture(): ...

@pytest.mark.parametrize("each", part((1, 2)))
def test_by_its_parameters(each): ...

def test_by_a_class(): assert Stand().runs()

def test_by_a_call(): assert how_many(8)

@CI_ONLY
def test_by_a_mark_alone(other): assert SHORT
"""


def test_a_test_depends_on_the_profile_by_constants_fixtures_parameters_and_calls(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    found = depending(tmp_path / "module.py")
    assert found >= {"RUNS", "LONG", "campaign", "Stand"}
    assert {name for name in found if name.startswith("test_")} == {
        "test_by_a_fixture",
        "test_by_the_name_of_a_fixture",
        "test_by_its_parameters",
        "test_by_a_class",
        "test_by_a_call",
    }


def test_nobody_imports_what_depends_on_the_profile_from_another_module() -> None:
    """Such a test would not be seen to do more in CI, nor would those of a module with such a fixture for all."""
    sized = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): depending(path)
        for path in SUITES
        if "properties.volume" in text_of(path)
    }
    crossed = []
    for path in SUITES:
        text = text_of(path)
        for node in tree_of(path).body if "autouse" in text or any(name in text for name in sized) else ():
            if isinstance(node, ast.ImportFrom) and node.module in sized and node.module != "properties.volume":
                crossed += [f"{path.name}: {each.name}" for each in node.names if each.name in sized[node.module]]
            elif isinstance(node, ast.FunctionDef) and "autouse=True" in "".join(map(ast.unparse, node.decorator_list)):
                crossed += [f"{path.name}: {node.name}"] if node.name in depending(path) else []
    assert len(sized) > 20 and crossed == []

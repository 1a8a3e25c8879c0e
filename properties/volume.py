"""How much tests of volume do: all of it in CI and by night, a quarter of it by default.

MARKER_SIM_PROFILE   quick (default), ci (default where CI is set) or nightly
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

Item = TypeVar("Item")
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
PROFILE = os.environ.get("MARKER_SIM_PROFILE", "ci" if IN_CI else "quick")
NIGHTLY = PROFILE == "nightly"
SHARE = 4
# Of a test that costs much and shows again, with another system or elsewhere, what a cheaper one shows by default.
CI_ONLY = pytest.mark.ci


def volume(ci: int, *, quick: int = 0, nightly: int = 0) -> int:
    """A number of runs by the profile. quick: 0 for a quarter of `ci`. nightly: 0 for `ci`."""
    if PROFILE == "quick":
        return quick or -(-ci // SHARE)
    return nightly or ci if NIGHTLY else ci


def part(items: Sequence[Item]) -> Sequence[Item]:
    """Every fourth of them by default, all in CI and by night."""
    return items[::SHARE] if PROFILE == "quick" else items


def is_larger(item: pytest.Item) -> bool:
    """Whether a test does more in CI than by default: it depends on what the profile decides, or Hypothesis draws."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return True
    if not isinstance(item, pytest.Function):
        return False
    names = vars(item.module)
    if not any(names.get(name) is of_profile for name, of_profile in _OF_PROFILE.items()):
        return False
    top = item.cls.__name__ if item.cls else item.originalname
    return top in depending(item.path)


@cache
def depending(path: Path) -> frozenset[str]:
    """The names at the top of a module that depend on the profile: constants, fixtures, tests, whatever uses these.

    A name counts wherever it is read, as an argument (of a fixture) and in quotes; what other modules do does not.
    """
    body = ast.parse(path.read_text(encoding="utf-8")).body
    found = {
        alias.asname or alias.name
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module == __name__
        for alias in node.names
        if alias.name in _OF_PROFILE
    }
    uses = [(_made(node), _used(node)) for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    before = 0
    while before < len(found):
        before = len(found)
        found.update(*(made for made, used in uses if used & found))
    return frozenset(found)


def _made(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def _used(node: ast.stmt) -> set[str]:
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    used |= {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
    return used | {str(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Constant)}


_OF_PROFILE = {"volume": volume, "part": part, "SHARE": SHARE, "PROFILE": PROFILE}

"""Starts `marker-sim` with one module of serve/ changed: the process of a mutant, and of nothing else.

`start([KEY, "serve", "--base", DIR, ...])` is the command with the change of that key; with the key alone it gives 0
when the changed module can be imported. No module of the kit imports this one: served.py starts it as a process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from marker_sim.cli import main
from marker_sim.errors import UsageError
from marker_sim.mutants.load import source_of
from tools.generated_mutants.syntax import Change, changes_of

SERVE = "marker_sim.serve."


def find_change(key: str) -> Change:
    """The change of serve/ with a key; UsageError when there is none."""
    module = SERVE + key.rpartition("-")[0]
    try:
        text = source_of(module)[1]
    except (AssertionError, ModuleNotFoundError):
        text = ""
    for change in changes_of(module.removeprefix("marker_sim."), text):
        if change.key == key:
            return change
    raise UsageError(f"there is no change {key!r} of serve/; keys are in generated.json of tools.generated_mutants")


def start(words: Sequence[str]) -> int:
    """Import the changed module, then do what the other words say; the exit code."""
    key, *rest = words
    change = find_change(key)
    sys.meta_path.insert(0, _Finder(change))
    import_module(f"marker_sim.{change.module}")
    return main(rest) if rest else 0


class _Finder(MetaPathFinder):
    """Finds the changed module alone."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Its spec; None for every other module."""
        if fullname != f"marker_sim.{self._change.module}":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(self._change, fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the changed text; a stored compilation of the module is left alone."""

    def __init__(self, change: Change, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        """Of the changed text."""
        path = self.get_filename(fullname)
        text = self.get_data(path).decode("utf-8")
        return compile(self._change.applied(text), path, "exec", dont_inherit=True)

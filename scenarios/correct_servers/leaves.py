"""Sorted files, as the leaves of a tree: each MARKERS<n> has a range of names. Two servers share locks.

A file that is too long gives its upper half to a new one before it loses it, so a name is in two files for a moment and
never in none.

    python leaves.py PORT ROOT FILES
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import check, insist, lines, locked, remove, replace, text, typed
from scenarios.correct_servers.plain_http import Markers, serve

LONG = 6  # Names in a file; only when no file is free it may be longer.


class Leaves(Markers):
    """Remembers nothing."""

    def __init__(self, root: str, files: int) -> None:
        self._root = root
        self._files = [f"MARKERS{number}" for number in range(files)]

    def create(self, directory: str, name: str) -> bool:
        """Into the file whose range it is."""
        with locked(self._root, directory):
            return insist(lambda: self._add(directory, name))

    def names(self, directory: str) -> list[str]:
        """Of all files, each once."""
        with locked(self._root, directory):
            return sorted({name for leaf in self._leaves(directory).values() for name in leaf})

    def delete(self, directory: str) -> bool:
        """One file after the other."""
        with locked(self._root, directory):
            return remove(directory)

    def _leaves(self, directory: str) -> dict[str, list[str]]:
        found = {file: lines(f"{directory}/{file}") for file in self._files}
        return {file: names for file, names in found.items() if names}

    def _add(self, directory: str, name: str) -> bool:
        leaves = self._leaves(directory)
        if any(name in leaf for leaf in leaves.values()):
            return False
        typed(directory)
        free = [file for file in self._files if not os.path.lexists(f"{directory}/{file}")]
        file = _leaf_of(name, leaves) or free.pop(0)
        names = sorted([*leaves.get(file, []), name])
        kept = file
        if free and len(names) > LONG:
            names, upper = names[: len(names) // 2], names[len(names) // 2 :]
            replace(f"{directory}/{free[0]}", text(upper))
            kept = free[0] if name in upper else file
        replace(f"{directory}/{file}", text(names))
        check(directory, f"{directory}/{kept}", name)
        return True


def _leaf_of(name: str, leaves: dict[str, list[str]]) -> str:
    """The last file that begins before a name, or else the first of all; "" if there is none."""
    by_beginning = sorted(leaves, key=lambda file: leaves[file][0])
    before = [file for file in by_beginning if leaves[file][0] < name]
    return before[-1] if before else next(iter(by_beginning), "")


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Leaves(sys.argv[2], int(sys.argv[3])))

"""MARKERS0 is a symbolic link to the newest version of the file; a new link is renamed over it. Servers share locks.

python versions.py PORT ROOT
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import check, fresh, insist, lines, locked, remove, text, typed, write
from scenarios.correct_servers.plain_http import Markers, serve


class Versions(Markers):
    """Remembers nothing."""

    def __init__(self, root: str) -> None:
        self._root = root

    def create(self, directory: str, name: str) -> bool:
        """The version before is removed at once."""
        path = f"{directory}/MARKERS0"

        def once() -> bool:
            typed(directory)
            known = lines(path)
            if name in known:
                return False
            before = os.readlink(path) if os.path.islink(path) else ""
            version, link = fresh(path, "version"), fresh(path, "link")
            write(os.open(version, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), text([*known, name]))
            os.symlink(os.path.basename(version), link)
            os.rename(link, path)
            if before:
                with suppress(FileNotFoundError):
                    os.unlink(f"{directory}/{before}")
            check(directory, path, name)
            return True

        with locked(self._root, directory):
            return insist(once)

    def names(self, directory: str) -> list[str]:
        """As they are in storage; without the lock the version could be removed before it is opened."""
        with locked(self._root, directory):
            return lines(f"{directory}/MARKERS0")

    def delete(self, directory: str) -> bool:
        """One file after the other."""
        with locked(self._root, directory):
            return remove(directory)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Versions(sys.argv[2]))

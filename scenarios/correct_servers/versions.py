"""MARKERS0 is a symbolic link to the newest version of the file; a new link is renamed over it. Servers share locks.

python versions.py PORT ROOT
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import add, fresh, insist, lines, locked, remove, write
from scenarios.correct_servers.plain_http import Markers, serve


class Versions(Markers):
    """Remembers nothing."""

    def __init__(self, root: str) -> None:
        self._root = root

    def create(self, directory: str, name: str) -> bool:
        """A new version is published."""
        with locked(self._root, directory):
            return insist(lambda: add(directory, name, publish=_publish))

    def names(self, directory: str) -> list[str]:
        """As they are in storage; without the lock the version could be removed before it is opened."""
        with locked(self._root, directory):
            return lines(f"{directory}/MARKERS0")

    def delete(self, directory: str) -> bool:
        """One file after the other."""
        with locked(self._root, directory):
            return remove(directory)


def _publish(path: str, data: bytes) -> None:
    """The version before is removed at once."""
    before = os.readlink(path) if os.path.islink(path) else ""
    version, link = fresh(path, "version"), fresh(path, "link")
    write(os.open(version, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), data)
    os.symlink(os.path.basename(version), link)
    os.rename(link, path)
    if before:
        with suppress(FileNotFoundError):
            os.unlink(f"{os.path.dirname(path)}/{before}")


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], Versions(sys.argv[2]))

"""Odd: five objects, a name's checksum says which; each holds a JSON array and is replaced only if unchanged."""

from __future__ import annotations

import json
from zlib import crc32

from marker_sim.markers.store import Created
from marker_sim.seams import Conflicted, Content, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape

BUCKETS = 5


class Markers(Shape):
    """Creates of different buckets do not meet."""

    def create(self, name: str) -> Created:
        """Newest first, for no reason."""
        path = self._path(crc32(self.check(name).encode()) % BUCKETS)
        while True:
            there = self.read(path)
            names = _names(there)
            if name in names:
                return Created.EXISTS
            try:
                self.replace(path, json.dumps([name, *names]).encode(), there)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """All buckets, one after another: what was answered before is in one of them."""
        return tuple(name for number in range(BUCKETS) for name in _names(self.read(self._path(number))))

    def _path(self, number: int) -> str:
        return f"{self.prefix}buckets/{number}.json"


def _names(there: Content | None) -> list[str]:
    names: list[str] = json.loads(there.data) if there else []
    return names

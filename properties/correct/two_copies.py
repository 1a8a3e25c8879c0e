"""Odd: slow and careful. Each marker is two objects, each read back before the answer, and pauses lie between."""

from __future__ import annotations

from hashlib import sha256

from marker_sim.markers.store import Created
from marker_sim.seams import Condition, Conflicted, NotFound, PreconditionFailed
from properties.correct.shape import Shape

PAUSE_MS = 150.0
COPIES = ("left", "right")


class Markers(Shape):
    """left/<digest> decides who made it; either copy is enough for a reader."""

    def create(self, name: str) -> Created:
        """Also who was not the first sees to it that both copies are there."""
        digest, made = sha256(self.check(name).encode()).hexdigest(), Created.EXISTS
        for copy in COPIES:
            self.runtime.sleep(PAUSE_MS)
            path = f"{self.prefix}{copy}/{digest}"
            try:
                self.storage.put(path, name.encode(), Condition.IF_ABSENT)
                made = Created.CREATED if copy == COPIES[0] else made
            except PreconditionFailed:
                pass
            self.runtime.sleep(PAUSE_MS)
            try:
                self.storage.get(path)
            except NotFound:
                raise Conflicted("the directory is being deleted") from None
        return made

    def list_all(self) -> tuple[str, ...]:
        """The union of both copies."""
        found: set[str] = set()
        for copy in COPIES:
            below = f"{self.prefix}{copy}/"
            whole = [path for path in self.storage.list(below) if len(path) == len(below) + 64]
            found |= {data.decode() for data in self.read_all(whole).values()}
        return tuple(sorted(found))

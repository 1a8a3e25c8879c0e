"""Odd: one object a marker, its path the name's bytes as hex digits, cut so that no segment is long."""

from __future__ import annotations

from marker_sim.markers.store import Created
from marker_sim.seams import Condition, Conflicted, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape

CUT = 200
END = ".hex"


class Markers(Shape):
    """Works wherever put-if-absent does."""

    def create(self, name: str) -> Created:
        """The storage says who was first."""
        digits = self.check(name).encode().hex()
        path = self.prefix + "/".join(digits[at : at + CUT] for at in range(0, len(digits), CUT)) + END
        while True:
            try:
                self.storage.put(path, b"", Condition.IF_ABSENT)
            except PreconditionFailed:
                return Created.EXISTS
            except Conflicted:
                self.runtime.sleep(AGAIN_MS)
                continue
            return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """Names decoded from paths; files with another ending are not ours."""
        own = (path[len(self.prefix) :] for path in self.storage.list(self.prefix) if path.endswith(END))
        return tuple(bytes.fromhex(path.removesuffix(END).replace("/", "")).decode() for path in own)

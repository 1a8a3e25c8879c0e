"""Odd: a directory is one object, sorted lines without doubles, replaced only if it is what was read (If-Match)."""

from __future__ import annotations

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Conflicted, Content, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape


class Markers(Shape):
    """Every create rewrites everything."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = f"{self.prefix}names.txt"

    def create(self, name: str) -> Created:
        """Reads again after a conflict."""
        self.check(name)
        while True:
            there = self.read(self.path)
            names = _names(there)
            if name in names:
                return Created.EXISTS
            try:
                self.replace(self.path, "".join(f"{one}\n" for one in sorted({*names, name})).encode(), there)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """What the object holds."""
        return _names(self.read(self.path))


def _names(there: Content | None) -> tuple[str, ...]:
    return tuple(there.data.decode().split("\n")[:-1]) if there else ()

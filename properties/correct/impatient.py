"""Odd: one object as in one_object.py, but whoever is too late is told so: an error that says "ask again", no retry."""

from __future__ import annotations

from marker_sim.markers.store import Created
from marker_sim.seams import Conflicted, PreconditionFailed
from properties.correct.one_object import Markers as OneObject


class Markers(OneObject):
    """Errors are frequent and every answer is right."""

    def create(self, name: str) -> Created:
        """One try."""
        self.check(name)
        there = self.read(self.path)
        names = there.data.decode().split("\n")[:-1] if there else []
        if name in names:
            return Created.EXISTS
        try:
            self.replace(self.path, "".join(f"{one}\n" for one in [*names, name]).encode(), there)
        except PreconditionFailed as late:
            raise Conflicted("somebody else was faster; nothing was done, ask again") from late
        return Created.CREATED

"""A mutant of the reference: one line of its source broken on purpose, by the name in the catalogue."""

from __future__ import annotations

from marker_sim.targets.python import PythonTarget
from marker_sim.targets.target import Target, TargetRow


def _parse(text: str) -> Target | None:
    name, _, mutant = text.partition(":")
    return PythonTarget(sut=text) if name == "mutant" and mutant else None


ROW = TargetRow("mutant:NAME", _parse, plans=True)

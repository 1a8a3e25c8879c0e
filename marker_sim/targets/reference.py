"""The reference: the kit's own markers and write path, in the simulated world."""

from __future__ import annotations

from marker_sim.targets.python import PythonTarget
from marker_sim.targets.target import Target, TargetRow


def _parse(text: str) -> Target | None:
    return PythonTarget(sut=text) if text == "reference" else None


ROW = TargetRow("reference", _parse, plans=True)

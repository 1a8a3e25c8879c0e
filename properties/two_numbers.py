"""The settings of a fault from two numbers: what lasts, and the other one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from marker_sim.faults import FaultKind
from properties.faces.faults import FaultSettings

_TYPES = {field.name: type(field.default) for field in fields(FaultSettings)}


def settings_of(kind: FaultKind, duration_ms: int, value: int) -> FaultSettings:
    """The settings of a kind: its duration, and its other number."""
    lasts, other = kind.row.slots
    given: dict[str, Any] = {lasts: duration_ms} if lasts and kind is not FaultKind.THROTTLED else {}
    if other:
        given[other] = value == (0 if other == "empty" else 2) if _TYPES[other] is bool else value
    return FaultSettings(**given)

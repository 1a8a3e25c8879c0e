"""When a fault arms: at a step of its target, at a named place, or at a call on storage that fits a description.

All three count: steps and arrivals over all lives of the target, calls over all who make them.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from marker_sim.faults.row import ANY_CALL, CHANGES
from marker_sim.faults.sites import SITES

When = Literal["before", "after"]
OPEN, CUT = "open", "cut"  # A local file is opened; a file with content is truncated to be rewritten.
_OPERATIONS = (*ANY_CALL, OPEN, CUT)
_WHENS: tuple[When, ...] = ("before", "after")


class Step(NamedTuple):
    """The target's `n`-th call through a seam, from 1."""

    n: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"step": self.n}

    def problem(self) -> str:
        """The reason why no world can run it, "" when one can; the same in the classes below."""
        return ""


class Site(NamedTuple):
    """The target's `n`-th arrival, from 1, at a place of `sites.SITES`."""

    name: str
    n: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"site": self.name, "arrival": self.n}

    def problem(self) -> str:
        """The error for an unknown site, else ""."""
        return "" if self.name in SITES else f"site {self.name!r} is none of those in marker_sim/faults/sites.py"


class Call(NamedTuple):
    """The `n`-th matching storage call, from 1, by a process whose name begins with the fault's target.

    pattern: a regular expression searched for in the path.
    operations: those of `_OPERATIONS` that count.
    when: for kinds that kill or pause, before or after the call is applied.
    """

    pattern: str = ""
    operations: tuple[str, ...] = CHANGES
    n: int = 1
    when: When = "before"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"call": self.n, "path": self.pattern, "operations": list(self.operations), "when": self.when}

    def problem(self) -> str:
        """The error for an unknown operation or moment, or a pattern that is no regular expression, else ""."""
        if strange := [operation for operation in self.operations if operation not in _OPERATIONS]:
            return f"operation {strange[0]!r} of a fault is none of {', '.join(_OPERATIONS)}"
        if self.when not in _WHENS:
            return f"{self.when!r} is not when a fault happens; give {' or '.join(_WHENS)}"
        try:
            re.compile(self.pattern)
        except re.error as error:
            return f"path {self.pattern!r} of a fault is no regular expression: {error}"
        return ""


Trigger = Step | Site | Call


def pop_trigger(raw: dict[str, Any]) -> Trigger:
    """The trigger, removed from the JSON-ready form of a fault."""
    if site := raw.pop("site", ""):
        return Site(site, raw.pop("arrival"))
    if "call" in raw:
        return Call(raw.pop("path"), tuple(raw.pop("operations")), raw.pop("call"), raw.pop("when"))
    return Step(raw.pop("step"))

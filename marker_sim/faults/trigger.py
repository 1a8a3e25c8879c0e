"""When a fault arms: at a step of its target, at a named place, or at a call on storage that fits a description.

All three count: steps and arrivals over all lives of the target, calls over all who make them.
"""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """The target's `n`-th call through a seam, from 1."""

    n: int


class Site(NamedTuple):
    """The target's `n`-th arrival, from 1, at a place of `sites.SITES`."""

    name: str
    n: int


Trigger = Step | Site

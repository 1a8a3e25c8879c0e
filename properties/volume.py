"""How much tests of volume do: all of it in CI and by night, a quarter of it by default.

MARKER_SIM_PROFILE   quick (default), ci (default where CI is set) or nightly
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item")
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
PROFILE = os.environ.get("MARKER_SIM_PROFILE", "ci" if IN_CI else "quick")
NIGHTLY = PROFILE == "nightly"
SHARE = 4
# Of a test that costs much and shows again, with another system or elsewhere, what a cheaper one shows by default.
CI_ONLY = pytest.mark.ci


def volume(ci: int, *, quick: int = 0, nightly: int = 0) -> int:
    """A number of runs by the profile. quick: 0 for a quarter of `ci`. nightly: 0 for `ci`."""
    if PROFILE == "quick":
        return quick or -(-ci // SHARE)
    return nightly or ci if NIGHTLY else ci


def part(items: Sequence[Item]) -> Sequence[Item]:
    """Every fourth of them by default, all in CI and by night."""
    return items[::SHARE] if PROFILE == "quick" else items


def is_larger(item: pytest.Item) -> bool:
    """Whether a test does more in CI than by default: its module asks for it, or Hypothesis draws its examples."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return True
    names = vars(item.module) if isinstance(item, pytest.Function) else {}
    return any(names.get(name) is of_profile for name, of_profile in _OF_PROFILE.items())


_OF_PROFILE = {"volume": volume, "part": part, "SHARE": SHARE, "PROFILE": PROFILE}

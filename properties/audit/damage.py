"""What a damage of a table is, and the list of all that the modules beside this one add to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Damaging = Callable[[Path], str]


class Damage(NamedTuple):
    """A damage: its number among the required ones (0 for a further one) and the kinds of finding that tell it."""

    name: str
    number: int
    told_by: tuple[str, ...]
    do: Damaging


DAMAGES: dict[str, Damage] = {}


def damage(name: str, number: int, *told_by: str) -> Callable[[Damaging], Damaging]:
    """Add a damage."""

    def decorate(do: Damaging) -> Damaging:
        assert name not in DAMAGES, name
        DAMAGES[name] = Damage(name, number, told_by, do)
        return do

    return decorate

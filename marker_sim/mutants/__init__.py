"""Mutants: the reference with one line broken on purpose, each a released defect or a plausible mistake.

serving.py, storing.py, codec.py, writing.py, rolling_back.py, found.py  the mutants, by part of the reference
load.py                  all mutants; builds a system from the changed source text

A mutant is a change of source text, applied to a private copy of the reference's modules, so it differs from the
reference in exactly what its entry shows.
"""

from __future__ import annotations

from dataclasses import dataclass

_OF_WRITES = frozenset({"G13", "G14", "G15", "G16", "G17", "G18", "G19", "G20", "G21", "G24", "G25"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mistake: in a module of `marker_sim`, `before`, which occurs once, becomes `after`.

    record: the public record of a released Hudi defect (P pull request, I issue, HUDI ticket of apache/hudi), or
    "plausible" for a mistake that a programmer could make. kills: the guarantee that must find it when judged alone.
    also: further changes (module, before, after) of a mistake that is made in more than one place.
    """

    name: str
    record: str
    module: str
    before: str
    after: str
    kills: str
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def changes(self) -> tuple[tuple[str, str, str], ...]:
        """Every change, as (module, before, after)."""
        return ((self.module, self.before, self.after), *self.also)

    @property
    def of_writes(self) -> bool:
        """Whether plans of writes can find it; the others are found by operations on marker directories."""
        return self.kills in _OF_WRITES

"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module of `marker_sim`: `before`, which occurs once, becomes `after`.

    record: the public record of a released Hudi defect (P pull request, I issue, HUDI ticket of apache/hudi), or
    "plausible" for a mistake that somebody could make. kills: the guarantee that must find it when judged alone.
    """

    name: str
    record: str
    module: str
    before: str
    after: str
    kills: str

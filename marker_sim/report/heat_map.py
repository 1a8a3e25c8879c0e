"""Faults by phase as a map: how often each kind struck in each phase, and which cells are empty or impossible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from marker_sim.campaign.coverage.fault_matrix import PHASES
from marker_sim.campaign.result import MatrixRow

SHADES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """One fault kind in one phase.

    state: "met", "unmet" for possible and not reached, or "impossible".
    shade: 1 to SHADES by the logarithm of the count, 0 for none.
    shown: the count in at most four characters. says: all of it in words.
    """

    state: str
    shade: int
    shown: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A map. roles: each with its number of phases. phases: without the role. rows: by kind, with the total."""

    roles: tuple[tuple[str, int], ...]
    phases: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[HeatCell, ...]], ...]


def heat_map(rows: Sequence[MatrixRow]) -> HeatMap:
    """The map of a campaign, a column for each phase that at least one kind can strike in, grouped by role."""
    known = dict.fromkeys(phase for row in rows for phase in (*row.unmet, *row.met, *row.impossible))
    columns = [*(phase for phase in PHASES if phase in known), *(phase for phase in known if phase not in PHASES)]
    roles = list(dict.fromkeys(phase.partition(":")[0] for phase in columns))
    columns.sort(key=lambda phase: roles.index(phase.partition(":")[0]))
    most = max((count for row in rows for count in row.met.values()), default=1)
    counts = [sum(phase.partition(":")[0] == role for phase in columns) for role in roles]
    return HeatMap(
        roles=tuple(zip(roles, counts, strict=True)),
        phases=tuple(phase.partition(": ")[2] for phase in columns),
        rows=tuple(
            (row.kind, sum(row.met.values()), tuple(_cell(row, phase, most) for phase in columns)) for row in rows
        ),
    )


def _cell(row: MatrixRow, phase: str, most: int) -> HeatCell:
    count = row.met.get(phase, 0)
    if count:
        times = "once" if count == 1 else f"{count:,} times"
        return met_cell(count, most, f"{row.kind} in {phase}: {times}")
    if phase in row.unmet:
        return HeatCell(state="unmet", shade=0, shown="0", says=f"{row.kind} in {phase}: possible, not reached")
    why = row.impossible.get(phase, f"a {phase.partition(':')[0]} cannot have this fault")
    return HeatCell(state="impossible", shade=0, shown="", says=f"{row.kind} in {phase}: impossible, {why}")


def met_cell(count: int, most: int, says: str) -> HeatCell:
    """The cell for a count; most: the largest count of the map."""
    shade = 1 + round((SHADES - 1) * log(count) / log(most)) if most > 1 else SHADES
    return HeatCell(state="met", shade=shade, shown=short(count), says=says)


def short(count: int) -> str:
    """A count in at most four characters."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size}{unit}"
    return str(count)

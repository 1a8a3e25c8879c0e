"""Two systems on the same plans, for people: a row for each guarantee, a column for each system, and what differs."""

from __future__ import annotations

from collections.abc import Sequence

from marker_sim.campaign.comparison import ComparedViolation, Comparison
from marker_sim.judges.verdict_row import VerdictRow

Cell = tuple[str, str]


def comparison_rows(rows: Sequence[VerdictRow], comparison: Comparison) -> tuple[tuple[str, str, Cell, Cell], ...]:
    """Rows of guarantee, mode and storage, and for each system its verdict and its violations or judgements.

    rows: of the system of `--sut`. What does not apply to either is left out.
    """
    places = list(dict.fromkeys((row.id, row.mode, row.storage) for row in (*rows, *comparison.rows)))
    places.sort(key=lambda place: (int(place[0][1:]), place))
    found = []
    for place in places:
        mine, other = (
            next((row for row in each if (row.id, row.mode, row.storage) == place), None)
            for each in (rows, comparison.rows)
        )
        known = mine or other
        assert known is not None
        if {row.verdict for row in (mine, other) if row is not None} == {"not-applicable"}:
            continue
        found.append((f"{known.id:<4}{known.slug}", f"{known.mode} on {known.storage}", _cell(mine), _cell(other)))
    return tuple(found)


def comparison_lines(comparison: Comparison) -> tuple[str, ...]:
    """Lines: what one system alone breaks, what both break, and the results of each one's plans on the other."""
    first, second = names(comparison)
    places = {each.kind[1:3] for each in comparison.violations}

    def words(kind: tuple[str, str, str, str]) -> str:
        guarantee, mode, storage, cause = kind
        where = f", {mode} on {storage}" if len(places) > 1 else ""
        return f"{guarantee} ({cause}{where})"

    def listed(found: Sequence[ComparedViolation]) -> str:
        return ", ".join(f"{words(each.kind)} {each.counts[0]:,}:{each.counts[1]:,}" for each in found) or "nothing"

    lines = [
        f"only {first} breaks: {listed(comparison.broken_by(True, False))}",
        f"only {second} breaks: {listed(comparison.broken_by(False, True))}",
        f"both break: {listed(comparison.broken_by(True, True))}",
    ]
    for each in comparison.crossed:
        there, here = (second, first) if each.on_second else (first, second)
        runs = f"{each.broke} of {each.runs} run{'' if each.runs == 1 else 's'}"
        lines.append(f"the plan for {words(each.kind)} of {here} breaks it on {there} in {runs}")
    if comparison.second.trouble:
        lines.append(f"the kit could not complete the campaign against {second}: {comparison.second.trouble}")
    return tuple(lines)


def names(comparison: Comparison) -> tuple[str, str]:
    """Different names for the two systems; equal ones are numbered in the order of the command line."""
    one, other = comparison.first.sut, comparison.second.sut
    return (f"{one} (--sut)", f"{other} (--against)") if one == other else (one, other)


def _cell(row: VerdictRow | None) -> Cell:
    if row is None:
        return "-", ""
    return row.verdict, f"{row.violations:,} violations" if row.violations else f"{row.judged:,} judged"

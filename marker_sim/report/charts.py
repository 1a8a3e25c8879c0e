"""Small charts for the pages, computed here and drawn by the macros of macros.html.j2 as SVG; no script.

Coordinates are of a view WIDTH wide and HEIGHT high, which scales with the page. Each mark says its values in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marker_sim.report.heat_map import short

WIDTH, HEIGHT = 320, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 6, 8, 18
_BAR_MAX = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """A rectangle. kind: its class in page.css; says: its values in words, "" for none."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLabel:
    """A text; anchor: start, middle or end."""

    x: float
    y: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """title: what is shown, also for screen readers. grid: the heights of lines across. labels: of the axes."""

    title: str
    marks: tuple[ChartMark, ...]
    grid: tuple[float, ...]
    labels: tuple[ChartLabel, ...]
    width: int = WIDTH
    height: int = HEIGHT


def bar_chart(title: str, names: Sequence[str], parts: Sequence[tuple[str, str, Sequence[int]]]) -> Chart:
    """A bar for each name, its parts on top of each other; parts: kind, what it is in words, a value for each name."""
    totals = [sum(values) for values in zip(*(values for _, _, values in parts), strict=True)]
    most = max(totals, default=0) or 1
    room = (WIDTH - _LEFT - _RIGHT) / max(1, len(names))
    wide = min(_BAR_MAX, room * 0.75)
    marks = []
    for place, name in enumerate(names):
        y = float(HEIGHT - _BOTTOM)
        for kind, what, values in parts:
            high = values[place] / most * (HEIGHT - _TOP - _BOTTOM)
            y -= high
            x = _LEFT + room * place + (room - wide) / 2
            says = f"{name}: {values[place]:,} {what}"
            marks.append(_mark(kind, x, y, wide, high, says))
    every = max(1, -(-len(names) * 26 // (WIDTH - _LEFT)))
    labels = [
        ChartLabel(
            x=_rounded(_LEFT + room * (place + 0.5)), y=HEIGHT - 5, text=name.rpartition(" ")[2], anchor="middle"
        )
        for place, name in enumerate(names)
        if place % every == 0
    ]
    return Chart(title=title, marks=tuple(marks), grid=(_TOP, HEIGHT - _BOTTOM), labels=(*_scale(most), *labels))


def _scale(most: int) -> tuple[ChartLabel, ...]:
    """The labels of the greatest value and of zero."""
    return tuple(
        ChartLabel(x=_LEFT - 4, y=y, text=text, anchor="end")
        for y, text in ((_TOP + 5, short(most)), (HEIGHT - _BOTTOM + 3, "0"))
    )


def _mark(kind: str, x: float, y: float, width: float, height: float, says: str) -> ChartMark:
    return ChartMark(kind=kind, x=_rounded(x), y=_rounded(y), width=_rounded(width), height=_rounded(height), says=says)


def _rounded(number: float) -> float:
    return round(number, 1)

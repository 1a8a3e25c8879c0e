"""Small charts for the pages, computed here and drawn by the macros of macros.html.j2 as SVG; no script.

Coordinates are of a view WIDTH wide and HEIGHT high, which scales with the page. Each mark has its values in words.
Faults by phase are a map of those that struck, and a list of the possible ones that did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log, log10

from marker_sim.campaign.coverage.fault_matrix import PHASES
from marker_sim.outcome.result import MatrixRow

SHADES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """A cell of a map.

    state: "met" or "unmet".
    shade: 1 to SHADES by the logarithm of the count, 0 for none.
    shown: the count in at most four characters. says: all of it in words.
    """

    state: str
    shade: int
    shown: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The phases in which faults struck, without empty rows and columns, and what is missing.

    roles: each with its number of phases. phases: without the role.
    rows: by kind, with the total and a cell for each phase, None where the fault did not strike.
    missing: each kind with the possible phases in which it did not strike. never: kinds that did not strike at all.
    struck, possible: pairs of a kind and a phase.
    """

    roles: tuple[tuple[str, int], ...]
    phases: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[HeatCell | None, ...]], ...]
    missing: tuple[tuple[str, str], ...]
    never: tuple[str, ...]
    struck: int
    possible: int


def heat_map(rows: Sequence[MatrixRow]) -> HeatMap:
    """The map of a campaign, its columns grouped by role."""
    known = dict.fromkeys(phase for row in rows for phase in row.met)
    columns = [*(phase for phase in PHASES if phase in known), *(phase for phase in known if phase not in PHASES)]
    roles = list(dict.fromkeys(phase.partition(":")[0] for phase in columns))
    columns.sort(key=lambda phase: roles.index(phase.partition(":")[0]))
    most = max((count for row in rows for count in row.met.values()), default=1)
    counts = [sum(phase.partition(":")[0] == role for phase in columns) for role in roles]
    struck = sum(len(row.met) for row in rows)
    return HeatMap(
        roles=tuple(zip(roles, counts, strict=True)),
        phases=tuple(phase.partition(": ")[2] for phase in columns),
        rows=tuple(
            (row.kind, sum(row.met.values()), tuple(_cell(row, phase, most) for phase in columns))
            for row in rows
            if row.met
        ),
        missing=tuple((row.kind, _phases(row.unmet)) for row in rows if row.unmet),
        never=tuple(row.kind for row in rows if not row.met),
        struck=struck,
        possible=struck + sum(len(row.unmet) for row in rows),
    )


def _phases(phases: Sequence[str]) -> str:
    """Phases by role: "server: idle, listing; driver: begin"."""
    by_role: dict[str, list[str]] = {}
    for phase in phases:
        role, _, name = phase.partition(": ")
        by_role.setdefault(role, []).append(name)
    return "; ".join(f"{role}: {', '.join(names)}" for role, names in by_role.items())


def _cell(row: MatrixRow, phase: str, most: int) -> HeatCell | None:
    count = row.met.get(phase, 0)
    times = "once" if count == 1 else f"{count:,} times"
    return met_cell(count, most, f"{row.kind} in {phase}: {times}") if count else None


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


WIDTH, TIME_WIDTH, HEIGHT = 320, 380, 120
WINDOWS_MAX = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 8, 18
_BAR_MAX = 34
_LETTER = 6.0  # Its width at most.


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
class ChartLine:
    """A line through points. kind: its class in page.css; path: its points as an SVG path."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartWindow:
    """A period, in seconds of its chart; says: its meaning in words."""

    begin: float
    end: float
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart. title: what is shown, also for screen readers. grid: heights of lines across. labels: of the axes.

    keys: kind and meaning of the marks that have to be distinguished.
    """

    title: str
    marks: tuple[ChartMark, ...]
    grid: tuple[float, ...]
    labels: tuple[ChartLabel, ...]
    lines: tuple[ChartLine, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
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
    keys = tuple((kind, what) for kind, what, _ in parts) if len(parts) > 1 else ()
    scale = ((_TOP, short(most)), (HEIGHT - _BOTTOM, "0"))
    return Chart(
        title=title, marks=tuple(marks), grid=(_TOP, HEIGHT - _BOTTOM), labels=(*_scale(scale), *labels), keys=keys
    )


def time_chart(
    title: str,
    edges: Sequence[float],
    until: float,
    lines: Sequence[tuple[str, str, Sequence[float | None]]],
    windows: Sequence[ChartWindow],
    says: Sequence[str],
    unit: str = "",
) -> Chart:
    """Values by slices of time, in seconds from 0 to `until`, with windows behind them.

    edges: where each slice begins; says: its values in words.
    lines: kind, what it is in words, a value for each slice, None for none.
    unit: of values on a logarithmic scale, "" for values on a linear one that begins at 0.
    """
    width = TIME_WIDTH
    scale = (width - _LEFT - _RIGHT) / until
    known = [value for _, _, values in lines for value in values if value is not None]
    ticks = _logarithmic(known) if unit else (0.0, _round_up(max(known, default=0.0)))
    low, high = (log10(ticks[0]), log10(ticks[-1])) if unit else ticks

    def height_of(value: float) -> float:
        place = log10(max(value, ticks[0])) if unit else value
        return HEIGHT - _BOTTOM - (place - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    shaded = _shaded(windows, scale, width)
    places = list(pairwise(_rounded(_LEFT + edge * scale) for edge in (*edges, until)))
    drawn = []
    for kind, _, values in lines:
        heights = [None if value is None else _rounded(height_of(value)) for value in values]
        drawn.append(ChartLine(kind=kind, path=_steps(places, heights)))
    slices = [
        _mark("slice", begin, _TOP, end - begin, HEIGHT - _TOP - _BOTTOM, said)
        for (begin, end), said in zip(places, says, strict=True)
    ]
    labels = [*_scale([(height_of(tick), _tick(tick, unit)) for tick in ticks])]
    step = _round_up(until / 6)
    for number in range(int(until / step) + 1):
        x, text = _LEFT + number * step * scale, f"{number * step:g} s"
        x = _rounded(min(x, width - len(text) * _LETTER / 2))
        labels.append(ChartLabel(x=x, y=HEIGHT - 5, text=text, anchor="middle"))
    keys = (*((kind, what) for kind, what, _ in lines), *([("window", "fault")] if shaded else []))
    grid = tuple(_rounded(height_of(tick)) for tick in ticks)
    return Chart(
        title=title,
        marks=(*shaded, *slices),
        grid=grid,
        labels=tuple(labels),
        lines=tuple(drawn),
        keys=keys,
        width=width,
    )


def _shaded(windows: Sequence[ChartWindow], scale: float, width: int) -> tuple[ChartMark, ...]:
    """The windows as marks; of windows that cover each other exactly, only the first."""
    found: dict[tuple[float, float], ChartMark] = {}
    for window in windows:
        x, wide = _LEFT + window.begin * scale, max(1.5, (window.end - window.begin) * scale)
        wide = min(wide, width - _RIGHT - x)
        if wide > 0 and len(found) < WINDOWS_MAX:
            mark = _mark("window", x, _TOP, wide, HEIGHT - _TOP - _BOTTOM, window.says)
            found.setdefault((mark.x, mark.width), mark)
    return tuple(found.values())


def _steps(places: Sequence[tuple[float, float]], heights: Sequence[float | None]) -> str:
    """A step line with one level for each place, interrupted where there is none."""
    path, pen = [], "M"
    for (begin, end), y in zip(places, heights, strict=True):
        if y is not None:
            path.append(f"{pen}{begin} {y}H{end}")
        pen = "M" if y is None else "L"
    return "".join(path)


def _scale(ticks: Sequence[tuple[float, str]]) -> tuple[ChartLabel, ...]:
    """The labels of the vertical axis."""
    return tuple(ChartLabel(x=_LEFT - 4, y=_rounded(y + 3.5), text=text, anchor="end") for y, text in ticks)


def _logarithmic(values: Sequence[float]) -> tuple[float, ...]:
    """Powers of ten around all values, at least two."""
    low = floor(log10(max(1e-3, min(values, default=1.0))))
    high = max(low + 1, ceil(log10(max(1e-3, *values, 1e-3))))
    return tuple(10.0**power for power in range(low, high + 1))


def _round_up(value: float) -> float:
    """The least 1, 2 or 5 times a power of ten that is not below a value."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value * 0.999999)


def _tick(value: float, unit: str) -> str:
    """A value with its unit; from 1,000 ms on in seconds."""
    if unit == "ms" and value >= 1_000:
        return f"{value / 1_000:g} s"
    return f"{value:g} {unit}".strip() if unit else short(round(value)) if value >= 10 else f"{value:g}"


def _mark(kind: str, x: float, y: float, width: float, height: float, says: str) -> ChartMark:
    return ChartMark(kind=kind, x=_rounded(x), y=_rounded(y), width=_rounded(width), height=_rounded(height), says=says)


def _rounded(number: float) -> float:
    return round(number, 1)

"""Small charts for the pages, drawn by the macros of macros.html.j2 as SVG; no script.

A chart has its values in its own units, from 0 to `until` across and from 0 to 1 upwards. Each mark has its values in
words. Faults by phase are a map of those that struck, and a list of the possible ones that did not.

Throughput and latency of a run in real time are by slices of time, with the windows of its faults; times without a
living server are a window too, because a kill is only a moment. An operation counts in the slice in which it was
answered, ok or fail; one whose outcome is unknown counts apart. Simulated runs have no such charts, because their time
is virtual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil, floor, log, log10
from typing import NamedTuple

from marker_sim.campaign.coverage.fault_matrix import PHASES
from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.outcome.result import MatrixRow
from marker_sim.report.pictures.picture import completions

SHADES = 5
WINDOWS_MAX = 200
SLICES_MAX = 48
LABELS_MAX = 10
_SLICES_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600)
_BAR_MAX = 0.13  # Of the width, for few bars; of many, each has three quarters of its place.


class HeatCell(NamedTuple):
    """A cell of a map. shade: 1 to SHADES by the logarithm of the count, 0 for none.

    shown: the count in at most four characters. says: all of it in words.
    """

    shade: int
    shown: str
    says: str


class HeatMap(NamedTuple):
    """The phases in which faults struck, without empty rows and columns, and what is missing.

    roles: each with its number of phases. phases: without the role.
    rows: by kind, with the total and a cell for each phase, None where the fault did not strike.
    missing: each kind with the possible phases in which it did not strike. never: kinds that did not strike at all.
    struck, possible: pairs of a kind and a phase.
    """

    roles: Sequence[tuple[str, int]]
    phases: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[HeatCell | None]]]
    missing: Sequence[tuple[str, str]]
    never: Sequence[str]
    struck: int
    possible: int


def heat_map(rows: Sequence[MatrixRow]) -> HeatMap:
    """The map of a campaign, its columns grouped by role."""
    known = dict.fromkeys(phase for row in rows for phase in row.met)
    columns = [*(phase for phase in PHASES if phase in known), *(phase for phase in known if phase not in PHASES)]
    roles = Counter(phase.partition(":")[0] for phase in columns)
    columns.sort(key=lambda phase: [*roles].index(phase.partition(":")[0]))
    most = max((count for row in rows for count in row.met.values()), default=1)
    struck = sum(len(row.met) for row in rows)
    return HeatMap(
        roles=[*roles.items()],
        phases=[phase.partition(": ")[2] for phase in columns],
        rows=[
            (row.kind, sum(row.met.values()), [_cell(row, phase, most) for phase in columns]) for row in rows if row.met
        ],
        missing=[(row.kind, _phases(row.unmet)) for row in rows if row.unmet],
        never=[row.kind for row in rows if not row.met],
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
    return HeatCell(1 + round((SHADES - 1) * log(count) / log(most)) if most > 1 else SHADES, short(count), says)


def short(count: int) -> str:
    """A count in at most four characters."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size}{unit}"
    return str(count)


class ChartMark(NamedTuple):
    """A rectangle. kind: its class in page.css; y: of its lower edge; says: its values in words."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    says: str


class Chart(NamedTuple):
    """A chart. title: what is shown, also for screen readers.

    ticks: the labels of the vertical axis, with their heights; labels: those below, with their places.
    lines: kind (a class in page.css) and points as an SVG path.
    keys: kind and meaning of the marks that have to be distinguished.
    """

    title: str
    until: float
    marks: Sequence[ChartMark]
    ticks: Sequence[tuple[float, str]]
    labels: Sequence[tuple[float, str]]
    keys: Sequence[tuple[str, str]] = ()
    lines: Sequence[tuple[str, str]] = ()


def bar_chart(title: str, names: Sequence[str], parts: Sequence[tuple[str, str, Sequence[int]]]) -> Chart:
    """A bar for each name, its parts on top of each other; parts: kind, what it is in words, a value for each name."""
    totals = [sum(values) for values in zip(*(values for _, _, values in parts), strict=True)]
    most = max(totals, default=0) or 1
    wide = min(0.75, _BAR_MAX * len(names))
    every = ceil(len(names) / LABELS_MAX)
    marks = []
    for place, name in enumerate(names):
        y = 0.0
        for kind, what, values in parts:
            high = values[place] / most
            says = f"{name}: {values[place]:,} {what}"
            marks.append(ChartMark(kind, place + (1 - wide) / 2, y, wide, high, says))
            y += high
    return Chart(
        title=title,
        until=len(names),
        marks=marks,
        ticks=((1, short(most)), (0, "0")),
        labels=[(at + 0.5, name.rpartition(" ")[2]) for at, name in enumerate(names) if at % every == 0],
        keys=[(kind, what) for kind, what, _ in parts if len(parts) > 1],
    )


def time_chart(
    title: str,
    edges: Sequence[float],
    lines: Sequence[tuple[str, str, Sequence[float | None]]],
    windows: Sequence[tuple[float, float, str]],
    says: Sequence[str],
    unit: str = "",
) -> Chart:
    """Values by slices of time, in seconds from 0 on, with windows behind them.

    edges: where each slice begins, and the end of the last; says: its values in words.
    lines: kind, what it is in words, a value for each slice, None for none.
    windows: begin, end and meaning of each.
    unit: of values on a logarithmic scale, "" for values on a linear one that begins at 0.
    """
    until = edges[-1]
    known = [value for _, _, values in lines for value in values if value is not None]
    ticks = _logarithmic(known) if unit else [0.0, _round_up(max(known, default=0.0))]
    low, high = (log10(ticks[0]), log10(ticks[-1])) if unit else ticks

    def height(value: float) -> float:
        return round(((log10(max(value, ticks[0])) if unit else value) - low) / (high - low), 4)

    shaded = {
        (begin, end): ChartMark("window", begin, 0, min(end, until) - begin, 1, what)
        for begin, end, what in reversed(windows[:WINDOWS_MAX])  # Of equal ones the first.
        if begin < until
    }
    slices = [
        ChartMark("slice", begin, 0, end - begin, 1, said)
        for begin, end, said in zip(edges, edges[1:], says, strict=False)
    ]
    step = _round_up(until / 6)
    return Chart(
        title=title,
        until=until,
        marks=[*reversed(shaded.values()), *slices],
        ticks=[(height(tick), _tick(tick, unit)) for tick in ticks],
        labels=[(number * step, f"{number * step:g} s") for number in range(int(until / step) + 1)],
        keys=[*((kind, what) for kind, what, _ in lines), *([("window", "fault")] if shaded else [])],
        lines=[
            (kind, _steps(edges, [None if value is None else height(value) for value in values]))
            for kind, _, values in lines
        ],
    )


def _steps(edges: Sequence[float], heights: Sequence[float | None]) -> str:
    """A step line with one level for each slice, interrupted where there is none."""
    path, pen = "", "M"
    for begin, end, y in zip(edges, edges[1:], heights, strict=False):
        path += "" if y is None else f"{pen}{begin:g} {y}H{end:g}"
        pen = "M" if y is None else "L"
    return path


def _logarithmic(values: Sequence[float]) -> list[float]:
    """Powers of ten around all values, at least two."""
    low = floor(log10(max(1e-3, min(values, default=1.0))))
    high = max(low + 1, ceil(log10(max(1e-3, *values, 1e-3))))
    return [10.0**power for power in range(low, high + 1)]


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
    return f"{value:g} {unit}" if unit else short(round(value)) if value >= 10 else f"{value:g}"


class LoadSlice(NamedTuple):
    """A slice of time. begin_s: since the first event; latencies_ms: of answers, sorted; unknown: calls without one."""

    begin_s: float
    width_s: float
    latencies_ms: Sequence[float]
    unknown: int

    @property
    def per_s(self) -> float:
        """The number of operations answered per second."""
        return len(self.latencies_ms) / self.width_s

    def percentile_ms(self, share: float) -> float | None:
        """The latency that this share of the answers does not exceed, None without answers."""
        many = len(self.latencies_ms)
        return self.latencies_ms[min(many - 1, int(share * many))] if many else None

    def says(self) -> str:
        """All values of the slice in words."""
        when = f"{self.begin_s:g} to {self.begin_s + self.width_s:g} s"
        words = [f"{when}: {self.per_s:,.4g} operations a second"]
        if self.latencies_ms:
            words.append(f"p50 {self.percentile_ms(0.5):,.3g} ms, p99 {self.percentile_ms(0.99):,.3g} ms")
        return ", ".join([*words, *([f"{self.unknown} unknown"] if self.unknown else [])])


def load_slices(events: Sequence[Event]) -> tuple[LoadSlice, ...]:
    """The slices of a run, all of one width, from its first event to its last answer; empty without answers."""
    ended = completions(events)
    calls = [(event, ended[event.index]) for event in events if event.kind == "invoke" and event.index in ended]
    if not calls:
        return ()
    first_ns = events[0].time_ns
    long_s = (max(end.time_ns for _, end in calls) - first_ns) / 1e9
    width_s = next((step for step in _SLICES_S if long_s / step <= SLICES_MAX), long_s / SLICES_MAX)
    found: list[list[float | None]] = [[] for _ in range(int(long_s / width_s) + 1)]
    for begin, end in calls:
        latency_ms = None if end.kind == "info" else (end.time_ns - begin.time_ns) / 1e6
        found[int((end.time_ns - first_ns) / 1e9 / width_s)].append(latency_ms)
    return tuple(
        LoadSlice(round(at * width_s, 6), width_s, sorted(each for each in own if each is not None), own.count(None))
        for at, own in enumerate(found)
    )


def _down(index: HistoryIndex) -> Iterator[tuple[int, int, str]]:
    """The periods in which no server lived after one had: events of the death and of the next start, and words."""
    until: int | None = None
    for life in sorted(index.lives.values(), key=lambda life: life.start):
        if until is not None and life.start > until:
            yield until, life.start, "no server"
        until = max(until or 0, life.end)


def load_charts(index: HistoryIndex) -> tuple[Chart, ...]:
    """Charts of operations per second and of latencies; none for a simulated run."""
    slices = () if index.header.world == "simulated" else load_slices(index.events)
    if not slices:
        return ()
    times = [(event.time_ns - index.events[0].time_ns) / 1e9 for event in index.events]
    faults = ((span.begin, span.end, f"{span.kind} {span.process}") for span in index.faults)
    windows = [(times[begin], times[min(end, len(times) - 1)], said) for begin, end, said in (*_down(index), *faults)]
    edges = [*(each.begin_s for each in slices), slices[-1].begin_s + slices[-1].width_s]
    says = [each.says() for each in slices]
    rates = [("plain", "answers", [each.per_s for each in slices])]
    taken = [(f"p{share}", f"p{share}", [each.percentile_ms(share / 100) for each in slices]) for share in (50, 99)]
    return (
        time_chart("Answers a second", edges, rates, windows, says),
        time_chart("Latency of answers", edges, taken, windows, says, unit="ms"),
    )

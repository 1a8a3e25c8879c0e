"""A failing run as one picture without a script, for pages and notebooks: its lanes, and the probability above them.

Across are the events in their order, each as wide as the others. A lane has the operations of a process as bars, faults
as stripes, and the evidence as triangles. Above, where it is known, is the share of runs that still broke the guarantee
after following this one for so many events (outcome/curve.py). Drawn by lanes.html.j2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.violations import format_event
from marker_sim.outcome.curve import LikelihoodCurve
from marker_sim.report.pictures.charts import Chart, ChartLabel, ChartLine, ChartMark
from marker_sim.report.pictures.picture import LANES_MAX, answer_text, calls_among, ordered_processes
from marker_sim.report.words import clipped, printable

WIDTH = 960
BARS_MAX = 400
_LEFT, _RIGHT, _LANE, _BAR, _CURVE, _AXIS = 150, 12, 18, 10, 90, 18


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePicture(Chart):
    """The picture as a chart. lanes: their top edges. rise: where the probability rises most, None without one."""

    lanes: tuple[int, ...]
    rise: float | None


def lane_picture(history: History, evidence: Sequence[int], curve: LikelihoodCurve | None = None) -> LanePicture:
    """The picture of a run up to its end, without what the kit read from storage after that and nothing proves."""
    events = history.events
    ends = [event.index for event in events if event.operation == "phase" and event.value == "end"]
    last = max([*ends, *evidence], default=len(events) - 1) + 1
    shown, index = events[:last], HistoryIndex(history)
    spans = [span for span in index.faults if span.begin < last]
    important = {events[number].process for number in evidence} | {span.process for span in spans}
    processes = [*ordered_processes(shown, important)][:LANES_MAX]
    top = _CURVE if curve is not None else 6
    lane_of = {process: top + 6 + number * _LANE for number, process in enumerate(processes)}
    scale = (WIDTH - _LEFT - _RIGHT) / last
    marks: list[ChartMark] = []

    def place(kind: str, process: str, begin: int, end: int, says: str) -> None:
        if process in lane_of:
            begin, end = min(begin, last), min(end, last)
            x, wide = _LEFT + begin * scale, max(1.5, (end - begin) * scale - 1)
            tall, y = (_LANE, lane_of[process]) if kind == "fault" else (_BAR, lane_of[process] + (_LANE - _BAR) / 2)
            marks.append(ChartMark(kind=kind, x=round(x, 1), y=y, width=round(wide, 1), height=tall, says=says))

    calls = [*calls_among(events, set(range(last)), lane_of)]
    for event, end in calls[:BARS_MAX]:
        words = f"{event.operation} {event.path or ''}: {'never answered' if end is None else answer_text(end)}"
        until = NEVER if end is None else end.index + 1
        place("open" if end is None else end.kind, event.process, event.index, until, clipped(words, 160))
    for span in spans:
        words = f"{span.kind} {span.process} at event {span.begin}"
        place("fault", span.process, span.begin, max(span.end, span.begin + 1), printable(words))
    for number in dict.fromkeys(evidence):
        said = clipped(format_event(events[number]), 200)
        place("proof", events[number].process, number, number + 1, said)
    lines, grid, labels = _drawn(curve, scale) if curve is not None else ((), (), ())
    names = (
        ChartLabel(x=_LEFT - 6, y=lane_of[process] + 13, text=clipped(process, 22), anchor="end") for process in lane_of
    )
    height = top + 6 + len(processes) * _LANE + _AXIS
    step = max(1, -(-last // 12))
    numbers = (
        ChartLabel(x=round(_LEFT + (at + 0.5) * scale, 1), y=height - 5, text=str(at), anchor="middle")
        for at in range(0, last, step)
    )
    return LanePicture(
        title=f"{len(processes)} processes, events 0 to {last - 1}",
        width=WIDTH,
        height=height,
        lanes=tuple(lane_of.values()),
        marks=tuple(marks),
        grid=grid,
        labels=(*labels, *names, *numbers),
        lines=lines,
        rise=None if curve is None else round(_LEFT + curve.after.events * scale, 1),
    )


def _drawn(
    curve: LikelihoodCurve, scale: float
) -> tuple[tuple[ChartLine, ...], tuple[float, ...], tuple[ChartLabel, ...]]:
    """The line of a curve, its grid, and the labels of its axis."""

    def y(share: float) -> float:
        return round(_CURVE - 8 - share * (_CURVE - 20), 1)

    places = ((round(_LEFT + point.events * scale, 1), y(point.share)) for point in curve.points)
    path = "M" + "L".join(f"{x} {height}" for x, height in places)
    ticks = ((0.0, "0"), (0.5, "0.5"), (1.0, f"P({curve.guarantee})"))
    labels = tuple(ChartLabel(x=_LEFT - 6, y=y(share) + 3.5, text=text, anchor="end") for share, text in ticks)
    return (ChartLine(kind="share", path=path),), tuple(y(share) for share, _ in ticks), labels

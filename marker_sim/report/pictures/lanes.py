"""A failing run as one picture without a script, for pages and notebooks: its lanes, and the probability above them.

Across are the events in their order, each as wide as the others. A lane has the operations of a process as bars, faults
as stripes, and the evidence as triangles. Above, where it is known, is the share of runs that still broke the guarantee
after following this one for so many events (outcome/curve.py). Drawn by lanes.html.j2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.violations import format_event
from marker_sim.outcome.curve import LikelihoodCurve
from marker_sim.report.pictures.picture import LANES_MAX, answer_text, calls_among, ordered_processes
from marker_sim.report.words import clipped

BARS_MAX = 400


class LaneBar(NamedTuple):
    """A part of a lane, from one event to before another. kind: the end of an operation, "open", "fault" or "proof"."""

    kind: str
    process: str
    begin: int
    end: int
    says: str


class LanePicture(NamedTuple):
    """The picture. processes: with a lane each. events: how many are shown."""

    processes: Sequence[str]
    events: int
    bars: Sequence[LaneBar]
    curve: LikelihoodCurve | None


def lane_picture(history: History, evidence: Sequence[int], curve: LikelihoodCurve | None = None) -> LanePicture:
    """The picture of a run up to its end, without what the kit read from storage after that and nothing proves."""
    events = history.events
    ends = [event.index for event in events if event.operation == "phase" and event.value == "end"]
    last = max([*ends, *evidence], default=len(events) - 1) + 1
    spans = [span for span in HistoryIndex(history).faults if span.begin < last]
    important = {events[number].process for number in evidence} | {span.process for span in spans}
    processes = [*ordered_processes(events[:last], important)][:LANES_MAX]
    bars = []
    for event, end in islice(calls_among(events, set(range(last)), processes), BARS_MAX):
        words = f"{event.operation} {event.path or ''}: {'never answered' if end is None else answer_text(end)}"
        kind, until = ("open", last) if end is None else (end.kind, end.index + 1)
        bars.append(LaneBar(kind, event.process, event.index, until, clipped(words, 160)))
    for span in spans:
        words = f"{span.kind} {span.process} at event {span.begin}"
        bars.append(LaneBar("fault", span.process, span.begin, max(span.end, span.begin + 1), words))
    for number in dict.fromkeys(evidence):
        bars.append(
            LaneBar("proof", events[number].process, number, number + 1, clipped(format_event(events[number]), 200))
        )
    return LanePicture(
        processes, last, [bar._replace(end=min(bar.end, last)) for bar in bars if bar.process in processes], curve
    )

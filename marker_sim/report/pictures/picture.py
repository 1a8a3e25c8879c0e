"""What the picture of a failure shows, computed from its history: lanes, bars, fault windows, ticks and storage.

Times are milliseconds, moments are indices of events; a missing end is None. A history with more events than are shown
is cut to those around its evidence and its faults, and each gap names the events left out. Lanes that the evidence does
not touch are folded. All texts are printable and clipped. Drawn by picture.js.

A `LanePicture` is the same run without a script, for notebooks and below a story: across are the events in their order,
each as wide as the others; a lane has the operations of a process as bars, faults as stripes, and the evidence as
triangles. Above is the share of runs that still broke the guarantee after following this one for so many events
(outcome/curve.py). Drawn by lanes.html.j2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from marker_sim.history import Event, History
from marker_sim.history.index.calls import FaultSpan
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.violations import format_event
from marker_sim.report.pictures.stored import answered_names, stored_files
from marker_sim.report.words import clipped, printable

if TYPE_CHECKING:
    from marker_sim.outcome.curve import LikelihoodCurve

EVENTS_MAX = 800
LANES_MAX = 14
ROWS_MAX = 12
FAULTS_OF_KIND_MAX = 12
TEXT_MAX = 400
BARS_MAX = 400
_COMPLETIONS = ("ok", "fail", "info")
# Lanes of the kit itself, which are no part of what is judged.
_OWN = {"kit": "kit's reads", "probe": "kit's probe"}
_ROLES = ("driver", "executor", "client", "timeline-server", "server", "storage", "kit")


def picture(
    index: HistoryIndex, evidence: Sequence[int], most: int = EVENTS_MAX, harm: Mapping[int, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The picture as JSON-ready data. most: the largest number of events shown; harm: what did the harm, in words."""
    events = index.events
    proofs = [number for number in dict.fromkeys(evidence) if 0 <= number < len(events)]
    shown = shown_events(events, proofs, most)
    kept = set(shown)
    spans = [span for span in index.faults if span.begin in kept or span.end in kept]
    lanes = _lanes([events[number] for number in shown], {events[number].process for number in proofs})
    lane_of = {process: number for number, lane in enumerate(lanes) for process in lane["processes"]}
    bars = _bars(events, kept, lane_of, lanes)
    concerned = [number for bar in bars for number in (bar["from"], bar["to"]) if number is not None]
    return {
        "events": [_event_entry(events[number], lane_of) for number in shown],
        "total": len(events),
        "gaps": gaps_between(events, shown),
        "evidence": proofs,
        "harm": [[number, clipped(words, 120)] for number, words in harm.items()],
        "lanes": lanes,
        "bars": bars,
        "faults": [_window(span, lane_of, events) for span in spans],
        "lives": [
            {"lane": lane_of[life.process], "from": life.start, "to": _ended(life.end)}
            for life in index.lives.values()
            if life.process in lane_of
        ],
        "files": stored_files(index, shown),
        "names": answered_names(index, shown, sorted({*proofs, *concerned}), proofs),
        "reads": index.reads,
    }


def shown_events(events: Sequence[Event], evidence: Sequence[int], most: int) -> list[int]:
    """The indices of shown events in order: all, or those around the evidence and the faults nearest to it."""
    if len(events) <= most:
        return list(range(len(events)))
    centres = list(evidence[: most // 8])
    related = {events[number].caused_by for number in centres}
    proved = set(centres)
    related |= {event.index for event in events if event.caused_by in proved and event.kind in _COMPLETIONS}
    centres += sorted(number for number in related - proved if number is not None)
    around = max(2, most // (4 * max(2, len(centres))))
    chosen = _near(centres, around, len(events)) | set(evidence[:most])
    ordered = sorted(evidence) or [0]
    faults = [event.index for event in events if event.kind == "fault"]
    kinds: Counter[str] = Counter()
    for fault in sorted(faults, key=lambda number: (_distance(ordered, number), number)):
        kind, more = events[fault].operation, _near([fault], 1, len(events))
        kinds[kind] += 1
        if kinds[kind] <= FAULTS_OF_KIND_MAX:
            if len(chosen | more) > most:
                break
            chosen |= more
    chosen.update(range(3), range(len(events) - 3, len(events)))
    if not evidence:
        chosen |= set(range(len(events) - (most - len(chosen)), len(events)))
    return sorted(chosen)


def _near(centres: Iterable[int], around: int, end: int) -> set[int]:
    """The indices of the given events and of as many on both sides of each; end: the number of events."""
    return {at for number in centres for at in range(max(0, number - around), min(end, number + around + 1))}


def _distance(ordered: Sequence[int], number: int) -> int:
    at = bisect_left(ordered, number)
    return min(abs(near - number) for near in ordered[max(0, at - 1) : at + 1])


def ordered_processes(events: Iterable[Event], important: set[str]) -> dict[str, str]:
    """The role of each process, sorted: important ones first, then by role, then by first appearance."""
    roles: dict[str, str] = {}
    for event in events:
        roles.setdefault(event.process, event.role)

    def order(known: tuple[str, str]) -> tuple[bool, int]:
        process, role = known
        return process not in important, _ROLES.index(role) if role in _ROLES else len(_ROLES)

    return dict(sorted(roles.items(), key=order))


def completions(events: Iterable[Event]) -> dict[int, Event]:
    """The first completion of each invocation that has one."""
    ended: dict[int, Event] = {}
    for event in events:
        if event.kind in _COMPLETIONS and event.caused_by is not None:
            ended.setdefault(event.caused_by, event)
    return ended


def calls_among(
    events: Iterable[Event], kept: set[int], processes: Container[str]
) -> Iterator[tuple[Event, Event | None]]:
    """The operations of these processes that begin or end among the kept events, with their completions."""
    ended = completions(events)
    for event in events:
        if event.kind == "invoke" and event.process in processes:
            end = ended.get(event.index)
            if event.index in kept or (end is not None and end.index in kept):
                yield event, end


def _row(until: list[int], begin: int, end: int) -> int:
    """The row of a span, given in the order of their begins; of too many at once some overlap.

    until: when each row is free again.
    """
    row = next((number for number, free in enumerate(until) if free <= begin), len(until))
    if row == ROWS_MAX:
        row = until.index(min(until))
    until[row : row + 1] = [max(begin, end)]
    return row


def answer_text(end: Event | None) -> str:
    """The answer to an operation, or the reason for its failure; "" for neither."""
    return "" if end is None else clipped(end.error or ("" if end.value is None else repr(end.value)), 120)


def _lanes(events: Sequence[Event], touched: set[str]) -> list[dict[str, Any]]:
    """A lane for each process, those of the evidence first; if there are too many, others share one by role.

    Lanes of other processes than those of the evidence are not open, where there is evidence.
    """
    roles = ordered_processes(events, touched)
    lanes: dict[str, dict[str, Any]] = {}
    for process, role in roles.items():
        alone = len(roles) <= LANES_MAX or (process in touched and len(lanes) < LANES_MAX)
        group = next((own for own in _OWN if process.startswith(own)), role)
        key = f"process {process}" if alone else f"role {group}"
        opened = alone and (process in touched or not touched)
        lane = lanes.setdefault(key, {"name": "", "role": group, "processes": [], "rows": 1, "open": opened})
        lane["processes"].append(process)
    for lane in lanes.values():
        many, own = len(lane["processes"]), _OWN.get(lane["role"])
        one = own or clipped(lane["processes"][0], 60)
        lane["name"] = one if many == 1 else f"{many} × {own or lane['role']}"
    return list(lanes.values())


def _bars(
    events: Sequence[Event], kept: set[int], lane_of: dict[str, int], lanes: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A bar for each operation that begins or ends among the shown events; `row` separates simultaneous ones."""
    bars = []
    rows: list[list[int]] = [[] for _ in lanes]
    for event, end in calls_among(events, kept, lane_of):
        lane = lane_of[event.process]
        bars.append(
            {
                "lane": lane,
                "row": _row(rows[lane], event.index, NEVER if end is None else end.index),
                "from": event.index,
                "to": None if end is None else end.index,
                "outcome": "open" if end is None else end.kind,
                "operation": event.operation,
                "name": clipped(event.path or "", 120),
                "ms": None if end is None else round((end.time_ns - event.time_ns) / 1e6, 3),
                "answer": answer_text(end),
            }
        )
        lanes[lane]["rows"] = len(rows[lane])
    return bars


def _window(span: FaultSpan, lane_of: dict[str, int], events: Sequence[Event]) -> dict[str, Any]:
    """A fault with its begin, its end and its lane, which is None for a fault of no process."""
    return {
        "lane": lane_of.get(span.process),
        "kind": span.kind,
        "class": span.cls,
        "from": span.begin,
        "to": _ended(span.end),
        "path": clipped(span.path or "", 120),
        "settings": clipped(events[span.begin].error or "", 120),
    }


def _event_entry(event: Event, lane_of: dict[str, int]) -> dict[str, Any]:
    """One event: its place in the picture, the keys for filters, and its text."""
    return {
        "i": event.index,
        "t": round(event.time_ns / 1e6, 3),
        "lane": lane_of[event.process],
        "process": printable(event.process),
        "kind": event.kind,
        "operation": event.operation,
        "instant": printable(event.instant or ""),
        "path": clipped(event.path or "", 120),
        "text": clipped(format_event(event), TEXT_MAX),
    }


def gaps_between(events: Sequence[Event], shown: Sequence[int]) -> list[dict[str, Any]]:
    """Each gap between shown events: the event after it, how many are left out, and their most frequent kinds."""
    gaps = []
    before = -1
    for number in (*shown, len(events)):
        if number > before + 1:
            left = events[before + 1 : number]
            counts = Counter(f"{event.kind} {event.operation}" for event in left)
            kinds = ", ".join(f"{count:,} {what}" for what, count in counts.most_common(4))
            gaps.append({"before": number, "count": len(left), "told": kinds})
        before = number
    return gaps


def _ended(moment: int) -> int | None:
    return None if moment >= NEVER else moment


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
    """The picture of a run up to its end, without what the kit read from storage after that and nothing proves.

    curve: drawn above the lanes where it moves.
    """
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
    shown = [bar._replace(end=min(bar.end, last)) for bar in bars if bar.process in processes]
    return LanePicture(processes, last, shown, curve if curve and curve.moves else None)

"""trace.json: a history in the JSON Object Format of Chrome's trace events, for Perfetto.

    evidence    an instant for each event of the evidence, by its number
    faults      duration events (B, E), in as many threads as there are faults at a time; those of a moment as instants
    left out    the events of a large history that the trace lacks, as complete events
    PROCESS     a process of the run: operations as complete events (X), in as many threads as it has calls under way;
                storage effects and observations as instants, in a thread each

Times are microseconds of the history's clock. Within a thread no two complete events overlap and B and E are in order.
An operation that was never answered lasts until the history ends. Texts are printable, so that the file is valid UTF-8
whatever names a history holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from marker_sim.history import Event, History
from marker_sim.history.index.calls import FaultSpan
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.violations import format_event
from marker_sim.report.pictures.picture import (
    TEXT_MAX,
    RowsOfSpans,
    answer_text,
    calls_among,
    gaps_between,
    ordered_processes,
    shown_events,
)
from marker_sim.report.words import clipped, printable

TRACE_EVENTS_MAX = 20_000
NAME_MAX = 120
_EVIDENCE, _FAULTS, _LEFT_OUT, _FIRST_PROCESS = 1, 2, 3, 4
_EFFECTS, _OBSERVED, _FIRST_CALLS, _LAST = 1, 2, 3, 1_000_000


def trace(history: History, evidence: Sequence[int], most: int = TRACE_EVENTS_MAX) -> dict[str, Any]:
    """The content of trace.json. most: the largest number of history events in it."""
    events = history.events
    proofs = {number: at for at, number in enumerate(dict.fromkeys(evidence), start=1) if 0 <= number < len(events)}
    shown = shown_events(events, list(proofs), most)
    kept = set(shown)
    spans = [span for span in HistoryIndex(history).faults if span.begin in kept or span.end in kept]
    important = {events[number].process for number in proofs} | {span.process for span in spans}
    processes = ordered_processes((events[number] for number in shown), important)
    pids = {process: number for number, process in enumerate(processes, start=_FIRST_PROCESS)}
    left = gaps_between(events, shown)
    made = [
        *(_evidence(events[number], at) for number, at in proofs.items()),
        *_faults(events, spans, proofs),
        *_operations(events, kept, pids, proofs),
        *(_moment(events[number], pids, proofs) for number in shown if events[number].kind in ("effect", "observe")),
        *(_gap(gap, events) for gap in left),
    ]
    named = {_EVIDENCE: "evidence", _FAULTS: "faults", _LEFT_OUT: "left out"}
    named |= {pid: clipped(process, NAME_MAX) for process, pid in pids.items()}
    header = history.header
    return {
        "traceEvents": [*_metadata(made, named), *sorted(made, key=itemgetter("ts"))],
        "displayTimeUnit": "ms",
        "otherData": {
            "system": printable(f"{header.sut} {header.sut_version}".strip()),
            "world": header.world,
            "mode": header.mode,
            "storage": header.storage,
            "seed": header.seed,
            "events": len(events),
            "left_out": sum(gap["count"] for gap in left),
        },
    }


def write_trace(history: History, evidence: Sequence[int], path: Path) -> None:
    """Write the file with one event a line; OSError when it cannot be written."""
    content = trace(history, evidence)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.write('{"traceEvents": [\n')
        for number, event in enumerate(content["traceEvents"]):
            out.write((",\n" if number else "") + json.dumps(event, ensure_ascii=False))
        rest = json.dumps({name: part for name, part in content.items() if name != "traceEvents"}, ensure_ascii=False)
        out.write(f"\n], {rest[1:]}\n")


def _evidence(event: Event, at: int) -> dict[str, Any]:
    name = f"{at}: {clipped(format_event(event), TEXT_MAX)}"
    return _instant(name, "evidence", event, (_EVIDENCE, 1), {"event": event.index})


def _faults(events: Sequence[Event], spans: Sequence[FaultSpan], proofs: dict[int, int]) -> Iterator[dict[str, Any]]:
    """Each fault as begin and end, or as an instant; one that did not end lasts until the end of the history."""
    rows = RowsOfSpans()
    for span in spans:
        begun, ended = events[span.begin], events[min(span.end, len(events) - 1)]
        about = {
            "process": printable(span.process),
            "class": span.cls,
            "path": clipped(span.path or "", TEXT_MAX),
            "settings": clipped(begun.error or "", TEXT_MAX),
            "events": [span.begin, span.end if span.end < len(events) else None],
        } | _proof(proofs, span.begin, span.end)
        name = clipped(f"{span.kind} {span.process}", NAME_MAX)
        tid = 1 + rows.place(begun.time_ns, ended.time_ns)
        if ended.time_ns <= begun.time_ns:
            # For equal times Perfetto reads an end before a begin, so the fault would never end.
            yield _instant(name, "fault", begun, (_FAULTS, tid), about)
            continue
        place = {"name": name, "cat": "fault", "pid": _FAULTS, "tid": tid}
        yield place | {"ph": "B", "ts": _us(begun.time_ns), "args": about}
        yield place | {"ph": "E", "ts": _us(ended.time_ns)}


def _operations(
    events: Sequence[Event], kept: set[int], pids: dict[str, int], proofs: dict[int, int]
) -> Iterator[dict[str, Any]]:
    rows: dict[int, RowsOfSpans] = {}
    for event, end in calls_among(events, kept, pids):
        until_ns = max(event.time_ns, (events[-1] if end is None else end).time_ns)
        pid = pids[event.process]
        about: dict[str, Any] = {
            "outcome": "never answered" if end is None else end.kind,
            "answer": answer_text(end),
            "path": clipped(event.path or "", TEXT_MAX),
            "table": clipped(event.table or "", TEXT_MAX),
            "instant": clipped(event.instant or "", TEXT_MAX),
            "events": [event.index, None if end is None else end.index],
        } | _proof(proofs, event.index, -1 if end is None else end.index)
        yield {
            "name": _named(event),
            "cat": f"operation,{'open' if end is None else end.kind}",
            "ph": "X",
            "ts": _us(event.time_ns),
            "dur": _us(until_ns - event.time_ns),
            "pid": pid,
            "tid": _FIRST_CALLS + rows.setdefault(pid, RowsOfSpans()).place(event.time_ns, until_ns),
            "args": about,
        }


def _moment(event: Event, pids: dict[str, int], proofs: dict[int, int]) -> dict[str, Any]:
    """The trace event of a storage effect or of an observation by the kit."""
    about = {"event": event.index, "text": clipped(format_event(event), TEXT_MAX)} | _proof(proofs, event.index)
    place = (pids[event.process], _EFFECTS if event.kind == "effect" else _OBSERVED)
    return _instant(_named(event), event.kind, event, place, about)


def _metadata(made: Iterable[dict[str, Any]], named: dict[int, str]) -> Iterator[dict[str, Any]]:
    """The names of processes and threads, and their order: operations above what they caused."""
    threads = sorted({(each["pid"], each["tid"]) for each in made})
    for pid in sorted({pid for pid, _ in threads}):
        for key, value in (("name", named[pid]), ("sort_index", pid)):
            yield {"name": f"process_{key}", "ph": "M", "pid": pid, "tid": 0, "args": {key: value}}
    for pid, tid in threads:
        first, name = (_FIRST_CALLS, "operations") if pid >= _FIRST_PROCESS else (1, named[pid])
        own = {_EFFECTS: "storage effects", _OBSERVED: "observed"} if pid >= _FIRST_PROCESS else {}
        about = {"name": own.get(tid, name if tid == first else f"{name} {tid - first + 1}")}
        about_order = {"sort_index": tid if tid not in own else tid + _LAST}
        yield {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": about}
        yield {"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": about_order}


def _gap(gap: dict[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    first, last = events[gap["before"] - gap["count"]], events[gap["before"] - 1]
    return {
        "name": f"{gap['count']:,} events left out: {gap['told']}",
        "cat": "left out",
        "ph": "X",
        "ts": _us(first.time_ns),
        "dur": _us(max(0, last.time_ns - first.time_ns)),
        "pid": _LEFT_OUT,
        "tid": 1,
        "args": {"events": [first.index, last.index]},
    }


def _instant(name: str, category: str, event: Event, place: tuple[int, int], args: dict[str, Any]) -> dict[str, Any]:
    pid, tid = place
    where = {"ts": _us(event.time_ns), "pid": pid, "tid": tid}
    return {"name": name, "cat": category, "ph": "i", "s": "t", **where, "args": args}


def _proof(proofs: dict[int, int], *numbers: int) -> dict[str, Any]:
    """The position of these events in the evidence."""
    found = [proofs[number] for number in dict.fromkeys(numbers) if number in proofs]
    return {"evidence": found} if found else {}


def _named(event: Event) -> str:
    return clipped(f"{event.operation} {(event.path or '').rpartition('/')[2]}".strip(), NAME_MAX)


def _us(time_ns: int) -> float:
    return time_ns / 1_000

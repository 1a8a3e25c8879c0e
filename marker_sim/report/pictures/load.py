"""Throughput and latency of a run in real time, by slices of time, with the windows of its faults.

Times without a living server are a window too, because a kill is only a moment.

An operation counts in the slice in which it was answered, ok or fail; one whose outcome is unknown counts apart.
Simulated runs have no such charts, because their time is virtual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.report.pictures.charts import Chart, time_chart
from marker_sim.report.pictures.picture import completions

SLICES_MAX = 48
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600)


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
    width_s = next((step for step in _STEPS if long_s / step <= SLICES_MAX), long_s / SLICES_MAX)
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

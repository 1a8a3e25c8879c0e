"""Throughput and latency of a run in real time, by slices of time, with the windows of its faults.

Times without a living server are a window too, because a kill is only a moment.

An operation counts in the slice in which it was answered, ok or fail; one whose outcome is unknown counts apart.
Simulated runs have no such charts, because their time is virtual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.report.pictures.charts import Chart, ChartWindow, time_chart
from marker_sim.report.pictures.picture import completions
from marker_sim.report.words import printable

SLICES_MAX = 48
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSlice:
    """A slice of time. begin_s: since the first event; latencies_ms: of answers, sorted; unknown: calls without one."""

    begin_s: float
    width_s: float
    latencies_ms: tuple[float, ...]
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
    many = int(long_s / width_s) + 1
    taken: list[list[float]] = [[] for _ in range(many)]
    unknown = [0] * many
    for begin, end in calls:
        at = int((end.time_ns - first_ns) / 1e9 / width_s)
        if end.kind == "info":
            unknown[at] += 1
        else:
            taken[at].append((end.time_ns - begin.time_ns) / 1e6)
    return tuple(
        LoadSlice(
            begin_s=round(at * width_s, 6), width_s=width_s, latencies_ms=tuple(sorted(taken[at])), unknown=unknown[at]
        )
        for at in range(many)
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
    if index.header.world == "simulated":
        return ()
    slices = load_slices(index.events)
    if not slices:
        return ()
    events, first_ns = index.events, index.events[0].time_ns
    windows = []
    faults = ((span.begin, span.end, f"{span.kind} {span.process}") for span in index.faults)
    for begin, end, said in (*_down(index), *faults):
        times = [(events[min(at, len(events) - 1)].time_ns - first_ns) / 1e9 for at in (begin, end)]
        windows.append(ChartWindow(begin=times[0], end=times[1], says=printable(said)))
    edges = [each.begin_s for each in slices]
    says = [each.says() for each in slices]
    until = edges[-1] + slices[-1].width_s
    rates = [("plain", "answers", [each.per_s for each in slices])]
    taken = [(f"p{share}", f"p{share}", [each.percentile_ms(share / 100) for each in slices]) for share in (50, 99)]
    return (
        time_chart("Answers a second", edges, until, rates, windows, says),
        time_chart("Latency of answers", edges, until, taken, windows, says, unit="ms"),
    )

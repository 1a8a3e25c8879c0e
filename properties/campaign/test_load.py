"""Throughput and latency of a run in real time: every answer counts once, in the slice in which it came."""

from __future__ import annotations

import re

from properties.faces.history import HistoryIndex
from properties.faces.report import SLICES_MAX, load_charts, load_slices
from properties.judges.build import Story, marker


def _story(world: str = "foreign") -> Story:
    """Ten answers in the first second, of 2 ms but for one of 52 ms; a pause; one answer and one unknown later."""
    story = Story(world=world, witness="reads", storage="local")
    story.start()
    for number in range(10):
        asked = story.ask(marker(f"a{number}"), process="client-1")
        story.wait(50 if number == 9 else 0)
        story.end(asked, "ok", "created")
    story.fault("pause", value="begin")
    story.wait(2_000)
    story.fault("pause", value="end")
    story.end(story.ask(marker("b"), process="client-1"), "fail", error="503")
    story.end(story.ask(marker("c"), process="client-2"), "info", error="cut")
    story.ask(marker("d"), process="client-3")
    return story


def test_each_answer_counts_in_the_slice_in_which_it_came() -> None:
    slices = load_slices(_story().history().events)
    assert sum(len(each.latencies_ms) for each in slices) == 11 and sum(each.unknown for each in slices) == 1
    first, last = slices[0], slices[-1]
    assert len(first.latencies_ms) == 10 and first.per_s == 10 / first.width_s
    assert (first.percentile_ms(0.5), first.percentile_ms(0.99)) == (2.0, 52.0)
    assert "operations a second, p50 2 ms, p99 52 ms" in first.says() and last.says().endswith("1 unknown")
    assert all(each.percentile_ms(0.5) is None for each in slices[1:-1])
    assert len(slices) <= SLICES_MAX + 1


def test_faults_are_windows_of_both_charts_and_a_slice_without_answers_is_a_gap() -> None:
    rate, latency = load_charts(HistoryIndex(_story().history()))
    for chart in (rate, latency):
        (window,) = [mark for mark in chart.marks if mark.kind == "window"]
        assert window.says == "pause server#1" and window.width > chart.until / 2
        assert all(mark.x >= 0 and mark.x + mark.width <= chart.until * 1.001 for mark in chart.marks)
    assert rate.lines[0][1].count("M") == 1 and latency.lines[0][1].count("M") == 2
    heights = [float(y) for y in re.findall(r" ([0-9.]+)H", latency.lines[1][1])]
    assert heights[0] > heights[-1], "99 of 100 took longer in the first slice"


def test_the_time_without_a_server_is_a_window() -> None:
    story = Story(world="foreign", witness="reads", storage="local")
    story.start()
    story.end(story.ask(marker("a")), "ok", "created")
    story.kill()
    story.wait(1_000)
    story.start("server#2")
    story.start("server#3")
    story.kill("server#2")
    story.wait(1_000)
    story.end(story.ask(marker("b")), "ok", "created")
    chart = load_charts(HistoryIndex(story.history()))[0]
    windows = {mark.says: mark for mark in chart.marks if mark.kind == "window"}
    assert sorted(windows) == ["kill server#1", "kill server#2", "no server"]
    assert windows["no server"].width > chart.until / 4 > windows["kill server#2"].width == 0, "another server lived"


def test_simulated_runs_and_runs_without_answers_have_no_charts() -> None:
    assert load_charts(HistoryIndex(_story("simulated").history())) == ()
    story = Story(world="foreign", witness="reads", storage="local")
    story.start()
    story.ask(marker("a"))
    assert load_charts(HistoryIndex(story.history())) == ()

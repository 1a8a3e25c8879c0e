"""trace.json is in the JSON Object Format: every operation once, times in microseconds, nothing that overlaps."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from marker_sim.history import History
from marker_sim.history.index.event_reader import END_OF_RUN, WITH_ITS_DRIVER
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.report.pictures.trace import trace, write_trace
from marker_sim.report.verdict import judge_campaign
from marker_sim.report.write import write_outcome
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference
from marker_sim.worlds.simulated.cluster import run
from properties.cli.campaigns import campaign, changed
from properties.judges.build import DIRECTORY, Story, marker

PHASES = {"X", "B", "E", "i", "M"}
HOSTILE = "</script>\udcff\n\u2028\"'\x00" + "long" * 500
_KEYS = {"X": {"name", "ts", "dur", "pid", "tid"}, "i": {"name", "ts", "pid", "tid", "s"}, "M": {"name", "pid", "args"}}


def _busy() -> History:
    """Two calls of a process at one time, a fault within a fault, a call that is never answered, hostile names."""
    story = Story()
    story.start()
    first = story.ask(marker("a"), process="executor-1")
    second = story.ask(HOSTILE, process="executor-1")
    story.fault("slow-storage", process="storage", value="begin")
    story.put(f"{DIRECTORY}/{HOSTILE}", b"\xff")
    story.fault("pause", value="begin")
    story.end(first, "ok", "created")
    story.fault("pause", value="end")
    story.end(second, "fail", error=HOSTILE)
    story.fault("slow-storage", process="storage", value="end")
    story.end(story.ask(marker("b"), process="executor-1"), "info", error="cut")
    story.kill()
    story.ask(marker("c"), process=f"executor-{HOSTILE}")
    return story.history()


def _many(calls: int) -> History:
    story = Story()
    story.start()
    for number in range(calls):
        story.end(story.ask(marker(f"m{number}"), process=f"client-{number % 3}"), "ok", "created")
    return story.history()


def _check(content: dict[str, Any]) -> None:
    """What the format's document asks of a file: keys, phases, numbers, and within a thread nesting."""
    assert isinstance(content["traceEvents"], list) and content["displayTimeUnit"] in ("ms", "ns")
    names: set[tuple[str, int, int]] = set()
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for each in content["traceEvents"]:
        assert each["ph"] in PHASES and _KEYS.get(each["ph"], {"ts"}) <= each.keys()
        assert isinstance(each["pid"], int) and isinstance(each["tid"], int)
        if each["ph"] == "M":
            names.add((each["name"], each["pid"], each["tid"]))
        else:
            assert each["ts"] >= 0 and each.get("dur", 0) >= 0
            threads.setdefault((each["pid"], each["tid"]), []).append(each)
    for (pid, tid), events in threads.items():
        assert ("process_name", pid, 0) in names and ("thread_name", pid, tid) in names
        assert [each["ts"] for each in events] == sorted(each["ts"] for each in events)
        calls = [each for each in events if each["ph"] == "X"]
        for one, after in pairwise(calls):
            assert one["ts"] + one["dur"] <= after["ts"] + 1e-6, "two operations of a thread overlap"
        begun: list[dict[str, Any]] = []
        for each in events:
            if each["ph"] == "B":
                begun.append(each)
            elif each["ph"] == "E":
                first = begun.pop()
                assert first["name"] == each["name"], "a fault ends that did not begin last"
                assert first["ts"] < each["ts"], "Perfetto takes the end before the begin"
        assert not begun


def _against(history: History, content: dict[str, Any]) -> None:
    """Every operation once with its times and its answer, every effect once, every fault that begins."""
    called = {each["args"]["events"][0]: each for each in content["traceEvents"] if "outcome" in each.get("args", {})}
    invoked = [event for event in history.events if event.kind == "invoke"]
    assert sorted(called) == [event.index for event in invoked]
    ended = {e.caused_by: e for e in history.events if e.kind in ("ok", "fail", "info")}
    names = {e["pid"]: e["args"]["name"] for e in content["traceEvents"] if e["name"] == "process_name"}
    for event in invoked:
        made, end = called[event.index], ended.get(event.index)
        assert made["ts"] == pytest.approx(event.time_ns / 1_000)
        until = (end or history.events[-1]).time_ns
        assert made["ts"] + made["dur"] == pytest.approx(until / 1_000)
        assert made["args"]["outcome"] == (end.kind if end else "never answered")
        assert names[made["pid"]].startswith(event.process[:8])
    effects = [each["args"]["event"] for each in content["traceEvents"] if each.get("cat") == "effect"]
    assert effects == [event.index for event in history.events if event.kind == "effect"]
    begun = [
        each["args"]["events"][0] for each in content["traceEvents"] if each.get("cat") == "fault" and "args" in each
    ]
    faults = (event for event in history.events if event.kind == "fault")
    assert sorted(begun) == [fault.index for fault in faults if fault.value not in ("end", END_OF_RUN, WITH_ITS_DRIVER)]


def test_a_history_with_hostile_names_becomes_a_valid_file(tmp_path: Path) -> None:
    history = _busy()
    write_trace(history, (1, 4), tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_bytes().decode("utf-8", "strict")
    content = json.loads(text)
    _check(content)
    _against(history, content)
    assert "\udcff" not in json.dumps(content, ensure_ascii=False) and "\\udcff" in text
    assert max(len(each["name"]) for each in content["traceEvents"]) < 500
    proofs = [each["args"]["event"] for each in content["traceEvents"] if each.get("cat") == "evidence"]
    assert proofs == [1, 4]
    assert next(each["args"]["evidence"] for each in content["traceEvents"] if each["ph"] == "X") == [1]


def test_the_runs_of_drawn_plans_become_valid_files() -> None:
    for seed in range(6):
        for make in (make_plan, make_write_plan):
            history = run(make(seed, "timeline", "s3"), reference())
            content = trace(history, ())
            _check(content)
            _against(history, content)


def test_a_large_history_is_cut_to_what_is_around_its_evidence_and_the_trace_says_so() -> None:
    history = _many(3_000)
    content = trace(history, (4_000,), most=500)
    _check(content)
    other = content["otherData"]
    assert other["events"] == len(history.events) and 100 <= other["events"] - other["left_out"] <= 500
    gaps = [each for each in content["traceEvents"] if each.get("cat") == "left out"]
    assert len(gaps) == 2 and "events left out" in gaps[0]["name"]
    assert len(content["traceEvents"]) < 700
    shown = {number for each in content["traceEvents"] for number in each.get("args", {}).get("events", ())}
    assert 4_000 in shown


def test_a_report_has_a_trace_for_each_story_and_its_page_names_them(tmp_path: Path) -> None:
    made = campaign()
    other = changed(made.failures[0], "G3", "other")
    outcome = judge_campaign(
        replace(made, failures=(*made.failures, other)), load_profile("reference"), None, tmp_path, ("verify",)
    )
    write_outcome(outcome, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*trace.json"))
    assert found == ["failures/G3-timeline-s3-other.trace.json", "trace.json"]
    for name in found:
        _check(json.loads((tmp_path / name).read_text(encoding="utf-8")))
        assert f'href="{name}"' in page


def test_a_report_without_failures_has_the_trace_of_its_last_run(tmp_path: Path) -> None:
    made = campaign(violated=False)
    assert made.last is not None
    write_outcome(judge_campaign(made, load_profile("reference"), None, tmp_path, ("verify",)), tmp_path)
    content = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    _check(content)
    assert content["otherData"]["events"] == len(made.last.events)

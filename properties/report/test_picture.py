"""The picture of a failure shows every operation, what storage held and what was answered; it says what it omits."""

from __future__ import annotations

import json
from typing import Any

from marker_sim.names import encode_names
from properties.faces.history import HistoryIndex
from properties.faces.outcome import MatrixRow
from properties.faces.report import LANES_MAX, ROWS_MAX, heat_map, picture
from properties.judges.build import DIRECTORY, Story, marker


def _held(drawn: dict[str, Any], moment: int) -> dict[str, tuple[int, list[str]]]:
    """What the page shows as stored at a moment: bytes and names by path."""
    files, state = drawn["files"], {}
    for when, path, content in files["states"]:
        if when <= moment:
            state[files["paths"][path]] = content
    return {
        path: (content[0], [files["names"][name] for name in content[1] or ()])
        for path, content in state.items()
        if content is not None
    }


def test_each_operation_is_a_bar_in_the_lane_of_its_process_with_its_outcome() -> None:
    story = Story()
    story.start()
    first = story.ask(marker("a"), process="executor-1")
    second = story.ask(marker("b"), process="executor-1")
    story.end(first, "ok", "created")
    story.end(second, "fail", error="503 throttled")
    story.ask(marker("c"), process="executor-2")
    drawn = picture(HistoryIndex(story.history()), (first,))
    lanes = [lane["name"] for lane in drawn["lanes"]]
    bars = {bar["name"]: bar for bar in drawn["bars"]}
    assert [bars[marker(stem)]["outcome"] for stem in "abc"] == ["ok", "fail", "open"]
    assert [lanes[bars[marker(stem)]["lane"]] for stem in "abc"] == ["executor-1", "executor-1", "executor-2"]
    assert bars[marker("a")]["row"] != bars[marker("b")]["row"], "operations of one time hide each other"
    assert bars[marker("b")]["answer"] == "503 throttled" and bars[marker("c")]["to"] is None
    assert lanes[0] == "executor-1", "the lane of the evidence does not come first"


def test_storage_is_known_at_each_moment() -> None:
    story = Story()
    story.start()
    created = story.create(marker("a"))
    both = story.create(marker("b"))
    deleted = story.delete()
    drawn = picture(HistoryIndex(story.history()), (created,))
    batch = f"{DIRECTORY}/MARKERS0"
    assert _held(drawn, 1) == {}
    assert _held(drawn, created)[batch] == (len(encode_names([marker("a")])), [marker("a")])
    assert _held(drawn, both)[batch][1] == [marker("a"), marker("b")]
    assert _held(drawn, deleted) == {}
    assert set(drawn["files"]["groups"]) == {"marker"}


def test_what_was_answered_stands_beside_the_intervals_in_which_it_was_stored() -> None:
    story = Story()
    story.start()
    created = story.create(marker("a"))
    lost = story.put(f"{DIRECTORY}/MARKERS0", b"")
    (name,) = picture(HistoryIndex(story.history()), (created,))["names"]
    assert name["answers"] == [[created, "created"]] and name["proof"]
    assert name["stored"] == [created - 1, lost] and name["deleted"] == []
    again = story.delete()
    (name,) = picture(HistoryIndex(story.history()), (created,))["names"]
    assert name["deleted"] == [again - 3]


def test_where_storage_is_read_a_name_is_known_at_the_reads() -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.look()
    story.create(marker("a"))
    looked = story.look(marker("a"))
    drawn = picture(HistoryIndex(story.history()), (looked,))
    (name,) = drawn["names"]
    assert drawn["reads"] and name["seen"][-1] == looked and name["stored"] == [looked]
    assert _held(drawn, looked)[f"{DIRECTORY}/MARKERS0"][1] == [marker("a")]


def test_fault_windows_lie_in_the_lane_of_their_process() -> None:
    story = Story()
    story.start()
    begin = story.fault("pause", value="begin")
    story.create(marker("a"))
    end = story.fault("pause", value="end")
    at = story.kill()
    drawn = picture(HistoryIndex(story.history()), (at,))
    windows = [(fault["kind"], fault["from"], fault["to"]) for fault in drawn["faults"]]
    assert windows == [("pause", begin, end), ("kill", at, at)]
    assert {drawn["lanes"][fault["lane"]]["name"] for fault in drawn["faults"]} == {"server#1"}
    assert drawn["lives"] == [{"lane": drawn["faults"][0]["lane"], "from": 0, "to": at}]


def _large() -> tuple[Story, int]:
    story = Story()
    story.start()
    proof = 0
    for number in range(3_000):
        done = story.create(marker(f"n{number}"), file=number % 2)
        proof = done if number == 2_000 else proof
        if number == 1_990:
            story.fault("slow-link", "client")
    return story, proof


def test_of_a_large_history_the_surroundings_of_evidence_and_faults_are_shown_and_the_rest_is_counted() -> None:
    story, proof = _large()
    drawn = picture(HistoryIndex(story.history()), (proof,), most=200)
    moments = [event["i"] for event in drawn["events"]]
    assert len(moments) <= 200 and proof in moments and moments == sorted(moments)
    assert {event.index for event in story.events if event.kind == "fault"} <= set(moments)
    assert len(moments) + sum(gap["count"] for gap in drawn["gaps"]) == drawn["total"] == len(story.events)
    shown = [bar for bar in drawn["bars"] if bar["from"] in moments or bar["to"] in moments]
    assert shown == drawn["bars"] and marker("n2000") in {bar["name"] for bar in shown}
    size, names = _held(drawn, proof)[f"{DIRECTORY}/MARKERS0"]
    assert size > 20_000 and len(names) == 40, "of a long marker file the first names stand for the others"
    assert len(json.dumps(drawn)) < 300_000


def test_all_evidence_is_shown_also_where_it_is_much_and_scattered() -> None:
    story = _large()[0]
    evidence = tuple(range(0, len(story.events), len(story.events) // 60))
    shown = {event["i"] for event in picture(HistoryIndex(story.history()), evidence, most=100)["events"]}
    assert set(evidence) <= shown


def test_lanes_that_the_evidence_does_not_touch_are_folded_and_those_of_the_kit_are_named() -> None:
    story = Story()
    story.start()
    created = story.create(marker("a"))
    story.ask(marker("b"), process="probe#1")
    story.observe("phase", value="end")
    lost = story.put(f"{DIRECTORY}/MARKERS0", b"")
    view = HistoryIndex(story.history())
    lanes = {lane["name"]: lane["open"] for lane in picture(view, (created, lost))["lanes"]}
    assert lanes == {"client": True, "server#1": True, "kit's probe": False, "kit's reads": False}
    assert all(lane["open"] for lane in picture(view, ())["lanes"]), "without evidence no lane matters more"
    story.ask(marker("c"), process="probe#2")
    for number in range(LANES_MAX):
        story.ask(marker(f"m{number}"), process=f"client-{number}")
    lanes = {lane["name"]: lane["open"] for lane in picture(HistoryIndex(story.history()), (lost,))["lanes"]}
    assert lanes["server#1"] and sum(lanes.values()) == 1 and "2 × kit's probe" in lanes


def test_many_clients_share_a_lane() -> None:
    story = Story()
    story.start()
    asked = [story.ask(marker(f"m{number}"), process=f"client-{number}") for number in range(100)]
    drawn = picture(HistoryIndex(story.history()), (asked[50],))
    assert len(drawn["lanes"]) <= LANES_MAX + 1 and drawn["lanes"][0]["name"] == "client-50"
    assert len(drawn["bars"]) == 100 and max(lane["rows"] for lane in drawn["lanes"]) <= ROWS_MAX


def test_hostile_names_become_printable() -> None:
    story = Story()
    story.start()
    name = "</script><b>\n\u2028\udcff\x00'\""
    story.put(f"{DIRECTORY}/{name}", b"")
    asked = story.end(story.ask(name), "ok", "created")
    text = json.dumps(picture(HistoryIndex(story.history()), (asked,)), ensure_ascii=False)
    assert all(character.isprintable() for character in text) and r"\\udcff" in text


def test_the_map_of_faults_shows_what_struck_and_says_what_is_missing() -> None:
    rows = (
        MatrixRow(
            kind="kill", met={"server: idle": 1, "driver: begin": 12_345}, unmet=("server: listing",), impossible={}
        ),
        MatrixRow(
            kind="torn", met={"server: idle": 7}, unmet=(), impossible={"driver: begin": "no call is made there"}
        ),
        MatrixRow(kind="late", met={}, unmet=("driver: begin", "driver: stage", "client: idle"), impossible={}),
    )
    drawn = heat_map(rows)
    assert drawn.roles == [("server", 1), ("driver", 1)] and drawn.phases == ["idle", "begin"], "a column is empty"
    (kill, struck, cells), (torn, _, others) = drawn.rows
    assert (kill, struck, torn) == ("kill", 12_346, "torn")
    assert [cell and (cell.shade, cell.shown) for cell in (*cells, *others)] == [(1, "1"), (5, "12k"), (2, "7"), None]
    assert cells[1] is not None and cells[1].says == "kill in driver: begin: 12,345 times"
    assert drawn.missing == [("kill", "server: listing"), ("late", "driver: begin, stage; client: idle")]
    assert (drawn.never, drawn.struck, drawn.possible) == (["late"], 3, 7)

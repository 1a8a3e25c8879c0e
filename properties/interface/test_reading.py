"""What is read from files is checked, and a mistake is one sentence: where it is, what was given, what is accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.history import parse_lines
from marker_sim.plan import Plan
from properties.faces.judges import parse_baseline, parse_profile

KILL = {"kind": "kill", "target": "server", "step": 4}
KNOWN = {"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "none"}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"guarantee": "G1", "promised": "yes"}, "mine, rule 1: promised is 'yes'; Expected `bool`, got `str`"),
        ({"guarantee": "G1", "source": 5}, "mine, rule 1: source is 5; Expected `str`, got `int`"),
        ({"mode": "direct"}, "mine, rule 1: it is {'mode': 'direct'}; Object missing required field `guarantee`"),
        (
            {"guarantee": "G1", "colour": "red"},
            "mine, rule 1: it has a key 'colour'; accepted are guarantee, mode, storage, under, promised, applicable,"
            " source",
        ),
    ],
)
def test_a_rule_of_a_profile_that_is_wrong_is_said_in_one_sentence(rule: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_profile({"promise": [rule]}, "mine")
    assert str(caught.value) == sentence


def test_an_entry_of_a_baseline_that_is_wrong_is_said_in_one_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        parse_baseline({"known": [KNOWN | {"sometimes": 1}]}, "b.json")
    assert str(caught.value).endswith(": sometimes is 1; Expected `bool`, got `int`")
    with pytest.raises(UsageError, match="has a key 'often'; accepted are guarantee, mode, storage, under, cause,"):
        parse_baseline({"known": [KNOWN | {"often": True}]}, "b.json")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"interval_ms": "5"}, "interval_ms: it is '5'; Expected `int`, got `str`"),
        ({"ops": 5}, "ops: it is 5; Expected `array`, got `int`"),
        ({"ops": [{"actor": "a", "kind": "create", "name": 7}]}, "ops: [0].name is 7; Expected `str`, got `int`"),
        ({"ops": [{"actor": "a", "kind": "list", "directory": None}]}, "ops: [0].directory is None; Expected `int`"),
        ({"ops": [{"kind": "list"}]}, "ops: [0] is {'kind': 'list'}; Object missing required field `actor`"),
        ({"ops": [{"actor": "a", "kind": "list", "colour": 1}]}, "ops: [0] has a key 'colour'; accepted are actor,"),
        ({"writes": [{"tasks": [{"copies": "2"}]}]}, "writes: [0].tasks[0].copies is '2'; Expected `int`, got `str`"),
        ({"colour": 1}, "it has a key 'colour'; accepted are mode, storage, num_threads,"),
        ({"faults": [KILL | {"stp": 4}]}, "fault 'kill' has a key 'stp'; accepted are kind, target, step, restart_ms,"),
        ({"faults": [KILL | {"late_ms": 4}]}, "fault 'kill' has a key 'late_ms'; accepted are kind, target, step,"),
        ({"faults": [KILL | {"step": "4"}]}, "step of fault 'kill' is '4', not int"),
        (
            {"faults": [KILL | {"site": "put"}]},
            "fault 'kill' has a key 'step'; accepted are kind, target, site,",
        ),
        (
            {"faults": [{"kind": "kill", "step": 4}]},
            "fault 'kill' has no key 'target'; accepted are kind, target,",
        ),
        ({"faults": [KILL | {"kind": "kil"}]}, "the kind of a fault is 'kil'; accepted are kill, pause,"),
        ({"faults": ["kill"]}, "a fault is 'kill'; write an object with kind, target and step"),
        ({"faults": {"kind": "kill"}}, "faults: it is {'kind': 'kill'}; Expected `array`, got `object`"),
        (
            {"faults": [{"kind": "kill", "target": "server", "step": 1, "durtion_ms": 4}]},
            "fault 'kill' has a key 'durtion_ms'; accepted are kind, target, step, restart_ms, executors_ms",
        ),
    ],
)
def test_a_plan_by_hand_that_is_wrong_is_said_in_one_sentence(content: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        Plan.from_dict({"ops": [], **content}, "p.json")
    assert str(caught.value).startswith(f"p.json is not a plan: {sentence}")


def test_a_row_of_a_history_with_a_strange_key_is_said_in_one_sentence() -> None:
    row = {"index": 0, "time_ns": 0, "process": "p", "role": "kit", "kind": "observe", "operation": "healed"}
    for wrong, sentence in (({"colour": 1}, "it has a key 'colour'"), ({"index": None}, "it has no key 'index'")):
        given = {key: value for key, value in (row | wrong).items() if value is not None}
        with pytest.raises(UsageError) as caught:
            parse_lines(["{}", json.dumps(given)], "h.jsonl")
        assert str(caught.value).startswith(f"h.jsonl line 2 is not a row of a history ({sentence}); ")

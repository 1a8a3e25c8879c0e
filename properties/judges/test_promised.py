"""Profiles and baselines to the letter: which rule counts, what is refused and how, and what a comparison says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marker_sim.errors import UsageError
from properties.faces.judges import (
    ALL,
    SHIPPED,
    Breach,
    Differences,
    Finding,
    Known,
    Profile,
    VerdictRow,
    compare,
    counts_against,
    load_baseline,
    load_profile,
    parse_baseline,
    parse_profile,
    shipped_baselines,
    unshipped,
)

ENTRY = {"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "restart"}
KNOWN = Known(guarantee="G3", mode="timeline", storage="s3", under="restart")


def row(
    verdict: str = "violated", judged: int = 3, causes: tuple[str, ...] = ("put-failed",), **columns: Any
) -> VerdictRow:
    violated = verdict == "violated"
    breakdown = {"restart": dict.fromkeys(causes, 1)} if violated else {}
    facts: dict[str, Any] = {
        "id": "G3", "slug": "s", "verdict": verdict, "mode": "timeline", "world": "simulated", "storage": "s3",
        "judged": judged, "violations": len(causes) if violated else 0, "under": {}, "causes": {},
        "breakdown": breakdown, "read_at_ack_share": None, "message": "", "evidence": (),
    }  # fmt: skip
    return VerdictRow(**{**facts, **columns})


def profile(*rules: dict[str, Any], **more: Any) -> Profile:
    return parse_profile({"promise": list(rules), **more}, "own")


ALL_PROMISED = profile({"guarantee": "*"})


# Baselines.


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"guarantee": "G3,G4"}, "names one guarantee"),
        ({"mode": "sideways"}, "mode is one of"),
        ({"under": "weather"}, "under is one of"),
        ({"storage": "tape"}, "storage is one of"),
    ],
)
def test_an_entry_of_a_baseline_is_refused_by_number_and_with_what_is_accepted(
    entry: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=rf"known.json, entry 2 is .*{said}"):
        parse_baseline({"known": [ENTRY, {**ENTRY, **entry}]}, "known.json")


def test_a_baseline_names_guarantees_by_id_or_slug_and_each_place_and_cause_once() -> None:
    (known,) = parse_baseline({"schema": 1, "known": [{**ENTRY, "guarantee": "acked-marker-survives"}]}, "x")
    assert known == KNOWN
    twice = {"known": [{**ENTRY, "cause": "glued"}, {**ENTRY, "cause": "glued"}]}
    with pytest.raises(UsageError, match=r"entry 2 .*same place and cause"):
        parse_baseline(twice, "x")
    with pytest.raises(UsageError, match="has schema 2, this version reads 1"):
        parse_baseline({"schema": 2, "known": []}, "x")


def test_a_baseline_is_read_from_a_file_in_utf_8_and_one_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bekannt-ü.json"
    path.write_text(json.dumps({"known": [ENTRY]}), encoding="utf-8")
    assert load_baseline(path) == {KNOWN}
    path.write_text("{", encoding="utf-8")
    for missing in (path, tmp_path / "none.json"):
        with pytest.raises(UsageError, match=r"cannot be read: .*give the path of a JSON file or one of hudi-"):
            load_baseline(missing)
    assert all(name.startswith("hudi-") and "." not in name[-3:] for name in shipped_baselines())


@pytest.mark.parametrize(
    ("rows", "baseline", "counts"),
    [
        ((row("holds"),), None, False),
        ((row(),), None, True),
        ((row(),), frozenset({KNOWN}), False),
        ((row(),), frozenset[Known](), True),
        ((row("holds"),), frozenset({KNOWN}), False),
    ],
)
def test_what_counts_against_a_system_is_beyond_its_baseline(
    rows: tuple[VerdictRow, ...], baseline: frozenset[Known] | None, counts: bool
) -> None:
    assert counts_against(rows, baseline, ALL_PROMISED) is counts


def test_only_what_is_promised_in_that_place_is_unexpected() -> None:
    (seen,) = compare([row()], frozenset(), ALL_PROMISED).unexpected
    assert seen == Known(guarantee="G3", mode="timeline", storage="s3", under="restart", cause="put-failed")
    for place in ({"mode": "direct"}, {"storage": "hdfs"}, {"under": "wire"}, {"promised": False}):
        assert compare([row()], frozenset(), profile({"guarantee": "G3", **place})) == Differences(), place
    assert compare([row("not-applicable", breakdown={"restart": {"x": 1}})], frozenset(), ALL_PROMISED) == Differences()


def test_an_entry_goes_stale_where_its_guarantee_was_judged_and_is_not_violated() -> None:
    baseline = frozenset({KNOWN})
    assert compare(iter([row("holds")]), baseline, ALL_PROMISED).stale == (KNOWN,)
    for elsewhere in (
        row("holds", 0),
        row("holds", mode="direct"),
        row("holds", storage="hdfs"),
        row("holds", id="G4"),
    ):
        assert compare([elsewhere], baseline, ALL_PROMISED) == Differences()
    others = row("violated", 0, breakdown={"wire": {"put-failed": 1}})
    assert compare([others], baseline, ALL_PROMISED).stale == (KNOWN,), "it was judged under another fault"
    without = Known(guarantee="G3", mode="timeline", storage="s3", under="none")
    assert compare([row("holds")], frozenset({without}), ALL_PROMISED, ()).stale == (without,)


# Profiles.


def test_the_last_rule_that_matches_counts_and_an_empty_word_matches_everything() -> None:
    made = profile(
        {"guarantee": "*", "source": "all"},
        {"guarantee": ["G3", "flushed-before-ack"], "mode": "direct", "source": "direct", "promised": False},
        {"guarantee": "G3", "storage": "hdfs", "under": ["wire", "restart"], "source": "hdfs", "applicable": False},
    )
    said = {
        place: made.promise(*place).source
        for place in (
            ("G3", "direct", "s3", "none"),
            ("G1", "direct", "s3", "none"),
            ("G2", "direct", "s3", "none"),
            ("G3", "timeline", "s3", "none"),
            ("G3", "timeline", "hdfs", "wire"),
            ("G3", "timeline", "hdfs", "none"),
            ("G1", "timeline", "hdfs", "wire"),
        )
    }
    assert list(said.values()) == ["direct", "direct", "all", "all", "hdfs", "all", "all"]
    away = made.promise("G3", "timeline", "hdfs", "restart")
    assert not away.applicable and not away.promised, "what does not apply is not promised"
    silent = profile().promise("G1", "direct", "s3", "none")
    assert silent.applicable and not silent.promised and silent.source == ""


def test_the_first_breach_of_each_cause_is_held_against_a_system_where_it_promised() -> None:
    made = profile({"guarantee": "*", "under": "restart"})
    breaches = tuple(
        Breach(message=str(number), evidence=(number,), under=under, cause=cause)
        for number, (under, cause) in enumerate(
            [("wire", "glued"), ("restart", "cut"), ("restart", "cut"), ("restart", "glued")]
        )
    )
    finding = Finding(guarantee="G3", applicable=True, breaches=breaches)
    assert [breach.message for breach in made.broken_by(finding, "timeline", "s3")] == ["1", "3"]
    assert not profile({"guarantee": "G4"}).broken_by(finding, "timeline", "s3")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_profile_is_stored_with_what_was_judged_by_it_unless_its_name_says_it(name: str) -> None:
    shipped = load_profile(name)
    assert unshipped(shipped) is None and shipped.name == name
    again = parse_profile(shipped.to_dict(), "x")
    assert again == shipped
    longer = profile({"guarantee": "G1", "mode": "direct", "source": "own"}, extends=name, name=name)
    assert longer.rules[:-1] == shipped.rules and longer != shipped
    stored = unshipped(longer)
    assert stored is not None and parse_profile(stored, "x") == longer
    assert stored["promise"][-1] == {
        "guarantee": ["G1"], "mode": ["direct"], "promised": True, "applicable": True, "source": "own",
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_profile_is_read_by_its_ending_and_is_named_after_its_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"own.{ending}"
    rules = {"promise": [{"guarantee": "*", "source": "ü"}]}
    toml = '[[promise]]\nguarantee = "*"\nsource = "ü"\n'
    path.write_text(json.dumps(rules, ensure_ascii=False) if ending == "json" else toml, encoding="utf-8")
    made = load_profile(str(path))
    assert made.name == str(path) and made.rules[0].guarantees == ALL and made.rules[0].promise.source == "ü"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot be read .*give one of reference, python"):
        load_profile(str(path))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([], "is not a profile"),
        ({"name": "x"}, "is not a profile"),
        ({"promise": {}}, "is not a profile"),
        ({"promise": [], "extends": "nobody"}, "extends was given 'nobody'; write one of reference"),
        ({"promise": [{"guarantee": "*"}, {"guarantee": "*", "mode": ["direct", "up"]}]}, r"rule 2: mode has \['up'\]"),
        ({"promise": [{"guarantee": "*", "under": "rain"}]}, r"rule 1: under has \['rain'\]; accepted are .*'wire'"),
    ],
)
def test_a_profile_that_is_none_is_refused_with_what_is_accepted(raw: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_profile(raw, "own.json")

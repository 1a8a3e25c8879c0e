"""The report directory holds what the contract says, whatever the system under test put into names and values."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shlex
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import Event, History, read_jsonl
from marker_sim.plan import Op, Plan, read_plan
from marker_sim.report import write as writing
from properties.cli.campaigns import MARKER, PLAN, campaign, changed, history
from properties.faces.judges import BY_ID, Breach, Finding, Known, VerdictRow, load_profile
from properties.faces.outcome import Campaign, stories
from properties.faces.report import (
    OWN_DEFECT,
    judge_campaign,
    merged,
    plan_sentences,
    print_outcome,
    read_parquet,
    write_outcome,
    write_parquet,
)
from properties.faces.surroundings import replacing
from properties.two_numbers import settings_of

REFERENCE = load_profile("reference")
ARGV = ("verify", "--budget", "1s")
VERDICT_TYPES = {
    "schema": int,
    "verdict": str,
    "sut": str,
    "sut_version": str,
    "profile": dict,
    "kit_version": str,
    "seed": int,
    "duration_s": float,
    "runs": int,
    "guarantees": list,
    "failures": list,
    "operations": dict,
    "faults": dict,
    "reached": dict,
    "not_reached": list,
    "too_rare": list,
    "not_applicable": dict,
    "reruns": dict,
    "fault_phases": dict,
}
ROW_TYPES = {
    "id": str,
    "slug": str,
    "verdict": str,
    "mode": str,
    "world": str,
    "storage": str,
    "judged": int,
    "violations": int,
    "under": dict,
    "causes": dict,
    "breakdown": dict,
    "message": str,
    "evidence": list,
    "replay": str,
}


def _written(made: Campaign, directory: Path, baseline: frozenset[Known] | None = None) -> dict[str, Any]:
    returned = write_outcome(judge_campaign(made, REFERENCE, baseline, directory, ARGV), directory)
    stored: dict[str, Any] = json.loads((directory / "verdict.json").read_text(encoding="utf-8"))
    assert stored == returned
    return stored


def test_verdict_json_has_exactly_the_keys_of_the_contract(tmp_path: Path) -> None:
    verdict = _written(campaign(), tmp_path)
    assert {key: type(value) for key, value in verdict.items()} == VERDICT_TYPES
    for row in verdict["guarantees"]:
        assert {key: type(row[key]) for key in ROW_TYPES} == ROW_TYPES
        assert row.keys() - ROW_TYPES.keys() == {
            "read_at_ack_share",
            "source",
            "excused",
            "met",
            "not_met",
            "not_tried",
        }
        assert row["slug"] == BY_ID[row["id"]].slug
    assert verdict["operations"]["create"] == {"ok": 1, "fail": 0, "info": 1}
    assert verdict["faults"] == {"kill": 1}


def test_a_violation_leaves_its_plan_its_history_and_the_command_that_replays_it(tmp_path: Path) -> None:
    verdict = _written(campaign(), tmp_path)
    row = verdict["guarantees"][0]
    assert (row["id"], row["verdict"], row["evidence"]) == ("G1", "violated", [1, 2, 3])
    assert row["under"]["restart"] == 1 and sum(row["under"].values()) == 1
    assert row["replay"] == f"marker-sim replay {shlex.quote(f'{tmp_path}/plan.json')}"
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert read_jsonl(tmp_path / "history.jsonl") == history()
    assert read_parquet(tmp_path / "history.parquet") == history()
    assert sorted(os.listdir(tmp_path)) == [
        "history.jsonl",
        "history.parquet",
        "logs",
        "plan.json",
        "report.html",
        "verdict.json",
    ]


@pytest.mark.parametrize(
    ("made", "verdict", "code"),
    [
        (campaign(violated=False), "holds", 0),
        (campaign(), "violated", 1),
        (campaign(trouble="the disk is full"), "violated", 1),
        (campaign(violated=False, trouble="the disk is full"), "inconclusive", 4),
        (campaign(violated=False, not_reached=("fault kill",)), "inconclusive", 3),
    ],
)
def test_exit_codes_keep_their_precedence(made: Campaign, verdict: str, code: int) -> None:
    outcome = judge_campaign(made, REFERENCE, None, Path("report"), ARGV)
    assert (outcome.verdict, outcome.exit_code()) == (verdict, code)
    assert outcome.to_dict().get("trouble", "") == made.trouble


def test_only_differences_from_a_baseline_count() -> None:
    known = Known(guarantee="G1", mode="timeline", storage="s3", under="restart")
    expected = judge_campaign(campaign(), REFERENCE, frozenset({known}), Path("report"), ARGV)
    stale = judge_campaign(campaign(violated=False), REFERENCE, frozenset({known}), Path("report"), ARGV)
    other = judge_campaign(campaign(), REFERENCE, frozenset(), Path("report"), ARGV)
    assert [outcome.exit_code() for outcome in (expected, stale, other)] == [0, 1, 1]


def test_guarantees_not_asked_for_are_neither_judged_nor_shown() -> None:
    outcome = judge_campaign(campaign(), REFERENCE, None, Path("report"), ARGV, frozenset({"G2"}))
    assert [row.id for row in outcome.rows] == ["G2"]
    assert outcome.failures == () and outcome.exit_code() == 0


class _Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "action")]


def test_the_page_is_one_file_that_needs_no_network_and_escapes_what_it_shows(tmp_path: Path) -> None:
    _written(campaign(), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(page)
    assert not tags.tags & {"link", "img", "iframe", "b-script"}
    assert all(target.startswith("#") for target in tags.targets)
    assert "url(http" not in page and "@import" not in page
    assert "<b>f</b>" not in page and "&lt;b&gt;f&lt;/b&gt;" in page
    assert BY_ID["G1"].sentence.replace('"', "&#34;") in page
    assert f"marker-sim replay {shlex.quote(f'{tmp_path}/plan.json')}" in html.unescape(page)
    assert page.count("data-proof=") == 3 and "executor-0 was answered &#34;created&#34; for marker" in page
    assert "it is killed and starts again 20 ms later" in page


def test_the_browser_runs_the_one_script_of_the_page_and_nothing_else(tmp_path: Path) -> None:
    made = campaign()
    hostile = "</script><script>alert(1)</script><!--"
    events = tuple(event._replace(path=hostile) if event.path else event for event in made.failures[0].history.events)
    run = replace(made.failures[0].history, events=events)
    _written(replace(made, failures=(replace(changed(made.failures[0], message=hostile), history=run),)), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [' type="application/json" id="data"', ""]
    assert "<!--" not in page and json.loads(scripts[0][1])[0]["evidence"] == [1, 2, 3]
    allowed = b64encode(hashlib.sha256(scripts[1][1].encode("utf-8")).digest()).decode("ascii")
    assert f"script-src 'sha256-{allowed}'" in page


@pytest.mark.parametrize("verbose", [False, True])
def test_the_terminal_shows_sentence_plan_and_replay_and_with_v_evidence_and_table(verbose: bool) -> None:
    out = StringIO()
    outcome = judge_campaign(campaign(), REFERENCE, None, Path("report"), ARGV)
    print_outcome(outcome, Console(file=out, width=140), "report: report/report.html", verbose)
    text = out.getvalue()
    assert text.startswith("violated: ") and "breaks 1 of" in text.splitlines()[0], "the verdict first, in words"
    assert BY_ID["G1"].sentence in text
    assert "; most likely 1 defect" in text.splitlines()[0]
    assert ("[2] 9.0 ms" in text) is verbose and MARKER in text
    assert "shrunk from 40" in text and "executor-0 waits 5 ms and creates marker" in text
    assert "replay: marker-sim replay report/plan.json" in text
    assert bool(re.search(r"G2\s+exists-is-durable\s+timeline\s+holds\s+s3\s+2\s+0", text)) is verbose
    assert verbose or text.count("\n") < 15, "a handful of lines"


def test_stories_that_are_no_block_are_a_line_and_what_is_undecided_has_one_reason() -> None:
    made, out = campaign(), StringIO()
    failures = tuple(changed(made.failures[0], cause=f"cause {n}", message=f"it broke {n}") for n in range(12))
    for guarantee in ("G3", "G4"):
        made.statistics.add(history(), (Finding(guarantee=guarantee, applicable=True),))
    outcome = judge_campaign(replace(made, failures=failures), REFERENCE, None, Path("report"), ARGV)
    print_outcome(outcome, Console(file=out, width=140), "report: report/report.html")
    lines = out.getvalue().splitlines()
    assert "; at least 1 defect" in lines[0], "causes of one guarantee in one place may be one defect"
    assert sum("it broke" in line for line in lines) == 9 and sum("replay: " in line for line in lines) == 3
    assert "G1 flushed-before-ack in timeline mode on s3: it broke 8" in lines
    assert "3 more stories, in report: report/report.html" in lines
    assert "inconclusive: G3 acked-marker-survives, G4 exact-set: no run had anything to judge" in lines


@pytest.mark.parametrize(("other", "count"), [("'b' is not stored in u/2 at event 7", 1), ("'b' is listed twice", 2)])
def test_what_is_told_in_the_same_words_of_other_names_is_one_story(other: str, count: int) -> None:
    one = changed(campaign().failures[0], cause="unexplained", message="'a' is not stored in t/001 at event 12; x")
    two = changed(replace(one, kind=one.kind._replace(storage="local")), message=other)
    assert len(stories((one, two))) == count


def test_the_plainest_small_plan_leads_its_story_and_the_report() -> None:
    made = campaign()
    faulty = replace(made.failures[0], entries_before=2)
    run = faulty.history
    probe = Event(0, 0, "kit", "kit", "observe", "phase", value="probe")
    asked = replace(faulty, history=replace(run, events=(probe, *run.events[1:])), plan=Plan())
    assert faulty.plan is not None
    plain = replace(faulty, plan=replace(faulty.plan, ops=faulty.plan.ops * 9, faults=()))
    large = replace(plain, entries_before=0, plan=replace(PLAN, faults=()), large="there was no time left")
    kinds = [faulty.kind._replace(storage=name) for name in ("a", "b", "c", "d")]
    found = [replace(each, kind=k) for each, k in zip((asked, faulty, plain, large), kinds, strict=True)]
    assert [each.kind.storage for each in stories(found)[0]] == ["c", "b", "a", "d"]
    outcome = judge_campaign(replace(made, failures=tuple(found)), REFERENCE, None, Path("report"), ARGV)
    assert outcome.failures[0].kind.storage == "c", "plan.json is its plan"


@pytest.mark.parametrize("how", ["a hostile request", "a spelled directory", "a name of no marker", "its cause"])
def test_what_needs_input_that_no_client_of_hudi_sends_is_told_last_and_in_one_line(how: str) -> None:
    made, out = campaign(), StringIO()
    op = {
        "a hostile request": Op(actor="executor-0", kind="hostile", name="line\nbreak"),
        "a spelled directory": replace(PLAN.ops[0], spelled="double-slash"),
        "a name of no marker": replace(PLAN.ops[0], name="no-suffix.parquet"),
    }.get(how, PLAN.ops[0])
    usual = replace(made.failures[0], plan=replace(PLAN, ops=PLAN.ops * 9))
    cause = "split-at-line-break" if how == "its cause" else "other"
    hostile = replace(changed(usual, "G4", cause, message="a name is split"), plan=replace(PLAN, ops=(op,)))
    failures = (hostile, usual)
    outcome = judge_campaign(replace(made, failures=failures), REFERENCE, None, Path("report"), ARGV)
    assert [each.guarantee for each in outcome.failures] == ["G1", "G4"], "a smaller plan does not come first"
    print_outcome(outcome, Console(file=out, width=140), "")
    assert "G4 exact-set in timeline mode on s3: a name is split" in out.getvalue().splitlines()
    large = replace(hostile, entries_before=0)
    assert large.hostile == (how == "its cause"), "what a large plan needs is not known"


@pytest.mark.parametrize(
    ("sut", "violated", "own"), (("reference", True, True), ("x:Y", True, False), ("reference", False, False))
)
def test_a_violation_of_the_reference_is_called_a_defect_of_the_kit(sut: str, violated: bool, own: bool) -> None:
    out = StringIO()
    made = replace(campaign(violated=violated), sut=sut)
    outcome = judge_campaign(made, REFERENCE, None, Path("report"), ARGV)
    print_outcome(outcome, Console(file=out, width=140), "")
    assert (OWN_DEFECT in out.getvalue().replace("\n", " ").replace("  ", " ")) is own


def test_violations_that_the_profile_allows_are_explained() -> None:
    made, out = campaign(violated=False), StringIO()
    breach = Breach(message="the type file is missing", evidence=(1,), under="power-loss")
    made.statistics.add(history(), (Finding(guarantee="G9", applicable=True, judged=2, breaches=(breach,)),))
    outcome = judge_campaign(made, REFERENCE, None, Path("report"), ARGV)
    print_outcome(outcome, Console(file=out, width=140), "")
    assert "not promised, and violated: G9 type-recorded (1)\n" in out.getvalue()
    print_outcome(outcome, Console(file=out, width=140), "", verbose=True)
    where = "G9 type-recorded, timeline mode on s3, holds"
    assert f"{where}: the profile does not promise it under power-loss (1)" in out.getvalue()


@pytest.mark.parametrize("verbose", [False, True])
def test_a_long_plan_is_in_the_report_and_on_a_terminal_with_v(verbose: bool) -> None:
    made, out = campaign(), StringIO()
    failure = made.failures[0]
    assert failure.plan is not None
    plan = replace(failure.plan, ops=failure.plan.ops * 60)
    outcome = judge_campaign(
        replace(made, failures=(replace(failure, plan=plan),)), REFERENCE, None, Path("report"), ARGV
    )
    print_outcome(outcome, Console(file=out, width=140), "report: report/report.html", verbose)
    text = out.getvalue()
    assert all((each in text) is verbose for each in plan_sentences(plan))
    assert ("plan (seed 9, 61 entries, shrunk from 40), in the report" in text) is not verbose


def test_storages_that_agree_share_a_row_and_others_do_not() -> None:
    def row(storage: str, verdict: str, under: dict[str, int]) -> VerdictRow:
        return VerdictRow(
            id="G1", slug="flushed-before-ack", verdict=verdict, mode="timeline", world="simulated", storage=storage,
            judged=10, violations=sum(under.values()), under=under, causes={}, breakdown={}, read_at_ack_share=None,
            message="", evidence=(),
        )  # fmt: skip

    agree = list(merged([row("local", "holds", {}), row("s3", "holds", {})]))
    assert [(one.storage, one.judged, one.verdict) for one in agree] == [("all", 20, "holds")]
    broken = [row("local", "violated", {"none": 1}), row("s3", "holds", {}), row("s3-x", "violated", {"none": 2})]
    differ = list(merged(broken))
    assert [(one.storage, one.verdict) for one in differ] == [("local s3-x", "violated"), ("s3", "holds")]
    assert (differ[0].violations, differ[0].under, differ[0].judged) == (3, {"none": 3}, 20)


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_fault_can_be_told_as_a_sentence(kind: FaultKind) -> None:
    fault = Fault(kind=kind, target="server", trigger=Step(3), settings=settings_of(kind, 41, 1))
    sentence = plan_sentences(Plan(faults=(fault,)))[-1]
    assert sentence.startswith("At step 3 of the server, ") and "{" not in sentence
    fault = replace(fault, settings=settings_of(kind, -1, 1))
    never = plan_sentences(Plan(faults=(fault,)))[-1]
    assert "-1" not in never or kind not in (FaultKind.KILL, FaultKind.TORN_WRITE)


_TEXT = st.text(st.characters(codec=None), max_size=8) | st.none()
_VALUES = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=5) | st.binary(max_size=5)


@given(st.lists(st.tuples(_TEXT, _VALUES | st.lists(st.text(max_size=3), max_size=3).map(tuple), _TEXT), max_size=6))
def test_parquet_gives_back_the_same_history(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, Any, str | None]]
) -> None:
    made = History(
        history().header,
        tuple(
            Event(number, number, "p", "client", "ok", "list", "t", "001", path, value, error)
            for number, (path, value, error) in enumerate(rows)
        ),
    )
    file = tmp_path_factory.mktemp("columns") / "history.parquet"
    write_parquet(made, file)
    assert read_parquet(file) == made


def test_a_long_history_is_kept_in_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "JSONL_EVENTS_MAX", 6)
    _written(campaign(), tmp_path)
    assert not (tmp_path / "history.jsonl").exists() and (tmp_path / "history.parquet").exists()


def test_a_place_that_cannot_be_written_is_a_harness_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(HarnessError, match="cannot be written"):
        _written(campaign(), tmp_path / "file" / "below")


def test_what_failed_to_be_written_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    _written(campaign(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    with pytest.raises(OSError, match="No space left"), replacing(tmp_path / "verdict.json") as beside:
        beside.write_bytes(b"half")
        raise OSError(28, "No space left on device")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before

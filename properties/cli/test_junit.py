"""The verdict as JUnit XML: violations that count fail, unknown results are errors, and hostile names stay readable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from properties.cli.campaigns import campaign, changed
from properties.faces.cli import main
from properties.faces.judges import Known, load_profile
from properties.faces.report import VerdictOutcome, judge_campaign, junit_xml

PROFILE = load_profile("reference")


def suite(outcome: VerdictOutcome) -> ElementTree.Element:
    return ElementTree.fromstring(junit_xml(outcome))


def case(found: ElementTree.Element, name: str) -> ElementTree.Element:
    return next(each for each in found if each.attrib["name"].startswith(name))


def judged(tmp_path: Path, baseline: frozenset[Known] | None = None, **how: object) -> ElementTree.Element:
    return suite(judge_campaign(campaign(**how), PROFILE, baseline, tmp_path, ("verify",)))  # type: ignore[arg-type]


def test_what_is_violated_fails_and_what_holds_passes(tmp_path: Path) -> None:
    found = judged(tmp_path)
    (failure,) = case(found, "G1 flushed-before-ack")
    assert failure.tag == "failure" and "<b>f</b>" in failure.attrib["message"]
    assert failure.text is not None and failure.text.startswith("replay: marker-sim replay ")
    assert len(case(found, "G2 ")) == 0, "it holds"
    assert case(found, "verdict")[0].tag == "failure"
    counts = {each: int(found.attrib[each]) for each in ("tests", "failures", "errors", "skipped")}
    assert counts["tests"] == len(found) and counts["failures"] == 2
    assert all(each.attrib["classname"] for each in found)


def test_nothing_known_is_an_error_and_no_pass(tmp_path: Path) -> None:
    found = judged(tmp_path, violated=False, not_reached=("a restart",))
    (error,) = case(found, "verdict")
    assert (error.tag, error.attrib["message"], error.text) == ("error", "inconclusive", "a restart")
    (error,) = case(judged(tmp_path, violated=False, trouble="the disk is full"), "verdict")
    assert (error.tag, error.attrib["message"]) == ("error", "the disk is full")
    assert len(case(judged(tmp_path, violated=False), "verdict")) == 0


def test_what_the_baseline_knows_is_skipped(tmp_path: Path) -> None:
    known = Known(guarantee="G1", mode="timeline", storage="s3", under="restart", sometimes=True)
    (skipped,) = case(judged(tmp_path, frozenset({known})), "G1 flushed-before-ack")
    assert skipped.tag == "skipped" and skipped.attrib["message"].startswith("known: ")


def test_names_that_no_document_can_hold_are_escaped(tmp_path: Path) -> None:
    made = campaign()
    odd = changed(made.failures[0], message="\x00\udcff\u2028]]> 'p/\ud83d'")
    outcome = judge_campaign(replace(made, failures=(odd,)), PROFILE, None, tmp_path, ("verify",))
    rows = tuple(replace(row, message=odd.message) for row in outcome.rows)
    (failure,) = case(suite(replace(outcome, rows=rows)), "G1 flushed-before-ack")
    assert "\\x00\\udcff\\u2028]]> 'p/\\ud83d'" in failure.attrib["message"]


def test_verify_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "verdict.xml"
    words = ["verify", "--runs", "4", "--guarantees", "G1", "--mode", "timeline", "--storage", "s3", "--seed", "1"]
    words += ["--jobs", "1", "--sut", "mutant:ack-before-flush", "--report", str(tmp_path / "report")]
    assert main((*words, "--junit", str(target))) == 1
    assert case(ElementTree.parse(target).getroot(), "G1 flushed-before-ack")[0].tag == "failure"
    assert main((*words, "--junit", str(tmp_path))) == 2
    assert "which cannot be written; write the path of a file" in capsys.readouterr().err

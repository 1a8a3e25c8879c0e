"""The text for an issue tracker says who loses what, in the words of the system, and can be filed as it is."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Call, FaultKind
from marker_sim.plan import Op
from properties.faces.cli import main
from properties.faces.report import issue_text, told_of
from scenarios.findings.stored_finding import StoredFinding, read_findings

PACKAGE = Path(__file__).parents[2] / "marker_sim"
ROWS = tomllib.loads((PACKAGE / "report/scripts/issue.toml").read_text(encoding="utf-8"))["text"]
OF_THE_KIT = re.compile(r"\bG\d+\b|marker-sim|\bkit\b|\bevent \d|\bhudi(-java|-spark)?:\S|ValueError|KeyError")
HEADS = ["## Bug Description", "**What happened:**", "**What you expected:**", "**Steps to reproduce:**"]
HEADS += ["## Environment", "## Logs and Stack Trace"]
PLANNED = [each for each in read_findings() if each.plan is not None]


@pytest.mark.parametrize("row", ROWS, ids=[row["title"] for row in ROWS])
def test_a_title_is_short_and_has_nothing_of_the_kit(row: dict[str, str]) -> None:
    assert len(row["title"]) <= 80 and row["impact"]
    assert not OF_THE_KIT.search(f"{row['title']} {row['impact']} {row.get('code', '')}")


@pytest.mark.parametrize("finding", PLANNED, ids=[each.name for each in PLANNED])
def test_the_text_of_each_finding_has_its_own_title_the_cause_and_the_template_of_hudi(finding: StoredFinding) -> None:
    said, text = told_of(finding.told), issue_text(finding.told)
    own = {row["title"]: row for row in ROWS}[said["title"]]
    assert {"system", "writers"} & own.keys(), f"{said['title']!r} is what any system is told"
    status = f"**Status:** {said['reported']}\n\n" if said["reported"] else ""
    assert text.startswith(f"# {said['title']}\n\n**Impact:** {said['impact']}\n\n{status}{HEADS[0]}\n")
    assert [head for head in HEADS if head in text] == HEADS == sorted(HEADS, key=text.index)
    told = re.sub(r"<details>.*</details>", "", text, flags=re.DOTALL).partition("**What you expected:**")[0]
    assert not OF_THE_KIT.search(told), told
    assert f"**Hudi version:** {finding.version}" in text
    assert ("<details><summary>" in text) != ("too long for this text: attach" in text), "a script, or where it is"


def test_a_death_at_a_file_is_not_told_as_an_error_there_and_a_request_for_a_list_not_as_a_failed_listing() -> None:
    def killed(name: str) -> str:
        told = next(each for each in PLANNED if each.name.startswith(name)).told
        kill = next(fault for each in PLANNED for fault in each.told.own_plan.faults if fault.kind is FaultKind.KILL)
        faults = tuple(
            replace(fault, kind=kill.kind) for fault in told.own_plan.faults if isinstance(fault.trigger, Call)
        )
        asked = Op(actor="executor-0", kind="list")
        return told_of(replace(told, plan=replace(told.own_plan, ops=(*told.own_plan.ops, asked), faults=faults)))[
            "title"
        ]

    assert killed("an-error-at-a-checksum").startswith("Markers are lost when the timeline server dies")
    assert "failed listing" not in killed("a-listing-that-fails-once")


def test_what_a_reader_finds_at_a_later_step_leads() -> None:
    finding = next(each for each in PLANNED if each.name.startswith("a-rollback-that-cannot-list"))
    horizon = "hudi finds 2 wrong rows (2 of no completed write) after step 6 (archive)"
    text = issue_text(replace(finding.told, message=f"impact: {horizon}; {finding.message}"))
    assert "**Impact:** Hudi finds 2 wrong rows (2 of no completed write) after step 6 (archive). " in text
    assert text.partition("<details>")[0].count("after step 6") == 1, "it is said once"


def test_what_any_system_breaks_is_told_without_hudis_code() -> None:
    finding = next(each for each in PLANNED if each.name.startswith("names-glued"))
    plain = replace(finding.told, sut="package.module:factory", world="simulated", version="")
    text = issue_text(plain)
    assert told_of(plain)["code"] == "" and "MarkerDirState" not in text.partition("**What you expected:**")[0]
    assert "**System:** package.module:factory" in text and "Hudi version" not in text
    plan = re.search(r"```json\n(.*)\n```", text)
    assert plan and json.loads(plan[1]) == finding.told.own_plan.to_dict(), "it is shown by its plan"


@pytest.mark.parametrize("sut", ["mutant:ack-before-flush"])
def test_a_failure_of_a_simulated_system_has_a_text_and_no_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sut: str
) -> None:
    report, issue = tmp_path / "report", tmp_path / "issue.md"
    assert main(["verify", "--sut", sut, "--runs", "40", "--seed", "1", "--jobs", "1", "--report", str(report)]) == 1
    assert main(["replay", str(report / "plan.json"), "--markdown", str(issue)]) == 0
    text = issue.read_text(encoding="utf-8")
    assert text.startswith("# A create is answered") and f"**System:** {sut}" in text and "```json" in text
    capsys.readouterr()
    assert main(["replay", str(report / "plan.json"), "--script"]) == 2
    assert "--markdown writes a text with its plan" in capsys.readouterr().err


def test_a_failure_that_nothing_is_known_of_has_a_title_too() -> None:
    stored = PLANNED[0].told
    assert told_of(replace(stored, guarantee="G21", cause=""))["title"]

"""Writes the files of a report directory, each completely or not at all.

    verdict.json  plan.json  history.parquet  history.jsonl (up to 10,000 events)  report.html  logs/
    failures/     plan and history of every failure after the first, named by guarantee, mode, storage and cause

verdict.json is written last, so that a directory that has one is complete. `--junit` is a file of its own, which CI
systems show: a test case for each guarantee in its mode, world and storage.

    violated, and not in the baseline                failure
    violated, and in the baseline; not promised,     skipped, with the reason
    not applicable
    inconclusive; an error that ended the campaign   error, which must not look like a pass
    holds                                            passed

One more case, "verdict", has the result of the whole suite, as the exit code.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from marker_sim.errors import EXIT_HOLDS
from marker_sim.history import History, write_jsonl
from marker_sim.judges.promises.profiles import Profile, unshipped
from marker_sim.outcome.failure import Failure
from marker_sim.plan import write_plan
from marker_sim.report.columns import write_parquet
from marker_sim.report.directory import EARLIER, hold, new_folder, writing
from marker_sim.report.page import render_curves, render_page
from marker_sim.report.verdict import VerdictOutcome, plan_name
from marker_sim.report.words import printable
from marker_sim.surroundings.files import replacing

JSONL_EVENTS_MAX = 10_000


def write_outcome(outcome: VerdictOutcome, directory: Path) -> dict[str, Any]:
    """Write all files of a judged campaign; returns the content of verdict.json. HarnessError when that fails."""
    content = outcome.to_dict()
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "logs").mkdir(exist_ok=True)
        for number, failure in enumerate(outcome.failures):
            _write_failure(directory, number, failure, outcome.profile)
        last = outcome.failures[0].history if outcome.failures else outcome.campaign.last
        if last is not None:
            kept = _with_profile(last, outcome.profile)
            _write_history(kept, directory / "history.jsonl")
            _write(directory / "history.parquet", partial(write_parquet, kept))
        write_text(directory / "report.html", render_page(outcome))
        write_text(directory / "verdict.json", json.dumps(content, indent=1) + "\n")
    return content


def write_smaller(directory: Path, name: str, broken: Failure, profile: Profile, seen: Mapping[str, Any]) -> Path:
    """Replace a stored failure's plan, run and texts by those of a smaller plan.

    name: of the plan in verdict.json; seen: what changes in its entry there. Returns the place of the earlier files.
    """
    plan, kept = directory / name, _with_profile(broken.history, profile)
    first = name == "plan.json"
    runs = [directory / f"history.{kind}" for kind in ("jsonl", "parquet")] if first else [plan.with_suffix(".jsonl")]
    verdict = directory / "verdict.json"
    with writing(directory), ExitStack() as stack:
        hold(directory, stack)
        aside = new_folder(directory / EARLIER)
        for file in (plan, *runs, verdict):
            if file.is_file():
                (aside / file.relative_to(directory)).parent.mkdir(exist_ok=True)
                shutil.copy2(file, aside / file.relative_to(directory))
        content = json.loads(verdict.read_bytes())
        own = [entry for entry in content.get("failures", ()) if entry["plan"] == name]
        rows = [row for row in content["guarantees"] for entry in own if row["replay"] == entry["replay"]]
        for entry in own:
            entry.pop("curve", None)  # Of the run that is replaced.
            entry.update(seen)
        for row in rows:
            row.update(message=seen["message"], evidence=seen["evidence"])
        assert broken.plan is not None
        _write(plan, partial(write_plan, broken.plan))
        _write_history(kept, runs[0])
        for file in runs[1:]:
            _write(file, partial(write_parquet, kept))
        write_text(verdict, json.dumps(content, indent=1) + "\n")
    return aside


def note_ended(directory: Path, name: str) -> None:
    """Note in verdict.json that nothing is left to try for the stored failure with the plan `name`."""
    verdict = directory / "verdict.json"
    with writing(directory), ExitStack() as stack:
        hold(directory, stack)
        content = json.loads(verdict.read_bytes())
        for entry in content.get("failures", ()):
            if entry["plan"] == name:
                entry["ended"] = True
        write_text(verdict, json.dumps(content, indent=1) + "\n")


def write_junit(outcome: VerdictOutcome, target: Path) -> None:
    """Write the verdict as JUnit XML; HarnessError when that fails."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, junit_xml(outcome))


def write_curves(failures: Sequence[Failure], file: Path) -> None:
    """Write curves (`replay --curve`) as a page or as JSON, by the ending of the file."""
    curves = [each.curve.to_dict() for each in failures if each.curve is not None]
    text = render_curves(failures) if file.suffix == ".html" else json.dumps(curves, indent=1) + "\n"
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)


def _write_failure(directory: Path, number: int, failure: Failure, profile: Profile) -> None:
    target = directory / plan_name(number, failure)
    target.parent.mkdir(exist_ok=True)
    if failure.plan is not None:
        _write(target, partial(write_plan, failure.plan))
    if number:
        _write_history(_with_profile(failure.history, profile), target.with_suffix(".jsonl"))


def _with_profile(history: History, profile: Profile) -> History:
    """The history with the profile that judged it, so that it can be judged again."""
    return History(replace(history.header, profile=profile.name, promises=unshipped(profile)), history.events)


def _write_history(history: History, target: Path) -> None:
    if len(history.events) <= JSONL_EVENTS_MAX:
        _write(target, partial(write_jsonl, history))


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically."""
    _write(target, lambda path: path.write_text(text, encoding="utf-8"))


def _write(target: Path, write: Callable[[Path], object]) -> None:
    with replacing(target) as path:
        write(path)


_WAYS = {"violated": "failure", "inconclusive": "error", "not-promised": "skipped", "not-applicable": "skipped"}


def junit_xml(outcome: VerdictOutcome) -> str:
    """The verdict as JUnit XML; names of markers are escaped, so that any reader takes it."""
    campaign = outcome.campaign
    suite = ElementTree.Element("testsuite", name=printable(f"marker-sim {campaign.sut}"))
    suite.set("time", f"{campaign.duration_s:.3f}")
    for row in outcome.rows:
        case = _case(suite, f"{row.world}.{row.mode}.{row.storage}", f"{row.id} {row.slug}")
        way, why = _WAYS.get(row.verdict, ""), f"{row.verdict}: {row.message}".removesuffix(": ")
        if way == "failure" and not outcome.counts(row):
            way, why = "skipped", f"known: {row.message}"
        if way:
            _add(case, way, why, f"replay: {row.replay}" if way == "failure" and row.replay else "")
    whole = _case(suite, "marker-sim", "verdict")
    if campaign.trouble:
        _add(whole, "error", campaign.trouble)
    elif outcome.exit_code() != EXIT_HOLDS:
        missed = "; ".join((*campaign.not_reached, *campaign.left_out))
        _add(whole, "failure" if outcome.verdict == "violated" else "error", outcome.verdict, missed)
    for counted, way in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counted, str(len(suite.findall(f"testcase/{way}"))))
    suite.set("tests", str(len(suite)))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, where: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=printable(where), name=printable(name))


def _add(case: ElementTree.Element, way: str, message: str, text: str = "") -> None:
    ElementTree.SubElement(case, way, message=printable(message)).text = printable(text) or None

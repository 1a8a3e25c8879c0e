"""Writes the files of a report directory, each completely or not at all.

    verdict.json  plan.json  history.parquet  history.jsonl (up to 10,000 events)  report.html  logs/
    failures/     plan and history of every failure after the first, named by guarantee, mode, storage and cause

verdict.json is written last, so that a directory that has one is complete. Files for CI systems are in ci.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from marker_sim.history import History, write_jsonl
from marker_sim.judges.promises.profiles import Profile, unshipped
from marker_sim.outcome.failure import Failure
from marker_sim.plan import write_plan
from marker_sim.report.columns import write_parquet
from marker_sim.report.directory import EARLIER, hold, new_folder, writing
from marker_sim.report.page import render_curves, render_page
from marker_sim.report.verdict import VerdictOutcome, as_stored, plan_name
from marker_sim.surroundings.files import replacing
from marker_sim.targets.target import CampaignRequest

JSONL_EVENTS_MAX = 10_000


def write_outcome(outcome: VerdictOutcome, directory: Path) -> dict[str, Any]:
    """Write all files of a judged campaign; returns the content of verdict.json. HarnessError when that fails."""
    content = outcome.to_dict()
    with writing(directory):
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        for number, failure in enumerate(outcome.failures):
            target = directory / plan_name(number, failure)
            target.parent.mkdir(exist_ok=True)
            if failure.plan is not None:
                with replacing(target) as beside:
                    write_plan(failure.plan, beside)
            if number:
                _write_history(failure.history, outcome.profile, target.with_suffix(".jsonl"))
        last = outcome.failures[0].history if outcome.failures else outcome.campaign.last
        if last is not None:
            _write_history(last, outcome.profile, directory / "history.jsonl", directory / "history.parquet")
        write_text(directory / "report.html", render_page(outcome))
        write_text(directory / "verdict.json", json.dumps(content, indent=1) + "\n")
    return content


def write_smaller(directory: Path, name: str, broken: Failure, profile: Profile, ended: bool) -> Path:
    """Replace a stored failure's plan, run and texts by those of a smaller plan.

    name: of the plan in verdict.json; ended: whether nothing is left to try. Returns the place of the earlier files.
    """
    plan = directory / name
    runs = [directory / f"history.{kind}" for kind in ("jsonl", "parquet")]
    if name != "plan.json":
        runs = [plan.with_suffix(".jsonl")]
    with _changed_verdict(directory) as content:
        aside = new_folder(directory / EARLIER)
        for file in (plan, *runs, directory / "verdict.json"):
            if file.is_file():
                (aside / file.relative_to(directory)).parent.mkdir(exist_ok=True)
                shutil.copy2(file, aside / file.relative_to(directory))
        for entry in _entries(content, name):
            for row in content["guarantees"]:
                if row["replay"] == entry["replay"]:
                    row.update(message=broken.message, evidence=list(broken.evidence))
            entry.pop("curve", None)  # Of the run that is replaced.
            place = {part: entry[part] for part in ("mode", "storage")}  # "both" modes of a pair, for a plan of one.
            entry.update(as_stored(broken) | place, ended=ended)
        with replacing(plan) as beside:
            write_plan(broken.own_plan, beside)
        _write_history(broken.history, profile, *runs)
    return aside


def note_ended(directory: Path, name: str) -> None:
    """Note in verdict.json that nothing is left to try for the stored failure with the plan `name`."""
    with _changed_verdict(directory) as content:
        for entry in _entries(content, name):
            entry["ended"] = True


@contextmanager
def _changed_verdict(directory: Path) -> Iterator[dict[str, Any]]:
    """The content of verdict.json, which is written again after the block; the directory is locked."""
    verdict = directory / "verdict.json"
    with writing(directory), ExitStack() as stack:
        hold(directory, stack)
        content = json.loads(verdict.read_bytes())
        yield content
        write_text(verdict, json.dumps(content, indent=1) + "\n")


def _entries(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [entry for entry in content.get("failures", ()) if entry["plan"] == name]


def store_baseline(outcome: VerdictOutcome, request: CampaignRequest) -> None:
    """Write the baseline that was asked for: what was known before and what is violated. HarnessError."""
    if (target := request.write_baseline) is None:
        return
    from marker_sim.judges.baselines.baseline import known_as

    runs = outcome.campaign.runs
    known = {*(request.baseline or ()), *(known_as(each.guarantee, each.kind.cause, runs) for each in outcome.failures)}
    stored = {"schema": 1, "known": [asdict(each) for each in sorted(known)]}
    with writing(target):
        write_text(target, json.dumps(stored, indent=1) + "\n")


def write_curves(failures: Sequence[Failure], file: Path) -> None:
    """Write curves (`replay --curve`) as a page or as JSON, by the ending of the file."""
    curves = [each.curve.to_dict() for each in failures if each.curve is not None]
    text = render_curves(failures) if file.suffix == ".html" else json.dumps(curves, indent=1) + "\n"
    with writing(file):
        write_text(file, text)


def _write_history(history: History, profile: Profile, *targets: Path) -> None:
    """Write a history with the profile that judged it, so that it can be judged again; a long one as Parquet only."""
    kept = replace(history, header=replace(history.header, profile=profile.name, promises=unshipped(profile)))
    for target in targets:
        write = write_parquet if target.suffix == ".parquet" else write_jsonl
        if write is write_parquet or len(kept.events) <= JSONL_EVENTS_MAX:
            with replacing(target) as beside:
                write(kept, beside)


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically, and the folder that it is in."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as beside:
        beside.write_text(text, encoding="utf-8")

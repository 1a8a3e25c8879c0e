"""The report directory: prepared and tested before a run, then each file in place as a whole or not at all.

    verdict.json  plan.json  history.parquet  history.jsonl (up to 10,000 events)  report.html  logs/
    failures/     plan and history of every failure after the first, named by guarantee, mode, storage and cause

verdict.json is written last, so that a directory that has one is complete.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from marker_sim.campaign import Campaign, Failure
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History, write_jsonl
from marker_sim.judges.expect import Known
from marker_sim.judges.profiles import Profile
from marker_sim.plan import write_plan
from marker_sim.report.columns import write_parquet
from marker_sim.report.page import render_page
from marker_sim.report.verdict import Outcome, judge_campaign, plan_name

JSONL_EVENTS_MAX = 10_000
PROBE_BYTES = 1 << 20
COMMAND_FILE = "command.txt"
_FILES = ("verdict.json", "plan.json", "history.parquet", "history.jsonl", "report.html", "mutants.json", "mutants.txt")
_FOLDERS = ("failures", "logs")


def prepare_directory(directory: Path, argv: Sequence[str]) -> None:
    """Make the directory, clear an earlier report out of it and prove that it can be written.

    UsageError when it holds files and no report (nothing is deleted then); HarnessError when it cannot be written.
    """
    command = directory / "logs" / COMMAND_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        present = sorted(os.listdir(directory))
        if present and not command.exists():
            raise UsageError(
                f"--report {directory} holds {present[0]!r} and no earlier report; give an empty or a new directory, so"
                " that nothing of yours is replaced"
            )
        for name in _FILES:
            (directory / name).unlink(missing_ok=True)
        for name in _FOLDERS:
            shutil.rmtree(directory / name, ignore_errors=True)
        (directory / "logs").mkdir()
        _write_text(command, shlex.join(["marker-sim", *argv]) + "\n")
        _atomically(directory / "verdict.json", lambda path: path.write_bytes(bytes(PROBE_BYTES)))
        (directory / "verdict.json").unlink()
    except OSError as error:
        raise _unwritable(directory, error) from error


def write_report(
    campaign: Campaign,
    profile: Profile,
    baseline: frozenset[Known] | None,
    directory: Path,
    argv: Sequence[str],
    guarantees: frozenset[str] | None = None,
) -> dict[str, Any]:
    """Write everything a campaign leaves and return the content of verdict.json; HarnessError when it cannot be."""
    return write_outcome(judge_campaign(campaign, profile, baseline, directory, argv, guarantees), directory)


def write_outcome(outcome: Outcome, directory: Path) -> dict[str, Any]:
    """The same for a campaign that was judged already."""
    content = outcome.to_dict()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "logs").mkdir(exist_ok=True)
        for number, failure in enumerate(outcome.failures):
            _write_failure(directory, number, failure)
        kept = outcome.failures[0].history if outcome.failures else outcome.campaign.last
        if kept is not None:
            _write_history(kept, directory / "history.jsonl")
            _atomically(directory / "history.parquet", lambda path: write_parquet(kept, path))
        _write_text(directory / "report.html", render_page(outcome))
        _write_text(directory / "verdict.json", json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise _unwritable(directory, error) from error
    return content


def _write_failure(directory: Path, number: int, failure: Failure) -> None:
    target = directory / plan_name(number, failure)
    target.parent.mkdir(exist_ok=True)
    plan = failure.plan
    if plan is not None:
        _atomically(target, lambda path: write_plan(plan, path))
    if number:
        _write_history(failure.history, target.with_suffix(".jsonl"))


def _write_history(history: History, target: Path) -> None:
    if len(history.events) <= JSONL_EVENTS_MAX:
        _atomically(target, lambda path: write_jsonl(history, path))


def _write_text(target: Path, text: str) -> None:
    _atomically(target, lambda path: path.write_text(text, encoding="utf-8"))


def _atomically(target: Path, write: Callable[[Path], object]) -> None:
    """Write beside the target and rename over it: a reader sees the old file or the whole new one."""
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        write(beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _unwritable(directory: Path, error: OSError) -> HarnessError:
    reason = error.strerror or str(error)
    return HarnessError(
        f"the report directory {directory} cannot be written ({reason}); free space there or give another with --report"
    )

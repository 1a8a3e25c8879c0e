"""The failures that are stored at a path: a plan, a finding, a history, a report or a chaos directory.

Fixed ones that `chaos` stored are moved to `fixed/`, and nothing is deleted. In a chaos directory the ledger records
the status of a replay for the next night. Elsewhere, for example in a downloaded folder of failures, only the file is
moved.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from marker_sim.campaign.nightly.failures import FOLDER, is_stored, read_stored, stored_plan
from marker_sim.campaign.nightly.ledger import NAME, read_lines, writing
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.totals import Totals
from marker_sim.campaign.stored_plan import SIMULATED, StoredPlan
from marker_sim.cli.judge import HISTORIES, read_history, see
from marker_sim.errors import UsageError
from marker_sim.judges.findings import UNEXPLAINED
from marker_sim.judges.promises.profiles import SHIPPED, load_profile, parse_profile
from marker_sim.outcome.failure import FIXED, SERVER
from marker_sim.plan import Plan, read_plan
from marker_sim.report.verdict import SCHEMA
from marker_sim.targets.table import DEFAULT
from marker_sim.targets.target import ServerOptions


def failure_of_chaos(file: Path) -> StoredPlan:
    """A failure that `chaos` stored; UsageError when this version cannot read it."""
    return stored_plan(read_stored(file), file)


def readable(file: Path) -> StoredPlan:
    """The failure in a file; one without a plan, and with the reason, when this version cannot read it."""
    try:
        return failure_of_chaos(file)
    except UsageError as error:
        return StoredPlan(name=file.name, sut=DEFAULT, guarantee=None, plan=None, hint=str(error))


def failures_at(path: Path) -> tuple[StoredPlan, ...]:
    """The failures in a report directory, a finding, a plan or a history; UsageError when there are none."""
    if path.is_dir():
        return _failures_in_report(path)
    if not path.is_file():
        raise UsageError(f"{path} does not exist; give a plan.json or the report directory of a verify")
    if path.suffix in HISTORIES:
        header = read_history(path).header
        plan = None if header.plan is None else Plan.from_dict(header.plan, f"the plan in {path}")
        hint = f"a history without a plan; `marker-sim judge {shlex.quote(str(path))}` judges it again"
        world = SERVER if header.world == "foreign" else SIMULATED
        return (StoredPlan(name=path.name, sut=header.sut, guarantee=None, plan=plan, hint=hint, world=world),)
    finding = _finding_at(path)
    if finding is not None:
        return (finding,)
    plan = read_plan(path)
    for folder in (path.parent, path.parent.parent):
        if (folder / "verdict.json").is_file():
            verdict = _read_verdict(folder)
            for entry in verdict["failures"]:
                if Path(entry["plan"]).name == path.name:
                    return (_in_report(entry, verdict, plan, folder),)
            return (StoredPlan(name=path.name, guarantee=None, plan=plan, **_whole(verdict, folder)),)
    world = SERVER if plan.shape is not None else SIMULATED
    return (StoredPlan(name=path.name, sut=DEFAULT, guarantee=None, plan=plan, world=world),)


def _finding_at(path: Path) -> StoredPlan | None:
    """A finding of docs/findings.md, which has its plan and what that breaks in one file; None for another file."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(raw, dict) or "name" not in raw or not {"plan", "missed"} & raw.keys():
        return None
    if "plan" not in raw:
        raise UsageError(f"{path} is a finding without a plan: {raw['missed']}")
    lacks = [name for name in ("guarantee", "sut") if not isinstance(raw.get(name), str)]
    if lacks:
        raise UsageError(f"{path} is no whole finding: {lacks[0]!r} is missing or wrong; give a report or a plan")
    own = {"plan": Plan.from_dict(raw["plan"], f"the plan in {path}"), "world": SERVER, "server": ServerOptions()}
    own |= {"also": tuple(raw.get("also", ())), "lines": tuple(raw.get("transcript", ()))}
    return StoredPlan.parse(raw, f", {path.name}", **own)


def _failures_in_report(directory: Path) -> tuple[StoredPlan, ...]:
    """The failures of a report, those that represent their stories first."""
    verdict = _read_verdict(directory)
    if not verdict["failures"]:
        raise UsageError(f"{directory} contains no failure to replay: its verdict is {verdict['verdict']!r}")
    stored = []
    for _, entry in sorted(enumerate(verdict["failures"]), key=lambda each: each[1]["story"] != each[0]):
        name = entry["plan"]
        places = (directory / name, directory / "failures" / name) if name else ()
        file = next((file for file in places if file.is_file()), None)
        stored.append(_in_report(entry, verdict, read_plan(file) if file else None, directory))
    return tuple(stored)


def _in_report(entry: dict[str, Any], verdict: dict[str, Any], plan: Plan | None, directory: Path) -> StoredPlan:
    """A failure as a report states it."""
    cause = "" if entry["cause"] in ("", UNEXPLAINED) else f", {entry['cause']}"
    others = [each["guarantee"] for each in verdict["failures"] if each["story"] == entry["story"]]
    file = directory / (entry["plan"] or "none")
    of_first = [directory / f"history{suffix}" for suffix in HISTORIES]
    histories = of_first if file.name == "plan.json" else [file.with_suffix(".jsonl")]
    return StoredPlan.parse(
        entry,
        f" in {entry['mode']} mode on {entry['storage']}{cause}",
        story=str(entry["story"]),
        plan=plan,
        hint="" if plan else f"it has no plan; this looks for it again: {entry['replay']}",
        report=directory,
        plan_name=entry["plan"],
        also=tuple(dict.fromkeys(each for each in others if each != entry["guarantee"])),
        evidence=tuple(entry["evidence"]),
        history=next((each for each in histories if each.is_file()), None),
        often=entry["confirmed"],
        **_whole(verdict, directory),
    )


def _whole(verdict: dict[str, Any], directory: Path) -> dict[str, Any]:
    """What all failures of a verdict share: the system, its world, and the profile that it states or names."""
    raw, server = verdict.get("profile", {}), verdict.get("server")
    profile = load_profile(raw["name"]) if raw.get("name") in SHIPPED else None
    if "promise" in raw:
        profile = parse_profile(raw, f"the profile in {directory}")
    world = {} if server is None else {"world": SERVER, "server": ServerOptions.from_dict(server)}
    versions = {"version": verdict.get("sut_version", ""), "kit_version": verdict.get("kit_version", "")}
    return {"sut": verdict["sut"], "profile": profile, **versions, **world}


def _read_verdict(directory: Path) -> dict[str, Any]:
    file = directory / "verdict.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{directory} is not the report of a finished verify: {file.name} cannot be read"
            f" ({getattr(error, 'strerror', None) or error}); give the report of one that ended{see(directory)}"
        ) from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA or not isinstance(raw.get("failures"), list):
        raise UsageError(
            f"{file} is not a verdict of schema {SCHEMA}, which alone this version reads; replay it with the marker-sim"
            " that wrote it, or find the failure again with `marker-sim verify`"
        )
    return raw


def stored_files(place: Path) -> list[Path]:
    """The files of open failures in a chaos directory or in a folder of failures, or the file `place` itself."""
    if place.is_file():
        return [place] if _is_failure(place) else []
    chaos = chaos_directory(place)
    folder = place if chaos is None else chaos / FOLDER
    return [file for file in sorted(folder.glob("*.json")) if _is_failure(file)]


class Pruned(NamedTuple):
    """The result of pruning. statuses: by file, of failures that ran again. moved: the new files of the fixed ones."""

    statuses: dict[Path, str]
    moved: list[Path]


@contextmanager
def pruning(place: Path) -> Iterator[Pruned]:
    """A context that records, at its end, the statuses that its block found, and moves fixed failures.

    UsageError when a chaos is running on the directory.
    """
    pruned, chaos = Pruned({}, []), chaos_directory(place)
    if chaos is None:
        yield pruned
        for file, status in pruned.statuses.items():
            if status == FIXED:
                (file.parent / FIXED).mkdir(exist_ok=True)
                pruned.moved.append(file.parent / FIXED / file.name)
                os.replace(file, pruned.moved[-1])
        return
    with writing(chaos) as ledger:
        totals = Totals().add_all(read_lines(chaos))
        totals.failures.write(chaos)
        yield pruned
        for file, status in pruned.statuses.items():
            if file.stem in totals.failures.by_name:
                totals.add(ledger.append("replayed", night=0, name=file.stem, status=status))
                if status == FIXED:
                    pruned.moved.append(chaos / FOLDER / FIXED / file.name)
        totals.failures.write(chaos)
        if totals.nights:
            write_summary(totals, chaos)


def chaos_directory(place: Path) -> Path | None:
    """The chaos directory whose ledger has these failures, None where there is no ledger."""
    for directory in (place, place.parent):
        if (directory / NAME).is_file() and place in (directory, directory / FOLDER):
            return directory
    return None


def _is_failure(file: Path) -> bool:
    try:
        return is_stored(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return False

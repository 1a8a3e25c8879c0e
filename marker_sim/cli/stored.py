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

from marker_sim.campaign.nightly.failures import FOLDER, is_stored, plan_of, read_stored
from marker_sim.campaign.nightly.ledger import NAME, read_lines, writing
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.totals import Totals
from marker_sim.campaign.replay import StoredPlan
from marker_sim.cli.judge import HISTORIES, read_history, see
from marker_sim.errors import UsageError
from marker_sim.judges.findings import UNEXPLAINED
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.promises.profiles import SHIPPED, load_profile, parse_profile
from marker_sim.outcome.failure import FIXED, SERVER, SPARK
from marker_sim.plan import Plan, read_plan
from marker_sim.report.verdict import SCHEMA
from marker_sim.surroundings.requirements import lacking
from marker_sim.targets.table import DEFAULT, parse_target
from marker_sim.targets.target import SERVERS, TABLES, ServerOptions


def failure_of_chaos(file: Path) -> StoredPlan:
    """A failure that `chaos` stored; UsageError when this version cannot read it."""
    failure = read_stored(file)
    return StoredPlan(
        name=f"{_guarantee(failure.guarantee)}, {file.name}",
        sut=failure.sut,
        guarantee=failure.guarantee,
        cause=failure.cause,
        plan=plan_of(failure, str(file)) if failure.plan else None,
        hint=f"it was found in rounds that cannot be repeated; look again: marker-sim verify --sut {failure.sut}",
        profile=load_profile(failure.profile),
        world=failure.world,
        server=ServerOptions.from_dict(failure.server) if failure.world == SERVER else None,
        deterministic=failure.deterministic,
    )


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
        world = "server" if header.world == "foreign" else "simulated"
        return (StoredPlan(name=path.name, sut=header.sut, guarantee=None, plan=plan, hint=hint, world=world),)
    finding = _finding_at(path)
    if finding is not None:
        return (finding,)
    plan = read_plan(path)
    for folder in (path.parent, path.parent.parent):
        if (folder / "verdict.json").is_file():
            verdict = _read_verdict(folder)
            for entry in _entries(verdict):
                if Path(entry["plan"]).name == path.name:
                    return (_stored(entry, verdict, plan, folder),)
            return (
                StoredPlan(name=path.name, sut=verdict["sut"], guarantee=None, plan=plan, **_world(verdict, folder)),
            )
    world = SERVER if plan.shape is not None else "simulated"
    return (StoredPlan(name=path.name, sut=DEFAULT, guarantee=None, plan=plan, world=world),)


def is_for_servers(stored: StoredPlan, system: str) -> bool:
    """Whether a hand-written plan, for which no report names a world, runs on a server."""
    can, plan = parse_target(system).can, stored.plan
    if stored.guarantee is not None or plan is None or plan.writes or can.world != SERVERS:
        return False
    return plan.mode in can.modes and plan.storage in can.storages


def missing(stored: StoredPlan, system: str) -> str:
    """The reason why a failure cannot be run here, "" when it can."""
    target = parse_target(system)
    of_table = stored.plan is not None and stored.plan.shape is not None
    if stored.plan is not None and of_table != (target.can.world == TABLES):
        return (
            f"its plan is of a table that Hudi writes, which {system} does not; give --sut hudi-spark:VERSION"
            if of_table
            else f"its plan is of a marker store, and {system} writes tables"
        )
    if stored.world == SERVER and stored.plan is not None:
        if target.can.plans:
            return ""
        if stored.server is None and "start" not in target.can.refuses:
            return "nothing beside it says how the server is started; replay the report directory that it comes from"
        return ""
    if stored.plan is None or not target.can.plans:
        return stored.hint or f"{system} runs in real time, where a simulated plan does not determine a run"
    part = {"real": f"real processes on {stored.plan.storage}", SPARK: SPARK}.get(stored.world)
    why = lacking(part) if part else ""
    return f"it needs {why}" if why else ""


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
    try:
        return StoredPlan(
            name=f"{_guarantee(raw['guarantee'])}, {path.name}",
            sut=raw["sut"],
            guarantee=raw["guarantee"],
            cause=raw.get("cause", ""),
            plan=Plan.from_dict(raw["plan"], f"the plan in {path}"),
            world=SERVER,
            server=ServerOptions(),
            also=tuple(raw.get("also", ())),
            message=raw.get("message", ""),
            often=raw.get("often", ""),
            version=raw.get("version", ""),
            kit_version=raw.get("kit_version", ""),
        )
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} is no whole finding: {error} is missing or wrong; give a report or a plan") from error


def _failures_in_report(directory: Path) -> tuple[StoredPlan, ...]:
    verdict = _read_verdict(directory)
    stored = []
    entries = _entries(verdict)
    for _, entry in sorted(enumerate(entries), key=lambda each: each[1].get("story", each[0]) != each[0]):
        name = entry["plan"]
        places = (directory / name, directory / "failures" / name) if name else ()
        file = next((file for file in places if file.is_file()), None)
        stored.append(_stored(entry, verdict, read_plan(file) if file else None, directory))
    if not stored:
        raise UsageError(f"{directory} contains no failure to replay: its verdict is {verdict['verdict']!r}")
    return tuple(stored)


def _entries(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """The stored failures of a verdict; in older files, the rows that are violated."""
    if "failures" in verdict:
        return list(verdict["failures"])
    rows = [row for row in verdict["guarantees"] if row["verdict"] == "violated"]
    return [row | {"guarantee": row["id"], "cause": "", "plan": _plan_in(row["replay"])} for row in rows]


def _plan_in(command: str) -> str:
    """The name of the plan file in a replay command, "" when it runs no plan."""
    words = shlex.split(command)
    return Path(words[2]).name if words[:2] == ["marker-sim", "replay"] and len(words) == 3 else ""


def _stored(entry: dict[str, Any], verdict: dict[str, Any], plan: Plan | None, directory: Path) -> StoredPlan:
    """A failure as a report states it; older reports state less."""
    story = entry.get("story")
    cause = "" if entry["cause"] in ("", UNEXPLAINED) else f", {entry['cause']}"
    others = [each["guarantee"] for each in _entries(verdict) if story is not None and each.get("story") == story]
    file = directory / (entry["plan"] or "none")
    of_first = [directory / f"history{suffix}" for suffix in HISTORIES]
    histories = of_first if file.name == "plan.json" else [file.with_suffix(".jsonl")]
    return StoredPlan(
        name=f"{_guarantee(entry['guarantee'])} in {entry['mode']} mode on {entry['storage']}{cause}",
        sut=verdict["sut"],
        guarantee=entry["guarantee"],
        cause=entry["cause"],
        story="" if story is None else str(story),
        plan=plan,
        hint="" if plan else f"it has no plan; this looks for it again: {entry['replay']}",
        report=directory,
        plan_name=entry["plan"],
        also=tuple(dict.fromkeys(each for each in others if each != entry["guarantee"])),
        message=entry.get("message", ""),
        evidence=tuple(entry.get("evidence", ())),
        history=next((each for each in histories if each.is_file()), None),
        often=entry.get("confirmed", ""),
        entries_before=entry.get("entries_before", 0),
        ended=entry.get("ended", False),
        version=verdict.get("sut_version", ""),
        kit_version=verdict.get("kit_version", ""),
        **_world(verdict, directory),
    )


def _world(verdict: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The world in which the plans of a verdict ran, and their profile: what it says, or the shipped one it names."""
    raw, server = verdict.get("profile", {}), verdict.get("server")
    profile = load_profile(raw["name"]) if raw.get("name") in SHIPPED else None
    if "promise" in raw:
        profile = parse_profile(raw, f"the profile in {directory}")
    world = {} if server is None else {"world": "server", "server": ServerOptions.from_dict(server)}
    return {"profile": profile, **world}


def _guarantee(name: str) -> str:
    return f"{name} {BY_ID[name].slug}" if name in BY_ID else name


def _read_verdict(directory: Path) -> dict[str, Any]:
    file = directory / "verdict.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{directory} is not the report of a finished verify: {file.name} cannot be read"
            f" ({getattr(error, 'strerror', None) or error}); give the report of one that ended{see(directory)}"
        ) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("guarantees"), list) or raw.get("schema", SCHEMA) > SCHEMA:
        raise UsageError(f"{file} is not a verdict of schema {SCHEMA}; give a report that this version wrote")
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

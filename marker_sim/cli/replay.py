"""`replay`: the plan of a stored failure again, with today's code and judges.

What `chaos` stored is pruned on the way: a failure that is fixed moves to `fixed/`.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from marker_sim.chaos.failures import CANNOT_RUN, FIXED, NOT_REPRODUCED, VIOLATED, plan_of, read_stored
from marker_sim.chaos.pruning import has_ledger, pruning, stored_files
from marker_sim.cli.confirming import confirm
from marker_sim.cli.judging import HISTORIES, read_history, see
from marker_sim.cli.request import default_profile, parse_sut
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.profiles import load_profile
from marker_sim.judges.violations import violation
from marker_sim.plan import Plan, read_plan
from marker_sim.report.verdict import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED, SCHEMA
from marker_sim.report.words import printable
from marker_sim.search.replay import replay_plan, undecided
from marker_sim.search.runs import promised_breach
from marker_sim.sut.python import load_system


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A failure to run again. guarantee: None when only a plan is known. plan: None when there is none to run.

    profile: "" for the one that is shipped for the system. world: "simulated", "real" or "spark".
    """

    name: str
    sut: str
    guarantee: str | None
    plan: Plan | None
    hint: str = ""
    profile: str = ""
    world: str = "simulated"
    deterministic: bool = True


def replay(path: Path, sut: str | None, keep: bool, console: Console) -> int:
    """Run every failure stored at `path` again and print what became of each; the exit code.

    path: a chaos directory or a failure of one, a report directory, a plan, or a history whose header has its plan.
    sut: another system than the one stored. keep: leave what is fixed where it is, as with another system.
    """
    chaos = path.is_dir() and has_ledger(path)
    files = stored_files(path)
    if not files and not chaos:
        return _worst([_replay_one(stored, sut, console, slowly=True) for stored in _stored(path)])
    if path.is_file() or keep or sut is not None:
        return _said([_replay_file(file, sut, console, strict=path.is_file()) for file in files], path, console)
    with pruning(path) as pruned:
        files = stored_files(path)  # The ledger knows of those, too, whose files somebody lost.
        results = [_replay_file(file, sut, console, strict=False) for file in files]
        for file, status in zip(files, results, strict=True):
            pruned.note(file, status)
    for file in pruned.moved:
        _print(console, f"moved to {file}")
    return _said(results, path, console)


def _said(results: list[str], path: Path, console: Console) -> int:
    if not results:
        _print(console, f"{path} stores no failure that is not fixed")
    return _worst(results)


def _worst(results: list[str]) -> int:
    codes = {VIOLATED: EXIT_VIOLATED, CANNOT_RUN: EXIT_HARNESS, NOT_REPRODUCED: EXIT_INCONCLUSIVE}
    return next((code for status, code in codes.items() if status in results), EXIT_HOLDS)


def _replay_file(file: Path, sut: str | None, console: Console, strict: bool) -> str:
    """One failure of a chaos directory. strict: raise what is wrong with the file, instead of going on with others."""
    try:
        failure = read_stored(file)
        sighting = failure.sighting
        stored = Stored(
            name=file.name,
            sut=failure.sut,
            guarantee=sighting.guarantee,
            plan=plan_of(failure, str(file)),
            profile=failure.profile,
            world=sighting.world,
            deterministic=sighting.deterministic,
        )
        return _replay_one(stored, sut, console)
    except (HarnessError, UsageError) as error:
        if strict:
            raise
        _print(console, f"CANNOT RUN: {error}")
        return CANNOT_RUN


def _replay_one(stored: Stored, sut: str | None, console: Console, slowly: bool = False) -> str:
    """slowly: play what is still violated once with real processes as well, and say what came of it."""
    system = sut or stored.sut
    label = f"{stored.guarantee + ', ' if stored.guarantee else ''}{stored.name}"
    if stored.plan is None or parse_sut(system)[0] != "python":
        hint = stored.hint or f"{system} runs in the real world, where no plan determines a run"
        _print(console, f"CANNOT RUN: {label}: {hint}")
        return CANNOT_RUN
    if stored.world != "simulated":
        return _replay_for_real(stored, system, label, console)
    history, findings = replay_plan(stored.plan, system, stored.guarantee)
    profile = load_profile(_profile_of(stored, system))
    for finding in findings:
        breach = promised_breach(finding, stored.plan, profile)
        if breach is None and stored.guarantee is not None and finding.breaches:
            breach = finding.breaches[0]  # The stored verdict held it against the system, whatever its profile was.
        if breach is not None:
            _print(console, f"STILL VIOLATED: {label}: {system}")
            _print(console, str(violation(history, finding.guarantee, breach)))
            if slowly:
                _print(console, confirm(stored.plan, system, finding.guarantee, profile))
            return VIOLATED
    steady = stored.deterministic or system != stored.sut
    doubt = undecided(stored.plan, load_system(system), stored.guarantee, history, findings, steady)
    if doubt:
        _print(console, f"NOT REPRODUCED: {label}: {system}: {doubt}")
        return NOT_REPRODUCED
    _print(
        console, f"FIXED: {label}: {system} keeps what it broke" if stored.guarantee else f"FIXED: {label}: {system}"
    )
    return FIXED


def _replay_for_real(stored: Stored, system: str, label: str, console: Console) -> str:
    """With real processes, a few times: what races may come out otherwise, so that nothing seen is not yet fixed."""
    assert stored.plan is not None and stored.guarantee is not None
    if stored.world != "real":
        _print(console, f"CANNOT RUN: {label}: it is a job of Spark; benchmarks/spark_jobs.py runs those of a seed")
        return CANNOT_RUN
    try:
        from marker_sim.chaos.work_real import TIMES, RealWork
    except ModuleNotFoundError as error:
        _print(console, f"CANNOT RUN: {label}: it needs the Python package {error.name}; pip install '.[s3,serve]'")
        return CANNOT_RUN
    profile = load_profile(_profile_of(stored, system))
    with RealWork() as real:
        broken = real.run_again(stored.plan, system, stored.guarantee, profile, TIMES + 1)
    if broken:
        _print(console, f"STILL VIOLATED: {label}: {system}, in {broken} of {TIMES + 1} runs with real processes")
        _print(
            console, f"{BY_ID[stored.guarantee].id} {BY_ID[stored.guarantee].slug}: {BY_ID[stored.guarantee].sentence}"
        )
        return VIOLATED
    _print(console, f"NOT REPRODUCED: {label}: {system}, {TIMES + 1} of {TIMES + 1} runs with real processes")
    return NOT_REPRODUCED


def _profile_of(stored: Stored, system: str) -> str:
    same = stored.profile and system == stored.sut
    return stored.profile if same else default_profile(system)


def _stored(path: Path) -> tuple[Stored, ...]:
    if path.is_dir():
        return _stored_in_report(path)
    if not path.is_file():
        raise UsageError(f"{path} does not exist; give a plan.json or the report directory of a verify")
    if path.suffix in HISTORIES:
        header = read_history(path).header
        plan = None if header.plan is None else Plan.from_dict(header.plan, f"the plan in {path}")
        hint = f"a history without a plan; `marker-sim judge {shlex.quote(str(path))}` judges it again"
        return (Stored(name=path.name, sut=header.sut, guarantee=None, plan=plan, hint=hint),)
    plan = read_plan(path)
    for folder in (path.parent, path.parent.parent):
        if (folder / "verdict.json").is_file():
            verdict = _read_verdict(folder)
            for row in verdict["guarantees"]:
                if _plan_of(row) == path.name:
                    return (Stored(name=path.name, sut=verdict["sut"], guarantee=row["id"], plan=plan),)
            return (Stored(name=path.name, sut=verdict["sut"], guarantee=None, plan=plan),)
    return (Stored(name=path.name, sut="reference", guarantee=None, plan=plan),)


def _stored_in_report(directory: Path) -> tuple[Stored, ...]:
    verdict = _read_verdict(directory)
    stored = []
    for row in verdict["guarantees"]:
        if row["verdict"] != "violated":
            continue
        name = _plan_of(row)
        file = next((f for f in (directory / name, directory / "failures" / name) if name and f.is_file()), None)
        hint = "" if file else f"it has no plan; this is how to look for it again: {row['replay']}"
        plan = read_plan(file) if file else None
        where = f"{row['mode']} mode on {row['storage']}"
        stored.append(Stored(name=where, sut=verdict["sut"], guarantee=row["id"], plan=plan, hint=hint))
    if not stored:
        raise UsageError(f"{directory} stores no failure to replay: its verdict is {verdict['verdict']!r}")
    return tuple(stored)


def _plan_of(row: dict[str, Any]) -> str:
    """The name of the plan file in a row's replay command, "" when the command runs no plan."""
    words = shlex.split(row.get("replay") or "")
    return Path(words[2]).name if words[:2] == ["marker-sim", "replay"] and len(words) == 3 else ""


def _read_verdict(directory: Path) -> dict[str, Any]:
    file = directory / "verdict.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{directory} is not the report of a finished verify: {file.name} cannot be read"
            f" ({getattr(error, 'strerror', None) or error}); give one{see(directory)}"
        ) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("guarantees"), list) or raw.get("schema", SCHEMA) > SCHEMA:
        raise UsageError(f"{file} is not a verdict of schema {SCHEMA}; give a report that this version wrote")
    return raw


def _print(console: Console, text: str) -> None:
    for line in text.splitlines():
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

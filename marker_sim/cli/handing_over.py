"""`replay --script` and `replay --markdown`: stored failures for people without the kit. Nothing is run.

The text for an issue tracker has the promise, the observation, the steps, and a script that shows the violation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.cli.judge import read_history
from marker_sim.cli.output import say
from marker_sim.cli.stored import failure_of_chaos, failures_at, stored_files
from marker_sim.errors import EXIT_HOLDS, EXIT_USAGE, HarnessError, UsageError
from marker_sim.faults import FAULT_CLASSES
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.failure import SERVER
from marker_sim.report.scripts.issue import issue_text
from marker_sim.report.scripts.table_script import script_of
from marker_sim.report.steps import steps_of
from marker_sim.report.write import write_text
from marker_sim.targets.table import parse_target

ENDINGS = {"python": ".py", "java": ".java", "markdown": ".md"}


def hand_over(path: Path, sut: str | None, script: bool, every: bool, file: Path | None, others: Sequence[str]) -> int:
    """Write a script, or a text with one, for each story; returns the exit code.

    path: of a report directory or one of its plans, a chaos directory or a failure of one.
    sut: another system than the stored one.
    every: each failure, not one for each story.
    file: None for standard output, a folder where several are written.
    others: options that do not go with it.
    """
    if others:
        raise UsageError(
            f"{others[0]} was given; --script or --markdown writes stored failures and runs nothing, so leave it out"
        )
    chosen: dict[object, StoredPlan] = {}
    for number, stored in enumerate(_failures(path)):
        chosen.setdefault(number if every else stored.defect, stored)
    if len(chosen) > 1 and (file is None or file.is_file()):
        raise UsageError(
            f"{path} has {len(chosen)} stories; give a folder to write them into, or one of the plans below {path}"
        )
    code, names = EXIT_HOLDS, set[str]()
    for stored in chosen.values():
        try:
            described = failure_description(stored, sut, script)
            text, language = script_of(described) if script else (issue_text(described), "markdown")
        except UsageError as error:
            if len(chosen) == 1:
                raise
            say(str(error))
            code = EXIT_USAGE
            continue
        if file is None:
            sys.stdout.write(text)
            continue
        name = _file_name(stored.name, names) + ENDINGS[language]
        _write(file / name if file.is_dir() or len(chosen) > 1 else file, text, script)
    return code


def _failures(path: Path) -> tuple[StoredPlan, ...]:
    files = stored_files(path)
    return tuple(failure_of_chaos(file) for file in files) if files else failures_at(path)


def _write(target: Path, text: str, script: bool) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
        if script:
            target.chmod(0o755)
    except OSError as error:
        raise HarnessError(f"{target} cannot be written: {error.strerror or error}") from error
    print(target)


def _file_name(name: str, taken: set[str]) -> str:
    """A file name that no other story uses."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
    found = next(each for each in (plain, *(f"{plain}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)
    taken.add(found)
    return found


def failure_description(stored: StoredPlan, sut: str | None, script: bool = True) -> StoredPlan:
    """The failure with all that a script or a text states of it; UsageError for one that cannot be written.

    script: whether it is for a script, which shows failures of servers and jobs alone.
    """
    system = sut or stored.sut
    target = parse_target(system)
    if stored.guarantee is None:
        raise UsageError(
            f"no file beside {stored.name} says which promise it breaks; give the report directory that it comes from"
        )
    served = stored.world == SERVER and not target.can.plans
    if script and not served:
        raise UsageError(
            f"{stored.name} was found with {stored.sut}, which is no server or job that a script can start;"
            " scripts show failures of --sut http, of hudi:VERSION, of hudi-spark:VERSION and of hudi-java:VERSION;"
            " --markdown writes a text with its plan"
        )
    if stored.plan is None:
        raise UsageError(f"{stored.name} cannot be shown by a {'script' if served else 'plan'}: {stored.hint}")
    if served and "start" not in target.can.refuses and (stored.server is None or not stored.server.start):
        raise UsageError(
            f"no file beside {stored.name} says how the server is started; give the report directory that it comes from"
        )
    profile, plan = stored.profile or load_profile(target.can.profile), stored.plan
    promises = (profile.promise(stored.guarantee, plan.mode, plan.storage, under) for under in FAULT_CLASSES)
    lines = stored.lines
    if stored.history is not None and stored.evidence:
        view = HistoryIndex(read_history(stored.history))
        lines = tuple(f"{step.when:>10}  {step.text}" for step in steps_of(view, stored.evidence, stored.message))
    return replace(
        stored,
        sut=system,
        lines=lines,
        source=next((promise.source for promise in promises if promise.promised), ""),
        version=(stored.version if system == stored.sut else "") or target.version,
    )

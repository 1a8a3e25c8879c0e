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
from marker_sim.judges.findings import split_impact
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.failure import SERVER
from marker_sim.report.scripts.server_script import versions_of
from marker_sim.report.scripts.table_script import script_of
from marker_sim.report.scripts.writers_script import JUDGED, impact_of
from marker_sim.report.words import in_context, plan_sentences, printable
from marker_sim.report.write import write_text
from marker_sim.targets.table import parse_target

ISSUE_MAX = 65_000  # GitHub accepts up to 65,536 characters.
ENDINGS = {"python": ".py", "java": ".java", "markdown": ".md"}
AROUND = 1  # Events shown before and after the evidence.


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
            described = failure_description(stored, sut)
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


def failure_description(stored: StoredPlan, sut: str | None) -> StoredPlan:
    """The failure with all that a script or a text states of it; UsageError for one that no script can show."""
    system = sut or stored.sut
    target = parse_target(system)
    if stored.guarantee is None:
        raise UsageError(
            f"no file beside {stored.name} says which promise it breaks; give the report directory that it comes from"
        )
    if stored.world != SERVER or target.can.plans:
        raise UsageError(
            f"{stored.name} was found with {stored.sut}, which is no server or job that a script can start; hand over"
            " its code and the plan, which `marker-sim replay` runs"
        )
    if stored.plan is None:
        raise UsageError(f"{stored.name} cannot be shown by a script: {stored.hint}")
    if "start" not in target.can.refuses and (stored.server is None or not stored.server.start):
        raise UsageError(
            f"no file beside {stored.name} says how the server is started; give the report directory that it comes from"
        )
    profile, plan = stored.profile or load_profile(target.can.profile), stored.plan
    promises = (profile.promise(stored.guarantee, plan.mode, plan.storage, under) for under in FAULT_CLASSES)
    lines: tuple[str, ...] = ()
    if stored.history is not None and stored.evidence:
        lines = in_context(read_history(stored.history), stored.evidence, AROUND)
    return replace(
        stored,
        sut=system,
        lines=lines,
        source=next((promise.source for promise in promises if promise.promised), ""),
        version=(stored.version if system == stored.sut else "") or target.version,
    )


def issue_text(failure: StoredPlan) -> str:
    """The text as Markdown; where no script can run the plan, the reason stands in its place."""
    known = BY_ID[failure.guarantee or ""]
    shape = failure.own_plan.shape
    impact, message = split_impact(failure.message)
    seen = [f"**Seen:** {printable(message)}"] if message else []
    if shape is not None and shape.writers and failure.guarantee in JUDGED:
        title, impact = impact_of(failure)
    else:
        title = f"{failure.sut}: {known.slug} is broken{f': {printable(message)}' if message else ''}"
        seen = []
    lines = [
        f"# {title}",
        "",
        *([f"**Impact:** {printable(impact)}"] if impact else ()),
        *seen,
        f"**Promised** ({known.id}): {known.sentence}",
        f"**Written:** {failure.source or 'nowhere that is known'}",
        f"**Versions:** {versions_of(failure)}",
    ]
    lines += [f"**How often:** {failure.often}"] if failure.often else []
    lines += [f"**The same cause also breaks:** {', '.join(failure.also)}"] if failure.also else []
    lines += ["", "## Steps", "", *(f"- {printable(sentence)}" for sentence in plan_sentences(failure.own_plan))]
    if failure.lines:
        lines += ["", "## What was seen", "", *_fenced("\n".join(failure.lines))]
    lines += ["", "## A script that shows it", ""]
    try:
        script, language = script_of(failure)
    except UsageError as error:
        return "\n".join((*lines, f"{error}.", ""))
    text = "\n".join((*lines, *_fenced(script.rstrip("\n"), language), ""))
    if len(text) > ISSUE_MAX:
        return "\n".join((*lines, "It is long; attach what `marker-sim replay --script` writes.", ""))
    return text


def _fenced(text: str, language: str = "") -> tuple[str, str, str]:
    fence = "```" if "```" not in text else "`````"
    return f"{fence}{language}", text, fence

"""`replay`: runs the plans of stored failures with today's code and judges, one for each cause or all of them.

A cause is a guarantee and the cause of its breach. Its failures are run until one is still violated, so a cause is
FIXED when all of them are. Failures that `chaos` stored move to `fixed/` then. A plan that breaks nothing, without a
record that it ever did, is not FIXED but NO FAILURE KNOWN.

`shrink` goes on making one failure of each cause smaller, in the world that it was found in, with the shrinker of that
world. The smaller plan and the run that shows it take the place of the earlier ones, which are kept in `earlier/`; the
page of the report stays as the campaign left it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from marker_sim.campaign.played_shrinking import SmallPlan
from marker_sim.campaign.replay import (
    LONG_S,
    Replayed,
    on_servers,
    shrink_on_servers,
    shrink_simulated,
    simulated,
    with_processes,
)
from marker_sim.campaign.sources.played import Processes
from marker_sim.cli import options as given
from marker_sim.cli.request import parse_duration, parse_number
from marker_sim.cli.stored import StoredPlan, failure_of_chaos, failures_at, has_ledger, pruning, stored_files
from marker_sim.cli.verify import confirm
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED, HarnessError, UsageError
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.violations import violation
from marker_sim.outcome.failure import CANNOT_RUN, FIXED, NONE_SMALLER, NOT_REPRODUCED, SERVER, SPARK, VIOLATED
from marker_sim.report.table import output_console, print_line
from marker_sim.report.words import plan_sentences
from marker_sim.report.write import write_smaller
from marker_sim.search.shrinking.shrinker import SMALL
from marker_sim.surroundings.requirements import lacking
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import SERVERS, TABLES, ServerOptions

UNKNOWN = "there is no record beside it that it ever broke one"
LEAST_S = 1.0
TIMES_MAX = 1000
REAL_TIMES = 3
SERVER_TIMES = 10
TABLE_TIMES = SPARK_TIMES = 3
NOTHING_KNOWN = "no failure known"
WORDS = {
    VIOLATED: "still violated",
    CANNOT_RUN: "cannot run",
    NOT_REPRODUCED: "not reproduced",
    FIXED: "fixed",
    NOTHING_KNOWN: NOTHING_KNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of `replay`.

    sut: another system than the stored one.
    keep: leave fixed failures where they are.
    every: run all failures of a cause.
    real: run plans that are still violated with real processes too.
    times: how often each plan is run, None for once, `REAL_TIMES` for a failure found with real processes,
        `SERVER_TIMES` for one of a foreign server, `TABLE_TIMES` for one of a table and `SPARK_TIMES` for Spark jobs.
    """

    sut: str | None = None
    keep: bool = False
    every: bool = False
    real: bool = False
    times: int | None = None


def replay(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A plan, a report directory, a chaos directory.")],
    sut: given.OtherSut = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not move fixed failures of a chaos directory.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Replay every stored failure, not one per cause.")] = False,
    times: given.Times = None,
    real: given.Real = False,
    script: given.Script = False,
    markdown: given.Markdown = False,
    file: given.HandedOver = None,
) -> int:
    """Run stored failures again, one for each cause: FIXED, STILL VIOLATED, NOT REPRODUCED or CANNOT RUN.

    A plan that breaks nothing, and of which no file says that it ever did, is NO FAILURE KNOWN.

    A cause is a guarantee and how it was broken. Its failures are run until one is still violated, in the world in
    which they were found: milliseconds in the simulated one, seconds with real processes, where the output also has
    the number of violated runs. Fixed failures of a chaos directory are moved to failures/fixed.
    """
    if script or markdown:
        given_too = [name for name, value in (("--script and --markdown", script and markdown), ("--keep", keep),
                     ("--times", times), ("--real", real)) if value]  # fmt: skip
        from marker_sim.cli.handing_over import hand_over  # Which needs an HTTP client.

        return hand_over(path, sut, script, every, file, given_too)
    if file is not None:
        raise UsageError(f"{file} was given as well; a second path is what --script or --markdown writes, so add one")
    count = None if times is None else parse_number(times, "--times", TIMES_MAX)
    return run_again(path, Wanted(sut=sut, keep=keep, every=every, real=real, times=count), output_console())


def run_again(path: Path, wanted: Wanted, console: Console) -> int:
    """Run the failures stored at `path` again and print their status; returns the exit code.

    path: a chaos directory or a failure of one, a report directory, a plan, or a history whose header has its plan.
    """
    files = stored_files(path)
    if not files and not (path.is_dir() and has_ledger(path)):
        return conclude(_run_all([*failures_at(path)], wanted, console), console)
    if path.is_file() or wanted.keep or wanted.sut is not None:
        failures = [failure_of_chaos(path)] if path.is_file() else _readable(files, console)
        return _ended(_run_all(failures, wanted, console), path, console)
    with pruning(path) as pruned:
        files = stored_files(path)  # The ledger also has failures whose files were lost.
        results = _run_all(_readable(files, console), wanted, console)
        pruned.statuses.update((file, status) for file, status in zip(files, results, strict=True) if status)
    for file in pruned.moved:
        print_lines(console, f"moved to {file}")
    return _ended(results, path, console)


def _readable(files: Sequence[Path], console: Console) -> list[StoredPlan | str]:
    """The failures in files; for one that this version cannot read, the reason."""
    found: list[StoredPlan | str] = []
    for file in files:
        try:
            found.append(failure_of_chaos(file))
        except UsageError as error:
            found.append(str(error))
    return found


def _ended(results: Sequence[str], path: Path, console: Console) -> int:
    if not results:
        print_lines(console, f"{path} contains no open failures")
    return conclude(results, console)


def conclude(results: Sequence[str], console: Console) -> int:
    """Print the totals of several failures; returns the exit code of the worst."""
    ran = [status for status in results if status]
    if len(results) > 1:
        counts = ", ".join(f"{ran.count(status)} {word}" for status, word in WORDS.items() if status in ran)
        left = len(results) - len(ran)
        more = f"; {left} more with the same causes were not run (--all runs them)" if left else ""
        print_lines(console, f"{len(results)} failures: {counts}{more}")
    codes = {VIOLATED: EXIT_VIOLATED, CANNOT_RUN: EXIT_HARNESS, NOT_REPRODUCED: EXIT_INCONCLUSIVE}
    return next((code for status, code in codes.items() if status in ran), EXIT_HOLDS)


def _run_all(failures: Sequence[StoredPlan | str], wanted: Wanted, console: Console) -> list[str]:
    """The status of each failure, "" for one that was skipped because another one still shows its cause."""
    results: list[str] = []
    seen: set[tuple[str, str, str]] = set()
    systems = {wanted.sut or stored.sut for stored in failures if isinstance(stored, StoredPlan) and stored.plan}
    with TimeLimit() as limit:
        for system in sorted(systems):
            limit.set(REST_S, f"loading {system}")
            parse_target(system).load()  # A system that cannot be loaded is reported once and not for each failure.
        for stored in failures:
            if isinstance(stored, str):
                print_lines(console, f"CANNOT RUN: {stored}")
                results.append(CANNOT_RUN)
                continue
            cause = (*stored.defect, stored.world)
            if cause in seen and not wanted.every:
                results.append("")
                continue
            try:
                limit.set(LONG_S * (wanted.times or SERVER_TIMES) + REST_S, f"the replay of {stored.name}")
                results.append(_run_one(stored, wanted, console))
            except HarnessError as error:
                print_lines(console, f"CANNOT RUN: {stored.name}: {error}")
                results.append(CANNOT_RUN)
            if results[-1] == VIOLATED:
                seen.add(cause)
    return results


def _run_one(stored: StoredPlan, wanted: Wanted, console: Console) -> str:
    system = wanted.sut or stored.sut
    if is_for_servers(stored, system):
        stored = replace(stored, world=SERVER)
    why = missing(stored, system)
    if why:
        print_lines(console, f"CANNOT RUN: {stored.name}: {why}")
        return CANNOT_RUN
    profile = profile_of(stored, system)
    again = _again(stored, system, profile, wanted.times)
    often = f", {again.broken} of {again.times}" if again.times > 1 else ""
    where = f"{stored.name}: {system}{' with real processes' if stored.world == 'real' else ''}"
    if again.shown is not None:
        shown = again.shown
        print_lines(console, f"STILL VIOLATED{often}: {where}")
        print_lines(console, str(violation(shown.history, shown.guarantee, shown.breach)), indent="  ")
        if again.also:
            print_lines(console, f"also breaks {', '.join(again.also)}", indent="  ")
        if wanted.real and stored.world == "simulated":
            said = confirm(shown.own_plan, system, shown.guarantee, profile, again.times)
            print_lines(console, said, indent="  ")
    elif again.status == NOT_REPRODUCED:
        why = UNKNOWN if stored.guarantee is None and stored.world == SERVER else again.why
        print_lines(console, f"NOT REPRODUCED{often}: {where}; {why}")
    elif stored.guarantee is None:
        print_lines(console, f"NO FAILURE KNOWN{often}: {where} breaks no guarantee, and {UNKNOWN}")
        return NOTHING_KNOWN
    else:
        print_lines(console, f"FIXED{often}: {where} no longer breaks {stored.guarantee}")
    return again.status


def _again(stored: StoredPlan, system: str, profile: Profile, times: int | None) -> Replayed:
    """The result of running a stored plan again in its world."""
    plan, guarantee, cause = stored.plan, stored.guarantee, stored.cause
    assert plan is not None
    if stored.world == SERVER and not parse_target(system).can.plans:
        times = times or (SERVER_TIMES if plan.shape is None else TABLE_TIMES)
        return on_servers(plan, system, stored.server or ServerOptions(), profile, guarantee, cause, times)
    if stored.world == "real":
        assert guarantee is not None
        with Processes(system) as real:
            return with_processes(real, plan, guarantee, profile, times or REAL_TIMES)
    if stored.world == SPARK:
        return on_servers(plan, system, None, profile, guarantee, cause, times or SPARK_TIMES)
    steady = stored.deterministic or system != stored.sut
    return simulated(plan, system, guarantee, cause, profile, times or 1, steady)


def profile_of(stored: StoredPlan, system: str) -> Profile:
    """The profile to judge by: for its own system the one stored with the failure, else the one shipped."""
    if system == stored.sut and stored.profile is not None:
        return stored.profile
    return load_profile(parse_target(system).can.profile)


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


def print_lines(console: Console, text: str, indent: str = "") -> None:
    """Print a text as it is, each line indented."""
    for line in text.splitlines():
        print_line(console, indent + line)


def shrink(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A report directory of verify, or a plan in one.")],
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for all of it: 30s, 5m, 1h.")] = "5m",
) -> int:
    """Go on making stored failures smaller, one for each cause, on the system that showed them.

    A smaller plan takes the place of the earlier one, which is kept in earlier/ of the report.
    """
    budget_s, console = parse_duration(budget, "--budget"), output_console()
    chosen: dict[tuple[str, str], StoredPlan] = {}
    for stored in _failures(path):
        chosen.setdefault(stored.defect, stored)
    with TimeLimit() as limit:
        for system in sorted({stored.sut for stored in chosen.values()}):
            limit.set(REST_S, f"loading {system}")
            parse_target(system).load()
        until, results = time.monotonic() + budget_s, []
        limit.set(budget_s + REST_S, f"making {path} smaller with a budget of {budget_s:g} s")
        for number, stored in enumerate(chosen.values()):
            left_s = max(LEAST_S, (until - time.monotonic()) / (len(chosen) - number))
            try:
                results.append(_shrink_one(stored, left_s, console))
            except HarnessError as error:
                print_lines(console, f"CANNOT RUN: {stored.name}: {error}")
                results.append(CANNOT_RUN)
    return conclude(results, console)


def _failures(path: Path) -> tuple[StoredPlan, ...]:
    if stored_files(path):
        raise UsageError(f"{path} is of `marker-sim chaos`, which shrinks its failures itself; give a report of verify")
    found = failures_at(path)
    for stored in found:
        if stored.guarantee is None:
            raise UsageError(f"no file beside {path} says which guarantee it breaks; give the report that it is from")
        if stored.report is None:
            raise UsageError(f"{path} is no plan in a report of verify, so it cannot be replaced by a smaller one")
    return found


def _shrink_one(stored: StoredPlan, budget_s: float, console: Console) -> str:
    why = missing(stored, stored.sut)
    if why or stored.plan is None:
        print_lines(console, f"CANNOT RUN: {stored.name}: {why or stored.hint}")
        return CANNOT_RUN
    small, runs = _smaller(stored, profile := profile_of(stored, stored.sut), budget_s)
    if small is None:
        again = "`marker-sim replay` says whether it is fixed"
        print_lines(console, f"NOT REPRODUCED, 0 of {runs}: {stored.name}: {stored.sut}; {again}")
        return NOT_REPRODUCED
    before, after = stored.plan.entries, small.plan.entries
    said = f"; {small.sentence}" if small.sentence else ""
    if small.told is None or after >= before:
        print_lines(console, f"NO SMALLER: {stored.name}: {before} entries: {small.stopped or NONE_SMALLER}{said}")
        return VIOLATED
    assert stored.report is not None
    broken = small.broken[small.told]
    seen = {
        "message": broken.breach.message, "evidence": list(broken.breach.evidence), "confirmed": small.sentence,
        "entries_before": max(before, stored.entries_before), "large": small.stopped if after > SMALL else "",
    }  # fmt: skip
    aside = write_smaller(stored.report, stored.plan_name, replace(broken, plan=small.plan), profile, seen)
    print_lines(console, f"SMALLER: {stored.name}: {before} entries before, {after} now{said}")
    print_lines(console, "\n".join(plan_sentences(small.plan)), indent="  ")
    rest = f"; it may become smaller yet: {small.stopped}" if seen["large"] else ""
    print_lines(console, f"the earlier plan is in {aside}{rest}", indent="  ")
    return VIOLATED


def _smaller(stored: StoredPlan, profile: Profile, budget_s: float) -> tuple[SmallPlan | None, int]:
    assert stored.plan is not None and stored.guarantee is not None
    if stored.world == SERVER and not parse_target(stored.sut).can.plans:
        server = stored.server or ServerOptions()
        return shrink_on_servers(stored.plan, stored.sut, server, profile, stored.guarantee, stored.cause, budget_s)
    return shrink_simulated(stored.plan, stored.sut, profile, stored.guarantee, stored.cause, budget_s)

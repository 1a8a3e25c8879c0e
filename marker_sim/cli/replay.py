"""`replay`: runs the plans of stored failures with today's code and judges, one for each cause or all of them.

A cause is a guarantee and the cause of its breach. Its failures are run until one is still violated, so a cause is
FIXED when all of them are. Failures that `chaos` stored move to `fixed/` then. A plan that breaks nothing, and of which
nothing says that it ever did, was never broken to be mended: NO FAILURE KNOWN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from marker_sim.campaign.nightly.failures import CANNOT_RUN, FIXED, NOT_REPRODUCED, VIOLATED
from marker_sim.campaign.nightly.pruning import has_ledger, pruning, stored_files
from marker_sim.campaign.nightly.stages import SERVER
from marker_sim.campaign.replay import replay_on_servers, replay_plan, undecided
from marker_sim.campaign.runs import promised_breach
from marker_sim.cli.confirming import confirm, count_real
from marker_sim.cli.stored import StoredPlan, failure_of_chaos, failures_at
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.violations import violation
from marker_sim.loading import load_system
from marker_sim.report.verdict import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED
from marker_sim.report.words import printable
from marker_sim.requirements import lacking
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import SERVERS, TABLES, ServerOptions
from marker_sim.time_limit import REST_S, TimeLimit

UNKNOWN = "nothing beside it says that it ever broke one"
REAL_TIMES = 3
SERVER_TIMES = 10
TABLE_TIMES = 3
NOTHING_KNOWN = "no failure known"
RUN_S = 120.0
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
        `SERVER_TIMES` for one of a foreign server and `TABLE_TIMES` for one of a table.
    """

    sut: str | None = None
    keep: bool = False
    every: bool = False
    real: bool = False
    times: int | None = None


def replay(path: Path, wanted: Wanted, console: Console) -> int:
    """Run the failures stored at `path` again and print their status; the exit code.

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
        for file, status in zip(files, results, strict=True):
            if status:
                pruned.note(file, status)
    for file in pruned.moved:
        print_lines(console, f"moved to {file}")
    return _ended(results, path, console)


def _readable(files: Sequence[Path], console: Console) -> list[StoredPlan | str]:
    """The failures in files; for one that this version cannot read the reason."""
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
    """Print the totals of several failures; the exit code of the worst."""
    ran = [status for status in results if status]
    if len(results) > 1:
        counts = ", ".join(f"{ran.count(status)} {word}" for status, word in WORDS.items() if status in ran)
        left = len(results) - len(ran)
        more = f"; {left} more with the same causes were not run (--all runs them)" if left else ""
        print_lines(console, f"{len(results)} failures: {counts}{more}")
    codes = {VIOLATED: EXIT_VIOLATED, CANNOT_RUN: EXIT_HARNESS, NOT_REPRODUCED: EXIT_INCONCLUSIVE}
    return next((code for status, code in codes.items() if status in ran), EXIT_HOLDS)


def _run_all(failures: Sequence[StoredPlan | str], wanted: Wanted, console: Console) -> list[str]:
    """The status of each, "" for one that was not run because its cause is still violated by another."""
    results: list[str] = []
    seen: set[tuple[str, str, str]] = set()
    systems = {wanted.sut or stored.sut for stored in failures if isinstance(stored, StoredPlan) and stored.plan}
    for system in sorted(systems):
        parse_target(system).load()  # A system that cannot be loaded is reported once and not for each failure.
    with TimeLimit() as limit:
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
                limit.set(RUN_S * (wanted.times or SERVER_TIMES) + REST_S, f"the replay of {stored.name}")
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
    if stored.world == SERVER:
        times = TABLE_TIMES if stored.plan is not None and stored.plan.shape is not None else SERVER_TIMES
        return _run_on_servers(stored, system, profile, wanted.times or times, console)
    if stored.world == "real":
        return _run_for_real(stored, system, profile, wanted.times or REAL_TIMES, console)
    return _run_simulated(stored, system, profile, wanted, console)


def profile_of(stored: StoredPlan, system: str) -> Profile:
    """What the system is held to: what it was when the failure was stored, or what is shipped for it."""
    if system == stored.sut and stored.profile is not None:
        return stored.profile
    return load_profile(parse_target(system).can.profile)


def is_for_servers(stored: StoredPlan, system: str) -> bool:
    """Whether a plan that somebody wrote, and no report says where it ran, is run on a server."""
    can, plan = parse_target(system).can, stored.plan
    if stored.guarantee is not None or plan is None or plan.writes or can.world != SERVERS:
        return False
    return plan.mode in can.modes and plan.storage in can.storages


def missing(stored: StoredPlan, system: str) -> str:
    """Why a failure cannot be run here, "" when it can."""
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
    if stored.world == "spark":
        return "it is a Spark job; benchmarks/spark_jobs.py runs the jobs of a seed"
    why = lacking(f"real processes on {stored.plan.storage}") if stored.world == "real" else ""
    return f"it needs {why}" if why else ""


def _run_simulated(stored: StoredPlan, system: str, profile: Profile, wanted: Wanted, console: Console) -> str:
    plan = stored.plan
    assert plan is not None
    times = wanted.times or 1
    broken, shown, also = 0, "", ""
    for _ in range(times):
        history, findings = replay_plan(plan, system, stored.guarantee)
        for finding in findings:
            breach = promised_breach(finding, plan, profile, stored.cause) or promised_breach(finding, plan, profile)
            if breach is None and stored.guarantee is not None and finding.breaches:
                breach = finding.breaches[0]  # The stored verdict counted it as violated.
            if breach is not None:
                broken += 1
                shown = shown or str(violation(history, finding.guarantee, breach))
                guarantee = finding.guarantee
                others = (each for each in findings if each is not finding)
                also = ", ".join(each.guarantee for each in others if promised_breach(each, plan, profile))
                break
    runs = f", in {broken} of {times} runs" if times > 1 else ""
    if broken:
        print_lines(console, f"STILL VIOLATED: {stored.name}: {system}{runs}")
        print_lines(console, shown, indent="  ")
        if also:
            print_lines(console, f"also breaks {also}", indent="  ")
        if wanted.real:
            print_lines(console, confirm(plan, system, guarantee, profile, times), indent="  ")
        return VIOLATED
    steady = stored.deterministic or system != stored.sut
    gap = undecided(plan, load_system(system), stored.guarantee, history, findings, steady)
    if gap:
        print_lines(console, f"NOT REPRODUCED: {stored.name}: {system}{runs}: {gap}")
        return NOT_REPRODUCED
    if stored.guarantee is None:
        print_lines(console, f"NO FAILURE KNOWN: {stored.name}: {system} breaks no guarantee{runs}, and {UNKNOWN}")
        return NOTHING_KNOWN
    print_lines(console, f"FIXED: {stored.name}: {system} no longer breaks {stored.guarantee}{runs}")
    return FIXED


def _run_on_servers(stored: StoredPlan, system: str, profile: Profile, times: int, console: Console) -> str:
    """Against the real server, several times: one run without it proves nothing."""
    assert stored.plan is not None
    if parse_target(system).can.plans:
        return _run_simulated(stored, system, profile, Wanted(times=1), console)
    broken, shown = replay_on_servers(
        stored.plan, system, stored.server or ServerOptions(), profile, stored.guarantee, stored.cause, times
    )
    runs = f"{broken} of {times}"
    if shown is not None:
        print_lines(console, f"STILL VIOLATED, {runs}: {stored.name}: {system}")
        print_lines(console, str(violation(*shown)), indent="  ")
        return VIOLATED
    why = UNKNOWN if stored.guarantee is None else "that does not mean that it is fixed"
    print_lines(console, f"NOT REPRODUCED, {runs}: {stored.name}: {system}; {why}")
    return NOT_REPRODUCED


def _run_for_real(stored: StoredPlan, system: str, profile: Profile, times: int, console: Console) -> str:
    """With real processes, a few times: races may end differently, so one run without a violation is not enough."""
    assert stored.plan is not None and stored.guarantee is not None
    broken, _ = count_real(stored.plan, system, stored.guarantee, profile, times)
    runs = f"{system}, in {broken} of {times} runs with real processes"
    if broken:
        known = BY_ID[stored.guarantee]
        print_lines(console, f"STILL VIOLATED: {stored.name}: {runs}")
        print_lines(console, f"{known.id} {known.slug}: {known.sentence}", indent="  ")
        return VIOLATED
    print_lines(console, f"NOT REPRODUCED: {stored.name}: {runs}, which does not mean that it is fixed")
    return NOT_REPRODUCED


def print_lines(console: Console, text: str, indent: str = "") -> None:
    """Print a text as it is, each line indented."""
    for line in text.splitlines():
        console.print(indent + printable(line), markup=False, highlight=False, soft_wrap=True)

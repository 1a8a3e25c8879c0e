"""`replay`: runs the plans of stored failures with today's code and judges, one for each cause or all of them.

A cause is a guarantee and the cause of its breach. Its failures are run until one is still violated, so a cause is
FIXED when all of them are. Failures that `chaos` stored move to `fixed/` then. A plan that breaks nothing, without a
record that it ever did, is not FIXED but NO FAILURE KNOWN. Plans on a storage that the system cannot use are LEFT OUT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from marker_sim.campaign.replay import LONG_S, Replayed, StoredPlan, on_servers, simulated, with_processes
from marker_sim.campaign.runs import with_curve
from marker_sim.campaign.sources.played import Processes
from marker_sim.cli import options as given
from marker_sim.cli.request import parse_number
from marker_sim.cli.stored import (
    chaos_directory,
    failure_of_chaos,
    failures_at,
    is_for_servers,
    missing,
    pruning,
    stored_files,
)
from marker_sim.cli.verify import confirm
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED, HarnessError, UsageError
from marker_sim.judges.findings import by_number
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.violations import violation
from marker_sim.loading import load_system
from marker_sim.outcome.failure import CANNOT_RUN, FIXED, LEFT_OUT, NOT_REPRODUCED, SERVER, SPARK, VIOLATED, Failure
from marker_sim.reading import either
from marker_sim.report.notes import left_out_lines
from marker_sim.report.table import output_console, print_line
from marker_sim.surroundings.requirements import importing
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import parse_target

UNKNOWN = "there is no record beside it that it ever broke one"
TIMES_MAX = 1000
REAL_TIMES = 3
SERVER_TIMES = 10
TABLE_TIMES = SPARK_TIMES = 3
NOTHING_KNOWN = "no failure known"
CURVE_FILES = (".html", ".json")
NO_CURVE = "no curve: it needs a violation of one simulated run, not too long, of a deterministic system in Python"
WORDS = {
    VIOLATED: "still violated",
    CANNOT_RUN: "cannot run",
    NOT_REPRODUCED: "not reproduced",
    FIXED: "fixed",
    LEFT_OUT: "left out",
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
    curves: takes the failures whose curve is measured, None for no curves.
    """

    sut: str | None = None
    keep: bool = False
    every: bool = False
    real: bool = False
    times: int | None = None
    curves: list[Failure] | None = None


def replay(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A plan, a report directory, a chaos directory.")],
    sut: given.OtherSut = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not move fixed failures of a chaos directory.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Replay every stored failure, not one per cause.")] = False,
    times: given.Times = None,
    real: given.Real = False,
    curve: given.Curve = False,
    script: given.Script = False,
    markdown: given.Markdown = False,
    file: given.HandedOver = None,
) -> int:
    """Run stored failures again, one for each cause: FIXED, STILL VIOLATED, NOT REPRODUCED, LEFT OUT or CANNOT RUN.

    A plan that breaks nothing, and of which no file says that it ever did, is NO FAILURE KNOWN.

    A cause is a guarantee and how it was broken. Its failures are run until one is still violated, in the world in
    which they were found: milliseconds in the simulated one, seconds with real processes, where the output also has
    the number of violated runs. Fixed failures of a chaos directory are moved to failures/fixed.
    """
    if script or markdown:
        given_too = [name for name, value in (("--script and --markdown", script and markdown), ("--keep", keep),
                     ("--times", times), ("--real", real), ("--curve", curve)) if value]  # fmt: skip
        with importing("--script" if script else "--markdown"):
            from marker_sim.cli.handing_over import hand_over  # Which needs an HTTP client.

        return hand_over(path, sut, script, every, file, given_too)
    if file is not None and not curve:
        raise UsageError(
            f"{file} was given as well; a second path is what --script, --markdown or --curve writes, so add one"
        )
    if file is not None and file.suffix not in CURVE_FILES:
        raise UsageError(f"{file} was given with --curve; write a path that ends in {either(CURVE_FILES)}")
    count = None if times is None else parse_number(times, "--times", TIMES_MAX)
    wanted = Wanted(sut=sut, keep=keep, every=every, real=real, times=count, curves=[] if curve else None)
    code = run_again(path, wanted, output_console())
    if file is not None and wanted.curves:
        from marker_sim.cli.handing_over import write_curves

        write_curves(wanted.curves, file)
    return code


def run_again(path: Path, wanted: Wanted, console: Console) -> int:
    """Run the failures stored at `path` again and print their status; returns the exit code.

    path: a chaos directory or a failure of one, a report directory, a plan, or a history whose header has its plan.
    """
    files = stored_files(path)
    if not files and not (path.is_dir() and chaos_directory(path)):
        return conclude(_run_all([*failures_at(path)], wanted, console), console)
    if path.is_file() or wanted.keep or wanted.sut is not None:
        failures = [failure_of_chaos(path)] if path.is_file() else _readable(files, console)
        return _ended(_run_all(failures, wanted, console), path, console)
    with pruning(path) as pruned:
        files = stored_files(path)  # The ledger also has failures whose files were lost.
        results = _run_all(_readable(files, console), wanted, console)
        pruned.statuses.update(
            (file, status) for file, status in zip(files, results, strict=True) if status not in ("", LEFT_OUT)
        )
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
    nothing = EXIT_INCONCLUSIVE if {*ran} == {LEFT_OUT} else EXIT_HOLDS
    return next((code for status, code in codes.items() if status in ran), nothing)


def _run_all(failures: Sequence[StoredPlan | str], wanted: Wanted, console: Console) -> list[str]:
    """The status of each failure, "" for one that was skipped because another one still shows its cause.

    They are run and printed story by story.
    """
    results = [""] * len(failures)
    stories: dict[tuple[str, ...], list[int]] = {}
    for number, stored in enumerate(failures):
        cause = (stored,) if isinstance(stored, str) else (*stored.defect, stored.world)
        stories.setdefault(cause, []).append(number)
    systems = {wanted.sut or stored.sut for stored in failures if isinstance(stored, StoredPlan) and stored.plan}
    unused: list[_Told] = []
    with TimeLimit() as limit:
        for system in sorted(systems):
            limit.set(REST_S, f"loading {system}")
            parse_target(system).load()  # A system that cannot be loaded is reported once and not for each failure.
        for numbers in stories.values():
            told: list[_Told] = []
            for number in numbers:
                stored = failures[number]
                if isinstance(stored, str):
                    print_lines(console, f"CANNOT RUN: {stored}")
                    results[number] = CANNOT_RUN
                    continue
                limit.set(LONG_S * (wanted.times or SERVER_TIMES) + REST_S, f"the replay of {stored.name}")
                try:
                    outcome = _run_one(stored, wanted)
                except HarnessError as error:
                    outcome = _Told(stored, CANNOT_RUN, "CANNOT RUN", str(error))
                results[number] = outcome.status
                (unused if outcome.status == LEFT_OUT else told).append(outcome)
                if wanted.every or stored.world != "simulated":  # In real time each one takes long.
                    _print_story(told, console)
                    told.clear()
                if outcome.status == VIOLATED and not wanted.every:
                    break
            _print_story(told, console)
    for line in left_out_lines(sorted({each.rest for each in unused})):
        print_lines(console, line.replace("left out", "LEFT OUT", 1))
    return results


class _Told(NamedTuple):
    """A failure that was run again. head: its status in words; rest: the reason, and what was seen."""

    stored: StoredPlan
    status: str
    head: str
    rest: str


def _print_story(told: Sequence[_Told], console: Console) -> None:
    """Print what became of failures of one story: in one line where nothing differs but names."""
    same = len({each[1:] for each in told}) == 1 and told[0].status != VIOLATED
    for stored, status, head, rest in told[:1] if same else told:
        more = f" and {len(told) - 1} more of its story" if same and len(told) > 1 else ""
        kept = {each.stored.guarantee or "" for each in told} if same else {stored.guarantee or ""}
        ended = f" {', '.join(by_number(kept))}" if status == FIXED else ""
        print_lines(console, f"{head}: {stored.name}{more}: {rest}{ended}")


def _run_one(stored: StoredPlan, wanted: Wanted) -> _Told:
    system = wanted.sut or stored.sut
    if is_for_servers(stored, system):
        stored = replace(stored, world=SERVER)
    why = missing(stored, system)
    if why:
        return _Told(stored, CANNOT_RUN, "CANNOT RUN", why)
    profile = profile_of(stored, system)
    again = _again(stored, system, profile, wanted.times)
    often = f", {again.broken} of {again.times}" if again.times > 1 else ""
    where = f"{system}{' with real processes' if stored.world == 'real' else ''}"
    if again.shown is not None:
        shown = again.shown
        lines = str(violation(shown.history, shown.guarantee, shown.breach)).splitlines()
        if again.also:
            lines.append(f"also breaks {', '.join(again.also)}")
        if wanted.real and stored.world == "simulated":
            lines.append(confirm(shown.own_plan, system, shown.guarantee, profile, again.times))
        if wanted.curves is not None:
            measured = with_curve(shown, load_system(system), profile) if stored.world == "simulated" else shown
            lines.append(measured.curve.sentence if measured.curve else NO_CURVE)
            wanted.curves.extend([measured] if measured.curve else [])
        return _Told(stored, VIOLATED, f"STILL VIOLATED{often}", "\n  ".join((where, *lines)))
    if again.status == LEFT_OUT:
        return _Told(stored, LEFT_OUT, "LEFT OUT", again.why)
    if again.status == NOT_REPRODUCED:
        why = UNKNOWN if stored.guarantee is None and stored.world == SERVER else again.why
        return _Told(stored, NOT_REPRODUCED, f"NOT REPRODUCED{often}", f"{where}; {why}")
    if stored.guarantee is None:
        told = f"{where} breaks no guarantee, and {UNKNOWN}"
        return _Told(stored, NOTHING_KNOWN, f"NO FAILURE KNOWN{often}", told)
    return _Told(stored, again.status, f"FIXED{often}", f"{where} no longer breaks")


def _again(stored: StoredPlan, system: str, profile: Profile, times: int | None) -> Replayed:
    """The result of running a stored plan again in its world."""
    plan = stored.own_plan
    if stored.world == SERVER and not parse_target(system).can.plans:
        return on_servers(stored, system, profile, times or (SERVER_TIMES if plan.shape is None else TABLE_TIMES))
    if stored.world == "real":
        assert stored.guarantee is not None
        with Processes(system) as real:
            return with_processes(real, plan, stored.guarantee, profile, times or REAL_TIMES)
    if stored.world == SPARK:
        return on_servers(stored, system, profile, times or SPARK_TIMES)
    steady = stored.deterministic or system != stored.sut
    return simulated(plan, load_system(system), stored.guarantee, stored.cause, profile, times or 1, steady)


def profile_of(stored: StoredPlan, system: str) -> Profile:
    """The profile to judge by: for its own system the one stored with the failure, else the one shipped."""
    if system == stored.sut and stored.profile is not None:
        return stored.profile
    return load_profile(parse_target(system).can.profile)


def print_lines(console: Console, text: str, indent: str = "") -> None:
    """Print a text as it is, each line indented."""
    for line in text.splitlines():
        print_line(console, indent + line)

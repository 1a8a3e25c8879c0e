"""`replay`: runs the plans of stored failures with today's code and judges, one for each cause or all of them.

A cause is a guarantee and the cause of its breach. Its failures are run until one is still violated, so a cause is
FIXED when all of them are. Failures that `chaos` stored move to `fixed/` then. A plan that breaks nothing, without a
record that it ever did, is not FIXED but NO FAILURE KNOWN. Plans on a storage that the system cannot use are LEFT OUT.

`shrink` goes on making one failure of each cause smaller, in the world that it was found in, with the shrinker of that
world. The smaller plan and the run that shows it take the place of the earlier ones, which are kept in `earlier/`; the
page of the report stays as the campaign left it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from marker_sim.campaign.replay import (
    LONG_S,
    TIMES,
    ShrinkingSoFar,
    missing,
    replayed,
    shrink_again,
    world_of,
)
from marker_sim.campaign.simulated_failure import with_curve
from marker_sim.campaign.stored_plan import REAL, SIMULATED, StoredPlan
from marker_sim.cli import options as given
from marker_sim.cli.output import Progress
from marker_sim.cli.request import parse_duration, parse_number
from marker_sim.cli.stored import (
    chaos_directory,
    failure_of_chaos,
    failures_at,
    pruning,
    readable,
    stored_files,
)
from marker_sim.cli.verify import confirm
from marker_sim.errors import (
    EXIT_HARNESS,
    EXIT_HOLDS,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
    EXIT_VIOLATED,
    HarnessError,
    UsageError,
)
from marker_sim.judges.findings import by_number
from marker_sim.judges.violations import violation
from marker_sim.loading import load_system
from marker_sim.outcome.failure import (
    CANNOT_RUN,
    FIXED,
    INTERRUPTED,
    LEFT_OUT,
    NONE_SMALLER,
    NOT_REPRODUCED,
    SERVER,
    VIOLATED,
    Failure,
)
from marker_sim.reading import either
from marker_sim.report.notes import left_out_lines
from marker_sim.report.table import output_console, print_lines
from marker_sim.report.words import plan_sentences
from marker_sim.report.write import note_ended, write_curves, write_smaller
from marker_sim.search.shrinking import SMALL
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import parse_target

UNKNOWN = "there is no record beside it that it ever broke one"
LEAST_S = 1.0
TIMES_MAX = 1000
NOTHING_KNOWN = "no failure known"
NOTHING_LEFT = "nothing was left to try when it was made small, so it was only run again"
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
    times: how often each plan is run, None for as often as its world needs (`TIMES` of campaign/replay.py).
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
        given_too = [
            name
            for name, value in (
                ("--script and --markdown", script and markdown),
                ("--keep", keep),
                ("--times", times),
                ("--real", real),
                ("--curve", curve),
            )
            if value
        ]
        from marker_sim.cli.handing_over import hand_over

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
        write_curves(wanted.curves, file)
        print(file)
    return code


def run_again(path: Path, wanted: Wanted, console: Console) -> int:
    """Run the failures stored at `path` again and print their status; returns the exit code.

    path: a chaos directory or a failure of one, a report directory, a plan, or a history whose header has its plan.
    """
    files = stored_files(path)
    if not files and not (path.is_dir() and chaos_directory(path)):
        return conclude(_run_all([*failures_at(path)], wanted, console), console)
    if path.is_file() or wanted.keep or wanted.sut is not None:
        failures = [failure_of_chaos(path)] if path.is_file() else [*map(readable, files)]
        return _ended(_run_all(failures, wanted, console), path, console)
    with pruning(path) as pruned:
        files = stored_files(path)  # The ledger also has failures whose files were lost.
        results = _run_all([*map(readable, files)], wanted, console)
        pruned.statuses.update(
            (file, status) for file, status in zip(files, results, strict=True) if status not in ("", LEFT_OUT)
        )
    for file in pruned.moved:
        print_lines(console, f"moved to {file}")
    return _ended(results, path, console)


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


def _run_all(failures: Sequence[StoredPlan], wanted: Wanted, console: Console) -> list[str]:
    """The status of each failure, run story by story; "" for one skipped because another one still shows its cause."""
    results = [""] * len(failures)
    stories: dict[tuple[str, ...], list[int]] = {}
    for number, stored in enumerate(failures):
        stories.setdefault((*stored.defect, stored.world), []).append(number)
    unused: list[_Told] = []
    with TimeLimit() as limit:
        _load({wanted.sut or stored.sut for stored in failures if stored.plan}, limit)
        for numbers in stories.values():
            told: list[_Told] = []
            for number in numbers:
                stored = failures[number]
                limit.set(LONG_S * (wanted.times or TIMES[SERVER]) + REST_S, f"the replay of {stored.name}")
                try:
                    outcome = _run_one(stored, wanted)
                except HarnessError as error:
                    outcome = _Told(stored, CANNOT_RUN, "CANNOT RUN", str(error))
                results[number] = outcome.status
                (unused if outcome.status == LEFT_OUT else told).append(outcome)
                if wanted.every or stored.world != SIMULATED:  # In real time each one takes long.
                    _print_story(told, console)
                    told.clear()
                if outcome.status == VIOLATED and not wanted.every:
                    break
            _print_story(told, console)
    for line in left_out_lines(sorted({each.rest for each in unused})):
        print_lines(console, line.replace("left out", "LEFT OUT", 1))
    return results


def _load(systems: set[str], limit: TimeLimit) -> None:
    """Load each system, so that one that cannot be loaded is reported once and not for each failure."""
    for system in sorted(systems):
        limit.set(REST_S, f"loading {system}")
        parse_target(system).load()


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
    why = missing(stored, system)
    if why:
        return _Told(stored, CANNOT_RUN, "CANNOT RUN", why)
    profile, world = stored.profile_for(system), world_of(stored, system)
    again = replayed(stored, system, profile, wanted.times)
    often = f", {again.broken} of {again.times}" if again.times > 1 else ""
    where = f"{system}{' with real processes' if world == REAL else ''}"
    if again.shown is not None:
        shown = again.shown
        lines = str(violation(shown.history, shown.guarantee, shown.breach)).splitlines()
        if again.also:
            lines.append(f"also breaks {', '.join(again.also)}")
        if wanted.real and world == SIMULATED:
            lines.append(confirm(shown.own_plan, system, shown.guarantee, profile, again.times))
        if wanted.curves is not None:
            measured = with_curve(shown, load_system(system), profile) if world == SIMULATED else shown
            lines.append(measured.curve.sentence if measured.curve else NO_CURVE)
            wanted.curves.extend([measured] if measured.curve else [])
        return _Told(stored, VIOLATED, f"STILL VIOLATED{often}", "\n  ".join((where, *lines)))
    if again.status == LEFT_OUT:
        return _Told(stored, LEFT_OUT, "LEFT OUT", again.why)
    if again.status == NOT_REPRODUCED:
        why = UNKNOWN if stored.guarantee is None and world == SERVER else again.why
        return _Told(stored, NOT_REPRODUCED, f"NOT REPRODUCED{often}", f"{where}; {why}")
    if stored.guarantee is None:
        told = f"{where} breaks no guarantee, and {UNKNOWN}"
        return _Told(stored, NOTHING_KNOWN, f"NO FAILURE KNOWN{often}", told)
    return _Told(stored, again.status, f"FIXED{often}", f"{where} no longer breaks")


def shrink(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A report directory of verify, or a plan in one.")],
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for all of it: 30s, 5m, 1h.")] = "5m",
    same_cause: Annotated[bool, typer.Option("--same-cause", help="Servers: keep to the failure's cause.")] = False,
) -> int:
    """Go on making stored failures smaller, one for each cause, on the system that showed them.

    A smaller plan takes the place of the earlier one, which is kept in earlier/ of the report; the next shrink goes on
    from there, and only runs a plan for which nothing was left to try. Ctrl-C ends it and keeps what was found.
    """
    budget_s, console = parse_duration(budget, "--budget"), output_console()
    chosen: dict[tuple[str, str], StoredPlan] = {}
    for stored in _failures(path):
        chosen.setdefault(stored.defect, stored)
    with TimeLimit() as limit, Progress() as shown:
        _load({stored.sut for stored in chosen.values()}, limit)
        until, results = time.monotonic() + budget_s, []
        limit.set(budget_s + REST_S, f"making {path} smaller with a budget of {budget_s:g} s")
        for number, stored in enumerate(chosen.values()):
            left_s = max(LEAST_S, (until - time.monotonic()) / (len(chosen) - number))
            try:
                results.append(_shrink_one(stored, left_s, console, shown, same_cause))
            except KeyboardInterrupt:
                conclude(results, console)
                return EXIT_INTERRUPTED
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


def _shrink_one(
    stored: StoredPlan, budget_s: float, console: Console, say: Callable[[str], None], same_cause: bool
) -> str:
    """Make a failure smaller and store it; returns its status. KeyboardInterrupt is raised once that is done."""
    why = missing(stored, stored.sut)
    if why:
        print_lines(console, f"CANNOT RUN: {stored.name}: {why}")
        return CANNOT_RUN
    plan = stored.own_plan
    watch = ShrinkingSoFar(plan, lambda line: say(f"{stored.guarantee}: {line}"))
    assert stored.report is not None
    profile = stored.profile_for(stored.sut)
    small, runs = shrink_again(stored, profile, budget_s, watch, same_cause)
    if small is None:
        again = "`marker-sim replay` says whether it is fixed"
        print_lines(console, f"NOT REPRODUCED, 0 of {runs}: {stored.name}: {stored.sut}; {again}")
        return NOT_REPRODUCED
    before, after, why = plan.entries, small.entries, small.large
    said = f"; {small.confirmed}" if small.confirmed else ""
    if after >= before:
        left = NOTHING_LEFT if stored.ended else why or NONE_SMALLER
        print_lines(console, f"NO SMALLER: {stored.name}: {before} entries: {left}{said}")
        if why == NONE_SMALLER and not same_cause:
            note_ended(stored.report, stored.plan_name)
    else:
        large, most = why if after > SMALL else "", max(before, stored.entries_before)
        smaller = replace(small, entries_before=most, large=large)
        aside = write_smaller(stored.report, stored.plan_name, smaller, profile, not (why or same_cause))
        print_lines(console, f"SMALLER: {stored.name}: {before} entries before, {after} now{said}")
        print_lines(console, "\n".join(plan_sentences(small.own_plan)), indent="  ")
        rest = f"; it may become smaller yet: {large}" if large else ""
        print_lines(console, f"the earlier plan is in {aside}{rest}", indent="  ")
    if why == INTERRUPTED:
        raise KeyboardInterrupt
    return VIOLATED

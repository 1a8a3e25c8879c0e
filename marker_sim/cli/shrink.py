"""`shrink`: goes on making one failure of each cause smaller, in the world that it was found in, with its shrinker.

The smaller plan and the run that shows it take the place of the earlier ones, which are kept in `earlier/`; the page of
the report stays as the campaign left it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from marker_sim.campaign.played_shrinking import SmallPlan
from marker_sim.campaign.replay import ShrinkingSoFar, StoredPlan, shrink_again
from marker_sim.cli.output import Progress
from marker_sim.cli.replay import conclude, print_lines, profile_of
from marker_sim.cli.request import parse_duration
from marker_sim.cli.stored import failures_at, missing, stored_files
from marker_sim.errors import EXIT_INTERRUPTED, HarnessError, UsageError
from marker_sim.outcome.failure import CANNOT_RUN, INTERRUPTED, NONE_SMALLER, NOT_REPRODUCED, VIOLATED
from marker_sim.report.table import output_console
from marker_sim.report.words import plan_sentences
from marker_sim.report.write import note_ended, write_smaller
from marker_sim.search.shrinking.shrinker import SMALL
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import parse_target

LEAST_S = 1.0
NOTHING_LEFT = "nothing was left to try when it was made small, so it was only run again"


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
        for system in sorted({stored.sut for stored in chosen.values()}):
            limit.set(REST_S, f"loading {system}")
            parse_target(system).load()
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
    if why or stored.plan is None:
        print_lines(console, f"CANNOT RUN: {stored.name}: {why or stored.hint}")
        return CANNOT_RUN
    watch = ShrinkingSoFar(stored.plan, lambda line: say(f"{stored.guarantee}: {line}"))
    assert stored.report is not None
    profile = profile_of(stored, stored.sut)
    small, runs = shrink_again(stored, profile, budget_s, watch, same_cause)
    if small is None:
        again = "`marker-sim replay` says whether it is fixed"
        print_lines(console, f"NOT REPRODUCED, 0 of {runs}: {stored.name}: {stored.sut}; {again}")
        return NOT_REPRODUCED
    before, after = stored.plan.entries, small.plan.entries
    said = f"; {small.sentence}" if small.sentence else ""
    if small.told is None or after >= before:
        why = NOTHING_LEFT if stored.ended else small.stopped or NONE_SMALLER
        print_lines(console, f"NO SMALLER: {stored.name}: {before} entries: {why}{said}")
        if small.stopped == NONE_SMALLER and not same_cause:
            note_ended(stored.report, stored.plan_name)
        return _status(small)
    broken = small.broken[small.told]
    seen = {
        "guarantee": small.told.guarantee, "cause": small.told.cause,
        "message": broken.breach.message, "evidence": list(broken.breach.evidence), "confirmed": small.sentence,
        "entries_before": max(before, stored.entries_before), "large": small.stopped if after > SMALL else "",
        "ended": not (small.stopped or same_cause),
    }  # fmt: skip
    aside = write_smaller(stored.report, stored.plan_name, replace(broken, plan=small.plan), profile, seen)
    print_lines(console, f"SMALLER: {stored.name}: {before} entries before, {after} now{said}")
    print_lines(console, "\n".join(plan_sentences(small.plan)), indent="  ")
    rest = f"; it may become smaller yet: {small.stopped}" if seen["large"] else ""
    print_lines(console, f"the earlier plan is in {aside}{rest}", indent="  ")
    return _status(small)


def _status(small: SmallPlan) -> str:
    if small.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    return VIOLATED

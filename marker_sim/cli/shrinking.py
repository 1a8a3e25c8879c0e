"""`shrink`: goes on making stored failures smaller, on the system that showed them.

One failure of each cause, in the world that it was found in, with the shrinker of that world. The smaller plan and the
run that shows it take the place of the earlier ones, which are kept in `earlier/`; the page of the report stays as the
campaign left it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from marker_sim.campaign.failure import CANNOT_RUN, NONE_SMALLER, NOT_REPRODUCED, SERVER, VIOLATED
from marker_sim.campaign.nightly.pruning import stored_files
from marker_sim.campaign.played_shrinking import SmallPlan
from marker_sim.campaign.replay import shrink_on_servers, shrink_simulated
from marker_sim.cli.replay import conclude, missing, print_lines, profile_of
from marker_sim.cli.stored import StoredPlan, failures_at
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.promises.profiles import Profile
from marker_sim.report.words import plan_sentences
from marker_sim.report.write import write_smaller
from marker_sim.search.shrinking.shrinker import SMALL
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import ServerOptions
from marker_sim.time_limit import REST_S, TimeLimit

LEAST_S = 1.0


def shrink_stored(path: Path, budget_s: float, console: Console) -> int:
    """Shrink the failures of a report, or the failure of one plan in it; returns the exit code, as `replay` does."""
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
        raise UsageError(f"{path} is of `marker-sim chaos`, which makes small what it finds; give a report of verify")
    found = failures_at(path)
    for stored in found:
        if stored.guarantee is None:
            raise UsageError(f"nothing beside {path} says which guarantee it breaks; give the report that it is from")
        if stored.report is None:
            raise UsageError(f"{path} is no plan in a report of verify, the place of which a smaller one could take")
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

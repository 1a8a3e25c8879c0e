"""Runs the plan of a violation of the simulated world once more with real processes.

One run by default, since it takes seconds and not milliseconds. Races may end differently there, so a violation that
does not occur again is still one: a plan determines a run in the simulated world only. And storage is only read there
now and then, so that a run may decide nothing.
"""

from __future__ import annotations

from marker_sim.campaign.replay import Replayed
from marker_sim.campaign.runs import MODES_AGREE
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.requirements import lacking

CONFIRMED = "confirmed with real processes"
NOT_REPRODUCED = "not reproduced with real processes"
HELD = "the guarantee was judged and held there, which the order of events may be the reason for; it stays a violation"
UNDECIDED = "nothing there decided the guarantee, so this says nothing about it"
SIMULATED_ONLY = "shown in the simulated world only, because"
REAL_STORAGES = ("local", "s3")


def confirm(plan: Plan, sut: str, guarantee: str, profile: Profile, times: int = 1) -> str:
    """One of the three sentences above, with the number of runs or the reason; a missing requirement is no error."""
    why = _not_playable(plan, guarantee)
    if why:
        return f"{SIMULATED_ONLY} {why}"
    try:
        again = with_processes(plan, sut, guarantee, profile, times)
    except HarnessError as error:
        return f"{SIMULATED_ONLY} real processes could not run the plan: {error}"
    runs = f"in {again.broken} of {times} run{'' if times == 1 else 's'}"
    return f"{CONFIRMED}, {runs}" if again.broken else f"{NOT_REPRODUCED}, {runs}; {HELD if again.held else UNDECIDED}"


def with_processes(plan: Plan, sut: str, guarantee: str, profile: Profile, times: int) -> Replayed:
    """The result of a plan run with real processes; HarnessError when that is not possible."""
    from marker_sim.campaign.sources.processes import Processes

    with Processes(sut) as real:
        return real.again(plan, guarantee, profile, times)


def _not_playable(plan: Plan, guarantee: str) -> str:
    if plan.storage not in REAL_STORAGES:
        return f"real processes run on {' and '.join(REAL_STORAGES)} only, not on {plan.storage}"
    if guarantee == MODES_AGREE:
        return "its guarantee compares two runs"
    why = lacking(f"real processes on {plan.storage}")
    return f"real processes need {why}" if why else ""

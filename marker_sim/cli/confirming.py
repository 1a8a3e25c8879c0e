"""Whether a violation of the simulated world is one with real processes too: its plan, played once more, for real.

One run, since it takes seconds and not milliseconds. What races there may come out otherwise, so a violation that is
not seen again is no less one: the plan determines it in the simulated world and nowhere else.
"""

from __future__ import annotations

from marker_sim.errors import HarnessError
from marker_sim.judges import judge
from marker_sim.judges.profiles import Profile
from marker_sim.plan import Plan
from marker_sim.search.runs import MODES_AGREE, promised_breach

CONFIRMED = "confirmed with real processes"
NOT_REPRODUCED = "not reproduced with real processes, in one run"
SIMULATED_ONLY = "simulated only, because"
REAL_STORAGES = ("local", "s3")


def confirm(plan: Plan, sut: str, guarantee: str, profile: Profile) -> str:
    """One of the three sentences above, the last one with its reason; never raises what the real world lacks."""
    why = _not_playable(plan, guarantee)
    if why:
        return f"{SIMULATED_ONLY} {why}"
    try:
        from marker_sim.real.jobs.cluster import run_real  # Here, for it needs extras.

        history = run_real(plan, sut)
    except ModuleNotFoundError as error:
        return f"{SIMULATED_ONLY} the Python package {error.name} is not installed"
    except HarnessError as error:
        return f"{SIMULATED_ONLY} real processes could not play the plan: {error}"
    findings = judge(history, frozenset({guarantee}))
    broken = any(promised_breach(finding, plan, profile) is not None for finding in findings)
    return CONFIRMED if broken else NOT_REPRODUCED


def _not_playable(plan: Plan, guarantee: str) -> str:
    if plan.storage not in REAL_STORAGES:
        return f"there is no real {plan.storage} here; {' and '.join(REAL_STORAGES)} have real processes"
    return "its guarantee is judged over a pair of runs" if guarantee == MODES_AGREE else ""

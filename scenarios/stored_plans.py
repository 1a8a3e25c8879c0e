"""Plans that show what is wrong with servers that are broken on purpose, so that a test need not search for them.

A plan is played against the server itself, in real time, and judged anew. When it shows the defect no more, the search
begins again, and a warning says where the plan is that it found: put it in the place of the old one.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from marker_sim.plan import Plan, read_plan, write_plan
from properties.faces.campaign import broken_in, run_campaign
from properties.faces.targets import CampaignRequest
from properties.volume import NIGHTLY

PLANS = Path(__file__).parent / "servers" / "plans"
TRIES = 8  # A plan that shows a defect in half of its runs fails to in one of 256 tests.
RUN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """A defect as a plan shows it. evidence: indices of events."""

    plan: Plan
    evidence: tuple[int, ...]


def caught(name: str, guarantee: str, request: CampaignRequest) -> Caught | None:
    """How a server breaks a guarantee, None when it does in nothing that was played.

    name: of the plan among those that are stored; by night there is none, and the search always begins.
    request: what the search is asked for, within its budget.
    """
    file = PLANS / f"{name}.json"
    if file.exists() and not NIGHTLY and (found := _replayed(read_plan(file), guarantee, request)):
        return found
    asked = replace(request, guarantees=frozenset({guarantee}), stop_at_first=True)
    failures = run_campaign(asked, lambda line: None).failures
    for failure in failures:
        assert failure.plan is not None and failure.seed == failure.plan.seed
        write_plan(failure.plan, request.report / file.name)
        if not NIGHTLY:
            warnings.warn(f"{file} shows no {guarantee}; {request.report / file.name} does", stacklevel=2)
        return Caught(plan=failure.plan, evidence=failure.evidence)
    return None


def _replayed(plan: Plan, guarantee: str, request: CampaignRequest) -> Caught | None:
    with request.target.real_runs(request, lambda line: None) as opened:
        for _ in range(TRIES):
            history = opened.again(plan, time.monotonic() + RUN_S).history
            for kind, broken in broken_in(history, plan, request.profile).items():
                if kind[0] == guarantee:
                    return Caught(plan=plan, evidence=broken.breach.evidence)
    return None

"""Markers that do not fit their instant, and files that are no markers, in a share of the plans of writes.

They are drawn by numbers of their own, so that the rest of a plan is that of its seed.
"""

from __future__ import annotations

import random
from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Site, Step
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.plan import STRAYS, Plan, Task

SHARE = 0.2
_FEW_TASKS = 60
_FILES_SHARE = 0.4  # Of these, in which there are other files as well; as many have these alone.
_SITES = (
    "driver: inflight instant put",
    "driver: task heard of",
    "driver: markers asked for by finalize",
    "driver: completed instant put",
    "driver: completed instant written",
    "driver: marker deletion",
    "driver: marker deletion answered",
    "driver: markers asked for by rollback",
)


def with_strays(plan: Plan) -> Plan:
    """The plan, or one of the same writes with strays."""
    rng = random.Random(f"strays/1/{plan.seed}/{plan.mode}/{plan.storage}")
    if rng.random() >= SHARE:
        return plan
    files, markers = rng.random() < _FILES_SHARE, rng.random() >= _FILES_SHARE
    if markers or not files:
        plan = _with_markers(rng, plan)
    if files:
        faults = (*plan.faults, _files(rng, plan))
        plan = replace(plan, faults=tuple(sorted(faults, key=lambda fault: (fault.target, fault.n))))
    return plan


def _with_markers(rng: random.Random, plan: Plan) -> Plan:
    """Some tasks that request strays; sometimes an abandoned instant whose markers name files of earlier instants."""
    kinds, share = rng.sample(STRAYS, rng.choice((1, 2, 3))), rng.choice((0.3, 1.0))
    made = [
        replace(write, tasks=tuple(_with_some(rng, task, kinds, share) for task in write.tasks))
        for write in plan.writes
    ]
    at = rng.randrange(len(made))
    if len(made[at].tasks) > _FEW_TASKS or rng.random() < 0.4:
        return replace(plan, writes=tuple(made))
    kind = rng.choice(("MERGE", "APPEND", "APPEND"))
    again = replace(made[at], tasks=tuple(replace(task, kind=kind) for task in made[at].tasks), abandon=False)
    made[at + 1 : at + 1] = [*(again,) * rng.choice((0, 1, 1)), replace(again, abandon=True)]
    return replace(plan, writes=tuple(made), merge_on_read=plan.merge_on_read or kind == "APPEND")


def _with_some(rng: random.Random, task: Task, kinds: list[str], share: float) -> Task:
    if rng.random() >= share:
        return task
    return replace(task, strays=tuple(rng.sample(kinds, rng.randint(1, len(kinds)))))


def _files(rng: random.Random, plan: Plan) -> Fault:
    sites: tuple[str, ...] = _SITES
    if plan.mode == "timeline" and plan.storage in BATCHED_STORAGES:
        sites += ("driver: marker file read by rollback",)
    trigger = Site(rng.choice(sites), rng.randint(1, 1 + len(plan.writes))) if rng.random() < 0.7 else None
    return Fault(kind=FaultKind.STRAY_FILES, target="driver", trigger=trigger or Step(rng.randint(4, 60)))

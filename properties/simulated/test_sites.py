"""Named sites: each is met, means one moment, and a fault there arms at the arrival that the plan says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind, Site, Step
from marker_sim.history import History
from marker_sim.plan import Op, Plan, Task, Write
from marker_sim.system import reference
from properties.faces.campaign import execute
from properties.faces.faults import (
    ANSWER_HANDED_OVER,
    LOCK_ASKED,
    REPLY,
    REQUEST_QUEUED,
    SITES,
    WORKER_STARTED,
    SiteRow,
)
from properties.faces.report import plan_sentences
from properties.faces.search import make_plan, make_write_plan, plan_seed
from properties.faces.worlds import Cluster, by_steps

CREATES = tuple(Op(actor=f"executor-{n}", kind="create", name=f"f{n}.marker.CREATE") for n in range(4))
TWICE = (Task(copies=2), Task(group="f1"))
LEFT = Write(tasks=TWICE, abandon=True)


def plan_for(site: SiteRow) -> Plan:
    """A plan that comes by a site: an instant is given up and rolled back, groups merge, what is left is swept."""
    dies = Fault.of(FaultKind.KILL, "driver", Site("driver: completed instant written", 1))
    merge = Write(tasks=(Task(kind="MERGE"), Task(group="f1", kind="MERGE")), after_ms=100)
    writes = (LEFT, Write(tasks=TWICE), merge, replace(merge, after_ms=5000))
    plan = Plan(mode="timeline", directories=(), writes=writes, executors=2)
    if "sweep" in site.name:
        return replace(plan, writes=(Write(tasks=TWICE), merge), faults=(dies,))
    if site.name == "executor: listing asked for":
        return Plan(ops=(*CREATES, replace(CREATES[0], kind="list", name="")))
    if site.name == "server: batch file read":
        return Plan(ops=(*CREATES, *CREATES))
    if site.name == LOCK_ASKED:
        return replace(plan, storage="local")
    return plan


def struck(plan: Plan, kind: FaultKind, site: str, step: int = 1, **more: Any) -> History:
    actor = {"executor": "executor-0"}.get(SITES[site].actor, SITES[site].actor)
    fault = Fault.of(kind, actor, Site(site, step), **more)
    return execute(replace(plan, faults=(*plan.faults, fault)), reference())[0]


def happened(history: History, operation: str, kind: str = "fault") -> list[int]:
    return [event.index for event in history.events if event.kind == kind and event.operation == operation]


@pytest.mark.parametrize("site", SITES.values(), ids=lambda site: site.name)
def test_every_site_is_met(site: SiteRow) -> None:
    assert happened(struck(plan_for(site), FaultKind.PAUSE, site.name, for_ms=5), "pause"), "nobody came there"


def effects_of(history: History, process: str, part: str) -> list[int]:
    return [e.index for e in history.events if e.kind == "effect" and e.process == process and part in str(e.path)]


def test_a_server_dies_before_the_pull_after_it_before_the_file_after_it_and_between_replies() -> None:
    """The five moments of a batch, distinguished by the stored names and the answered clients."""
    plan = Plan(ops=CREATES, num_threads=1)
    seen = []
    for site, step in ((REQUEST_QUEUED, 1), (WORKER_STARTED, 2), ("server: batch file put", 1)):
        history = struck(plan, FaultKind.KILL, site, step, restart_ms=50)
        assert not effects_of(history, "server#1", "MARKERS0"), site
        seen.append((site, len(happened(history, "arrived", "observe")), len(history.events)))
    for site, step, answered in (("server: batch file written", 1, 0), (ANSWER_HANDED_OVER, 2, 0), (REPLY, 3, 2)):
        history = struck(plan, FaultKind.KILL, site, step, restart_ms=50)
        assert len(effects_of(history, "server#1", "MARKERS0")) == 1, site
        dead = happened(history, "kill")[0]
        told = [e for e in history.events if e.kind == "ok" and e.operation == "create" and e.path != "probe"]
        early = [e for e in told if (e.caused_by or 0) < dead and not str(e.path).startswith("probe")]
        assert len(early) == answered, site
        seen.append((site, answered, len(history.events)))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_a_driver_dies_right_after_its_completed_instant_is_there(mode: str) -> None:
    plan = Plan(mode=mode, directories=(), writes=(Write(tasks=TWICE), Write(tasks=TWICE)))
    before = struck(plan, FaultKind.KILL, "driver: completed instant put")
    after = struck(plan, FaultKind.KILL, "driver: completed instant written")
    assert happened(before, "rollback", "ok") and not happened(after, "rollback", "ok")


def test_a_step_counts_arrivals_and_a_storage_fault_hits_the_call_of_its_site() -> None:
    plan = Plan(mode="direct", ops=tuple(replace(CREATES[0], name=f"f{n}.marker.CREATE") for n in range(4)))
    fault = Fault.of(FaultKind.SERVER_ERROR, "executor-0", Site("executor: marker asked for", 3))
    history = execute(replace(plan, faults=(fault,)), reference())[0]
    (hit,) = [event for event in history.events if event.kind == "fault" and event.operation == "server-error"]
    assert str(hit.path).endswith("f2.marker.CREATE")


def test_a_plan_with_an_unknown_site_is_refused() -> None:
    plan = Plan(ops=CREATES, faults=(Fault.of(FaultKind.KILL, "server", Step(3)),))
    raw = json.loads(json.dumps(plan.to_dict()))
    named = replace(plan, faults=(replace(plan.faults[0], trigger=Site(REPLY, 3)),))
    assert Plan.from_dict(json.loads(json.dumps(named.to_dict()))) == named
    assert plan_sentences(named)[-1].startswith("The third time the server replies to a request, it is killed")
    raw["faults"] = [named.faults[0].to_dict() | {"site": "server: lunch"}]
    with pytest.raises(UsageError, match="site 'server: lunch'"):
        Plan.from_dict(raw)


@pytest.mark.draws(runs=150, one_in=50, fails=1e-5)
def test_the_generators_strike_at_every_site(chaos_seed: int) -> None:
    armed: set[str] = set()
    for seed in (plan_seed(chaos_seed, number) for number in range(150)):
        for make, storage in ((make_plan, "s3"), (make_write_plan, "s3"), (make_write_plan, "local")):
            cluster = Cluster(make(seed, "timeline", storage), reference())
            cluster.run()
            armed |= {fault.site for fault, _ in cluster.scheduler.armed}
    # The rarest are struck by 1 of 125 seeds, so two or more are missing in 1 of 14 sessions.
    assert len(SITES.keys() - armed) <= 4, f"hardly ever struck: {sorted(SITES.keys() - armed)}"


@pytest.mark.draws(runs=60, one_in=20, fails=1e-11)
def test_a_plan_keyed_by_steps_strikes_at_the_same_places(chaos_seed: int) -> None:
    """Kills before a call are the same run; what fires after a call is due at its actor's next one."""
    same = 0
    for seed in (plan_seed(chaos_seed, number) for number in range(60)):
        plan = make_write_plan(seed, "direct", "s3")
        kept = tuple(f for f in plan.faults if not f.site or not SITES[f.site].after)
        plan = replace(plan, faults=kept, jitter=0)  # A factor is drawn before an arrival, after a step.
        steps = by_steps(plan, reference())
        assert not any(fault.site for fault in steps.faults)
        due = [(fault.target, fault.trigger) for fault in steps.faults]
        # Of two faults at one call nothing says which comes first.
        if steps != plan and len(set(due)) == len(due):
            assert execute(steps, reference())[0].events == execute(plan, reference())[0].events, seed
            same += 1
    assert same >= 15

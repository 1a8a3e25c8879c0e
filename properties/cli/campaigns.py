"""Small campaigns built by hand, for tests of the report: one failure with a plan, or none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.history import Event, Header, History
from marker_sim.plan import Op, Plan
from properties.faces.judges import Breach, Finding
from properties.faces.outcome import Campaign, Failure, Kind, Statistics

MARKER = "p/<b>f</b>_0-0-0_001.parquet.marker.CREATE"
DAMAGED = "p/\udcff\n.marker.CREATE"
PLAN = Plan(
    ops=(Op(actor="executor-0", kind="create", name=MARKER, request="r0", after_ms=5),),
    faults=(Fault.of(FaultKind.KILL, "server", Step(7), restart_ms=20),),
    seed=9,
)


def history(storage: str = "s3", header: Header | None = None) -> History:
    """Seven events: a server, two creates, a kill between answer and effect, and values of every type."""
    rows = (
        Event(0, 0, "server#1", "server", "observe", "started"),
        Event(1, 5_000_000, "executor-0", "executor", "invoke", "create", "t", "001", MARKER, "r0", None, 0),
        Event(2, 9_000_000, "executor-0", "executor", "ok", "create", "t", "001", MARKER, "created", None, 1),
        Event(3, 9_500_000, "server#1", "server", "fault", "kill"),
        Event(4, 9_600_000, "server#1", "server", "effect", "put", "t", "001", "t/MARKERS0", b"\xff\x00torn"),
        Event(5, 9_700_000, "executor-1", "executor", "info", "create", "t", "001", DAMAGED, None, "cut", 0),
        Event(6, 9_800_000, "kit", "kit", "observe", "snapshot", "t", "001", "t/.hoodie/.temp/001", ("a", "b")),
    )
    return History(header or Header(storage=storage, seed=9, plan=json.loads(json.dumps(PLAN.to_dict()))), rows)


def changed(failure: Failure, guarantee: str = "", cause: str = "", **breach: Any) -> Failure:
    """A failure with another guarantee or cause, or other fields of its breach."""
    kind = failure.kind._replace(**{name: text for name, text in (("guarantee", guarantee), ("cause", cause)) if text})
    return replace(failure, kind=kind, breach=replace(failure.breach, cause=kind.cause, **breach))


def campaign(*, violated: bool = True, trouble: str = "", not_reached: tuple[str, ...] = ()) -> Campaign:
    """A campaign of one run: G1 violated under a restart or holding, G2 holding."""
    run = history()
    breach = Breach(message=f"{MARKER!r} is not stored", evidence=(1, 2, 3), under="restart")
    statistics = Statistics()
    findings = (
        Finding(guarantee="G1", applicable=True, judged=3, breaches=(breach,) if violated else (), eligible=3),
        Finding(guarantee="G2", applicable=True, judged=2),
    )
    statistics.add(run, findings)
    statistics.steps = 70
    kind = Kind("G1", run.header.mode, run.header.storage, breach.cause)
    failure = Failure(kind=kind, breach=breach, history=run, plan=PLAN, entries_before=40)
    return Campaign(
        sut="reference",
        sut_version="",
        seed=9,
        duration_s=1.25,
        statistics=statistics,
        failures=(failure,) if violated else (),
        last=run,
        not_reached=not_reached,
        trouble=trouble,
    )

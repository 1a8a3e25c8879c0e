"""Runs one plan in the simulated world, judges it in one mode or both.

A third-party class may need an operation that the storage does not offer, for example conditional puts. No search
judges or counts a run in which it called one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from marker_sim.errors import HarnessError
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.history import UNSUPPORTED, History
from marker_sim.judges import judge, modes_agree
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import Failure, Kind, failures_in
from marker_sim.plan import Plan
from marker_sim.system import System
from marker_sim.worlds.simulated.cluster import Branch, Cluster
from marker_sim.worlds.simulated.watchdog import watched

MODES_AGREE = "G21"
NOT_SERVED = "mode that the system does not serve"
NO_FACTORY = "the system has no factory for the markers that are chosen there"
LEFT_OUT = "run left out: the system needs what the storage does not offer"
LOST = frozenset(("G1", "G2", "G3", "G4", "G11"))  # A lost name breaks one of them, depending on when it is noticed.


def broken_in(history: History, plan: Plan | None, profile: Profile) -> dict[Kind, Failure]:
    """The first breach of each kind in a run, by today's judges."""
    return failures_in(history, judge(history, None), profile, plan)


def execute(plan: Plan, system: System, branch: Branch | None = None) -> tuple[History, int]:
    """The history and steps of one simulated run under the watchdog."""
    cluster = Cluster(plan, system, branch)
    try:
        with watched(lambda: cluster.scheduler.steps):
            history = cluster.run()
    except HarnessError:
        if system.outside is None or not system.outside.stop_reuse():
            raise
        return execute(plan, system, branch)
    return history, cluster.scheduler.steps


@contextmanager
def reusing(system: System | None, reused: bool) -> Iterator[None]:
    """A context in which the processes of runs may be played by programs that played others, or by new ones alone."""
    outside = None if system is None else system.outside
    if outside is None:
        yield
        return
    before, outside.reused = outside.reused, reused
    try:
        yield
    finally:
        outside.reused = before


def same_again(plan: Plan, history: History, system: System, reused: bool) -> bool:
    """Whether a plan gives the same history again; reused: by programs that may have played other processes."""
    with reusing(system, reused):
        return execute(plan, system)[0].events == history.events


def digest(history: History) -> str:
    """A digest of every byte of a history."""
    made = hashlib.sha256()
    for line in history.lines():
        made.update(line.encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def compare_modes(plan: Plan, system: System) -> tuple[History, History, Finding]:
    """A plan's two histories, with direct and with timeline-server markers, and the finding of G21 modes-agree."""
    first, _ = execute(replace(plan, mode="direct"), system)
    second, _ = execute(replace(plan, mode="timeline"), system)
    return first, second, modes_agree(first, second)


def comparable(plan: Plan, system: System) -> bool:
    """Whether a plan has two modes to compare."""
    both = system.direct is not None and system.server is not None
    return both and bool(plan.writes) and plan.storage in BATCHED_STORAGES


def findings_in(
    history: History, system: System | None, guarantees: frozenset[str] | None = None
) -> tuple[Finding, ...]:
    """One finding per requested guarantee; none when the system cannot be judged on this storage."""
    return () if lacking(system, history) else judge(history, guarantees)


def lacking(system: System | None, history: History) -> str:
    """The first operation that a third-party class called and this storage lacks, whatever it raised; else ""."""
    asked = (e for e in history.events if e.kind == "observe" and e.operation == UNSUPPORTED)
    event = next(asked, None) if system and system.layout == "names" else None
    return "" if event is None else event.error or "an operation"


def lacks(what: str) -> str:
    """The reason for which a system is not judged on a storage, for an operation that it lacks."""
    return f"the system needs {what}, which that storage does not offer"


def findings_of(plan: Plan, system: System, guarantee: str | None) -> tuple[History, tuple[Finding, ...]]:
    """The findings of one guarantee for a plan, which may need runs in both modes; of all of one run for None."""
    if guarantee == MODES_AGREE:
        if not comparable(plan, system):
            return execute(plan, system)[0], ()
        first, history, finding = compare_modes(plan, system)
        return history, () if lacking(system, first) or lacking(system, history) else (finding,)
    history, _ = execute(plan, system)
    return history, findings_in(history, system, None if guarantee is None else frozenset({guarantee}))


def promised_breach(finding: Finding, plan: Plan, profile: Profile, cause: str = "") -> Breach | None:
    """The first promised breach; cause: the cause it must have, "" for any."""
    found = profile.broken_by(finding, plan.mode, plan.storage)
    return next((breach for breach in found if cause in ("", breach.cause)), None)


def failure_of(kind: Kind, plan: Plan, system: System, profile: Profile) -> Failure | None:
    """The failure of a plan of the given kind, by its cause if possible, else by any; None when the guarantee holds."""
    history, findings = findings_of(plan, system, kind.guarantee)
    shown = (promised_breach(each, plan, profile, by) for by in (kind.cause, "") for each in findings)
    breach = next((breach for breach in shown if breach is not None), None)
    return None if breach is None else Failure(kind=kind, breach=breach, history=history, plan=plan)

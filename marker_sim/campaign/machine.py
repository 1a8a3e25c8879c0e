"""Hypothesis state machines of the write path and of the marker store: `machine_for` makes one, `attack` runs it.

    machine_rules.py        the write path: tasks of the next write, and faults some steps ahead
    machine_example.py      one example of it, which runs writes piece by piece
    machine_operations.py   the marker store alone: what clients ask, and faults
    machine_judging.py      what both have: the judgement of a whole example, and the plan of a failure

    attack(machine_for(WritePathMachine, load_system("package.module:factory"), "direct", "s3"))

Hypothesis makes the choices: it generates, shrinks, keeps failures in its example database and replays them first. For
each example it draws which rules are switched off (swarm selection, at a rate that is drawn too). Only the choices are
random: an example is a plan, and the plan gives the same history again.

The machine is not meant to be subclassed; a system is a value. Limit: pairs of modes (G21) are compared by
campaign/engine.py, since a pair of runs is not one plan to print.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from unittest import SkipTest

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from marker_sim.campaign.machine_judging import JudgedExample, SeenExamples
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.plan import Plan
from marker_sim.system import System

PLANS = Path(".hypothesis") / "marker-sim"
STEPS = 40
Machine = TypeVar("Machine", bound=JudgedExample)


def machine_for(
    kind: type[Machine],
    system: System,
    mode: str,
    storage: str,
    *,
    plans: Path = PLANS,
    guarantees: frozenset[str] | None = None,
    chaos_seed: int | None = None,
    on_example: Callable[[Plan, History, int], None] | None = None,
) -> type[Machine]:
    """A state machine class that attacks one system in one mode on one storage, with its own `seen`.

    kind: WritePathMachine, or MarkerMachine for the marker store alone.
    plans: the directory for plans of failing examples. guarantees: ids to judge, by default all. chaos_seed: the seed
    of Hypothesis, by default a random one. on_example: see `SeenExamples`.

    The name of the class differs by system, mode and storage: it is the key in Hypothesis' example database.
    """
    name = re.sub(r"\W", "_", f"{kind.key}{mode}_{storage}_{system.name}")
    settled: dict[str, Any] = {
        "__module__": __name__,
        "system": system,
        "profile": load_profile(system.profile),
        "mode": mode,
        "storage": storage,
        "guarantees": guarantees,
        "plans": plans,
        "seen": SeenExamples(on_example=on_example),
    }
    made: type[Machine] = type(name, (kind,), settled)
    # Mixed with the name, so that two places do not get the same examples.
    start = secrets.randbelow(1 << 31) if chaos_seed is None else zlib.crc32(f"{chaos_seed}/{name}".encode())
    return seed(start)(made)


def attack(machine: type[JudgedExample], **changes: Any) -> SeenExamples:
    """Run a machine for the number of examples in the Hypothesis profile; statistics of its examples.

    changes: other Hypothesis settings (max_examples, database, phases, ...). Raises the violation of the smallest
    example, with the command that replays it: of one from the example database, else of the first one. It is shrunk
    with its guarantee judged alone, so that shrinking cannot slide to another. Hypothesis' phase `explain` is left out:
    it takes longer than all others.
    """
    fixed = {"deadline": None, "suppress_health_check": list(HealthCheck), "stateful_step_count": STEPS}
    chosen = settings(**(fixed | {"report_multiple_bugs": False} | changes))
    phases = frozenset(chosen.phases) - {Phase.explain}
    if Phase.reuse in phases and chosen.database is not None:
        with suppress(SkipTest):  # The database has no failure, as Hypothesis puts it.
            _run(machine, chosen, phases & {Phase.reuse, Phase.shrink})
    new = phases - {Phase.reuse, Phase.shrink}
    if not new or Phase.shrink not in phases:
        return _run(machine, chosen, new)
    try:
        return _run(machine, settings(chosen, database=None), new)
    except GuaranteeViolation as found:
        # The seed is the machine's, so the same example comes up again, and this time it is shrunk and remembered.
        judged = {"__module__": __name__, "guarantees": frozenset({found.guarantee})}
        _run(type(machine.__name__, (machine,), judged), chosen, new | {Phase.shrink})
        raise


def _run(machine: type[JudgedExample], chosen: settings, phases: frozenset[Phase]) -> SeenExamples:
    if phases:
        run_state_machine_as_test(machine, settings=settings(chosen, phases=tuple(phases)))
    return machine.seen

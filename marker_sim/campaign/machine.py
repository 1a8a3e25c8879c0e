"""The Hypothesis state machine of the write path, for any system under test: `machine_for` makes it, `attack` runs it.

    machine_rules.py     the rules: tasks of the next write, and what goes wrong some steps ahead
    machine_example.py   one example: plays writes piece by piece, judges the whole history, leaves a failure's plan

    attack(machine_for(load_system("package.module:factory"), "direct", "s3"))

Choices are Hypothesis' own: it generates, shrinks, keeps failures in its example database and replays them first. Which
rules an example may use it draws anew for each (swarm selection: rules are switched off at a rate that is drawn too).
Nothing but the choices is random: what an example played is a plan, and the plan gives the same history again.

Nobody subclasses the machine; a system is a value. Limit: pairs of modes (G21) are compared by campaign/engine.py,
since a pair of runs is not one plan to print.
"""

from __future__ import annotations

import re
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from marker_sim.campaign.machine_example import MachineStatistics
from marker_sim.campaign.machine_rules import WritePathMachine
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.system import System

PLANS = Path(".hypothesis") / "marker-sim"
STEPS = 40


def machine_for(
    system: System,
    mode: str,
    storage: str,
    *,
    plans: Path = PLANS,
    guarantees: frozenset[str] | None = None,
    chaos_seed: int | None = None,
) -> type[WritePathMachine]:
    """A state machine class that attacks one system in one mode on one storage, with a `seen` of its own.

    plans: where failing examples leave their plan. guarantees: ids to judge, by default all. chaos_seed: where
    Hypothesis starts, by default anywhere. The class has a name of its own for each system, mode and storage, because
    Hypothesis' example database knows a machine by its name.
    """
    name = re.sub(r"\W", "_", f"{mode}_{storage}_{system.name}")
    settled: dict[str, Any] = {
        "__module__": __name__,
        "system": system,
        "profile": load_profile(system.profile),
        "mode": mode,
        "storage": storage,
        "guarantees": guarantees,
        "plans": plans,
        "seen": MachineStatistics(),
    }
    made: type[WritePathMachine] = type(name, (WritePathMachine,), settled)
    # Mixed with the name, so that two places do not get the same examples.
    start = secrets.randbelow(1 << 31) if chaos_seed is None else zlib.crc32(f"{chaos_seed}/{name}".encode())
    return seed(start)(made)


def attack(machine: type[WritePathMachine], *, steps: int = STEPS, **changes: Any) -> MachineStatistics:
    """Run a machine for as many examples as the Hypothesis profile in force says; what its examples did.

    changes: other Hypothesis settings (max_examples, database, phases, ...). Raises the violation of the smallest
    example, with the command that replays it: of one that the example database remembers, else of the first that comes
    up. That one is shrunk with its guarantee judged alone, so that shrinking cannot slide to another. Hypothesis' phase
    `explain` is left out: it takes longer than everything before it.
    """
    fixed = {"deadline": None, "suppress_health_check": list(HealthCheck), "stateful_step_count": steps}
    chosen = settings(**(fixed | {"report_multiple_bugs": False} | changes))
    phases = frozenset(chosen.phases) - {Phase.explain}
    if Phase.reuse in phases and chosen.database is not None:
        with suppress(SkipTest):  # The database remembers nothing, as Hypothesis puts it.
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


def _run(machine: type[WritePathMachine], chosen: settings, phases: frozenset[Phase]) -> MachineStatistics:
    if phases:
        run_state_machine_as_test(machine, settings=settings(chosen, phases=tuple(phases)))
    return machine.seen

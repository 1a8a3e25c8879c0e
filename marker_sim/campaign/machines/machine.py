"""Hypothesis state machines of the write path and of the marker store: `machine_for` makes one, `attack` runs it.

    rules.py       the write path: tasks of the next write, and faults some steps ahead
    operations.py  the marker store alone: what clients ask, and faults
    JudgedExample           what both have: the judgement of a whole example, and the plan of a failure

    attack(machine_for(WritePathMachine, load_system("package.module:factory"), "direct", "s3"))

Hypothesis makes the choices: it generates, shrinks, keeps failures in its example database and replays them first. For
each example it draws which rules are switched off (swarm selection, at a rate that is drawn too). Only the choices are
random: an example is a plan, and the plan gives the same history again.

A failing example leaves its plan as a file in `plans`, by default `.hypothesis/marker-sim` of the project, beside
Hypothesis' example database, which git already ignores; a temporary directory of pytest would be deleted after three
sessions. The file of a guarantee is overwritten by each example that breaks it, and the last one that Hypothesis runs
is the shrunk one.

The machine is not meant to be subclassed; a system is a value. Limit: pairs of modes (G21) are compared by
campaign/engine.py, since a pair of runs is not one plan to print.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar
from unittest import SkipTest

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from marker_sim.campaign.pieces import NumberedRun, PieceResult, SearchSettings
from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC
from marker_sim.campaign.runs import execute
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.faults.row import in_batches
from marker_sim.faults.table import drawable
from marker_sim.history import History
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.violations import GuaranteeViolation, violation
from marker_sim.outcome.failure import Failure
from marker_sim.plan import Plan, write_plan
from marker_sim.surroundings.files import make_ignored
from marker_sim.system import System

PLANS = Path(".hypothesis") / "marker-sim"
STEPS = 40
COMPARE_EVERY = 4
PLAN_SHOWN_MAX = 3_000


class DrawnFault(NamedTuple):
    """A fault kind with settings from its row of the table. data: to draw more."""

    kind: FaultKind
    settings: FaultSettings
    data: st.DataObject


def step(*families: str, role: str = "", **drawn: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of a rule, whose uses are counted.

    families, role: of the faults that it makes, and at whom; where none can happen it is disabled.
    A rule with `data` gets a drawn `fault` in its place.
    """

    def decorate(body: Callable[..., Any]) -> Any:
        @wraps(body)
        def run(self: JudgedExample, **given: Any) -> Any:
            self.seen.rules[body.__name__] += 1
            if "data" in given:
                data = given.pop("data")
                kind = data.draw(st.sampled_from(self.kinds(*families, role=role)), label="kind")
                choices = kind.row.settings.items()
                settings = {name: data.draw(st.sampled_from(values), label=name) for name, values in choices}
                given["fault"] = DrawnFault(kind, FaultSettings(**settings), data)
            return body(self, **given)

        as_rule: Callable[[Any], Any] = rule(**drawn)
        if not families:
            return as_rule(run)
        vars(run)["possible"] = lambda machine: machine.kinds(*families, role=role)
        only_possible: Callable[[Any], Any] = precondition(vars(run)["possible"])
        return only_possible(as_rule(run))

    return decorate


@dataclass(slots=True, kw_only=True)
class SeenExamples:
    """The results of all examples of one machine, also of those that Hypothesis ran to shrink.

    judged: the runs of all that were judged.
    rules: how often each ran.
    compared: examples whose plan was run at once as well.
    on_example: gets plan, history and steps of each example, which the machine then does not judge; or None.
    """

    on_example: Callable[[Plan, History, int], None] | None = None
    judged: PieceResult = field(default_factory=PieceResult)
    rules: Counter[str] = field(default_factory=Counter)
    examples: int = 0
    writes: int = 0
    steps: int = 0
    compared: int = 0


class JudgedExample(RuleBasedStateMachine):
    """The base class of both machines: the system and place under test, and the judgement of a finished plan.

    key: what the names of its classes begin with.
    writes: whether its plans are of writes.
    """

    key: ClassVar[str] = ""
    writes: ClassVar[bool] = True
    system: ClassVar[System]
    profile: ClassVar[Profile]
    mode: ClassVar[str]
    storage: ClassVar[str]
    guarantees: ClassVar[frozenset[str] | None]
    plans: ClassVar[Path]
    seen: ClassVar[SeenExamples]

    def __init__(self) -> None:
        super().__init__()
        self._accused = False

    @classmethod
    def can(cls, kind: FaultKind) -> bool:
        """Whether a fault can happen here; type files can be damaged only in Hudi's format."""
        damage = kind is FaultKind.TYPE_DAMAGED and cls.system.layout != "hudi"
        return not damage and kind.row.possible(cls.mode, cls.storage)

    @classmethod
    def kinds(cls, *families: str, role: str = "") -> tuple[FaultKind, ...]:
        """The faults of these families that can happen here to a role ("" for any).

        Where no server batches markers, there is none to hit.
        """
        if role == "server" and not in_batches(cls.mode, cls.storage):
            return ()
        here = (kind for kind in drawable(cls.mode, cls.storage, writes=cls.writes) if kind.row.family in families)
        return tuple(kind for kind in here if role in ("", *kind.row.roles) and cls.can(kind))

    def judge_whole(self, plan: Plan, history: History, steps: int) -> None:
        """Judge the run of an example's plan; HarnessError when a second run gives another history."""
        # The choice has to be the same in both runs of an example, so it depends on the plan.
        if zlib.crc32(repr(plan).encode()) % COMPARE_EVERY == 0:
            self.seen.compared += 1
            if execute(plan, self.system)[0].events != history.events:
                raise HarnessError(NOT_DETERMINISTIC)
        if self.seen.on_example is not None:
            self.seen.on_example(plan, history, steps)
            return
        self._decide(plan, history)

    def _decide(self, plan: Plan, history: History) -> None:
        """Raise the exception of the first promise that a finished history breaks, if it breaks one."""
        settings = SearchSettings(places=(), seed=0, guarantees=self.guarantees, profile=self.profile)
        run = NumberedRun(self.seen.judged.taken, plan, history, look=True)
        for failure in self.seen.judged.take(run, settings, self.system).values():
            self._accused = True
            raise self._violation(plan, failure)

    def _violation(self, plan: Plan, failure: Failure) -> GuaranteeViolation:
        """The exception for a failure, with the plan on disk and the command that runs it."""
        plain = violation(failure.history, failure.guarantee, failure.breach)
        shown = json.dumps(plan.to_dict(), ensure_ascii=False)
        lines = [str(plain)]
        if len(shown) <= PLAN_SHOWN_MAX:
            lines.append(f"plan: {shown}")
        try:
            path = self._store(plan, f"{failure.guarantee}-{type(self).__name__}.json")
            sut = "" if self.system.name == "reference" else f" --sut {shlex.quote(self.system.name)}"
            lines.append(f"replay: marker-sim replay {shlex.quote(str(path))}{sut}")
        except OSError as error:
            lines.append(f"its plan cannot be stored ({error}); write the one above to a file and replay that")
        return type(plain)("\n".join(lines), failure.breach)

    def _store(self, plan: Plan, name: str) -> Path:
        """Write the plan and return its path."""
        make_ignored(self.plans)
        write_plan(plan, self.plans / name)
        return self.plans / name


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
    # The name is included, so that places get different examples.
    start = secrets.randbelow(1 << 31) if chaos_seed is None else zlib.crc32(f"{chaos_seed}/{name}".encode())
    return seed(start)(made)


def attack(machine: type[JudgedExample], **changes: Any) -> SeenExamples:
    """Run a machine for the number of examples in the Hypothesis profile; returns the statistics of its examples.

    changes: other Hypothesis settings (max_examples, database, phases, ...). Raises the violation of the smallest
    example, with the command that replays it: of one from the example database, else of the first one. It is shrunk
    with its guarantee judged alone, so that shrinking cannot slide to another. Hypothesis' phase `explain` is left out:
    it takes longer than all others.
    """
    fixed = {"deadline": None, "suppress_health_check": list(HealthCheck), "stateful_step_count": STEPS}
    chosen = settings(**(fixed | {"report_multiple_bugs": False} | changes))
    phases = frozenset(chosen.phases) - {Phase.explain}
    if Phase.reuse in phases and chosen.database is not None:
        with suppress(SkipTest):  # Raised by Hypothesis if its database has no failure.
            _run(machine, chosen, phases & {Phase.reuse, Phase.shrink})
    new = phases - {Phase.reuse, Phase.shrink}
    if not new or Phase.shrink not in phases:
        return _run(machine, chosen, new)
    try:
        return _run(machine, settings(chosen, database=None), new)
    except GuaranteeViolation as found:
        # With the seed of the machine the same example occurs again, and is now shrunk and stored.
        judged = {"__module__": __name__, "guarantees": frozenset({found.guarantee})}
        _run(type(machine.__name__, (machine,), judged), chosen, new | {Phase.shrink})
        raise


def _run(machine: type[JudgedExample], chosen: settings, phases: frozenset[Phase]) -> SeenExamples:
    if phases:
        run_state_machine_as_test(machine, settings=settings(chosen, phases=tuple(phases)))
    return machine.seen

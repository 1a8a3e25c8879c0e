"""Plans drawn from a seed, in turn for each mode and storage of a search.

Run n is in the place (mode and storage) n modulo the number of places and in turn n divided by it; `plan_seed` makes
the plan of a turn. One turn in `WRITES_EVERY` is of writes, the others of operations; in one of `PAIRS_EVERY` both
modes are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from marker_sim.campaign.coverage.goals import LOOK_EVERY, LOOK_FIRST
from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun, SearchSettings
from marker_sim.campaign.runs import MODES_AGREE, comparable, execute
from marker_sim.history import History
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System

PAIRS_EVERY = 12
PlanMaker = Callable[[int, str, str], Plan]
MIXED: tuple[PlanMaker, ...] = (make_plan, make_write_plan, make_plan)
WRITES_EVERY = len(MIXED)
# Limit for a foreign format, whose creates may read or store all names: 10,000 took minutes, or 10 GB.
TASKS_MAX = 1_000


class Swarm:
    """The runs of drawn plans. makers: the generators of plans, which take turns."""

    def __init__(self, system: System, settings: SearchSettings, makers: tuple[PlanMaker, ...] = MIXED) -> None:
        self.system = system
        self._settings = settings
        self._only_pairs = settings.guarantees == frozenset({MODES_AGREE})
        self._makers = (make_write_plan,) if self._only_pairs else makers

    def plan(self, number: int) -> Plan:
        """The plan with a number."""
        turn, place = divmod(number, len(self._settings.places))
        make = self._makers[turn % len(self._makers)]
        plan = make(plan_seed(self._settings.seed, turn), *self._settings.places[place])
        if self.system.layout == "hudi" or all(len(write.tasks) <= TASKS_MAX for write in plan.writes):
            return plan
        return replace(plan, writes=tuple(replace(write, tasks=write.tasks[:TASKS_MAX]) for write in plan.writes))

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan; some plans run in both modes."""
        for number in range(first, first + count):
            plan, place = self.plan(number), divmod(number, len(self._settings.places))
            history, steps = execute(plan, self.system)
            yield NumberedRun(
                number=number,
                plan=plan,
                history=history,
                steps=steps,
                place=place,
                pair=self._pair(plan, history) if self._compares(place[0], plan) else None,
                look=place[0] < LOOK_FIRST or place[0] % LOOK_EVERY == 0,
                again=number % RECHECK_EVERY == 0,
            )

    def _compares(self, turn: int, plan: Plan) -> bool:
        asked = self._settings.guarantees
        due = turn % PAIRS_EVERY == 1 and plan.mode == self._settings.places[0][0]
        return (asked is None or MODES_AGREE in asked) and (self._only_pairs or due) and comparable(plan, self.system)

    def _pair(self, plan: Plan, history: History) -> tuple[History, History]:
        """The pair of runs with direct and with timeline-server markers, one of which was made before."""
        first, second = (
            history if mode == plan.mode else execute(replace(plan, mode=mode), self.system)[0] for mode in MODES
        )
        return first, second

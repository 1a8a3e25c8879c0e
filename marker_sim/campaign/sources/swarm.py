"""Plans drawn from a seed, in turn for each mode and storage of a search, or by real processes on one storage.

Run n is in the place (mode and storage) n modulo the number of places and in turn n divided by it; `plan_seed` makes
the plan of a turn. One turn in `WRITES_EVERY` is of writes, the others of operations; in one of `PAIRS_EVERY` both
modes are compared. Real processes can be killed, and a run of theirs may end differently; plans that need more than a
few seconds are left to the simulated world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from marker_sim.campaign.coverage.goals import LOOK_EVERY, LOOK_FIRST
from marker_sim.campaign.pieces import RECHECK_EVERY, NumberedRun, SearchSettings
from marker_sim.campaign.runs import MODES_AGREE, NOT_SERVED, comparable, execute
from marker_sim.history import History
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.surroundings.worker_pool import Keeper
from marker_sim.system import System
from marker_sim.targets.python import served

# The world is imported when it runs: every command that can confirm or replay a failure imports this module.
if TYPE_CHECKING:
    from marker_sim.worlds.processes.fork_server import ForkServer

PAIRS_EVERY = 12
PlanMaker = Callable[[int, str, str], Plan]
MIXED: tuple[PlanMaker, ...] = (make_plan, make_write_plan, make_plan)
WRITES_EVERY = len(MIXED)
# Limit for a foreign format, whose creates may read or store all names: 10,000 took minutes, or 10 GB.
TASKS_MAX = 1_000
ENTRIES_MAX = 60
LASTS_MAX_S = 40.0
TOO_LARGE = "plan too large for real processes"
TOO_LONG = "plan too long for real processes"
_OF_PROCESSES = tuple((mode, make) for mode in MODES for make in (make_write_plan, make_plan))


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


class Processes(Keeper):
    """Runs plans of one system with real processes; a context manager that ends all of them."""

    def __init__(self, sut: str) -> None:
        super().__init__()
        self._sut = sut
        self.system = load_system(sut)
        self._fork_server: ForkServer | None = None

    def run(self, plan: Plan) -> History:
        """The history of one run; the first run starts the template process."""
        from marker_sim.worlds.processes.cluster import ProcessCluster
        from marker_sim.worlds.processes.fork_server import ForkServer

        if self._fork_server is None:
            self._fork_server = self._stack.enter_context(ForkServer())
        return ProcessCluster(plan, self._sut, self._fork_server).run()


class ProcessRuns:
    """Plans by real processes, a `Source`: a seed in either mode, of writes and of operations."""

    def __init__(self, processes: Processes, seed: int, storage: str) -> None:
        self.system = processes.system
        self._processes = processes
        self._seed = seed
        self._storage = storage

    def plan(self, number: int) -> Plan:
        """The plan with a number; four consecutive numbers share a seed."""
        mode, make = _OF_PROCESSES[number % len(_OF_PROCESSES)]
        return make(plan_seed(self._seed, number // len(_OF_PROCESSES)), mode, self._storage)

    def unfit(self, plan: Plan) -> str:
        """The reason why a plan is not run: real processes need as long as its simulated time.

        Forty unanswered storage calls take minutes, after which real processes would count as stuck.
        """
        if plan.entries > ENTRIES_MAX:
            return TOO_LARGE
        if not served(self.system, plan.mode, plan.storage):
            return NOT_SERVED
        history, _ = execute(plan, self.system)
        lasts_s = next(event.time_ns for event in history.events if event.value == "healed") / 1e9
        return TOO_LONG if lasts_s > LASTS_MAX_S else ""

    def runs(self, first: int, count: int) -> Iterator[NumberedRun]:
        """The run of each plan, whose steps are not counted, or the reason why it was not run."""
        for number in range(first, first + count):
            plan = self.plan(number)
            why = self.unfit(plan)
            history = None if why else self._processes.run(plan)
            yield NumberedRun(number, plan, history, reached=((why, 1),) if why else ())

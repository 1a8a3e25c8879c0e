"""The runs of a campaign that the state machines draw in one place, for `pytest --marker-sut` (conformance.py).

First the plans that broke something the last time, which are in the report directory, then the examples of both
machines. An example that breaks a promise ends nothing, so that all guarantees are judged by the same runs; its
plan is made small when all are over. The Hypothesis profile sets the number of examples.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hypothesis import Phase

from marker_sim.campaign.machines.machine import attack, machine_for
from marker_sim.campaign.machines.operations import MarkerMachine
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.campaign.pieces import COLLECT_EVERY, NumberedRun, PieceResult, SearchState
from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC, PlannedRuns
from marker_sim.campaign.runs import execute
from marker_sim.campaign.simulated_failure import smaller
from marker_sim.errors import UsageError
from marker_sim.history import History
from marker_sim.outcome.result import Campaign
from marker_sim.plan import Plan, read_plan
from marker_sim.system import System


class MachineRuns(PlannedRuns):
    """The examples of both machines in the one mode and storage of a request."""

    def __init__(self, search: SearchState, system: System) -> None:
        super().__init__(search, system)
        self._number = 0

    def pieces(self) -> Iterator[PieceResult]:
        """The stored plans, then the examples of one machine, then those of the other."""
        again = PieceResult()
        for plan in stored_plans(self._request.report):
            self._count(again, plan, *execute(plan, self._system))
        yield again
        for kind in (MarkerMachine, WritePathMachine):
            piece = PieceResult()

            def counted(plan: Plan, history: History, steps: int, piece: PieceResult = piece) -> None:
                self._count(piece, plan, history, steps)

            (place,) = self._settings.places
            machine = machine_for(kind, self._system, *place, chaos_seed=self._request.seed, on_example=counted)
            try:
                attack(machine, phases=[Phase.generate], database=None)
            except Exception as error:
                piece.error = error
            yield piece

    def shrink(self) -> None:
        """Shrink one failure of each guarantee, whatever its cause, unless a plan shrunk before breaks that one too.

        With a baseline each cause by itself, because some of them may be known.
        """
        search, found = self._search, self._search.found
        seconds, runs = self._limits(len({kind[0] for kind in found}))
        by_cause = self._request.baseline is not None
        search.found = {}
        for kind, broken in found.items():
            told = set(search.found) if by_cause else {each[0] for each in search.found}
            if broken.plan is None or (kind if by_cause else kind[0]) in told:
                continue
            asked = kind if by_cause else kind._replace(cause="")
            shown = smaller(asked, broken.plan, self._system, self._request.profile, seconds, runs)
            plan = broken.plan if shown is None else shown.own_plan
            piece = PieceResult()
            self._count(piece, plan, *execute(plan, self._system))
            new = search.add(piece)
            lead = next((each for each in new if each[0] == kind[0]), kind)
            search.found |= dict.fromkeys((lead, *new), broken)
            for each, small in new.items():
                search.keep(each, small)

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with what was left out and the faults that never happened; it needs no coverage goals."""
        campaign.statistics.leave_out(self._unsupported.keys())
        campaign.statistics.broke.clear()  # Examples break things in other shares of runs than those of a baseline.
        return replace(
            campaign,
            sut_version=self._system.version,
            not_reached=(NOT_DETERMINISTIC,) if campaign.statistics.differences else (),
            too_rare=tuple(self._faults_unmet()),
            left_out=self._left_out(),
        )

    def _count(self, piece: PieceResult, plan: Plan, history: History, steps: int) -> None:
        run = NumberedRun(self._number, plan, history, steps, place=(self._number, 0))
        piece.take(run, self._settings, self._system)
        self._number += 1
        if self._number % COLLECT_EVERY == 0:
            gc.collect()


def stored_plans(report: Path) -> tuple[Plan, ...]:
    """The plans of the failures in a report directory, without those that this version cannot read."""
    found = []
    for path in sorted((*report.glob("plan.json"), *report.glob("failures/*.json"))):
        try:
            found.append(read_plan(path))
        except UsageError:
            continue
    return tuple(found)

"""One campaign against one target, whatever it is: runs made and judged within a budget, counted, and what broke kept.

    target ─► runs ─► pieces ─► statistics, failures ─► Campaign

Runs are simulated by worker processes (planned_runs.py) or played in real time (played_runs.py); either way
they come as pieces, in an order. A campaign ends when its time or its number of runs is over, at the first violation if
requested, with Ctrl-C, or with an error of the kit; the failures found by then are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from marker_sim.campaign.pieces import SearchState
from marker_sim.campaign.planned_runs import PlannedRuns
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.outcome.result import Campaign
from marker_sim.system import System
from marker_sim.targets.target import CampaignRequest

if TYPE_CHECKING:
    from marker_sim.campaign.played_runs import PlayedRuns


def run_campaign(
    request: CampaignRequest,
    progress: Callable[[str], None],
    *,
    blame: Callable[[Exception], str] | None = None,
    on_run: Callable[[History], None] | None = None,
    of_plans: Callable[[SearchState, System], PlannedRuns] = PlannedRuns,
) -> Campaign:
    """The result of a search; UsageError for a system that cannot be loaded, HarnessError for one that cannot run.

    Ctrl-C ends it early with the results so far (`Campaign.interrupted`), and so does an error of the kit
    (`Campaign.trouble`) once there are results. Every process that it started is gone when it returns or raises.

    blame: stores an unexpected exception and describes it in a sentence; without it the exception is raised.
    on_run: gets the last history of each piece.
    of_plans: makes the runs of a system that runs plans, by default those of the swarm.
    """
    system = request.target.load()
    search = SearchState(request=request, progress=progress)
    if system is None:
        from marker_sim.campaign.played_runs import PlayedRuns  # Simulated runs need nothing of it.
    runs = PlayedRuns(search) if system is None else of_plans(search, system)
    interrupted = False
    try:
        with runs:
            _explore(search, runs, blame, on_run)
            runs.shrink()
            while runs.resumes():
                _explore(search, runs, blame, on_run)
                runs.shrink()
        runs.check()
    except KeyboardInterrupt:
        interrupted = True
    except HarnessError as error:
        if not runs.worth_keeping:
            raise
        search.trouble = search.trouble or str(error)
    finally:
        if system is not None and system.outside is not None:
            system.outside.close()
    return runs.complete(
        Campaign(
            sut=request.target.sut,
            sut_version=request.target.version,
            seed=request.seed,
            duration_s=time.monotonic() - search.began,
            statistics=search.statistics,
            failures=search.failures(),
            last=search.last,
            interrupted=interrupted,
            trouble=search.trouble,
        )
    )


def _explore(
    search: SearchState,
    runs: PlannedRuns | PlayedRuns,
    blame: Callable[[Exception], str] | None,
    on_run: Callable[[History], None] | None,
) -> None:
    """Merge the result of every piece; a late error becomes a note when there are results that would be lost."""
    try:
        for piece in runs.pieces():
            runs.merged(piece, search.add(piece))
            if on_run is not None and piece.last is not None:
                on_run(piece.last)
            piece.raise_error()
            if piece.stopped:
                return
    except Exception as error:
        known = isinstance(error, HarnessError)
        if not runs.worth_keeping or isinstance(error, UsageError) or (blame is None and not known):
            raise
        search.trouble = str(error) if known or blame is None else blame(error)

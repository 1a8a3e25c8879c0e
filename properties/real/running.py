"""Runs of the reference and of mutants with real processes."""

from __future__ import annotations

from marker_sim.history import History
from marker_sim.plan import Plan
from properties.faces.worlds import ForkServer, ProcessCluster


def run_real(plan: Plan, system: str = "reference", *, fork_server: ForkServer) -> History:
    """Execute a plan with real processes on a fresh local directory or behind a fresh S3 front.

    system: as in --sut.
    fork_server: where children are forked, for many runs one after another.
    """
    return ProcessCluster(plan, system, fork_server).run()

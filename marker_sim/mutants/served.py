"""Mutants of serve/ that nobody wrote: changes of the timeline server's modules, each hunted as a process over HTTP.

    drawn ─► ServedTask ─► a campaign of --sut http on each of GROUNDS ─► GeneratedOutcome

The campaigns are the ordinary ones, with their plans, judges and profile, and end with the first promise that breaks.
Only the server's process has the change (served_start.py). It is real time: a machine that is busy shows less.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.result import Campaign
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.generated import KILLED, NO_MUTANT, NOTHING, SURVIVED, TROUBLE, GeneratedOutcome, reviews
from marker_sim.mutants.syntax import Change
from marker_sim.seeds import plan_seed
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions

MODULES = tuple(
    f"marker_sim.serve.{name}"
    for name in (
        "app",
        "bases",
        "connections",
        "fair_thread_pool",
        "query",
        "runtime",
        "server",
        "storing",
    )
)


class Ground(NamedTuple):
    """Where a part of a hunt takes place.

    form: how requests write directories.
    share: of the seconds.
    """

    storage: str
    form: str
    share: float


GROUNDS = (Ground("local", "path", 0.45), Ground("s3", "s3n", 0.3), Ground("local", "file", 0.25))
# What a server that works has something to judge of in any hunt.
USUAL = ("G1", "G2", "G3", "G4", "G6", "G11")
STARTUP_S = 15.0
IMPORTED_S = 30.0
OPTIONS = "serve --base {storage} --port {port} --batch-threads {threads} --batch-interval-ms {interval_ms}"


def hunt_served(change: Change, budget_s: float, seed: int, grounds: tuple[Ground, ...] = GROUNDS) -> GeneratedOutcome:
    """Hunt a change of serve/ for so many seconds, a share of them on each ground, until a promise breaks."""
    began = time.monotonic()
    command = [sys.executable, "-m", "marker_sim.mutants.served_start", change.key]
    outcome = _checked(change, command) or _hunted(change, shlex.join(command), budget_s, seed, grounds)
    said = reviews().get(change.key) if outcome.how == SURVIVED else None
    return replace(outcome, seconds=time.monotonic() - began, review="" if said is None else said["is"])


def play_server(start: str, ground: Ground, budget_s: float, seed: int, report: Path) -> Campaign:
    """The campaign against a server that honours identities; HarnessError when it cannot be started.

    start: its command. report: a directory for its logs.
    """
    return run_campaign(
        CampaignRequest(
            target=HttpTarget(version="changed", startup_s=STARTUP_S),
            modes=("timeline",),
            storages=(ground.storage,),
            seed=seed,
            profile=load_profile("http"),
            budget_s=ground.share * budget_s,
            stop_at_first=True,
            shrinking=False,
            canaries=False,
            server=ServerOptions(start=start, identity=True, dir_format=ground.form),
            report=report,
        ),
        lambda line: None,
    )


def _checked(change: Change, command: list[str]) -> GeneratedOutcome | None:
    """What became of one that cannot be imported, None for all others."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORTED_S, check=False)
    except subprocess.TimeoutExpired:
        return GeneratedOutcome(change=change, how=NO_MUTANT, message=f"importing it takes more than {IMPORTED_S} s")
    if not done.returncode:
        return None
    return GeneratedOutcome(change=change, how=NO_MUTANT, message=(done.stderr.splitlines() or [""])[-1])


def _hunted(change: Change, command: str, budget_s: float, seed: int, grounds: tuple[Ground, ...]) -> GeneratedOutcome:
    judged, plans = Counter[str](), 0
    for number, ground in enumerate(grounds):
        with TemporaryDirectory(prefix="marker-sim-served-") as report:
            try:
                done = play_server(f"{command} {OPTIONS}", ground, budget_s, plan_seed(seed, number), Path(report))
            except Exception as error:  # The server does not start, or what it answers is too odd for the kit.
                said = str(error) if isinstance(error, HarnessError) else repr(error)
                return GeneratedOutcome(change=change, how=TROUBLE, plans=plans, message=said.splitlines()[0])
        plans += done.runs
        for failure in done.failures:
            return GeneratedOutcome(
                change=change, how=KILLED, guarantee=failure.guarantee, plans=plans,
                message=failure.message, plan=failure.plan,
            )  # fmt: skip
        for row in done.statistics.rows(load_profile("http")):
            judged[row.id] += row.judged
    for guarantee in USUAL:
        if not judged[guarantee]:
            said = f"{plans} plans had nothing to judge of {guarantee}"
            return GeneratedOutcome(change=change, how=NOTHING, guarantee=guarantee, plans=plans, message=said)
    return GeneratedOutcome(change=change, how=SURVIVED, plans=plans)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTask:
    """The task of a process: a change, seconds for it, and the seed of its plans."""

    change: Change
    budget_s: float
    seed: int

    def do(self) -> GeneratedOutcome:
        """Hunt it."""
        return hunt_served(self.change, self.budget_s, self.seed)

"""Generated mutants of serve/: changes of the timeline server's modules, each hunted as a process over HTTP.

    drawn ─► ServedTask ─► plans of --sut http, on each of GROUNDS ─► GeneratedOutcome

Plans, judges and profile are the ordinary ones, and a hunt ends with the first promise that breaks. Only the server's
process has the change (served_start.py). It is real time: where a machine is busy, less is seen.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from marker_sim.campaign.runs import promised_breach
from marker_sim.errors import HarnessError
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.search.seeds import plan_seed
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.http_plans import EVERY, open_plans, plan_for_servers
from marker_sim.targets.run_environment import wires_on
from marker_sim.targets.server_settings import batching
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http.planned_run import PlayedPlan
from tools.generated_mutants.generated import KILLED, NO_MUTANT, NOTHING, SURVIVED, TROUBLE, GeneratedOutcome, reviewed
from tools.generated_mutants.syntax import Change

MODULES = (
    "marker_sim.serve.app",
    "marker_sim.serve.bases",
    "marker_sim.serve.connections",
    "marker_sim.serve.runtime",
    "marker_sim.serve.server",
)
_ROOT = str(Path(__file__).parents[2])
_START = (
    f"import sys; sys.path.insert(0, {_ROOT!r});"
    " from tools.generated_mutants.served_start import start; sys.exit(start(sys.argv[1:]))"
)
OPTIONS = "serve --base {storage} --port {port} --batch-threads {threads} --batch-interval-ms {interval_ms}"
# What a server that works has something to judge of in EVERY plans.
USUAL = ("G1", "G2", "G3", "G4", "G5", "G6", "G10", "G11", "G12")
STARTUP_S = 15.0
IMPORTED_S = 30.0
PLAN_S = 40.0  # Time for a request that is never answered to be late.
AT_ONCE = 2


class Ground(NamedTuple):
    """Where a part of a hunt takes place.

    form: how requests write directories.
    numbers: of the plans of a campaign, in the order in which they are played, EVERY of them.
    """

    storage: str
    form: str
    numbers: tuple[int, ...]


# On each the hostile plan comes first, and then another one.
GROUNDS = (
    Ground("local", "path", (1, 4, 3, 2, 5, 6)),
    Ground("s3", "s3n", (1, 4, 2, 5, 3, 6)),
    Ground("local", "file", (1, 3, 4, 6, 2, 5)),
)


def hunt_served(change: Change, plans: int, seed: int, grounds: tuple[Ground, ...] = GROUNDS) -> GeneratedOutcome:
    """Hunt a change of serve/ with so many plans, spread over the grounds, until a promise breaks."""
    began = time.monotonic()
    command = [sys.executable, "-c", _START, change.key]
    start = f"{shlex.join(command)} {OPTIONS}"
    outcome = _not_imported(change, command) or _hunted(change, start, plans, seed, grounds)
    return reviewed(replace(outcome, seconds=time.monotonic() - began))


def play(start: str, ground: Ground, numbers: range, seed: int) -> Generator[PlayedPlan, None, None]:
    """Plans against the server of a command, as they end; HarnessError when it cannot be started.

    numbers: which of those of the ground, from 0 on. Close it to end every process early.
    """
    server = ServerOptions(start=start, identity=True, dir_format=ground.form)
    batches, wires = batching(start, None), wires_on(ground.storage, None)
    with TemporaryDirectory(prefix="marker-sim-served-") as report:
        request = CampaignRequest(
            target=HttpTarget(), modes=("timeline",), storages=(ground.storage,), seed=seed,
            profile=load_profile("http"), budget_s=PLAN_S * len(numbers), server=server, report=Path(report),
        )  # fmt: skip
        with (
            open_plans(start, request, "changed", STARTUP_S, AT_ONCE, ahead=False) as runs,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):

            def again(number: int) -> PlayedPlan:
                at = ground.numbers[number % EVERY] + number // EVERY * EVERY
                plan = plan_for_servers(at, plan_seed(seed, at), ground.storage, batches, wires)
                return runs.again(plan, time.monotonic() + PLAN_S)

            try:
                for done in as_completed([pool.submit(again, number) for number in numbers]):
                    yield done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                runs.close()
                raise


def _not_imported(change: Change, command: list[str]) -> GeneratedOutcome | None:
    """What became of one that cannot be imported, None for all others."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORTED_S, check=False)
    except subprocess.TimeoutExpired:
        return GeneratedOutcome(change=change, how=NO_MUTANT, message=f"importing it takes more than {IMPORTED_S} s")
    if not done.returncode:
        return None
    return GeneratedOutcome(change=change, how=NO_MUTANT, message=(done.stderr.splitlines() or [""])[-1])


def _hunted(change: Change, start: str, plans: int, seed: int, grounds: tuple[Ground, ...]) -> GeneratedOutcome:
    judged, over, profile = Counter[str](), 0, load_profile("http")

    def ended(how: str, guarantee: str = "", message: str = "", played: PlayedPlan | None = None) -> GeneratedOutcome:
        plan = played.plan if played is not None else None
        return GeneratedOutcome(change=change, how=how, guarantee=guarantee, plans=over, message=message, plan=plan)

    for place, ground in enumerate(grounds):
        numbers = range(len(range(place, plans, len(grounds))))
        try:
            with closing(play(start, ground, numbers, plan_seed(seed, place))) as runs:
                for played in runs:
                    over += 1
                    for finding in judge(played.history):
                        breach = promised_breach(finding, played.plan, profile)
                        if breach is not None:
                            return ended(KILLED, finding.guarantee, breach.message, played)
                        judged[finding.guarantee] += finding.judged
        except Exception as error:  # The server does not start, or what it answers is too odd for the kit.
            said = str(error) if isinstance(error, HarnessError) else repr(error)
            return ended(TROUBLE, message=said.splitlines()[0])
    for guarantee in USUAL if over >= EVERY else ():
        if not judged[guarantee]:
            return ended(NOTHING, guarantee, f"{over} plans had nothing to judge of {guarantee}")
    return ended(SURVIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTask:
    """The task of a process: a change, how many plans, and their seed."""

    change: Change
    plans: int
    seed: int

    def do(self) -> GeneratedOutcome:
        """Hunt it."""
        return hunt_served(self.change, self.plans, self.seed)

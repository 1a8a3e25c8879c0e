"""Runs plans again in another process with another hash seed and compares digests of their histories.

Only this shows whether a system depends on the order of a set, or on other properties of a process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.plan import Plan
from marker_sim.surroundings.worker_pool import environment_as_here
from marker_sim.targets.table import parse_target
from marker_sim.worlds.simulated.cluster import run

TIMEOUT_S = 120.0
_CHILD = "from marker_sim.campaign.coverage.determinism_check import answer; answer()"


def digest(history: History) -> str:
    """A digest of every byte of a history."""
    made = hashlib.sha256()
    for line in history.lines():
        made.update(line.encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def differ_elsewhere(sut: str, plans: Sequence[Plan], digests: Sequence[str]) -> tuple[int, int]:
    """How many plans were compared, and how many gave another history; HarnessError when the process fails."""
    if not plans:
        return 0, 0
    asked = json.dumps({"sut": sut, "plans": [plan.to_dict() for plan in plans]})
    here = os.environ.get("PYTHONHASHSEED", "")
    environment = environment_as_here() | {"PYTHONHASHSEED": "4242" if here != "4242" else "1"}
    command = [sys.executable, "-c", _CHILD]
    try:
        ended = subprocess.run(
            command, input=asked, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"plans could not be run again in another process ({error}); try again") from error
    found = ended.stdout.split()
    if ended.returncode or len(found) != len(plans):
        last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
        raise HarnessError(f"plans could not be run again in another process: {last}")
    return len(plans), sum(one != two for one, two in zip(digests, found, strict=True))


def answer() -> None:
    """The main function of the other process: plans as JSON on standard input, one digest a line on standard output."""
    asked = json.load(sys.stdin)
    system = parse_target(asked["sut"]).load()
    assert system is not None, "only plans are compared"
    for plan in asked["plans"]:
        sys.stdout.write(digest(run(Plan.from_dict(plan), system)) + "\n")

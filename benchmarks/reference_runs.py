"""Very many judged runs of the reference with every fault, from every generator: did anything promised break.

    python benchmarks/reference_runs.py --runs 2000000             two processes; goes on where the ledger ends
    python benchmarks/reference_runs.py --runs 0                   what the ledger has, by generator and commit

A chunk that is done is one line of the ledger, so that a run of hours can be stopped. Of twenty chunks eighteen are the
swarm's, drawn and judged by the code of `marker-sim verify` over every mode and storage model, with pairs of modes and
repeated runs; one is the exhaustive search's (single crashes and pairs of them), one the state machines'. Seconds are
of processor time, because machines are shared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from marker_sim.campaign.machines.machine import attack, machine_for
from marker_sim.campaign.machines.operations import MarkerMachine
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.campaign.pieces import (
    NumberedRun,
    Piece,
    PieceResult,
    SearchSettings,
    Source,
    collected_by_hand,
    explore,
)
from marker_sim.campaign.sources.exhaustive import Crashes, Space
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import PLACES, Plan
from marker_sim.system import reference

GENERATORS_IN_TURN = 20
SHARDS = 400  # Of the exhaustive space; one is a chunk.
FIRST_ONE_IN, SECOND_ONE_IN = 6, 7  # Of the crashes of a pair.
CHUNKS_EACH = 3
PROMISES = load_profile("reference")


def run_chunk(number: int, runs: int, seed: int, commit: str) -> dict[str, Any]:
    """Draw, run and judge the plans of chunk `number`, about `runs` of them; the ledger's line."""
    began = time.process_time()
    kind = number % GENERATORS_IN_TURN
    with collected_by_hand():
        match kind:
            case 0:
                made = _exhaustive(number // GENERATORS_IN_TURN)
            case 1:
                made = _machines(number, seed, runs)
            case _:
                made = _swarm(number * runs, runs, seed)
    cpu_s = round(time.process_time() - began, 2)
    return {"chunk": number, "seed": seed, "commit": commit, "cpu_s": cpu_s} | made


def _swarm(first: int, runs: int, seed: int) -> dict[str, Any]:
    searched = SearchSettings(places=PLACES, seed=seed, guarantees=None, profile=PROMISES)
    return _explored("swarm", Swarm(reference(), searched), searched, first, runs)


def _explored(generator: str, source: Source, settings: SearchSettings, first: int, runs: int) -> dict[str, Any]:
    seen = explore(Piece(settings=settings, first=first, count=runs), source)
    seen.raise_error()
    return _line(generator, seen)


def _machines(number: int, seed: int, runs: int) -> dict[str, Any]:
    """Examples of both state machines in one place."""
    mode, storage = PLACES[number // GENERATORS_IN_TURN % len(PLACES)]
    system, seen = reference(), PieceResult()
    judged = SearchSettings(places=((mode, storage),), seed=seed, guarantees=None, profile=PROMISES)

    def count(plan: Plan, history: History, steps: int) -> None:
        seen.take(NumberedRun(seen.taken, plan, history, steps), judged, system)

    settings.register_profile("soak", max_examples=runs // 2, deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile("soak")
    for kind in (MarkerMachine, WritePathMachine):
        machine = machine_for(kind, system, mode, storage, chaos_seed=seed + number, on_example=count)
        attack(machine, phases=[Phase.generate], database=None)
    return _line("machines", seen)


def _line(generator: str, seen: PieceResult) -> dict[str, Any]:
    rows = seen.statistics.rows(PROMISES)
    return {
        "generator": generator,
        "runs": seen.statistics.runs,
        "steps": seen.statistics.steps,
        "violations": [
            {"kind": kind, "message": broken.breach.message, "plan": broken.plan.to_dict() if broken.plan else None}
            for kind, broken in seen.found.items()
        ],
        "differences": seen.statistics.differences,
        "judged": _summed((row.id, row.judged) for row in rows),
        "faults": seen.statistics.faults,
        "excused": _summed((f"{row.id} {name}", n) for row in rows for name, n in row.excused.items()),
    }


def _exhaustive(shard: int) -> dict[str, Any]:
    space = Space(reference())
    pairs = range(space.size + shard % SHARDS * FIRST_ONE_IN, 2 * space.size, SHARDS * FIRST_ONE_IN)
    cases = chain(space.cases(range(shard % SHARDS, space.size, SHARDS)), space.cases(pairs, SECOND_ONE_IN))
    judged = SearchSettings(places=(), seed=0, guarantees=None, profile=PROMISES)
    return _explored("exhaustive", Crashes(space, cases), judged, 0, sys.maxsize)


def _summed(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    summed: Counter[str] = Counter()
    for name, count in counts:
        summed[name] += count
    return +summed


def read_ledger(path: Path) -> dict[int, dict[str, Any]]:
    """The chunks that are done, by number; a torn last line is none."""
    done: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            chunk = json.loads(line)
        except ValueError:
            continue
        done[chunk["chunk"]] = chunk
    return done


def show(chunks: Iterable[dict[str, Any]]) -> int:
    """Print the sums by generator and commit; the number of violations."""
    groups: dict[tuple[str, str], Counter[str]] = {}
    totals: dict[str, Counter[str]] = {"faults": Counter(), "judged": Counter(), "excused": Counter()}
    violations = []
    for chunk in chunks:
        counted = Counter({name: chunk[name] for name in ("runs", "steps", "cpu_s")})
        counted["violations"] = len(chunk["violations"]) + chunk.get("differences", 0)
        for group in ((chunk["generator"], chunk["commit"]), ("all", "")):
            groups.setdefault(group, Counter()).update(counted)
        for name, total in totals.items():
            total.update(chunk.get(name, {}))
        violations += chunk["violations"]
    for (generator, commit), sums in sorted(groups.items()):
        print(
            f"{generator:<10} {commit:<12} {sums['runs']:>9,} runs {sums['steps']:>12,} steps"
            f" {sums['cpu_s'] / 3600:6.2f} h of processor time {sums['violations']} violations"
        )
    for violation in violations[:20]:
        print(f"  {violation['kind']}: {violation['message']}")
    for title, counts in totals.items():
        print(f"{title}: " + ", ".join(f"{name} {counts[name]:,}" for name in sorted(counts)))
    return groups[("all", "")]["violations"] if groups else 0


def commit_of_tree() -> str:
    """The commit that runs, with a plus behind it when the package has changes that are not committed."""
    at = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    changed = subprocess.run(["git", "status", "--porcelain", "marker_sim"], capture_output=True, text=True, check=True)
    return at.stdout.strip() + ("+" if changed.stdout else "")


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="in all, with those of the ledger")
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--chunk", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no chunk after so many")
    parser.add_argument("--ledger", type=Path, default=Path("reference-runs.jsonl"))
    given = parser.parse_args()
    done, until = read_ledger(given.ledger), time.monotonic() + given.minutes * 60
    commit, number = commit_of_tree(), 0
    # What is frozen against collection is never freed, so a process does a few chunks and gives way to a new one.
    fresh = ProcessPoolExecutor(given.jobs, get_context("forkserver"), max_tasks_per_child=CHUNKS_EACH)
    with given.ledger.open("a", encoding="utf-8") as ledger, fresh as pool:
        under_way = set[Any]()
        while True:
            runs = sum(chunk["runs"] for chunk in done.values()) + len(under_way) * given.chunk
            while runs < given.runs and len(under_way) < given.jobs and time.monotonic() < until:
                if number not in done:
                    under_way.add(pool.submit(run_chunk, number, given.chunk, given.seed, commit))
                    runs += given.chunk
                number += 1
            if not under_way:
                break
            future = next(as_completed(under_way))
            under_way.remove(future)
            chunk = future.result()
            done[chunk["chunk"]] = chunk
            ledger.write(json.dumps(chunk, ensure_ascii=False) + "\n")
            ledger.flush()
    raise SystemExit(1 if show(done.values()) else 0)


if __name__ == "__main__":
    main()

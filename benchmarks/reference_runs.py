"""Very many judged runs of the reference with every fault: what happened in them and whether anything promised broke.

Seeds are cut into chunks; a chunk that is done is one line of the ledger, so that a run of hours can be stopped and
goes on where it was. The mixture is that of `marker-sim verify`, over every mode and storage model. Seconds are of
processor time, because machines are shared.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.campaign.pieces import WRITES_EVERY
from marker_sim.campaign.runs import execute, promised_breach
from marker_sim.campaign.statistics import Statistics
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import PLACES
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference


def run_chunk(first: int, runs: int) -> dict[str, Any]:
    """Run and judge `runs` plans from number `first`; the ledger's line."""
    profile, system, statistics = load_profile("reference"), reference(), Statistics()
    judged: Counter[str] = Counter()
    unpromised: Counter[str] = Counter()
    violations: list[str] = []
    steps, began = 0, time.process_time()
    gc.collect()
    gc.disable()
    for number in range(first, first + runs):
        mode, storage = PLACES[number % len(PLACES)]
        seed = number // len(PLACES)
        make = make_write_plan if seed % WRITES_EVERY == 1 else make_plan
        plan = make(seed, mode, storage)
        history, made = execute(plan, system)
        steps += made
        findings = judge(history)
        statistics.add(history, findings)
        for finding in findings:
            judged[finding.guarantee] += finding.judged
            unpromised[finding.guarantee] += len(finding.breaches)
            breach = promised_breach(finding, plan, profile)
            if breach is not None:
                plan_of = f"{make.__name__}({seed}, {mode!r}, {storage!r})"
                violations.append(f"{finding.guarantee} {plan_of}: {breach.message}")
        if number % 200 == 0:
            gc.collect()
    gc.enable()
    return {
        "first": first,
        "runs": runs,
        "steps": steps,
        "cpu_s": round(time.process_time() - began, 2),
        "violations": violations,
        "judged": judged,
        "not promised": +unpromised,
        "faults": statistics.faults,
    }


def read_ledger(path: Path) -> dict[int, dict[str, Any]]:
    """The chunks that are done, by their first number; a torn last line is none."""
    done: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            chunk = json.loads(line)
        except ValueError:
            continue
        done[chunk["first"]] = chunk
    return done


def show(chunks: list[dict[str, Any]], jobs: int) -> None:
    """Print the sums."""
    faults: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    unpromised: Counter[str] = Counter()
    for chunk in chunks:
        faults.update(chunk["faults"])
        judged.update(chunk["judged"])
        unpromised.update(chunk["not promised"])
    runs, steps = (sum(chunk[name] for chunk in chunks) for name in ("runs", "steps"))
    cpu_s = sum(chunk["cpu_s"] for chunk in chunks)
    violations = [violation for chunk in chunks for violation in chunk["violations"]]
    print(f"{runs:,} runs, {steps:,} steps, {cpu_s:,.0f} s of processor time in {jobs} processes")
    print(f"{len(violations)} violations of what the reference promises")
    for violation in violations[:20]:
        print(f"  {violation}")
    for title, counts in (("faults that struck", faults), ("judged", judged), ("breaches, none promised", unpromised)):
        print(f"{title}: " + ", ".join(f"{name} {counts[name]:,}" for name in sorted(counts)))


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first run; eight runs share a seed")
    parser.add_argument("--chunk", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--ledger", type=Path, default=Path("reference-runs.jsonl"))
    given = parser.parse_args()
    done = read_ledger(given.ledger)
    end = given.first + given.runs
    chunks = {first: min(given.chunk, end - first) for first in range(given.first, end, given.chunk)}
    with given.ledger.open("a", encoding="utf-8") as ledger, ProcessPoolExecutor(given.jobs) as pool:
        left = [pool.submit(partial(run_chunk, first, runs)) for first, runs in chunks.items() if first not in done]
        for future in as_completed(left):
            chunk = future.result()
            done[chunk["first"]] = chunk
            ledger.write(json.dumps(chunk, ensure_ascii=False) + "\n")
            ledger.flush()
    show([done[first] for first in chunks], given.jobs)
    raise SystemExit(1 if any(done[first]["violations"] for first in chunks) else 0)


if __name__ == "__main__":
    main()

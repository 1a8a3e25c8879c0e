"""Digests of what a seed leads to, so that a change of structure can show that it changed nothing else.

    PYTHONPATH=. python benchmarks/digests.py --write before.json          at the commit before
    PYTHONPATH=. python benchmarks/digests.py --compare before.json        at the commit after

Plans of operations and of writes in turn in every mode and storage, and examples of the state machine in each. One line
a seed: the plan as JSON, the history, what the judges decided, and their messages, each with a digest of its own, so
that a changed sentence is told from a changed verdict.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase

from marker_sim.campaign.machines.machine import attack, machine_for
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import PLACES, Plan
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference
from marker_sim.worlds.simulated.cluster import run

PARTS = ("plan", "history", "verdicts", "messages")


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _judged(history: History) -> dict[str, str]:
    findings = judge(history)
    verdicts = [
        (
            f.guarantee,
            f.applicable,
            f.judged,
            f.eligible,
            f.excused,
            [(b.evidence, b.under, b.cause) for b in f.breaches],
        )
        for f in findings
    ]
    messages = [(f.guarantee, f.undecided, [breach.message for breach in f.breaches]) for f in findings]
    events = "\n".join(map(str, history.events))
    return {"history": _digest(events), "verdicts": _digest(verdicts), "messages": _digest(messages)}


def of_seeds(first: int, count: int, stride: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Of every `stride`-th seed from `first` on, `count` in all."""
    for number in range(first, first + count * stride, stride):
        mode, storage = PLACES[number // 2 % len(PLACES)]
        plan = (make_write_plan if number % 2 else make_plan)(number, mode, storage)
        yield f"seed {number}", {"plan": _digest(plan.to_dict()), **_judged(run(plan, reference()))}
        if number % 200 < stride:
            gc.collect()


def of_examples(count: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Of so many examples of the state machine in each mode and storage."""
    for mode, storage in PLACES:
        with TemporaryDirectory() as plans:
            seen = list[dict[str, str]]()

            def look(_: Plan, history: History, __: int, seen: list[dict[str, str]] = seen) -> None:
                seen.append(_judged(history))

            machine = machine_for(
                WritePathMachine,
                reference(),
                mode,
                storage,
                plans=Path(plans),
                chaos_seed=7,
                on_example=look,
            )
            attack(machine, max_examples=count, database=None, phases=[Phase.generate], derandomize=False)
        for number, digests in enumerate(seen):
            yield f"example {mode} {storage} {number}", digests


def main() -> int:
    """Parse the command line; 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4000)
    parser.add_argument("--first", type=int, default=9_000_000)
    parser.add_argument("--examples", type=int, default=12, help="in each mode and storage")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--part", type=int, help="what one of the processes is asked to do")
    given = parser.parse_args()
    if given.part is not None:
        gc.disable()
        for name, digests in of_seeds(given.first + given.part, given.seeds // given.jobs, given.jobs):
            print(json.dumps([name, digests]), flush=True)
        return 0
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, *sys.argv, "--part"]
    parts = [
        subprocess.Popen([*command, str(part)], stdout=subprocess.PIPE, text=True, env=environment)
        for part in range(given.jobs)
    ]
    lines = [json.loads(line) for part in parts for line in part.communicate()[0].splitlines()]
    lines += [[name, digests] for name, digests in of_examples(given.examples)]
    if any(part.returncode for part in parts):
        return 1
    found = dict(sorted(lines))
    print(f"{len(found)} digests, all together {_digest(found)}")
    if given.write:
        given.write.write_text(json.dumps(found, indent=0), encoding="utf-8")
    if given.compare:
        return _compare(json.loads(given.compare.read_text(encoding="utf-8")), found)
    return 0


def _compare(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> int:
    alone = before.keys() ^ after.keys()
    different = {
        name: [part for part in PARTS if before[name].get(part) != after[name].get(part)]
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    }
    counts = Counter(part for parts in different.values() for part in parts)
    print(f"{len(alone)} on one side alone; different: {dict(counts) or 'none'}")
    for name in list(different)[:3]:
        print(f"    {name}: {', '.join(different[name])}")
    return int(bool(alone or different))


if __name__ == "__main__":
    sys.exit(main())

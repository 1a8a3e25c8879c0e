"""A night of `marker-sim chaos`, killed by SIGKILL in the middle and resumed: was anything lost, or done twice?

    python benchmarks/chaos_kill.py --budget 20m --kills 1 --dir chaos-killed

What is compared comes from outside the nightly: the bytes of the ledger at the moment of each kill, a list of numbers
counted up from the first seed, and `--check` units of the simulated world that are done once more here, in a process of
their own, whose counts must be those in the ledger. Ends with 1 when something differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from marker_sim.campaign.nightly.desk import Desk
from marker_sim.campaign.nightly.ledger import NAME, read_lines
from marker_sim.campaign.nightly.work import NightlyTask
from marker_sim.cli.request import parse_duration
from marker_sim.surroundings.worker_pool import VARIABLE

COMPARED = ("runs", "steps", "judged", "violations", "unpromised", "faults", "reached", "differences")
GONE_S = 20.0


def main() -> int:
    """Run the night with its kills, then look; 1 when something was lost, repeated or left running."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="20m")
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--dir", type=Path, default=Path("chaos-killed"))
    parser.add_argument("--sut", default="reference")
    parser.add_argument("--stages", default=None)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--check", type=int, default=12)
    given = parser.parse_args()
    if (given.dir / NAME).exists():
        parser.error(f"{given.dir} holds a night already; give a new --dir")
    budget_s = parse_duration(given.budget, "--budget")
    wrong = _play(given, budget_s)
    lines = list(read_lines(given.dir))
    wrong += [*_ranges(lines), *_recounted(lines, given.check), *_summed(lines, given.dir)]
    used_s = max(line.get("clock_s", 0.0) for line in lines)
    print(f"the night's clock says {used_s:.1f} s of {budget_s:.0f} s")
    if used_s > budget_s + 10:
        wrong.append("the budget was not kept")
    for sentence in wrong:
        print(f"WRONG: {sentence}")
    print("nothing was lost and nothing repeated" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


def _play(given: argparse.Namespace, budget_s: float) -> list[str]:
    """The night, with its kills at drawn moments about the middle of what is left; what went wrong."""
    words = [sys.executable, "-m", "marker_sim", "chaos", "--budget", given.budget, "--dir", str(given.dir)]
    words += ["--sut", given.sut]
    words += [] if given.stages is None else ["--stages", given.stages]
    first = [] if given.seed is None else ["--seed", str(given.seed)]
    wrong, rng, before = [], random.Random(given.seed), b""
    for kill in range(given.kills + 1):
        began = time.monotonic()
        process = subprocess.Popen([*words, *(first if kill == 0 else [])])
        if kill == given.kills:
            code = process.wait()
            print(f"session {kill + 1} ended by itself with {code} after {time.monotonic() - began:.1f} s")
            wrong += [] if code in (0, 1, 3) else [f"the last session ended with {code}"]
        else:
            time.sleep(budget_s / (given.kills + 1) * rng.uniform(0.8, 1.0))
            process.send_signal(signal.SIGKILL)
            process.wait()
            wrong += _left(given.dir)
            print(f"session {kill + 1} was killed after {time.monotonic() - began:.1f} s")
        after = (given.dir / NAME).read_bytes()
        whole = before[: before.rfind(b"\n") + 1]
        if not after.startswith(whole):
            wrong.append("the ledger does not begin with what it held at the kill")
        torn = len(before) - len(whole)
        print(f"  {after.count(10)} lines in the ledger, {torn} bytes of a torn line were cut off")
        before = after
    return wrong


def _left(directory: Path) -> list[str]:
    """Processes that outlive the kill."""
    word, deadline = f"{VARIABLE}={directory.resolve()}".encode(), time.monotonic() + GONE_S
    while True:
        found = []
        for entry in os.scandir("/proc"):
            try:
                if entry.name.isdigit() and word in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    found.append(entry.name)
            except OSError:
                continue
        if not found:
            return []
        if time.monotonic() > deadline:
            return [f"processes {', '.join(found)} live {GONE_S:.0f} s after the kill"]
        time.sleep(0.1)


def _ranges(lines: list[dict[str, Any]]) -> list[str]:
    """Every number of every stream once, counted one by one; holes only for what was in hand when the night ended."""
    wrong, seen = [], dict[tuple[str, str], Counter[int]]()
    largest = Counter[tuple[str, str]]()
    for line in (line for line in lines if line["kind"] == "unit"):
        stream = (line["stream"], line.get("space", ""))
        seen.setdefault(stream, Counter()).update(range(line["first"], line["first"] + line["count"]))
        largest[stream] = max(largest[stream], line["count"])
    for stream, numbers in sorted(seen.items()):
        twice = [number for number, times in numbers.items() if times > 1]
        first = {"canary": 1}.get(stream[0], 0)
        missing = set(range(first, max(numbers) + 1)) - set(numbers)
        name = " ".join(stream).strip()
        print(f"{name}: {len(numbers)} numbers from {first} to {max(numbers)}, {len(twice)} twice, {len(missing)} open")
        wrong += [f"{name} {number} was done twice" for number in twice]
        wrong += [f"{name} began at {min(numbers)}"] if min(numbers) < first else []
        if len(missing) > (os.cpu_count() or 1) * largest[stream]:
            wrong.append(f"{name}: {len(missing)} numbers were left out")
    return wrong


def _recounted(lines: list[dict[str, Any]], number: int) -> list[str]:
    """Units of the simulated world done again, beginning with those beside a kill."""
    wrong: list[str] = []
    units = [line for line in lines if line["kind"] == "unit" and line["stream"] in ("swarm", "exhaustive")]
    beside = [
        unit
        for place, line in enumerate(lines)
        if line["kind"] == "resume"
        for unit in [*units]
        if unit in lines[max(0, place - 3) : place + 4]
    ]
    others = [unit for unit in units if unit not in beside]
    chosen = [*beside, *random.Random(0).sample(others, min(len(others), max(0, number - len(beside))))]
    desk = Desk()
    for unit in chosen:
        asked = {name: unit[name] for name in ("stream", "first", "count")} | {"space": unit.get("space", "")}
        task = NightlyTask(**asked, sut=lines[0]["sut"], profile=lines[0]["profile"], until=0.0, seed=lines[0]["seed"])
        again = desk.do(task)
        wrong += [
            f"{unit['stream']} {unit['first']}: {name} is {unit.get(name)}, and {again[name]} when it is done again"
            for name in COMPARED
            if json.loads(json.dumps(again[name])) != unit.get(name)
        ]
    print(f"{len(chosen)} units done again ({len(beside)} of them beside a kill), {len(wrong)} counts differ")
    return wrong


def _summed(lines: list[dict[str, Any]], directory: Path) -> list[str]:
    """The summary's counts against a sum over the lines."""
    night = json.loads((directory / "summary.json").read_text(encoding="utf-8"))["nights"][-1]
    units = [line for line in lines if line["kind"] == "unit"]
    runs, steps = (sum(line.get(name, 0) for line in units) for name in ("runs", "steps"))
    judged = sum((Counter(line.get("judged", {})) for line in units), Counter[str]())
    print(f"{runs:,} runs, {steps:,} steps, {judged.total():,} judged in {len(units)} units; {night['verdict']}")
    files = [*(directory / "failures").glob("*.json"), *(directory / "failures" / "fixed").glob("*.json")]
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    found = sum(len(line.get("sightings", ())) for line in units)
    counted = sum(failure["seen"] + failure["alike"] for failure in stored)
    print(f"{found} violations in the ledger, {counted} in {len(files)} files of failures")
    if found != counted:
        return ["the files of failures do not add up to the ledger"]
    same = (night["runs"], night["steps"], night["judged"]) == (runs, steps, dict(sorted(judged.items())))
    return [] if same else ["the summary does not add up to the ledger"]


if __name__ == "__main__":
    sys.exit(main())

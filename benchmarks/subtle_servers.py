"""How many of the faulty servers of scenarios/subtle_servers a campaign catches, and what it makes of them.

    python benchmarks/subtle_servers.py --budget 40s --out DIR [--seed N] [--only 1,2,3] [--at-a-time 2]

One `marker-sim verify` for each defect, and for both correct bases (0 and 0-go). The table has the verdict, the first
guarantees, the told failures with their entries before and after and how often they fail, and the seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from marker_sim.plan import read_plan

HERE = Path(__file__).parents[1] / "scenarios" / "subtle_servers"
IN_GO = 11
OPTIONS = "--port {port} --dir {storage} --batch-threads {threads} --interval-ms {interval_ms}"


def command(defect: str, program: Path) -> str:
    """What starts a server with a defect."""
    number = int(defect.partition("-")[0])
    if number >= IN_GO or defect.endswith("-go"):
        return f"{program} --defect {number} {OPTIONS}"
    return f"{sys.executable} {HERE / 'server.py'} --defect {number} {OPTIONS}"


def run(defect: str, program: Path, budget: str, seed: int, out: Path) -> dict[str, Any]:
    """One campaign; what its verdict.json says, and how it ended."""
    report = out / f"{defect}-{seed}"
    words = ["marker-sim", "verify", "--sut", "http", "--storage", "local", "--budget", budget, "--seed", str(seed)]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--start", command(defect, program), "--report", str(report)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    took_s = time.monotonic() - began
    verdict = report / "verdict.json"
    content = json.loads(verdict.read_text(encoding="utf-8")) if verdict.is_file() else {}
    return {"defect": defect, "exit": done.returncode, "seconds": took_s, "said": done.stderr[-300:], **content}


def line(result: dict[str, Any], out: Path, seed: int) -> str:
    """The row of the table."""
    failures = result.get("failures", [])
    stories = [failure for number, failure in enumerate(failures) if failure["story"] == number]
    told = "; ".join(_told(story, out / f"{result['defect']}-{seed}") for story in stories[:2])
    broken = ", ".join(dict.fromkeys(failure["guarantee"] for failure in failures))
    return (
        f"| {result['defect']} | {result.get('verdict', 'none')} | {broken} | {len(stories)} | {told} |"
        f" {result.get('runs', 0)} | {result['seconds']:.0f} |"
    )


def _told(failure: dict[str, Any], report: Path) -> str:
    if not failure["plan"]:
        return f"{failure['guarantee']} without a plan"
    entries = read_plan(report / failure["plan"]).entries
    return f"{failure['guarantee']} {entries} entries, {failure['confirmed'] or 'not run again'}"


def main() -> None:
    """Run the campaigns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="40s")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--at-a-time", type=int, default=1)
    asked = parser.parse_args()
    go = shutil.which("go")
    program = asked.out.resolve() / "server"
    asked.out.mkdir(parents=True, exist_ok=True)
    if go is not None:
        subprocess.run([go, "build", "-o", str(program), "."], cwd=HERE / "go_server", check=True)
    defects = asked.only.split(",") if asked.only else ["0", "0-go", *map(str, range(1, 21))]
    print("| defect | verdict | breaks | causes | told | runs | seconds |\n|---|---|---|---|---|---|---|")
    with ThreadPoolExecutor(asked.at_a_time) as pool:
        results = pool.map(lambda each: run(each, program, asked.budget, asked.seed, asked.out), defects)
        for result in results:
            print(line(result, asked.out, asked.seed), flush=True)


if __name__ == "__main__":
    main()

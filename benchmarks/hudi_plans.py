"""What a campaign against each released Hudi makes of its failures: a row for each story.

    python benchmarks/hudi_plans.py --budget 90s --out DIR [--versions 1.0.2,1.2.0] [--storages local,s3] [--seed N]

One `marker-sim verify --sut hudi:VERSION` each. A row has what breaks and by which causes, the entries of the plan that
failed first and of the smallest one kept, how often that one fails on the real server, and the seconds of the campaign.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from marker_sim.plan import read_plan

VERSIONS = "0.15.0,1.0.2,1.1.1,1.2.0"


def rows(version: str, storage: str, budget: str, seed: int, out: Path) -> Iterator[str]:
    """Run a campaign; the stories of its verdict.json."""
    report = out / f"{version}-{storage}-{seed}"
    words = ["marker-sim", "verify", "--sut", f"hudi:{version}", "--storage", storage]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--budget", budget, "--seed", str(seed), "--report", str(report)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    took_s = time.monotonic() - began
    verdict = report / "verdict.json"
    content = json.loads(verdict.read_text(encoding="utf-8")) if verdict.is_file() else {}
    failures: list[dict[str, Any]] = content.get("failures", [])
    for number in sorted({failure["story"] for failure in failures}):
        told = failures[number]
        beside = [failure for failure in failures if failure["story"] == number]
        broken = ", ".join(dict.fromkeys(failure["guarantee"] for failure in (told, *beside)))
        causes = ", ".join(dict.fromkeys(failure["cause"] for failure in (told, *beside)))
        yield (
            f"| {version} | {storage} | {broken} | {causes} | {_entries(told, report)} |"
            f" {told['confirmed'] or 'not made small'} | {content['runs']} | {took_s:.0f} |"
        )
    if not failures:
        yield f"| {version} | {storage} | {content.get('verdict', done.stderr[-200:])} | | | | | {took_s:.0f} |"


def _entries(failure: dict[str, Any], report: Path) -> str:
    if not failure["plan"]:
        return "no plan"
    return f"{failure['entries_before'] or '?'} to {read_plan(report / failure['plan']).entries}"


def main() -> None:
    """Run the campaigns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="90s")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--versions", default=VERSIONS)
    parser.add_argument("--storages", default="local,s3")
    asked = parser.parse_args()
    print("| Hudi | storage | breaks | causes | entries | fails | runs | seconds |\n|---|---|---|---|---|---|---|---|")
    for version, storage in product(asked.versions.split(","), asked.storages.split(",")):
        for row in rows(version, storage, asked.budget, asked.seed, asked.out):
            print(row, flush=True)


if __name__ == "__main__":
    main()

"""Which Hudi breaks what: one version against each of the others on the same plans, a column for each.

    python benchmarks/hudi_versions.py --budget 150s --out DIR [--sut hudi:1.2.0] [--against hudi:0.15.0,hudi:1.0.2]
                                       [--storage local] [--seed 1]

One `marker-sim verify --sut A --against B` each; a budget is for both. A cell has the violations in the campaign of the
system, "by plan" when only the plan of another one showed it there, and "-" when neither did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

AGAINST = "hudi:0.15.0,hudi:1.0.2,hudi:1.1.1"
Kind = tuple[str, str]


def compared(sut: str, against: str, asked: argparse.Namespace) -> dict[str, Any]:
    """The part of verdict.json about the two systems, empty when there is none."""
    report = asked.out / against.replace(":", "-").replace("/", "-")
    words = ["marker-sim", "verify", "--sut", sut, "--against", against, "--storage", asked.storage]
    words += ["--budget", asked.budget, "--seed", str(asked.seed), "--report", str(report)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    verdict = report / "verdict.json"
    content: dict[str, Any] = json.loads(verdict.read_text(encoding="utf-8")) if verdict.is_file() else {}
    if "against" not in content:
        print(f"{sut} against {against} could not be compared: {done.stderr[-300:]}")
    return dict(content.get("against", {}))


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="150s")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sut", default="hudi:1.2.0")
    parser.add_argument("--against", default=AGAINST)
    parser.add_argument("--storage", default="local")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    others = asked.against.split(",")
    counts: dict[str, dict[Kind, int]] = {name: {} for name in (asked.sut, *others)}
    runs = dict.fromkeys(counts, 0)
    for other in others:
        found = compared(asked.sut, other, asked)
        for number, name in enumerate((asked.sut, other)):
            runs[name] += found.get("runs", (0, 0))[number]
            for each in found.get("violations", ()):
                if each["broken"][number]:
                    kind = (each["guarantee"], each["cause"])
                    counts[name][kind] = counts[name].get(kind, 0) + each["violations"][number]
    print(f"| breaks | {' | '.join(f'{name}, {runs[name]} runs' for name in counts)} |\n|---|{'---|' * len(counts)}")
    for kind in sorted({kind for each in counts.values() for kind in each}, key=lambda kind: (int(kind[0][1:]), kind)):
        cells = (str(each[kind] or "by plan") if kind in each else "-" for each in counts.values())
        print(f"| {kind[0]} {kind[1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

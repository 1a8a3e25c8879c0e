"""Kill every mutant with its guarantee judged alone and print what it took."""

from __future__ import annotations

import argparse
import statistics

from marker_sim.mutants.catalogue import MUTANTS
from marker_sim.mutants.kill import kill


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6000, help="plans to try at most")
    parser.add_argument("--only", default="", help="one mutant")
    arguments = parser.parse_args()
    print(f"{'mutant':28} {'by':4} {'plans':>6} {'seconds':>8} {'found':>6} {'shrunk':>6}")
    seconds, entries = [], []
    for mutant in MUTANTS:
        if arguments.only and mutant.name != arguments.only:
            continue
        result = kill(mutant, arguments.seeds)
        shrunk = result.plan.entries if result.plan else "-"
        print(
            f"{mutant.name:28} {mutant.kills:4} {result.seeds:6} {result.seconds:8.2f} {result.entries_found:6}"
            f" {shrunk:>6}  {result.message[:110]}",
            flush=True,
        )
        if result.plan:
            seconds.append(result.seconds)
            entries.append(result.plan.entries)
    if seconds:
        print(f"{len(seconds)} killed; median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s;")
        print(f"shrunk plans: median {statistics.median(entries)}, longest {max(entries)} entries")


if __name__ == "__main__":
    main()

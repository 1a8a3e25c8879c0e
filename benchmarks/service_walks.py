"""The walk of one table service of a released Hudi on one table, for as long as it takes: points, what broke.

    PYTHONPATH=. python benchmarks/service_walks.py 1.2.0 savepoint [--merge-on-read] [--metadata] --out DIR

It is the part of `marker-sim verify --sut hudi-java:VERSION --services` that concerns this service and table, and ends
when each of its points was tried.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from marker_sim.cli.app import main as run_command
from marker_sim.targets import hudi_java_walk
from marker_sim.worlds.spark.hudi.steps import PREPARED


def main() -> int:
    """Walk, and print what `verify` prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("service", choices=sorted(PREPARED))
    parser.add_argument("--merge-on-read", action="store_true")
    parser.add_argument("--metadata", action="store_true")
    parser.add_argument("--mode", default="direct")
    parser.add_argument("--budget", default="30m")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    merges, shape = next(table for table in hudi_java_walk.TABLES if table[0] == given.merge_on_read)
    shape = replace(shape, metadata=given.metadata, version6=given.service == "upgrade")
    hudi_java_walk._workloads = lambda services: iter([(True, (given.service,), (merges, shape))])
    hudi_java_walk.TableWalk.beyond = lambda walk: None  # type: ignore[assignment, method-assign]
    options = {"--mode": given.mode, "--budget": given.budget, "--seed": given.seed, "--report": given.out}
    words = ["verify", "--sut", f"hudi-java:{given.version}", "--services"]
    return run_command([*words, *(word for pair in options.items() for word in pair)])


if __name__ == "__main__":
    raise SystemExit(main())

"""Walks of the table services of a released Hudi, one on one table each, and how long they are.

    PYTHONPATH=. python benchmarks/service_walks.py 1.2.0                                   calls and points of each
    PYTHONPATH=. python benchmarks/service_walks.py 1.2.0 savepoint [--merge-on-read] [--metadata] --out DIR

A walk is the part of `marker-sim verify --sut hudi-java:VERSION --services` that concerns this service and table, and
ends when each of its points was tried. Calls are those of a run without a fault, points their failures and deaths.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from dataclasses import replace

from marker_sim.cli.app import main as run_command
from marker_sim.cli.request import parse_request
from marker_sim.targets import hudi_java_walk
from marker_sim.targets.hudi_java_runs import DrawnPoint, JavaRuns


def count(given: argparse.Namespace) -> int:
    """Print calls and points of each service on each table."""
    with tempfile.TemporaryDirectory() as report:
        request = parse_request(
            argv=(), sut=f"hudi-java:{given.version}", mode=given.mode, storage=None, budget=given.budget,
            seed=given.seed, guarantees=None, profile=None, expect=None, report=report, services=True,
        )  # fmt: skip
        with request.target.real_runs(request, lambda line: None) as runs:
            assert isinstance(runs, JavaRuns)
            for number, (_, plan) in enumerate(runs.walk.bases):
                drawn = DrawnPoint(number=number, plan=plan, point=None, words="")
                played = runs.play(drawn)
                assert not played.trouble and not any(each.breaches for each in played.findings or ())
                runs.took(drawn, played, ())
            found = defaultdict[str, list[int]](list)
            for row in runs.walk.rows():
                found[row.base].append(len(row.fates))
    for base, points in found.items():
        print(f"{base}: {len(points)} calls, {sum(points)} points")
    return 0


def walk(given: argparse.Namespace) -> int:
    """Walk one service, and print what `verify` prints."""
    merges, shape = next(table for table in hudi_java_walk.TABLES if table[0] == given.merge_on_read)
    shape = replace(shape, metadata=given.metadata, version6=given.service == "upgrade")
    hudi_java_walk._workloads = lambda services: iter([(True, (given.service,), (merges, shape))])
    hudi_java_walk.TableWalk.beyond = lambda walk: None  # type: ignore[assignment, method-assign]
    options = {"--mode": given.mode, "--budget": given.budget, "--seed": given.seed, "--report": given.out}
    words = ["verify", "--sut", f"hudi-java:{given.version}", "--services"]
    return run_command([*words, *(word for pair in options.items() for word in pair)])


def main() -> int:
    """Count or walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("service", nargs="?", choices=("upgrade", *hudi_java_walk.SERVICES[True]))
    parser.add_argument("--merge-on-read", action="store_true")
    parser.add_argument("--metadata", action="store_true")
    parser.add_argument("--mode", default="direct")
    parser.add_argument("--budget", default="30m")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out")
    given = parser.parse_args()
    if given.service is None:
        return count(given)
    if given.service == "compact" and not given.merge_on_read:
        parser.error("compact was given for a copy-on-write table, which has no log files; add --merge-on-read")
    if given.out is None:
        parser.error(f"{given.service} was given without a folder for its report; add --out DIR")
    return walk(given)


if __name__ == "__main__":
    raise SystemExit(main())

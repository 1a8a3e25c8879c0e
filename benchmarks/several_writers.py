"""Which guarantees several writers of one Hudi table break, by their settings and marker mode: a table in Markdown.

    python benchmarks/several_writers.py 1.2.0 --budget 360s --seed 1
    python benchmarks/several_writers.py 1.2.0 --budget 60m --runs 5000 --within-heartbeats --sharing prefer-writer

Runs are those of `marker-sim verify --sut hudi-java:VERSION --writers 3`, without making failures small.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from marker_sim.cli.request import parse_request
from marker_sim.outcome.failure import failures_in
from marker_sim.targets.jvm.hudi_java_writers import WriterRuns
from marker_sim.worlds.spark.hudi.java_driver import HEARTBEAT_OVER_MS
from marker_sim.worlds.spark.hudi.settings import shape_of, table_type, traits


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--budget", default="360s")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--runs", type=int, default=10**9, help="at most so many races")
    parser.add_argument("--within-heartbeats", action="store_true", help="no pause past a heartbeat")
    parser.add_argument("--sharing", default="", help="only races with these settings, such as prefer-writer")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as report:
        request = parse_request(
            argv=(), sut=f"hudi-java:{given.version}", mode="both", storage=None, budget=given.budget, seed=given.seed,
            guarantees=None, profile=None, expect=None, report=report, writers="3",
        )  # fmt: skip
        request = replace(request, report=Path(report))
        runs_of, broken_of = Counter[tuple[str, str]](), defaultdict[tuple[str, str], Counter[str]](Counter)
        with request.target.real_runs(request, lambda line: None) as runs:
            assert isinstance(runs, WriterRuns)
            while sum(runs_of.values()) < given.runs and (drawn := runs.draw({})) is not None:
                long = any(fault.settings.for_ms >= HEARTBEAT_OVER_MS for fault in drawn.plan.faults)
                if (given.within_heartbeats and long) or given.sharing not in ("", shape_of(drawn.plan).sharing):
                    continue
                played = runs.play(drawn)
                if played.interrupted or played.trouble or played.cut:
                    break
                broken = {
                    kind.guarantee for kind in failures_in(played.history, played.findings or (), request.profile)
                }
                runs.took(drawn, played, ())
                if given.within_heartbeats and broken:
                    print(f"broken: {sorted(broken)} by {drawn.plan!r}", flush=True)
                table = ", ".join(
                    (table_type(drawn.plan), *traits(drawn.plan)[: 1 if shape_of(drawn.plan).metadata else None])
                )
                runs_of[table, drawn.plan.mode] += 1
                broken_of[table, drawn.plan.mode].update(broken)
    print(f"| hudi-java:{given.version} | mode | runs | broken in |\n|---|---|---|---|")
    for (table, mode), number in sorted(runs_of.items()):
        words = ", ".join(f"{name} {times}" for name, times in sorted(broken_of[table, mode].items()))
        print(f"| {table} | {mode} | {number} | {words or 'none'} |")


if __name__ == "__main__":
    main()

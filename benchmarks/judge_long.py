"""`marker-sim judge` of one long history: seconds, events a second and peak memory, whole and in parts, in one run.

    PYTHONPATH=. python benchmarks/judge_long.py [--events 1000000 10000000] [--whole-max 1000000]

The history is made of recorded runs of the reference without faults, of operations and of writes, over and over with
tables and clients of their own and one server; every tenth block of them has a run of a mutant as well, whose breaches
must all be found. Each way of judging is a process of its own. `sets` judges the same file by differences of sets.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.report.columns import read_parquet
from marker_sim.scale.parts import judge_in_parts
from marker_sim.scale.set_judging import judge_history_by_sets
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System, reference
from marker_sim.worlds.simulated.cluster import Cluster
from properties.scale.composed import SERVER, write_repeated

RUNS = 12
ODD_EVERY = 10
MUTANT = "only-the-new-names"
COUNTED = "G3"


def make(path: Path, events: int) -> tuple[int, int]:
    """Write the history; how many events it has, and breaches of `COUNTED` that its odd runs have."""
    system: System = reference()
    made = (_run(system, number, writes) for number in range(4 * RUNS) for writes in (False, True))
    runs = list(islice(filter(_is_calm, made), RUNS))
    odd = _run(load_mutant(find_mutant(MUTANT)), 3, False)
    length, odd_ones = write_repeated(path, runs, odd, events, ODD_EVERY)
    return length, odd_ones * len(_of(judge(odd)))


def _run(system: System, number: int, writes: bool) -> History:
    plan = (make_write_plan if writes else make_plan)(number, "timeline", "s3")
    return Cluster(replace(plan, faults=()), system).run()


def _is_calm(run: History) -> bool:
    """Whether one server served a run, and nothing happened to anybody."""
    faults = [event.value for event in run.events if event.kind == "fault"]
    started = [event.process for event in run.events if event.operation == "started"]
    return faults == ["end-of-run"] and started == [SERVER]


def _of(findings: tuple[object, ...]) -> tuple[object, ...]:
    return next(each.breaches for each in findings if getattr(each, "guarantee", "") == COUNTED)  # type: ignore[attr-defined]


def contest(way: str, path: Path) -> None:
    """Judge in this process; print seconds, peak megabytes and breaches of `COUNTED` as JSON."""
    begun, cpu_s = time.perf_counter(), time.process_time()
    if way == "whole":
        found = len(_of(judge(read_parquet(path))))
    elif way == "parts":
        found = len(_of(judge_in_parts(path, None)[1]))
    else:
        judged = judge_history_by_sets(path, None)
        judged.findings(load_profile("reference"))
        found = sum(each.judged for each in judged.differences.values())
    taken_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": taken_s, "cpu_s": cpu_s, "peak_mb": peak_mb, "found": found}))


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--whole-max", type=int, default=1_000_000, help="no longer history is judged as a whole")
    parser.add_argument("--directory", default=None, help="where histories are made; the temporary one")
    parser.add_argument("--contest", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contest:
        contest(given.contest[0], Path(given.contest[1]))
        return
    print(f"{'way':7}{'events':>12}{'seconds':>9}{'CPU s':>8}{'events/s':>11}{'peak MB':>9}  found")
    for events in given.events:
        with tempfile.TemporaryDirectory(prefix="judge-long-", dir=given.directory) as scratch:
            path = Path(scratch) / "history.parquet"
            length, planted = make(path, events)
            for way in ("whole", "parts", "sets") if events <= given.whole_max else ("parts", "sets"):
                command = [sys.executable, __file__, "--contest", way, str(path)]
                told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                what = (
                    f"names, {COUNTED} is not theirs" if way == "sets" else f"breaches of {COUNTED}, planted {planted}"
                )
                seconds = told["seconds"]
                print(
                    f"{way:7}{length:12,}{seconds:9.1f}{told['cpu_s']:8.1f}{length / seconds:11,.0f}"
                    f"{told['peak_mb']:9,.0f}  {told['found']:,} {what}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

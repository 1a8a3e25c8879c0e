"""Every crash point of the listed schedules, and pairs of them: runs, seconds, violations with their shrunk plans.

Without `--full` pairs are sampled, about one in `--every` of them, and the last lines say so. `--shard k/n`
takes one of n pieces, for as many processes; `--after` goes on behind the cursor that an earlier run printed last.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict

from marker_sim.campaign.exhaustive import START, Cursor, Explored, ScheduleRow, Space, explore
from marker_sim.campaign.runs import fails_with
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import MODES, STORAGES
from marker_sim.search.schedules import NAMES
from marker_sim.search.shrinking.shrinker import shrink
from marker_sim.system import reference

SHRINK_S = 10.0


def table(explored: Explored, depth: int, schedules: bool) -> None:
    """Print one line for each combination, or for each schedule of each."""
    rows: dict[tuple[str, ...], ScheduleRow] = defaultdict(ScheduleRow)
    for (mode, storage, schedule, at), row in explored.rows.items():
        if at != depth:
            continue
        whole = rows[(mode, storage, schedule) if schedules else (mode, storage)]
        for name in ("points", "runs", "covered", "steps", "seconds", "violations"):
            setattr(whole, name, getattr(whole, name) + getattr(row, name))
        for name in ("points", "runs", "covered", "steps", "seconds", "violations"):
            setattr(rows["all",], name, getattr(rows["all",], name) + getattr(row, name))
    print(f"{'combination':40} {'points':>7} {'runs':>8} {'covered':>8} {'seconds':>8} {'violations':>10}")
    for key in sorted(rows, key=lambda key: (key == ("all",), key)):
        row = rows[key]
        print(
            f"{' '.join(key):40} {row.points:7} {row.runs:8} {row.covered:8} {row.seconds:8.1f} {row.violations:10}",
            flush=True,
        )


def search(space: Space, depth: int, arguments: argparse.Namespace) -> None:
    """One depth, as far as was asked for."""
    number, pieces = (int(part) for part in arguments.shard.split("/"))
    every = 1 if arguments.full or depth == 1 else arguments.every
    profile, began = load_profile("reference"), time.process_time()
    cases = space.cases(Cursor(*map(int, arguments.after.split("."))), (depth,), every, (number, pieces))
    explored = explore(space, cases, profile, seconds_max=arguments.seconds)
    table(explored, depth, arguments.schedules)
    runs = sum(row.runs for row in explored.rows.values())
    taken = time.process_time() - began
    bound = "all" if every == 1 else f"one in {every}"
    done = "to its end" if taken < arguments.seconds else "until the seconds were over"
    print(f"depth {depth}, {bound}, shard {arguments.shard}, {done}: {runs} runs, {taken:.0f} s of process time")
    print(f"last cursor {'.'.join(map(str, explored.last))}")
    for (guarantee, mode, storage), (case, breach) in explored.failures.items():
        print(f"VIOLATED {guarantee} {mode} on {storage}, {case.part.schedule.name}, {case.cursor}: {breach.message}")
        plan = shrink(case.plan, fails_with(guarantee, space.system, profile), budget_s=SHRINK_S)
        print(json.dumps(plan.to_dict(), ensure_ascii=False))


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", default="1,2", help="1 for single crashes, 2 for pairs")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--storages", default=",".join(STORAGES))
    parser.add_argument("--only", default=",".join(NAMES), help="which schedules")
    parser.add_argument("--schedules", action="store_true", help="a line for each schedule")
    parser.add_argument("--every", type=int, default=40, help="sample pairs: one in so many")
    parser.add_argument("--full", action="store_true", help="all pairs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of process time, at most, for each depth")
    parser.add_argument("--shard", default="0/1", help="k/n")
    parser.add_argument("--after", default=".".join(map(str, START)), help="a cursor")
    arguments = parser.parse_args()
    modes, storages, only = (tuple(text.split(",")) for text in (arguments.modes, arguments.storages, arguments.only))
    space = Space(reference(), modes, storages, only)
    print(f"{len(space.parts)} parts, {sum(map(len, space.points))} single crashes")
    print(f"not run, for markers fall back to direct ones there: {', '.join(space.fell_back) or 'nothing'}")
    for depth in map(int, arguments.depths.split(",")):
        search(space, depth, arguments)


if __name__ == "__main__":
    main()

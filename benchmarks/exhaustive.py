"""Every crash point of the listed schedules, and pairs of them: runs, seconds, violations with their shrunk plans.

Without `--full` pairs are sampled, about one in `--every` of them, and the last lines say so. `--shard k/n`
takes one of n pieces, for as many processes; `--after` goes on behind the number that an earlier run printed last.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from math import isqrt

from marker_sim.campaign.pieces import Piece, SearchSettings, explore
from marker_sim.campaign.simulated_failure import smaller
from marker_sim.campaign.sources.exhaustive import COVERED, NAMES, Case, Crashes, Part, Space
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import MODES, STORAGES
from marker_sim.system import reference

SHRINK_S = 10.0


COLUMNS = ("points", "runs", "covered", "seconds", "violations")


def table(rows: list[tuple[Part, Counter[str]]], schedules: bool) -> None:
    """Print one line for each combination, or for each schedule of each."""
    shown: dict[tuple[str, ...], Counter[str]] = {}
    for part, row in rows:
        for key in ((part.mode, part.storage, *([part.schedule.name] if schedules else [])), ("all",)):
            shown.setdefault(key, Counter()).update(row)
    print(f"{'combination':40} " + " ".join(f"{name:>10}" for name in COLUMNS))
    for key in sorted(shown, key=lambda key: (key == ("all",), key)):
        print(f"{' '.join(key):40} " + " ".join(f"{shown[key][name]:10}" for name in COLUMNS), flush=True)


def noted(cases: Iterator[Case], done: list[Case]) -> Iterator[Case]:
    """Cases as they are asked for."""
    for case in cases:
        done.append(case)
        yield case


def search(space: Space, depth: int, arguments: argparse.Namespace) -> None:
    """One depth, as far as was asked for."""
    number, pieces = (int(part) for part in arguments.shard.split("/"))
    every = 1 if arguments.full or depth == 1 else arguments.every
    profile, began = load_profile("reference"), time.process_time()
    settings = SearchSettings(places=(), seed=0, guarantees=None, profile=profile, listing=True)
    first = isqrt(every)
    begin, end = (depth - 1) * space.size, depth * space.size
    numbers = [each for each in range(begin, end)[number * first :: pieces * first] if each > arguments.after]
    last, rows = arguments.after, list[tuple[Part, Counter[str]]]()
    for part, cases in groupby(space.cases(numbers, every // first), key=lambda case: case.part):
        done, start = list[Case](), time.process_time()
        until = began + arguments.seconds
        source = Crashes(space, noted(cases, done))
        piece = Piece(settings=settings, first=0, count=sys.maxsize, until=until, clock=time.process_time)
        seen = explore(piece, source)
        seen.raise_error()
        row = Counter(
            points=len(space.points[space.parts.index(part)]),
            runs=seen.statistics.runs,
            covered=seen.statistics.reached.get(COVERED, 0),
            violations=sum(bool(row.broken) for row in seen.listed),
            seconds=round(time.process_time() - start),
        )
        rows.append((part, row))
        last = done[-1].place[0] if done else last
        for kind, failure in seen.found.items():
            print(f"VIOLATED {kind.guarantee} {kind.mode} on {kind.storage}, {part.schedule.name}: {failure.message}")
            small = smaller(kind, failure.own_plan, space.system, profile, SHRINK_S) or failure
            print(json.dumps(small.own_plan.to_dict(), ensure_ascii=False))
        if time.process_time() > until:
            break
    table(rows, arguments.schedules)
    taken, runs = time.process_time() - began, sum(row["runs"] for _, row in rows)
    bound = "all" if every == 1 else f"one in {every}"
    ended = "to its end" if taken < arguments.seconds else "until the seconds were over"
    print(f"depth {depth}, {bound}, shard {arguments.shard}, {ended}: {runs} runs, {taken:.0f} s of process time")
    print(f"last number {last}")


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
    parser.add_argument("--after", type=int, default=-1, help="a number")
    arguments = parser.parse_args()
    modes, storages, only = (tuple(text.split(",")) for text in (arguments.modes, arguments.storages, arguments.only))
    space = Space(reference(), modes, storages, only)
    print(f"{len(space.parts)} parts, {sum(map(len, space.points))} single crashes")
    left_out = [f"{m} on {s}" for m in modes for s in storages if (m, s) not in {part[:2] for part in space.parts}]
    print(f"not run, for markers fall back to direct ones there: {', '.join(left_out) or 'nothing'}")
    for depth in map(int, arguments.depths.split(",")):
        search(space, depth, arguments)


if __name__ == "__main__":
    main()

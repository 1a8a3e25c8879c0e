"""A sample of breaches over all judges and causes, to be read by eye: what each says beside what happened.

    python -m benchmarks.breaches --out FILE                       200 breaches of planted defects and faulty classes
    python -m benchmarks.breaches --out FILE --seed 7 --count 50   others

Every mutant, and the classes below, play a few plans of either generator; each breach is put under its guarantee and
cause, and the sample takes from these in turn until it has enough, so that rare causes are in it as well. Written is
each with its evidence, what storage did to the marker it is about, and what properties/judges/sentences.py holds
against it. Printed is how many of all breaches that were found say something untrue, by guarantee.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.history import History
from marker_sim.judges import Breach, judge
from marker_sim.loading import load_system
from marker_sim.system import System
from properties.faces.campaign import COMBINATIONS, execute, findings_of, swarm_of
from properties.faces.judges import format_event
from properties.faces.mutants import MUTANTS, load_mutant
from properties.faces.report import brief
from properties.faces.search import make_plan, make_write_plan
from properties.judges.sentences import create_of, life, untrue
from properties.mutant_turns import FIRST_TURNS, SEARCH

_OF_STRANGERS = "scenarios.strangers.faulty_memory"
CLASSES = (
    *(f"{_OF_STRANGERS}:{name}" for name in ("StripsLines", "BucketIsThere", "ListingKept", "AppendAnywhere")),
    *(f"properties.judges.forgetful_stores:{name}" for name in ("TakesNeighbours", "Forgets", "NeverStores")),
)
OF_A_GROUP = 40
OF_A_GUARANTEE = 6


class Sampled(NamedTuple):
    """One breach with where it is from."""

    source: str
    guarantee: str
    history: History
    breach: Breach


def found(seed: int, plans: int) -> Iterator[Sampled]:
    """Breaches of all mutants and classes, in a few plans each."""
    for mutant in MUTANTS:
        system = load_mutant(mutant)
        turn = FIRST_TURNS.get(mutant.name)
        if turn is not None:
            history, findings = findings_of(swarm_of(mutant, system, SEARCH).plan(turn), system, mutant.kills)
            for finding in findings:
                yield from (Sampled(mutant.name, finding.guarantee, history, each) for each in finding.breaches)
        yield from _of(mutant.name, system, seed, plans)
    for name in CLASSES:
        yield from _of(name, load_system(name), seed, 4 * plans)


def _of(name: str, system: System, seed: int, plans: int) -> Iterator[Sampled]:
    for number in range(seed * plans, (seed + 1) * plans):
        for mode, storage in COMBINATIONS:
            for make in (make_plan, make_write_plan):
                try:
                    history, _ = execute(make(number, mode, storage), system)
                except HarnessError:
                    continue  # A class need not run everywhere.
                for finding in judge(history):
                    yield from (Sampled(name, finding.guarantee, history, each) for each in finding.breaches)


def drawn(groups: dict[tuple[str, str], list[Sampled]], count: int, seed: int) -> list[Sampled]:
    """So many: the first few of each guarantee, then from each guarantee and cause in turn."""
    luck = random.Random(seed)
    for _, group in sorted(groups.items()):
        luck.shuffle(group)
    in_turn: list[Sampled] = []
    while any(groups.values()):
        in_turn += [group.pop() for _, group in sorted(groups.items()) if group]
    met, first, rest = Counter[str](), list[Sampled](), list[Sampled]()
    for each in in_turn:
        met[each.guarantee] += 1
        (first if met[each.guarantee] <= OF_A_GUARANTEE else rest).append(each)
    return sorted([*first, *rest][:count], key=lambda each: (int(each.guarantee[1:]), each.breach.cause, each.source))


def told(number: int, each: Sampled) -> str:
    """One breach as text."""
    history, breach = each.history, each.breach
    plan = history.header
    lines = [
        f"## {number} {each.guarantee} {breach.cause} under {breach.under}: {each.source}, {plan.mode} {plan.storage}",
        f"   {brief(breach.message)}",
        *(f"   {brief(format_event(history.events[index]))[:330]}" for index in breach.evidence),
    ]
    about = create_of(history, breach)
    if about:
        lines += [f"   storage: {list(life(history, *about))[:8]}"]
        where = about[0].partition("/.hoodie/.temp/")[::2]
        other = [e for e in history.events if e.operation == "delete" and (e.table, e.instant) == where]
        lines += [f"   deletions: {[(e.index, e.kind) for e in other][:8]}"]
    faults = [(e.index, e.operation, e.process) for e in history.events if e.kind == "fault"]
    return "\n".join([*lines, f"   faults: {faults[:9]}", *(f"   UNTRUE {claim}" for claim in untrue(history, breach))])


def main() -> int:
    """Draw, write, count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plans", type=int, default=1)
    given = parser.parse_args()
    luck = random.Random(given.seed)
    groups: dict[tuple[str, str], list[Sampled]] = {}
    seen, wrong = Counter[str](), Counter[str]()
    for each in found(given.seed, given.plans):
        seen[each.guarantee] += 1
        wrong[each.guarantee] += bool(untrue(each.history, each.breach))
        group = groups.setdefault((each.guarantee, each.breach.cause), [])
        if len(group) < OF_A_GROUP:
            group.append(each)
        elif luck.random() < OF_A_GROUP / seen[each.guarantee]:
            group[luck.randrange(OF_A_GROUP)] = each
    sample = drawn(groups, given.count, given.seed)
    given.out.write_text("\n".join(told(number, each) for number, each in enumerate(sample, 1)) + "\n", "utf-8")
    for guarantee in sorted(seen, key=lambda name: int(name[1:])):
        print(f"{guarantee:4} {wrong[guarantee]:6} of {seen[guarantee]:6} say something untrue")
    print(f"{wrong.total()} of {seen.total()}; {len(sample)} written to {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

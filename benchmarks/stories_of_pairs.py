"""Whether stories tell planted defects apart, and whether a baseline knows its class again: mutants in one class.

python benchmarks/stories_of_pairs.py [--sets NAME+NAME,NAME] [--runs 700] [--seeds 1,2]
python benchmarks/stories_of_pairs.py --baselines [--sets NAME+NAME,NAME] [--further NAME] [--runs 500] [--seeds 1,2]
python benchmarks/stories_of_pairs.py --often [--sets NAME,NAME] [--runs 300] [--seeds 1]

A defect is seen when a stored plan of a campaign breaks its guarantee on the class with this defect alone as well. It
is told when such a plan represents a story, and swallowed otherwise. With --baselines the first seed writes a baseline,
and the campaigns of the others are held against it; with --further they are of the class with one more defect, which
is new where an unexpected violation is of a plan that breaks its guarantee on the class with that defect alone.

--often looks at one rule: a guarantee and cause that `OFTEN` runs break and as many runs before did not is new. The
runs of each mutant are split into halves, again and again; the rule is wrong where one half has something new for the
other one. A further defect is there where a half has at least `OFTEN` runs of another mutant's violations as well (of
the same plans), and it is seen where something is new then. Masked violations are not looked at.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, permutations
from pathlib import Path

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.runs import findings_of, promised_breach
from marker_sim.judges.baselines.baseline import Known, known_as
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.outcome.failure import Failure, defects_least
from marker_sim.plan import MODES, STORAGES
from marker_sim.report.verdict import OFTEN, VerdictOutcome, judge_campaign
from marker_sim.system import System
from marker_sim.targets.python import OF_REFERENCE, LoadedTarget
from marker_sim.targets.target import CampaignRequest

PROFILE = load_profile("reference")
HALVES = 40  # Ways to split the runs of a mutant.
# Mutants that some hundred plans detect.
FOUND_SOON = [
    "ack-before-flush",
    "short-list",
    "direct-flat",
    "failed-listing-is-empty",
    "huge-batch-cut",
    "exists-from-memory",
    "only-the-new-names",
    "two-creators",
    "exists-while-flushing",
    "rewritten-in-place",
    "delete-forgets-one",
    "ghost-put",
    "typed-for-ever",
    "file-for-every-batch",
    "lower-case",
    "stripped-names",
    "direct-fire-and-forget",
    "unknown-outcome-is-created",
    "conflict-is-success",
    "resend-told-exists",
    "list-fails-during-creates",
    "no-reconcile",
    "merge-forgets-rows",
    "read-error-is-empty",
    "nothing-swept",
    "prefix-deletes-neighbour",
    "memory-outlives-deletion",
    "first-directory-only",
    "exists-though-made-now",
    "parent-directories-accepted",
]


def drawn() -> list[str]:
    """14 pairs, 8 triples and 10 single defects, always the same."""
    generator = random.Random(52)
    return [
        "+".join(generator.sample(FOUND_SOON, size)) for size, count in ((2, 14), (3, 8), (1, 10)) for _ in range(count)
    ]


def judged(system: System, seed: int, runs: int, baseline: frozenset[Known] | None = None) -> VerdictOutcome:
    """A campaign of so many runs in every place, held against a baseline."""
    request = CampaignRequest(
        target=LoadedTarget(sut=system.name, system=system, can=OF_REFERENCE), modes=MODES, storages=STORAGES,
        seed=seed, profile=PROFILE, budget_s=math.inf, runs=runs, jobs=1, canaries=False, baseline=baseline,
    )  # fmt: skip
    return judge_campaign(run_campaign(request, lambda _: None), PROFILE, baseline, Path("report"), ("verify",))


def behind(failure: Failure, alone: dict[str, System]) -> set[str]:
    """The defects that break its guarantee by its plan when each is alone."""
    plan, guarantee = failure.own_plan, failure.guarantee
    return {
        name
        for name, system in alone.items()
        if any(promised_breach(each, plan, PROFILE) for each in findings_of(plan, system, guarantee)[1])
    }


def tell(sets: Iterable[str], seeds: Sequence[int], runs: int) -> None:
    """Print for each campaign its defects, stories and number, and at the end how often these are right."""
    campaigns = right = least_true = sure_said = sure_right = seen_all = swallowed = 0
    for names in sets:
        mutants = [find_mutant(name) for name in names.split("+")]
        system, alone = load_mutant(*mutants), {each.name: load_mutant(each) for each in mutants}
        for seed in seeds:
            began = time.monotonic()
            outcome = judged(system, seed, runs)
            led = [behind(story[0], alone) for story in outcome.stories]
            told = set[str]().union(*led)
            seen = told.union(*(behind(each, alone) for each in outcome.failures if told != alone.keys()))
            if not seen:
                continue
            least, sure = defects_least(outcome.stories)
            said = f"{'most likely' if sure else 'at least'} {least}"
            campaigns += 1
            right += len(led) == len(seen)
            least_true += least <= len(seen)
            sure_said += sure
            sure_right += sure and least == len(seen)
            seen_all += len(seen)
            swallowed += len(seen - told)
            lost = f", swallowed {', '.join(sorted(seen - told))}" if seen - told else ""
            print(
                f"{names} seed {seed}: {len(seen)} defects, {len(led)} stories, {said}{lost} "
                f"({time.monotonic() - began:.0f} s)", flush=True,
            )  # fmt: skip
    print(
        f"{campaigns} campaigns: as many stories as defects in {right}; 'at least' true in {least_true}; 'most likely' "
        f"said in {sure_said}, right in {sure_right}; {swallowed} of {seen_all} defects swallowed"
    )


def hold(sets: Iterable[str], seeds: Sequence[int], runs: int, further: str) -> None:
    """Print for each class in how many campaigns nothing is new, or a further defect is."""
    for names in sets:
        mutants = [find_mutant(name) for name in names.split("+")]
        first = judged(load_mutant(*mutants), seeds[0], runs)
        baseline = frozenset(known_as(each.guarantee, each.kind.cause, runs) for each in first.failures)
        more = [find_mutant(further)] if further else []
        system, alone = load_mutant(*mutants, *more), {each.name: load_mutant(each) for each in more}
        right = shown = 0
        for seed in seeds[1:]:
            outcome = judged(system, seed, runs, baseline)
            assert outcome.differences is not None
            new = {known.kind for known in outcome.differences.unexpected}
            by_it = [each for each in outcome.failures if each.kind in new and behind(each, alone)]
            right += bool(by_it) if further else not new
            shown += bool(by_it) or any(behind(each, alone) for each in outcome.failures)
            words = sorted({f"{known[0]} {known[3]}" for known in new})
            others = len({known.kind[::3] for known in outcome.differences.explained})
            print(f"{system.name} seed {seed}: new {words}, {others} others explained", flush=True)
        what = f"{further} was seen in {shown}, and new" if further else "nothing was new"
        print(f"{names}: {len(baseline)} entries; {what} in {right} of {len(seeds) - 1} campaigns", flush=True)


def broken_by_runs(name: str, seed: int, runs: int) -> list[frozenset[tuple[str, str]]]:
    """The guarantees and causes that each run of a mutant breaks, in the order of the plans; pairs of modes aside."""
    request = CampaignRequest(
        target=LoadedTarget(sut=name, system=load_mutant(find_mutant(name)), can=OF_REFERENCE), modes=MODES,
        storages=STORAGES, seed=seed, profile=PROFILE, budget_s=math.inf, runs=runs, jobs=1, canaries=False,
        shrinking=False, listing=True,
    )  # fmt: skip
    listed = sorted(run_campaign(request, lambda _: None).listed, key=lambda row: (row.number, row.run))
    return [frozenset((guarantee, cause) for guarantee, cause, *_ in row.broken) for row in listed]


def fresh(before: Sequence[frozenset[tuple[str, str]]], now: Iterable[frozenset[tuple[str, str]]]) -> bool:
    """Whether something is seen often now that was never seen before."""
    seen = frozenset[tuple[str, str]]().union(*before)
    return any(count >= OFTEN for found, count in Counter(chain(*now)).items() if found not in seen)


def frequencies(names: Sequence[str], seed: int, runs: int) -> None:
    """Print how often halves of one mutant's runs differ, and how often another mutant beside it is seen."""
    broken = {name: broken_by_runs(name, seed, runs) for name in names}
    broken = {name: found for name, found in broken.items() if any(found)}
    drawn, wrong, seen, shown = random.Random(5), 0, 0, 0
    for found in broken.values():
        for _ in range(HALVES):
            order = drawn.sample(found, len(found))
            wrong += fresh(order[::2], order[1::2])
    for (_, one), (_, other) in permutations(broken.items(), 2):
        both = list(zip(one, other, strict=False))
        drawn.shuffle(both)
        if sum(bool(more) for _, more in both[1::2]) >= OFTEN:
            shown += 1
            seen += fresh([found for found, _ in both[::2]], (found | more for found, more in both[1::2]))
    halves = HALVES * len(broken)
    print(f"{len(broken)} of {len(names)} mutants broke something in {runs} runs of seed {seed}")
    print(f"something was new in {wrong} of {halves} halves of one mutant ({100 * wrong / halves:.1f} %)")
    print(f"a further mutant that {OFTEN} runs show was new in {seen} of {shown}")


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="", help="names of mutants, joined by +, with commas")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--runs", type=int, default=700)
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--often", action="store_true")
    parser.add_argument("--further", default="", help="a mutant that the baseline does not know")
    given = parser.parse_args()
    sets, seeds = given.sets.split(",") if given.sets else drawn(), [int(seed) for seed in given.seeds.split(",")]
    if given.often:
        frequencies(sets if given.sets else FOUND_SOON, seeds[0], given.runs)
    elif given.baselines:
        hold(sets, seeds, given.runs, given.further)
    else:
        tell(sets, seeds, given.runs)


if __name__ == "__main__":
    main()

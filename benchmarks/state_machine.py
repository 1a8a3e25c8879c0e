"""The state machine of the write path on every mode and storage: examples, steps, rules, faults, deaths, violations.

    python benchmarks/state_machine.py --examples 500                what the reference survives
    python benchmarks/state_machine.py --examples 500 --mutants      how many examples each planted fault lives

The first fails when a promise broke, when a rule never ran or when a kind of fault never happened. The second goes
round the places in slices, so that no mutant is hunted on one storage alone; its guarantee is judged alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import Phase

from marker_sim.campaign.hunts import COMBINATIONS
from marker_sim.campaign.machines.machine import SeenExamples, attack, machine_for
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.faults import FaultKind
from marker_sim.judges.violations import GuaranteeViolation
from marker_sim.loading import load_system
from marker_sim.mutants.load import MUTANTS, load_mutant
from marker_sim.search.seeds import plan_seed
from properties.rules import declared

PLACES = tuple((mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local", "hdfs"))
SLICE = 25


def survive(sut: str, examples: int, chaos_seed: int | None, plans: Path) -> bool:
    """Run the machine everywhere and print what it did; whether all went as it should."""
    fine, total, began, violations = True, SeenExamples(), time.perf_counter(), 0
    for mode, storage in PLACES:
        machine = machine_for(WritePathMachine, load_system(sut), mode, storage, plans=plans, chaos_seed=chaos_seed)
        start = time.perf_counter()
        try:
            attack(machine, max_examples=examples, database=None)
        except GuaranteeViolation as broken:
            print(broken)
        seconds = time.perf_counter() - start
        fine &= show(machine, seconds)
        for name in ("examples", "writes", "steps", "compared"):
            setattr(total, name, getattr(total, name) + getattr(machine.seen, name))
        violations += len(machine.seen.judged.found)
    print(
        f"\nall places: {total.examples} examples, {total.writes:,} writes, {total.steps:,} steps,"
        f" {total.compared} plans run again at once, {violations} violations,"
        f" {time.perf_counter() - began:.0f} s"
    )
    return fine


def show(machine: type[WritePathMachine], seconds: float) -> bool:
    """Print one place; whether nothing broke and nothing that can happen was missing."""
    seen, rules, counts = machine.seen, declared(machine), machine.seen.judged.statistics
    kinds = [kind.value for kind in FaultKind if machine.can(kind)]
    missing = [name for name in rules if not seen.rules[name]] + [k for k in kinds if not counts.faults.get(k)]
    print(
        f"\n{machine.mode} on {machine.storage}: {seen.examples} examples, {seen.writes:,} writes, {seen.steps:,} steps"
        f" of the world, {seconds:.1f} s, {seen.examples / seconds:.0f} examples/s; {seen.compared} plans run again at"
        f" once; {len(seen.judged.found)} violations"
    )
    print(f"  rules   {listed({name: seen.rules[name] for name in rules})}")
    print(f"  faults  {listed({kind: counts.faults.get(kind, 0) for kind in kinds})}")
    driver = {phase: n for phase, n in counts.phases_of("kill").items() if phase.startswith("driver")}
    print(f"  driver killed in  {listed(driver)}")
    ended = {f"{name} {how}": n for name, ways in counts.operations.items() for how, n in ways.items()}
    print(f"  operations  {listed({name: n for name, n in ended.items() if name.split()[0] in WRITE_OPERATIONS})}")
    rows = counts.rows(machine.profile)
    print(f"  judged  {listed({row.id: row.judged for row in rows})}")
    unpromised = {row.id: row.violations for row in rows if row.verdict != "violated"}
    print(f"  broken without a promise  {listed(unpromised) or 'none'}")
    if missing:
        print(f"  NEVER HAPPENED  {', '.join(missing)}")
    return not missing and not seen.judged.found


WRITE_OPERATIONS = ("attempt", "begin", "finalize", "commit", "rollback", "sweep", "delete")


def listed(counts: dict[str, int]) -> str:
    """Most frequent first."""
    return ", ".join(
        f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])) if count
    )


def hunt(examples: int, chaos_seed: int, plans: Path) -> None:
    """For each mutant the number of examples until its own guarantee is broken."""
    survivors = []
    print(f"{'mutant':32} {'by':4} {'examples':>8} {'seconds':>8}  place")
    for mutant in MUTANTS:
        if mutant.kills == "G21":
            continue  # Judged over a pair of runs, which the machine does not make.
        system, spent, start, place = load_mutant(mutant), 0, time.perf_counter(), ""
        for turn in range(-(-examples // (SLICE * len(COMBINATIONS)))):
            for mode, storage in COMBINATIONS:
                machine = machine_for(
                    WritePathMachine,
                    system,
                    mode,
                    storage,
                    plans=plans,
                    guarantees=frozenset({mutant.kills}),
                    chaos_seed=plan_seed(chaos_seed, turn),
                )
                try:
                    attack(machine, max_examples=SLICE, database=None, phases=[Phase.generate])
                except GuaranteeViolation:
                    place = f"{mode} on {storage}"
                spent += machine.seen.examples
                if place:
                    break
            if place:
                break
        survivors += [] if place else [mutant.name]
        seconds = time.perf_counter() - start
        print(f"{mutant.name:32} {mutant.kills:4} {spent:8} {seconds:8.1f}  {place or 'survived'}", flush=True)
    print(f"{len(survivors)} survived: {', '.join(survivors) or 'none'}")


def main() -> int:
    """Parse the command line and print the figures; 1 when something broke or did not happen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=300, help="for each place, or for each mutant")
    parser.add_argument("--sut", default="reference", help="package.module:factory, reference or mutant:NAME")
    parser.add_argument("--seed", type=int, default=0, help="where Hypothesis starts")
    parser.add_argument("--mutants", action="store_true", help="hunt the mutants instead")
    given = parser.parse_args()
    with TemporaryDirectory() as plans:
        if given.mutants:
            hunt(given.examples, given.seed, Path(plans))
            return 0
        return 0 if survive(given.sut, given.examples, given.seed, Path(plans)) else 1


if __name__ == "__main__":
    sys.exit(main())

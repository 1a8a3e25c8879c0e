"""Where canaries may be let go: in how many plans of a campaign's mix each mutant is caught, by mode and storage.

python benchmarks/mutant_kills.py [--only NAME,...] [--starts 6] [--plans 25]

`marker-sim mutants` is the command for everything else that is known of a mutant.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from marker_sim.campaign.runs import findings_of, promised_breach
from marker_sim.campaign.sources.swarm import WRITES_EVERY
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants import Mutant
from marker_sim.mutants.load import MUTANTS, load_mutant
from marker_sim.plan import MODES, STORAGES
from marker_sim.search.seeds import plan_seed
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System


def plans_needed(mutant: Mutant, system: System, mode: str, storage: str, search: int, plans_max: int) -> int:
    """How many plans of the mix until its guarantee is broken, 0 when more than `plans_max`."""
    profile = load_profile("reference")
    for turn in range(plans_max):
        make = make_write_plan if turn % WRITES_EVERY == 1 else make_plan
        plan = make(plan_seed(search, turn), mode, storage)
        if any(promised_breach(finding, plan, profile) for finding in findings_of(plan, system, mutant.kills)[1]):
            return turn + 1
    return 0


def show(mutants: Sequence[Mutant], starts: int, plans_max: int) -> None:
    """Print, for each mutant, the places where every start caught it, with the worst number of plans."""
    for mutant in mutants:
        system, homes = load_mutant(mutant), []
        for mode in MODES:
            for storage in STORAGES:
                worst = 0
                for start in range(starts):
                    needed = plans_needed(mutant, system, mode, storage, start, plans_max)
                    worst = max(worst, needed)
                    if not needed:
                        break
                else:
                    homes.append(f"{mode}/{storage} {worst}")
        print(f"{mutant.name:34} {mutant.kills:4} {', '.join(homes) or '-'}", flush=True)


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of mutants, with commas")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--plans", type=int, default=25)
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    show([mutant for mutant in MUTANTS if not names or mutant.name in names], given.starts, given.plans)


if __name__ == "__main__":
    main()

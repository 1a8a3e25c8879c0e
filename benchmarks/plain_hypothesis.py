"""How many mutants a plain Hypothesis state machine sees, beside the swarm: create, list, exists and delete, no faults.

The machine is what one would write without this kit: one client, one directory, a Python set as the model, and each
answer compared with it. It is given more than most would have: the kit's list of odd partition names, both modes, two
storages. What it does not have are faults, a second client or server, a look at storage, and judges.
"""

from __future__ import annotations

import argparse
import statistics
import time

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from marker_sim.campaign.hunts import Limit, swarm
from marker_sim.mutants.load import MUTANTS, load_mutant
from marker_sim.plan import Op, Plan
from marker_sim.system import System, reference
from marker_sim.unusual_names import PARTITIONS
from marker_sim.worlds.simulated.cluster import Cluster

PLACES = (("timeline", "s3"), ("timeline", "local"), ("direct", "s3"))
STEPS = 20


def machine(system: System, mode: str, storage: str) -> type[RuleBasedStateMachine]:
    """The state machine for one place."""

    class Plain(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.cluster = Cluster(Plan(mode=mode, storage=storage), system)
            self.cluster.begin()
            self.model: set[str] = set()

        def ask(self, kind: str, name: str = "") -> object:
            self.cluster.clients.play((Op(actor="driver", kind=kind, name=name),))
            events = reversed(self.cluster.scheduler.events)
            ended = next(event for event in events if event.operation == kind and event.kind != "invoke")
            assert ended.kind == "ok", ended
            return ended.value

        @rule(partition=st.sampled_from(PARTITIONS), file=st.integers(0, 3))
        def create(self, partition: str, file: int) -> None:
            name = f"{partition}/f{file}.parquet.marker.CREATE" if partition else f"f{file}.parquet.marker.CREATE"
            assert self.ask("create", name) == ("exists" if name in self.model else "created")
            self.model.add(name)

        @rule()
        def listing(self) -> None:
            shown = self.ask("list")
            assert isinstance(shown, tuple) and sorted(shown) == sorted(self.model)

        @rule()
        def exists(self) -> None:
            assert self.ask("exists") == bool(self.model)

        @rule()
        def delete(self) -> None:
            self.ask("delete")
            self.model.clear()

        def teardown(self) -> None:
            self.cluster.scheduler.close()

    return Plain


def sees(system: System, examples: int) -> bool:
    """Whether an answer differs from the model's in any place."""
    for number, place in enumerate(PLACES):
        try:
            run_state_machine_as_test(
                seed(number)(machine(system, *place)),
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=STEPS,
                    database=None,
                    deadline=None,
                    phases=[Phase.generate],
                    verbosity=Verbosity.quiet,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except Exception:  # An answer that differs, or an error of the mutant: both would be seen.
            return True
    return False


def main() -> None:
    """Parse the command line, hunt the mutants of the marker store both ways, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=50, help=f"of {STEPS} steps, for each mutant and place")
    parser.add_argument("--every", type=int, default=1, help="one mutant in so many")
    given = parser.parse_args()
    assert not sees(reference(), given.examples), "the machine accuses the reference"
    seen, seconds, caught, swarms = [], [], 0, []
    of_store = [mutant for mutant in MUTANTS if not mutant.of_writes]
    hunted = of_store[:: given.every]
    for mutant in hunted:
        system = load_mutant(mutant)
        began = time.process_time()
        seen += [mutant.name] if sees(system, given.examples) else []
        seconds.append(time.process_time() - began)
        found = swarm(mutant, system, 1, Limit(10.0))
        caught += found.failure is not None
        swarms.append(found.seconds)
    left_out = len(MUTANTS) - len(of_store)
    print(f"{len(hunted)} of {len(of_store)} mutants of the marker store; {left_out} of the write path left out")
    print(f"plain Hypothesis: {len(seen)} seen; {statistics.median(seconds):.2f} s each, {sum(seconds):.0f} s in all")
    print(f"swarm:            {caught} seen; {statistics.median(swarms):.2f} s each, {sum(swarms):.0f} s in all")
    print(f"seen by plain Hypothesis: {', '.join(seen)}")


if __name__ == "__main__":
    main()

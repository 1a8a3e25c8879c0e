"""Judged steps per second on one core: the swarm as `verify` runs it, its parts, and Hypothesis alone, in one run.

A step is one call through a seam. All take turns in slices, so that a slow moment of the machine hits all. Times are
those of the process. How it grows is shown by plans of creates alone, without faults, with latencies that differ.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.judges import judge
from marker_sim.plan import Op, Plan
from marker_sim.system import reference
from marker_sim.unusual_names import PARTITIONS
from properties.faces.campaign import WRITES_EVERY
from properties.faces.search import make_plan, make_write_plan
from properties.faces.worlds import Cluster
from properties.two_numbers import settings_of

COMBINATIONS = (("timeline", "s3"), ("direct", "s3"), ("timeline", "local"), ("direct", "local"))

# Judged or not; all plans of writes, none, or the mixture of `marker-sim verify`.
SWARMS: dict[str, tuple[bool, bool | None]] = {
    "swarm, judged": (True, None),
    "swarm, not judged": (False, None),
    "only writes, judged": (True, True),
    "no writes, judged": (True, False),
}


class Counter:
    """Steps and seconds of one contestant."""

    def __init__(self) -> None:
        self.steps = 0
        self.seconds = 0.0
        self.rates: list[float] = []

    def add(self, steps: int, seconds: float) -> None:
        self.steps += steps
        self.seconds += seconds
        self.rates.append(steps / seconds)


def swarm_slice(
    first: int, runs: int, judged: bool, every_write: bool | None = None
) -> tuple[int, list[int], list[int]]:
    """Run `runs` plans; total steps, steps and fired faults of each. every_write: all or no plan is one of writes,
    None for the mixture of `marker-sim verify`.
    """
    steps, faults = [], []
    for number in range(first, first + runs):
        mode, storage = COMBINATIONS[number % len(COMBINATIONS)]
        turn = number // len(COMBINATIONS)
        writes = every_write or (every_write is None and turn % WRITES_EVERY == 1)
        make = make_write_plan if writes else make_plan
        cluster = Cluster(make(turn, mode, storage), reference())
        history = cluster.run()
        if judged:
            findings = judge(history)
            assert not any(f.breaches for f in findings if f.guarantee != "G20"), (turn, mode, storage)
        steps.append(cluster.scheduler.steps)
        faults.append(sum(e.kind == "fault" and e.value not in ("end", "end-of-run") for e in history.events))
    return sum(steps), steps, faults


class Machine(RuleBasedStateMachine):
    """The same model with every choice made by Hypothesis, rule by rule."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(Plan(directories=("t/.hoodie/.temp/001",)), reference())
        self.cluster.begin()
        self.number = 0

    def act(self, kind: str, name: str = "") -> None:
        self.number += 1
        op = Op(actor=f"executor-{self.number % 3}", kind=kind, name=name, request=f"r{self.number}")
        self.cluster.clients.play((op,))

    @rule(partition=st.sampled_from(PARTITIONS), file=st.integers(0, 20))
    def create(self, partition: str, file: int) -> None:
        self.act("create", f"{partition}/f{file}.marker.CREATE" if partition else f"f{file}.marker.CREATE")

    @rule()
    def list(self) -> None:
        self.act("list")

    @precondition(lambda self: self.number > 3)
    @rule()
    def delete(self) -> None:
        self.act("delete")

    @rule(after=st.integers(1, 30), kind=st.sampled_from([FaultKind.KILL, FaultKind.THROTTLED, FaultKind.PAUSE]))
    def fault(self, after: int, kind: FaultKind) -> None:
        state = self.cluster.host.actor("server")
        settings = settings_of(kind, 50, 1)
        state.expect(Fault(kind=kind, target="server", trigger=Step(state.steps + after), settings=settings))

    def teardown(self) -> None:
        self.cluster.end()
        self.cluster.scheduler.close()
        Machine.steps += self.cluster.scheduler.steps
        assert not any(finding.breaches for finding in judge(self.cluster.history()))


def hypothesis_slice(examples: int) -> int:
    """Run the machine; steps made."""
    Machine.steps = 0
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return Machine.steps


def creates(mode: str, files: int, actors: int) -> Plan:
    """A plan of nothing but creates on s3, shared evenly by its clients; the server has its default 20 threads."""
    ops = tuple(
        Op(
            actor=f"executor-{number % actors}",
            kind="create",
            name=f"dt={number % 7}/f{number}.parquet.marker.CREATE",
            request=f"r{number}",
        )
        for number in range(files)
    )
    return Plan(mode=mode, ops=ops, num_threads=20, jitter=7)


def growth() -> None:
    """Print steps a second, microseconds a step and a file, and bytes written a file, by files and by actors.

    A marker file is rewritten with each of its batches, so the bytes of one directory are quadratic in its files.
    """
    gc.disable()
    print(
        f"{'mode':9}{'files':>7}{'actors':>7}{'steps':>8}{'bare/s':>9}{'judged/s':>9}{'us/step':>8}{'+ judge':>8}",
        end="",
    )
    print(f"{'us/file':>9}{'B/file':>8}")
    shapes = [(files, 8) for files in (10, 100, 1_000, 10_000)] + [(1_280, actors) for actors in (2, 8, 32, 128)]
    for mode in ("direct", "timeline"):
        for files, actors in shapes:
            plan = creates(mode, files, actors)
            steps, bare, judging = 0, 0.0, 0.0
            for _ in range(max(1, 2_000 // files)):
                start = time.process_time()
                cluster = Cluster(plan, reference())
                history = cluster.run()
                ran = time.process_time()
                assert not any(finding.breaches for finding in judge(history)), (mode, files, actors)
                bare += ran - start
                judging += time.process_time() - ran
                steps += cluster.scheduler.steps
            runs = max(1, 2_000 // files)
            size = sum(len(event.value) for event in history.events if isinstance(event.value, bytes))
            print(
                f"{mode:9}{files:7}{actors:7}{steps // runs:8}{steps / bare:9,.0f}{steps / (bare + judging):9,.0f}",
                end="",
            )
            print(f"{bare / steps * 1e6:8.2f}{judging / steps * 1e6:8.2f}", end="")
            print(f"{(bare + judging) / runs / files * 1e6:9.1f}{size / files:8,.0f}", flush=True)
            gc.collect()


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long, over all contestants")
    parser.add_argument("--growth", action="store_true", help="only how it grows with files and actors")
    arguments = parser.parse_args()
    if arguments.growth:
        growth()
        return
    seconds: float = arguments.seconds
    contestants = {name: Counter() for name in (*SWARMS, "Hypothesis alone")}
    all_steps: list[int] = []
    all_faults: list[int] = []
    first, began = 0, time.process_time()
    gc.disable()
    while time.process_time() - began < seconds:
        for name, counter in contestants.items():
            gc.collect()
            start = time.process_time()
            if name == "Hypothesis alone":
                steps = hypothesis_slice(20)
            else:
                judged, every_write = SWARMS[name]
                steps, each, faults = swarm_slice(first, 120, judged, every_write)
                if name == "swarm, judged":
                    all_steps += each
                    all_faults += faults
            counter.add(steps, time.process_time() - start)
        first += 120
    for name, counter in contestants.items():
        spread = f"{min(counter.rates):,.0f} to {max(counter.rates):,.0f}"
        print(f"{name:20} {counter.steps / counter.seconds:>10,.0f} steps/s   slices {spread}")
    ratio = contestants["swarm, judged"].steps / contestants["swarm, judged"].seconds
    ratio /= contestants["Hypothesis alone"].steps / contestants["Hypothesis alone"].seconds
    print(f"swarm, judged : Hypothesis alone = {ratio:.1f}")
    print(f"a run: median {statistics.median(all_steps):.0f} steps, {statistics.median(all_faults):.0f} fired faults")


if __name__ == "__main__":
    main()

"""Our timeline server under load, killed again and again, at exact storage effects and at random moments: what is lost.

Clients create markers with unique names; the server is killed by SIGKILL before or after a drawn effect of its own (a
marker file or a type file), or whenever a random time is over, and started again at once on the same storage. In the
end every name that was ever answered must be stored, and every judge must be content.

    python benchmarks/server_kills.py --kills 100 --storage local --storage s3 --seed 7
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from dataclasses import replace

from marker_sim.faults import Call, Fault, FaultKind, Step, When
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.names import stored_names
from marker_sim.plan import Op, Plan
from marker_sim.search.seeds import plan_seed
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.fork_server import ForkServer

DIRECTORIES = ("t/.hoodie/.temp/001", "lake/größe tafel/.hoodie/.temp/002")
CLIENTS = 6
CREATES = 200
EFFECTS_BETWEEN = (2, 15)
SECONDS_BETWEEN = (0.1, 1.0)
AT_RANDOM = "at-random"
MUST_BE_JUDGED = ("G1", "G3", "G4", "G6")
ANSWER_S = 20.0


class Round:
    """One run: how it went and what it cost."""

    def __init__(self, storage: str, seed: int, kills: int, fork_server: ForkServer) -> None:
        rng = random.Random(f"{storage} {seed}")
        plan = Plan(
            storage=storage,
            directories=DIRECTORIES,
            num_threads=rng.choice((1, 2, 4)),
            interval_ms=rng.choice((5, 20)),
            ops=_ops(rng),
            seed=seed,
        )
        faults = _faults(rng, kills // 2)
        self._rng = rng
        self._cluster = ProcessCluster(replace(plan, faults=faults), "reference", fork_server)
        self._over = threading.Event()
        killer = threading.Thread(target=self._kill_at_times, args=(kills - len(faults),), daemon=True)
        began = time.monotonic()
        killer.start()
        try:
            self.history = self._cluster.run()
        finally:
            self._over.set()
            killer.join(ANSWER_S)
        self.seconds = time.monotonic() - began

    def _kill_at_times(self, kills: int) -> None:
        """Kill whatever server is there, a number of times, until the run is over."""
        fault = Fault.of(FaultKind.KILL, "server", Step(0))
        while kills and not self._over.wait(self._rng.uniform(*SECONDS_BETWEEN)):
            server = self._cluster.servers.address("server")
            if server is not None and server.alive and server.ready.is_set() and not self._cluster.faults.healed:
                self._cluster.faults.kill(server, fault, AT_RANDOM)
                kills -= 1

    def kills(self, value: str | None) -> int:
        """How often a server was killed, as the history has it: AT_RANDOM, or None for those aimed at an effect."""
        killed = (e for e in self.history.events if e.kind == "fault" and e.operation == "kill" and e.value == value)
        return sum(e.process.startswith("server") for e in killed)


def _ops(rng: random.Random) -> tuple[Op, ...]:
    return tuple(
        Op(
            actor=f"executor-{client}",
            kind="create",
            directory=rng.randrange(len(DIRECTORIES)),
            name=f"dt={number % 5}/f{client}_{number}-0-0_001.parquet.marker.CREATE",
        )
        for client in range(CLIENTS)
        for number in range(CREATES)
    )


def _faults(rng: random.Random, kills: int) -> tuple[Fault, ...]:
    nth, faults = 0, []
    for _ in range(kills):
        nth += rng.randint(*EFFECTS_BETWEEN)
        when: When = rng.choice(("before", "after"))
        faults.append(Fault.of(FaultKind.KILL, "server", Call(n=nth, when=when)))
    return tuple(faults)


def _lost(history: History) -> tuple[int, list[str]]:
    """How many creates were answered, and which of them are not stored in the end."""
    files = {e.path: e.value for e in history.events if e.kind == "observe" and e.operation == "file"}
    answered, lost = 0, []
    stored = {place: stored_names(place, files) for place in DIRECTORIES}  # type: ignore[arg-type]
    for event in history.events:
        if event.kind == "ok" and event.operation == "create":
            answered += 1
            if event.path not in stored[f"{event.table}/.hoodie/.temp/{event.instant}"]:
                lost.append(f"{event.path} answered at event {event.index}")
    return answered, lost


def main() -> None:
    """Print kills, answers and losses for each storage; exit 1 for a loss or a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="for each storage")
    parser.add_argument("--storage", action="append", choices=("local", "s3"))
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    bad = 0
    with ForkServer() as fork_server:
        for storage in given.storage or ("local", "s3"):
            aimed = timed = answers = losses = violations = 0
            seconds, turn = 0.0, 0
            while aimed + timed < given.kills:
                seed = plan_seed(given.seed, turn)
                run = Round(storage, seed, min(60, given.kills - aimed - timed), fork_server)
                answered, lost = _lost(run.history)
                findings = {finding.guarantee: finding for finding in judge(run.history)}
                broken = [f"{name}: {b.message}" for name, f in findings.items() for b in f.breaches]
                broken += [f"{name} was not judged" for name in MUST_BE_JUDGED if not findings[name].judged]
                aimed += run.kills(None)
                timed += run.kills(AT_RANDOM)
                answers, losses, violations = answers + answered, losses + len(lost), violations + len(broken)
                seconds, turn = seconds + run.seconds, turn + 1
                for line in (*lost[:3], *broken[:3]):
                    print(f"  seed {seed}: {line}")
            bad += losses + violations
            print(
                f"{storage}: {aimed} kills aimed at an effect and {timed} at random moments, {answers:,} creates"
                f" answered, {losses} of them lost, {violations} violations; {seconds:.0f} s,"
                f" {(aimed + timed) / seconds * 60:.0f} kills and recoveries a minute"
            )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

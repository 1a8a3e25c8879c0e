"""What becomes of damaged tables: at which step of which future which reader finds wrong rows, a table in Markdown.

    python benchmarks/horizon.py 1.2.0
    python benchmarks/horizon.py 1.2.0 --tables 0 2 --damages "listing fails" --processes
    python benchmarks/horizon.py 1.2.0 --controls 60

Damages are those of findings that are known; a control is a plan that leaves nothing, and breaks no promise.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from marker_sim.cli.request import parse_request
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges.black_box.futures import leaves
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import failures_in
from marker_sim.plan import Plan
from marker_sim.targets.hudi_java_runs import JavaRuns
from marker_sim.targets.hudi_java_walk import CONTROL_WRITES, TABLES, draw_deaths, step, table_of
from marker_sim.worlds.spark.hudi.future import FUTURES, TableWithFuture, with_future
from marker_sim.worlds.spark.hudi.settings import partition_names, table_type, traits
from marker_sim.worlds.spark.hudi.steps import TableStep, last_data_file, with_steps
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import DRIVER, STORAGE

MARKERS = r"\.hoodie/\.temp/\d+/MARKERS\d+$"


REMOVED = "markers removed by hand"
_start = TableWithFuture._start


def removing(table: TableWithFuture) -> None:
    """Begin a driver, the second one after an operator has removed the marker directories of the first."""
    if table._lives == 1:
        shutil.rmtree(Path(table.place.uri, ".hoodie", ".temp"))
    _start(table)


def damages(plan: Plan) -> dict[str, TableStep]:
    """A failed write, and the rollback after it, of a table, by what goes wrong."""
    dies = last_data_file(len(partition_names(plan)), plan.storage).faults
    listing = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/[0-9]+$", ("list",)))
    unstored = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(MARKERS, ("write",)), calls=40)
    cut = Fault.of(FaultKind.KILL, DRIVER, Call(MARKERS, ("open",), 2, "after"))
    entry = r"\.hoodie/(timeline/)?\d+(_\d+)?\.rollback(\.[0-9a-f-]{36})?$"
    record = Fault.of(FaultKind.DISK_FULL, STORAGE, Call(entry, ("write",)), calls=2)

    def rollback(*faults: Fault, before: tuple[Fault, ...] = ()) -> TableStep:
        return TableStep(name="damage", stage="rollback", faults=faults, before=before)

    if plan.mode == "direct":
        return {
            "listing fails": rollback(listing),
            REMOVED: rollback(),
            "rollback record in part": rollback(record),
        }
    return {"marker not stored": rollback(before=(unstored, *dies)), "marker file cut": rollback(before=(cut,))}


def controls(seed: int) -> Iterator[Plan]:
    """Plans without faults, and with deaths that may leave nothing."""
    for mode in ("direct", "timeline"):
        for table in TABLES:
            yield with_steps(table_of(mode, seed, *table), (step("write"),) * CONTROL_WRITES)
    number = 0
    while True:
        number += 1
        yield draw_deaths(("direct", "timeline"), "local", seed, number)


def words_of(plan: Plan) -> str:
    """A table in words."""
    return ", ".join((table_type(plan), *traits(plan), plan.mode))


def horizon(played: SparkRun) -> str:
    """At which step which reader finds wrong rows."""
    found = {each.guarantee: each.breaches for each in played.findings or ()}
    told = [breach.message.partition(" (fault:")[0].partition(": ")[2] for breach in found.get("G30", ())]
    others = [name for name in found if found[name] and name not in ("G30",)]
    failed = [event for event in played.history.events if event.operation == "future" and event.error]
    steps = sorted({f"{event.value!s} fails" for event in failed})
    beside = f" ({' '.join(others)})" if others else ""
    return ("; ".join((*told, *steps)) or "the right rows") + beside


Play = Callable[[Plan], SparkRun]


def seconds(played: SparkRun) -> float:
    """How long the future of a run took."""
    events = played.history.events
    began = next(event.time_ns for event in events if event.operation == "future")
    return (events[-1].time_ns - began) / 1e9


def show_controls(play: Play, number: int, seed: int, profile: Profile) -> None:
    """Play plans that left nothing and broke nothing, each with a future: it must accuse nobody."""
    judged = accused = 0
    for plan in controls(seed):
        played = play(plan)
        if leaves(played.history) or failures_in(played.history, played.findings or (), profile):
            continue
        name, steps = list(FUTURES.items())[judged % len(FUTURES)]
        played = play(with_future(plan, steps))
        findings = played.findings or ()
        judged += 1
        accused += any(each.breaches for each in findings)
        print(f"control {judged}: {words_of(plan)}, {name}: {seconds(played):.1f} s", flush=True)
        failed = [event for event in played.history.events if event.operation == "future" and event.error]
        said = [f"{event.value!s} failed: {event.error:.600}" for event in failed]
        said += [f"{each.guarantee}: {breach.message}" for each in findings for breach in each.breaches]
        said += [
            f"{each.guarantee} excused: {each.excused}" for each in findings if each.excused and each.guarantee > "G3"
        ]
        for line in said:
            print(f"  {line}", flush=True)
        if judged == number:
            break
    print(f"{accused} of {judged} controls accused")


def show_damages(play: Play, given: argparse.Namespace) -> None:
    """Play each damage with each future."""
    print("| table | damage | future | s | what readers find |\n|---|---|---|---|---|")
    for mode in ("direct", "timeline"):
        for number in given.tables:
            bare = table_of(mode, given.seed, *TABLES[number])
            for damage, own in damages(bare).items():
                if given.damages and damage not in given.damages:
                    continue
                plan = with_steps(bare, (own,))
                TableWithFuture._start = removing if damage == REMOVED else _start  # type: ignore[assignment,method-assign]
                for name in given.futures:
                    played = play(with_future(plan, FUTURES[name]))
                    row = (words_of(plan), damage, name, f"{seconds(played):.1f}", horizon(played))
                    print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--tables", type=int, nargs="*", default=range(len(TABLES) - 1), help="rows of TABLES")
    parser.add_argument("--damages", nargs="*", help="only these")
    parser.add_argument("--futures", nargs="*", default=list(FUTURES), help="only these")
    parser.add_argument("--processes", action="store_true", help="by processes that are killed, read by hudi-rs too")
    parser.add_argument("--controls", type=int, default=0, help="play so many controls instead")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as report:
        request = parse_request(
            argv=(), sut=f"hudi-java:{given.version}", mode="both", storage=None, budget="24h", seed=str(given.seed),
            guarantees=None, profile=None, expect=None, report=report,
        )  # fmt: skip
        request = replace(request, report=Path(report))
        with request.target.real_runs(request, lambda line: None) as runs:
            assert isinstance(runs, JavaRuns)

            def play(plan: Plan) -> SparkRun:
                warm = runs._drivers(None if given.processes else runs._warm)
                played = runs._run(plan, runs.program.deadline, warm)
                assert not played.trouble, played.trouble
                if played.interrupted:
                    raise KeyboardInterrupt
                return played

            if given.controls:
                show_controls(play, given.controls, given.seed, request.profile)
            else:
                show_damages(play, given)


if __name__ == "__main__":
    main()

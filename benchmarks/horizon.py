"""What becomes of damaged tables: at which step of which future which reader finds wrong rows, a table in Markdown.

    python benchmarks/horizon.py 1.2.0 --stored
    python benchmarks/horizon.py 1.2.0
    python benchmarks/horizon.py 1.2.0 --tables 0 2 --damages "listing fails" --processes
    python benchmarks/horizon.py 1.2.0 --tables 0 1 --damages "listing fails" --futures archived --incremental
    python benchmarks/horizon.py 1.2.0 --controls 60

Stored findings are those of scenarios/findings, of the Java client; damages are more of them, on each table. A control
is a plan that leaves nothing, and breaks no promise. `--futures default` is that of Hudi's own settings of cleaning and
archiving; `listed anew` has the metadata table switched on, or built again, before anything is archived. After each
step `--incremental` asks hudi-rs for what changed since the first commit.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

from marker_sim.cli.request import parse_request
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.judges.black_box.futures import leaves
from marker_sim.judges.findings import Breach
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import failures_in
from marker_sim.plan import Plan
from marker_sim.targets.hudi_java_runs import JavaRuns
from marker_sim.targets.hudi_java_walk import CONTROL_WRITES, TABLES, draw_deaths, step, table_of
from marker_sim.worlds.spark.hudi.future import FUTURES, TableWithFuture, with_future
from marker_sim.worlds.spark.hudi.settings import shape_of, table_type, traits
from marker_sim.worlds.spark.hudi.steps import PHASES, TableStep, last_data_file, with_steps
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import DRIVER, STORAGE
from scenarios.findings.stored_finding import read_findings

PLAYED = FUTURES | {"listed anew": ("rebuild", *FUTURES["archived"]), "default": ("default",) * 35}
MARKERS = r"\.hoodie/\.temp/\d+/MARKERS\d+$"


REMOVED = "markers removed by hand"
_start, _look = TableWithFuture._start, TableWithFuture._look


def removing(table: TableWithFuture) -> None:
    """Begin a driver, the second one after an operator has removed the marker directories of the first."""
    if table._lives == 1:
        shutil.rmtree(Path(table.place.uri, ".hoodie", ".temp"))
    _start(table)


def asking_for_changes(table: TableWithFuture, step: str, error: str | None) -> None:
    """Look at a table after a step, and print what an incremental query of hudi-rs finds of failed writes."""
    _look(table, step, error)
    changes = HudiReadOptions().with_query_type(HudiQueryType.Incremental).with_start_timestamp("0")
    batches = map(pyarrow.record_batch, HudiTableBuilder.from_base_uri(table.place.uri).build().read(changes))
    rows = [row for batch in batches for row in batch.select(["key", "value"]).to_pylist()]
    failed = {content for _, _, content, _ in table._failed}
    found = [row for row in rows if row["value"] in failed]
    print(f"  {step or 'before the first step'}: an incremental query finds {len(rows)} rows, of failed writes {found}")


def damages(plan: Plan) -> dict[str, TableStep]:
    """A failed write, and the rollback after it, of a table, by what goes wrong."""
    dies = last_data_file(plan, third=False).faults
    listing = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(r"\.hoodie/\.temp/[0-9]+$", ("list",)))
    unstored = Fault.of(FaultKind.IO_ERROR, STORAGE, Call(MARKERS, ("write",)), calls=40)
    cut = Fault.of(FaultKind.KILL, DRIVER, Call(MARKERS, ("open",), 2, "after"))
    entry = r"\.hoodie/(timeline/)?\d+(_\d+)?\.rollback(\.[0-9a-f-]{36})?$"
    record = Fault.of(FaultKind.DISK_FULL, STORAGE, Call(entry, ("write",)), calls=2)

    def rollback(*faults: Fault, before: tuple[Fault, ...] = ()) -> TableStep:
        return TableStep(name="damage", stage="rollback", faults=faults, before=before)

    committed = next(phase for phase in PHASES if phase.word == "after-commit").fault(random.Random(0), storage="local")
    if plan.mode == "direct":
        return {
            "markers left": TableStep(name="damage", stage="write", faults=(committed,)),
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
    """At which step which reader finds wrong rows, what else breaks then, and which steps fail."""
    found = {each.guarantee: each.breaches for each in played.findings or ()}
    told = [_message(breach) for breach in found.get("G30", ())]
    at_once = [_message(breach) for breach in found.get("G24", ())]
    if at_once:  # What Hudi read before the future is not right then.
        told = [f"at once: {at_once[0]}"]
    records = [f"{name}: {_message(found[name][0])}" for name in ("G31", "G32") if found.get(name)]
    taken = [event for event in played.history.events if event.operation == "future"][1:]
    if not taken and not told:
        why = played.refused[-1][:300] if played.refused else ""
        told = [f"no write completes any more: {why}" if why else "no future was played"]
    failed = [(n, event) for n, event in enumerate(taken, 1) if event.error]
    steps = [f"step {n} ({event.value!s}) fails: {event.error:.300}" for n, event in failed[:1]]
    steps += [f"{len(failed)} steps fail"] if failed else []
    others = [name for name in found if found[name] and name not in ("G24", "G30", "G31", "G32")]
    beside = f" [{' '.join(others)}]" if others else ""
    return "; ".join((*(told or ["the right rows"]), *records, *steps)) + beside


def _message(breach: Breach) -> str:
    return breach.message.partition(" (fault:")[0].replace("|", "/")


Play = Callable[[Plan], SparkRun]


def seconds(played: SparkRun) -> float:
    """How long the future of a run took."""
    events = played.history.events
    began = next((event.time_ns for event in events if event.operation == "future"), events[-1].time_ns)
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
                    played = play(with_future(plan, PLAYED[name]))
                    row = (words_of(plan), damage, name, f"{seconds(played):.1f}", horizon(played))
                    print(f"| {' | '.join(row)} |", flush=True)


def tables_of(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan of a stored finding as it is, and on tables of the walk: on that of a stored plan, which is as small as
    can be, the write after the failure may hide what was left in groups that both write.
    """
    yield "as stored", plan
    shape = shape_of(plan)
    if not shape.writers:
        for merges, usual in TABLES[:2]:
            kind = replace(usual, metadata=shape.metadata)
            yield words_of(replace(plan, merge_on_read=merges)), replace(plan, merge_on_read=merges, shape=kind)


def show_stored(play: Play, given: argparse.Namespace) -> None:
    """Play the plan of each stored finding of the Java client with each future."""
    print("| finding | table | future | s | what readers find |\n|---|---|---|---|---|")
    for stored in read_findings():
        if not stored.in_java or (given.damages and stored.name not in given.damages):
            continue
        for table, plan in tables_of(stored.told.own_plan):
            for name in given.futures:
                played = play(with_future(plan, PLAYED[name]))
                words = horizon(played)
                if plan.faults and not sum(played.met.values()):
                    words = "no call was as its fault wants it"
                print(f"| {stored.name} | {table} | {name} | {seconds(played):.1f} | {words} |", flush=True)
                if "no write completes" in words or "no call was" in words:
                    break


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--tables", type=int, nargs="*", default=range(len(TABLES) - 1), help="rows of TABLES")
    parser.add_argument("--damages", nargs="*", help="only these")
    parser.add_argument("--futures", nargs="*", default=list(PLAYED), help="only these")
    parser.add_argument("--stored", action="store_true", help="play stored findings instead; --damages: their names")
    parser.add_argument("--processes", action="store_true", help="by processes that are killed, read by hudi-rs too")
    parser.add_argument("--incremental", action="store_true", help="ask for what changed after each step as well")
    parser.add_argument("--controls", type=int, default=0, help="play so many controls instead")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.incremental:
        TableWithFuture._look = asking_for_changes  # type: ignore[assignment,method-assign]
    with tempfile.TemporaryDirectory() as report:
        request = parse_request(
            argv=(), sut=f"hudi-java:{given.version}", mode="both", storage=None, budget="24h", seed=str(given.seed),
            guarantees=None, profile=None, expect=None, report=report,
        )  # fmt: skip
        request = replace(request, report=Path(report))
        with request.target.real_runs(request, lambda line: None) as runs:
            assert isinstance(runs, JavaRuns)

            def play(plan: Plan) -> SparkRun:
                alone = given.processes and not shape_of(plan).writers  # Writers race in one JVM.
                warm = runs._drivers(None if alone else runs._warm)
                played = runs._run(plan, runs.program.deadline, warm)
                assert not played.trouble, played.trouble
                if played.interrupted:
                    raise KeyboardInterrupt
                return played

            if given.controls:
                show_controls(play, given.controls, given.seed, request.profile)
            elif given.stored:
                show_stored(play, given)
            else:
                show_damages(play, given)


if __name__ == "__main__":
    main()

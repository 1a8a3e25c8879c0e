"""How many planted defects of how several writers share a table are caught: Hudi's jars with one source file changed.

    python benchmarks/planted_writers.py --out DIR [--budget 120s] [--seed 1] [--writers 3] [--jobs 2] [--only NAME ...]
    PYTHONPATH=. python benchmarks/planted_writers.py --futures --out DIR [--seed 1] [--jobs 2] [--only NAME ...]

The defects are in planted_writers.toml. Each is built as a folder that `--sut hudi-java:FOLDER` accepts: the changed
classes are in the client's jar, which comes first on the class path. The control is built in the same way from the same
sources, unchanged. Runs are those of `marker-sim verify --sut hudi-java:FOLDER --writers N`, in the same order by the
same seed; for each guarantee that is broken, the first plans are made smaller (a fault less, a short pause for a death
or for one past the heartbeat) as long as they break it.

Unchanged Hudi breaks guarantees too, by writers that pause past their heartbeat. So a failure counts as `caught` when
1. its plan, given to unchanged Hudi, does not break that guarantee, in REPEATS runs, and
2. it needs no pause past a heartbeat and no death, or the campaign of unchanged Hudi (same seed, same budget) has no
   failure of that guarantee in the same words.
`only-1` is a failure for which the second does not hold: a plan tells the two apart, a reader of the report could not.

With `--futures` the defects are those of planted_futures.toml, of what becomes of a table. The runs have a fixed order
that knows no defect: the controls of a walk and its rollbacks without a fault with their futures, as `verify` plays
them in a warm JVM, then drawn deaths and known damages with futures (benchmarks/horizon.py). A defect is caught in the
first run whose first guarantee of `breaks` is broken in words that unchanged Hudi's run of the same plan does not have.

Needs javac. Fetches Hudi's sources and Lombok, which they are compiled with, into the cache of marker-sim.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.horizon import damages
from benchmarks.planted_jars import FUTURES_LIST, LIST, Defect, build, defects
from marker_sim.cli.request import parse_duration, parse_request
from marker_sim.faults import Fault, FaultKind
from marker_sim.outcome.failure import Failure, failures_in, signature
from marker_sim.plan import Plan
from marker_sim.targets.hudi_java_runs import DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import TABLES, draw_deaths, table_of
from marker_sim.targets.jvm.hudi_java_writers import SHORT_MS, WriterRuns, _shown
from marker_sim.worlds.spark.hudi.future import FUTURES, with_future
from marker_sim.worlds.spark.hudi.settings import table_type, traits
from marker_sim.worlds.spark.hudi.steps import with_steps
from marker_sim.worlds.spark.outcome import SparkRun

CONTROL = "unchanged"
REPEATS = 2
SMALLER_MAX = 2  # Failures of a guarantee in the same words that are made smaller and given to unchanged Hudi.
TROUBLES_MAX = 5
LONG_S = "6h"  # The loop has its own clock.
DRAWN = 6  # Plans of drawn deaths with futures.
FAULTLESS = 22  # Controls and numbered rollbacks, which come first.
SPECIFIC = re.compile(r"[0-9a-f]{8}-[0-9a-f-]+|\d{14,}|_\d+-\d+-\d+_|\bt\d+\b|; of '.*? instead of \[.*?\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A failure of a campaign: of which run, after how long, by which plan made smaller. link: its words."""

    guarantee: str
    message: str
    link: str
    number: int
    after_s: float
    plan: Plan
    words: str
    quiet: bool


@contextlib.contextmanager
def opened(folder: Path, given: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """The runs of several writers by a built Hudi, of one with futures, and the profile that is promised."""
    more: dict[str, Any] = {} if given.futures else {"writers": str(given.writers)}
    with tempfile.TemporaryDirectory() as report:
        request = parse_request(
            argv=(), sut=f"hudi-java:{folder}", mode=given.mode, storage=None, budget=LONG_S, seed=given.seed,
            guarantees=None, profile=None, expect=None, report=report,
            **more,
        )  # fmt: skip
        request = replace(request, report=Path(report))
        with request.target.real_runs(request, lambda line: None) as runs:
            assert isinstance(runs, JavaRuns if given.futures else WriterRuns)
            yield runs, request.profile


def broken_in(played: SparkRun, profile: Any) -> dict[str, Failure]:
    """The first failure of each guarantee in a run."""
    found: dict[str, Failure] = {}
    for kind, failure in failures_in(played.history, played.findings or (), profile).items():
        found.setdefault(kind.guarantee, failure)
    return found


def campaign(folder: Path, given: argparse.Namespace) -> tuple[int, int, list[Shown], list[Shown]]:
    """Runs, runs that the kit could not end, and failures of one campaign: all, and some with smaller plans."""
    with opened(folder, given) as (runs, profile):
        began, number, troubles, seen = time.monotonic(), 0, 0, list[tuple[int, float, Plan, dict[str, Failure]]]()
        while time.monotonic() - began < parse_duration(given.budget, "--budget") and troubles < TROUBLES_MAX:
            drawn = runs.draw({})
            if drawn is None:
                break
            played, number = runs.play(drawn), number + 1
            if played.interrupted:
                break
            if played.trouble or played.cut:
                troubles += 1
                print(f"{folder.name}: run {number}: {played.trouble or 'cut'}", flush=True)
                continue
            if broken := broken_in(played, profile):
                seen.append((number, time.monotonic() - began, drawn.plan, broken))
            runs.took(drawn, played, ())
        every = [shown(failure, at, after_s, plan) for at, after_s, plan, broken in seen for failure in broken.values()]
        asked = [smaller(runs, profile, each) for each in first_of(every)]
        return number, troubles, every, asked


def first_of(every: Sequence[Shown]) -> list[Shown]:
    """Some failures of each guarantee and words, those without deaths and long pauses first."""
    found, times = list[Shown](), defaultdict[str, int](int)
    for each in sorted(every, key=lambda each: (not each.quiet, each.number)):
        times[each.link] += 1
        if times[each.link] <= SMALLER_MAX:
            found.append(each)
    return found


def shown(failure: Failure, number: int, after_s: float, plan: Plan) -> Shown:
    """A failure as a row of the table."""
    return Shown(
        guarantee=failure.guarantee, message=failure.message, link=signature(failure), number=number,
        after_s=after_s, plan=plan,
        words=f"{plan.mode}, {len(plan.writes)} writers, {_shown(plan)}", quiet=is_quiet(plan),
    )  # fmt: skip


def is_quiet(plan: Plan) -> bool:
    """Whether nobody dies or pauses past its heartbeat."""
    return all(fault.kind is FaultKind.PAUSE and fault.settings.for_ms <= SHORT_MS for fault in plan.faults)


def smaller(runs: WriterRuns, profile: Any, each: Shown) -> Shown:
    """The failure by a plan with fewer or shorter pauses that breaks the guarantee still."""
    plan, failure = each.plan, None
    while True:
        for less in less_of(plan):
            broken = broken_in(play(runs, less), profile)
            if each.guarantee in broken:
                plan, failure = less, broken[each.guarantee]
                break
        else:
            return each if failure is None else shown(failure, each.number, each.after_s, plan)


def less_of(plan: Plan) -> Iterator[Plan]:
    """The plan without one fault, and with a short pause instead of one."""
    for at, fault in enumerate(plan.faults):
        before, after = plan.faults[:at], plan.faults[at + 1 :]
        yield replace(plan, faults=(*before, *after))
        if not is_quiet(replace(plan, faults=(fault,))):
            short = Fault.of(FaultKind.PAUSE, fault.target, fault.trigger, for_ms=SHORT_MS)
            yield replace(plan, faults=(*before, short, *after))


def play(runs: WriterRuns, plan: Plan) -> SparkRun:
    """One run of a plan."""
    return runs.play(DrawnPoint(number=0, plan=plan, point=None, words=""))


def judged(name: str, folder: Path, control: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The campaign of one defect, and what unchanged Hudi does by the plans that broke something."""
    runs, troubles, every, asked = campaign(folder, given)
    alone = list[Shown]()
    if asked and name != CONTROL:
        with opened(control, given) as (unchanged, profile):
            for each in asked:
                again = (broken_in(play(unchanged, each.plan), profile) for _ in range(REPEATS))
                if not any(each.guarantee in broken for broken in again):
                    alone.append(each)
    row = {"name": name, "runs": runs, "troubles": troubles, "all": [told(each) for each in every]}
    row["alone"] = [told(each) for each in alone]
    (Path(given.out) / f"{name}.json").write_text(json.dumps(row, indent=1))
    print(
        f"{name}: {runs} runs, {len(every)} failures, {len(alone)} of {len(asked)} plans that unchanged Hudi survives",
        flush=True,
    )
    return row


def told(each: Shown) -> dict[str, Any]:
    """A failure as JSON."""
    return {
        "guarantee": each.guarantee, "message": each.message, "link": each.link, "number": each.number,
        "after_s": round(each.after_s, 1), "words": each.words, "quiet": each.quiet, "plan": each.plan.to_dict(),
    }  # fmt: skip


def verdict(row: dict[str, Any], known: set[str]) -> tuple[str, str]:
    """Whether a defect was caught, and by which failure."""
    counted = [each for each in row["alone"] if each["quiet"] or each["link"] not in known]
    word, rows = ("caught", counted) if counted else ("only-1" if row["alone"] else "escaped", row["alone"])
    firsts: dict[str, dict[str, Any]] = {}
    for each in rows:
        firsts.setdefault(each["guarantee"], each)
    return word, "; ".join(
        f"{name} after {each['after_s']:.0f} s, run {each['number']} ({each['words']})" for name, each in firsts.items()
    )


def plans_with_futures(runs: JavaRuns, seed: int) -> Iterator[tuple[str, Plan]]:
    """The runs for defects of futures, each with where it comes from."""
    walk, futures = runs.walk, list(FUTURES.values())
    yield from (("a control", plan) for plan in walk.controls)
    rollbacks = (number for number, (stage, _) in enumerate(walk.bases) if stage == "rollback")
    yield from (("a numbered rollback", walk.with_own_future(number)) for number in rollbacks)
    for number in range(DRAWN):
        plan = draw_deaths(walk.modes, "local", seed, number)
        yield "drawn deaths", with_future(plan, futures[number % len(futures)])
    for mode, damage in (("direct", "listing fails"), ("timeline", "marker file cut")):
        for table in TABLES[:2]:
            bare = table_of(mode, seed, *table)
            for steps in futures:
                yield damage, with_future(with_steps(bare, (damages(bare)[damage],)), steps)


def broken_words(runs: JavaRuns, profile: Any, plan: Plan) -> set[str]:
    """What a run breaks, with what differs between runs left out of the words."""
    played = runs._run(plan, runs.program.deadline, runs._drivers(runs._warm))
    if played.interrupted:
        raise KeyboardInterrupt
    broken = failures_in(played.history, played.findings or (), profile)
    told = {"trouble": played.trouble} if played.trouble else {}
    told |= {kind.guarantee: failure.message.partition(" (fault:")[0] for kind, failure in broken.items()}
    return {f"{name} {SPECIFIC.sub('…', message)}" for name, message in told.items()}


def judged_by_futures(name: str, until: str, folder: Path, control: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The runs of one defect up to the first that breaks the guarantee `until`, and unchanged Hudi's does not."""
    row: dict[str, Any] = {"name": name, "runs": 0, "by": "", "words": "", "others": []}
    with opened(folder, given) as (runs, profile), opened(control, given) as (unchanged, _):
        plans = list(plans_with_futures(runs, int(given.seed)))
        for origin, plan in sorted(plans if until else plans[:FAULTLESS], key=lambda each: each[1].mode):
            row["runs"] += 1
            words = broken_words(runs, profile, plan)
            alone = words - broken_words(unchanged, profile, plan) if words and until else words
            where = f"run {row['runs']}, {origin}: {', '.join((table_type(plan), *traits(plan), plan.mode))}"
            print(f"{name}: {where}: {sorted(alone) or '-'}", flush=True)
            row["others"] = sorted({*row["others"], *(each.split()[0] for each in alone)} - {until})
            if found := [each for each in alone if each.startswith(f"{until} ") and until]:
                row |= {"by": where, "words": found[0]}
                break
    (Path(given.out) / f"{name}.json").write_text(json.dumps(row, indent=1))
    return row


def main_of_futures(given: argparse.Namespace, chosen: Sequence[Defect], folders: dict[str, Path]) -> None:
    """Judge defects of futures, and print; `unchanged` is what unchanged Hudi breaks without a fault."""
    asked = {**{each.name: each.breaks[0] for each in chosen}, CONTROL: ""}
    with ProcessPoolExecutor(given.jobs) as pool:
        control = folders[CONTROL]
        rows = {
            name: pool.submit(judged_by_futures, name, until, folders[name], control, given)
            for name, until in asked.items()
        }
        print("| planted | breaks | caught by | others before |\n|---|---|---|---|", flush=True)
        for name, until in asked.items():
            row = rows[name].result()
            print(f"| {name} | {until} | {row['by'] or row['runs']} | {' '.join(row['others'])} |", flush=True)


def main() -> None:
    """Build, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--budget", default="120s")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--writers", default=3, type=int)
    parser.add_argument("--mode", default="both")
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--only", nargs="*", help="names of defects; without it all")
    parser.add_argument("--futures", action="store_true", help="defects of what becomes of a table")
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    version, every = defects(FUTURES_LIST if given.futures else LIST)
    chosen = [each for each in every if not given.only or each.name in given.only]
    whole = {each.file: replace(each, changes=()) for each in every}
    control = build(version, CONTROL, list(whole.values()), out / "jars" / CONTROL)
    folders = {each.name: build(version, each.name, [each], out / "jars" / each.name) for each in chosen}
    if given.futures:
        main_of_futures(given, chosen, {CONTROL: control, **folders})
        return
    with ProcessPoolExecutor(given.jobs) as pool:
        names = {CONTROL: control, **folders}
        rows = {name: pool.submit(judged, name, folder, control, given) for name, folder in names.items()}
        known = {each["link"] for each in rows[CONTROL].result()["all"]}
        print(f"| defect of | planted | breaks | runs | {given.budget} | by |\n|---|---|---|---|---|---|")
        caught = 0
        for each in chosen:
            word, by = verdict(rows[each.name].result(), known)
            caught += word == "caught"
            runs = rows[each.name].result()["runs"]
            print(f"| {each.room} | {each.name} | {' '.join(each.breaks)} | {runs} | {word} | {by} |", flush=True)
    print(f"\n{caught} of {len(chosen)} caught; unchanged: {rows[CONTROL].result()['runs']} runs, broken in them:")
    for guarantee in sorted({each["guarantee"] for each in rows[CONTROL].result()["all"]}):
        print(f"- {guarantee}: {sum(each['guarantee'] == guarantee for each in rows[CONTROL].result()['all'])}")


if __name__ == "__main__":
    main()

"""`marker-sim mutants`: hunts every planted mistake, judges by every guarantee, shrinks; fails when one survives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import call
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from marker_sim.campaign import hunts
from marker_sim.campaign.hunts import Kill
from marker_sim.cli import options as given
from marker_sim.cli.output import Progress, say
from marker_sim.cli.request import RUNS_MAX, parse_duration, parse_jobs, parse_number
from marker_sim.errors import EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_VIOLATED, HarnessError, UsageError
from marker_sim.mutants.load import MUTANTS, Mutant, find_mutant
from marker_sim.report.directory import open_report, writing
from marker_sim.report.kill_matrix import closing_lines, matrix_dict, matrix_text, median_and_worst
from marker_sim.report.table import output_console, plain_table, print_line
from marker_sim.report.write import write_text
from marker_sim.surroundings.worker_pool import in_order, workers

SEEDS_MAX = 1000
BUDGET = "60s"


def mutants(
    context: typer.Context,
    seeds: Annotated[str, typer.Option(metavar="N", help="Number of seeds for the swarm.")] = "20",
    budget_per_mutant: Annotated[
        str | None, typer.Option(metavar="TIME", help="Processor time per mutant. Default: 60s.")
    ] = None,
    runs: Annotated[str | None, typer.Option(metavar="N", help="Plans per search, instead of a time.")] = None,
    only: Annotated[str | None, typer.Option(metavar="NAME,NAME", help="Only these mutants.")] = None,
    jobs: given.Jobs = None,
    stop_at_first: Annotated[bool, typer.Option("--stop-at-first", help="Stop at the first survivor.")] = False,
    report: given.Report = "marker-sim-mutants",
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of mutants.json.")] = False,
) -> int:
    """Plant known defects in the reference: which guarantee sees which, how soon, in how short a plan."""
    starts = parse_number(seeds, "--seeds", SEEDS_MAX)
    if runs is not None and budget_per_mutant is not None:
        raise UsageError(f"--runs {runs} and --budget-per-mutant {budget_per_mutant} were given; write one of them")
    budget_s = math.inf if runs is not None else parse_duration(budget_per_mutant or BUDGET, "--budget-per-mutant")
    plans = None if runs is None else parse_number(runs, "--runs", RUNS_MAX)
    processes = parse_jobs(jobs)
    chosen = MUTANTS if only is None else _chosen(only)
    directory = Path(report)
    with open_report(directory, context.obj) as earlier:
        if earlier is not None:
            say(f"the earlier matrix in {directory} was moved to {earlier}")
        tasks = [partial(hunts.kill, mutant, starts, budget_s, plans=plans) for mutant in chosen]
        settings = {"seeds": starts, "budget_per_mutant_s": budget_s if plans is None else None, "runs": plans}

        def line_of(kills: list[Kill]) -> str:
            last = kills[-1]
            return f"{len(kills)} of {len(tasks)}: {last.mutant.name} {'killed' if last.killed else 'SURVIVED'}"

        kills, interrupted, trouble = hunted(tasks, processes, line_of, lambda kill: stop_at_first and not kill.killed)
        content = matrix_dict([kill.to_dict() for kill in kills], settings, interrupted)
        with writing(directory):
            write_text(directory / "mutants.txt", matrix_text(content))
            write_text(directory / "mutants.json", json.dumps(content, indent=1) + "\n")
    if trouble is not None:
        raise trouble
    if as_json:
        print(json.dumps(content, indent=1))
    else:
        _show(content, directory)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_VIOLATED if content["survivors"] else EXIT_HOLDS


def hunted(
    tasks: Sequence[Callable[[], Any]], processes: int, line_of: Callable[[list[Any]], str], ends: Callable[[Any], bool]
) -> tuple[list[Any], bool, HarnessError | None]:
    """The results of the tasks in order, whether it ended early, and the error that ended it, None for Ctrl-C.

    line_of: the progress after each. ends: whether one of them is the last.
    """
    done: list[Any] = []
    try:
        with Progress() as progress, workers(call, min(processes, len(tasks))) as pool:
            for each in in_order(tasks, pool):
                done.append(each)
                progress(line_of(done))
                if ends(each):
                    break
    except KeyboardInterrupt:
        return done, True, None
    except HarnessError as error:
        return done, True, error  # An error in one hunt must not lose the results of the others.
    return done, False, None


def _chosen(only: str) -> tuple[Mutant, ...]:
    names = [name.strip() for name in only.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--only was given {only!r}; write names of mutants, for example --only {MUTANTS[0].name}")
    return tuple(find_mutant(name) for name in dict.fromkeys(names))


def _show(content: dict[str, Any], directory: Path) -> None:
    """Print the mutants, the guarantees that detect them and how soon; mutants.txt has the complete, wide matrix."""
    console = output_console()
    names = list(content["summary"]["searches"])
    table = plain_table("mutant", "killed by", "also seen by", *names, "entries")
    for row in content["mutants"]:
        others = ", ".join(name for name in row["cells"] if name != row["kills"])
        style = "" if row["killed"] else "bold red"
        table.add_row(
            escape(row["name"]),
            row["kills"] if row["killed"] else f"survives {row['kills']}",
            others,
            *(median_and_worst(row["searches"].get(name)) for name in names),
            "" if row["entries"] is None else str(row["entries"]),
            style=style,
        )
    console.print(table)
    console.print()
    for line in (*closing_lines(content), f"matrix: {directory / 'mutants.txt'}, {directory / 'mutants.json'}"):
        print_line(console, line)

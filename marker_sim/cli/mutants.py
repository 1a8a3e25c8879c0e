"""`marker-sim mutants`: hunts every planted mistake, judges by every guarantee, shrinks; fails when one survives."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from marker_sim.campaign.hunts import DESK, Kill, KillTask
from marker_sim.cli.output import Progress
from marker_sim.cli.request import RUNS_MAX, parse_duration, parse_number
from marker_sim.errors import HarnessError, UsageError
from marker_sim.mutants.load import MUTANTS, Mutant, find_mutant
from marker_sim.report.directory import open_report
from marker_sim.report.kill_matrix import closing_lines, matrix_dict, matrix_text
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_VIOLATED
from marker_sim.report.write import write_text
from marker_sim.surroundings.worker_pool import in_order, parse_jobs, workers

SEEDS_MAX = 1000
BUDGET = "60s"


def mutants(
    *,
    seeds: str,
    budget_per_mutant: str | None,
    runs: str | None,
    only: str | None,
    jobs: str | None,
    stop_at_first: bool,
    report: str,
    as_json: bool,
    argv: Sequence[str],
) -> int:
    """Hunt the given mutants; returns 0 if their guarantees killed all, 1 with a survivor, 130 when interrupted."""
    starts = parse_number(seeds, "--seeds", SEEDS_MAX)
    if runs is not None and budget_per_mutant is not None:
        raise UsageError(f"--runs {runs} and --budget-per-mutant {budget_per_mutant} were given; write one of them")
    budget_s = math.inf if runs is not None else parse_duration(budget_per_mutant or BUDGET, "--budget-per-mutant")
    plans = None if runs is None else parse_number(runs, "--runs", RUNS_MAX)
    processes = parse_jobs(jobs)
    chosen = MUTANTS if only is None else _chosen(only)
    directory = Path(report)
    with open_report(directory, argv) as earlier:
        if earlier is not None:
            print(f"marker-sim: the earlier matrix in {directory} was moved to {earlier}", file=sys.stderr)
        tasks = [KillTask(name=mutant.name, seeds=starts, budget_s=budget_s, plans=plans) for mutant in chosen]
        settings = {"seeds": starts, "budget_per_mutant_s": budget_s if plans is None else None, "runs": plans}
        return _hunt(tasks, processes, stop_at_first, settings, directory, as_json)


def _hunt(
    tasks: Sequence[KillTask],
    processes: int,
    stop_at_first: bool,
    settings: dict[str, Any],
    directory: Path,
    as_json: bool,
) -> int:
    """Hunt, store and print the matrix; returns the exit code. When it ends early, the finished hunts are stored."""

    def line_of(kills: list[Kill]) -> str:
        last = kills[-1]
        return f"{len(kills)} of {len(tasks)}: {last.mutant.name} {'killed' if last.killed else 'SURVIVED'}"

    kills, interrupted, trouble = hunted(tasks, processes, line_of, lambda kill: stop_at_first and not kill.killed)
    content = matrix_dict(kills, settings, interrupted)
    _store(content, directory)
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
    tasks: Sequence[Any], processes: int, line_of: Callable[[list[Any]], str], ends: Callable[[Any], bool]
) -> tuple[list[Any], bool, HarnessError | None]:
    """The results of the tasks in order, whether it ended early, and the error that ended it, None for Ctrl-C.

    line_of: the progress after each. ends: whether one of them is the last.
    """
    done: list[Any] = []
    try:
        with Progress() as progress, workers(DESK, min(processes, len(tasks))) as pool:
            for each in in_order(tasks, lambda task: task.do(), pool):
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


def _store(content: dict[str, Any], directory: Path) -> None:
    try:
        write_text(directory / "mutants.txt", matrix_text(content))
        write_text(directory / "mutants.json", json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise HarnessError(f"the matrix cannot be stored in {directory} ({error.strerror})") from error


def _show(content: dict[str, Any], directory: Path) -> None:
    """Print the mutants, the guarantees that detect them and how soon; mutants.txt has the complete, wide matrix."""
    console = output_console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = list(content["summary"]["searches"])
    for column in ("mutant", "killed by", "also seen by", *(f"{name} s" for name in names), "entries"):
        table.add_column(column)
    for row in content["mutants"]:
        others = ", ".join(name for name in row["cells"] if name != row["kills"])
        style = "" if row["killed"] else "bold red"
        table.add_row(
            escape(row["name"]),
            row["kills"] if row["killed"] else f"survives {row['kills']}",
            others,
            *(_median_and_worst(row["searches"].get(name)) for name in names),
            "" if row["entries"] is None else str(row["entries"]),
            style=style,
        )
    console.print(table)
    console.print()
    for line in (*closing_lines(content), f"matrix: {directory / 'mutants.txt'}, {directory / 'mutants.json'}"):
        console.print(escape(line), highlight=False, soft_wrap=True)


def _median_and_worst(times: dict[str, Any] | None) -> str:
    if times is None or times["median_s"] is None:
        return "-"
    worst = f"{times['worst_s']:.2f}" if times["worst_s"] is not None else f"{times['caught']} of {times['ranges']}"
    return f"{times['median_s']:.2f} / {worst}"

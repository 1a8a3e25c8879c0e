"""`marker-sim mutants`: every planted mistake hunted, judged by every guarantee, shrunk; a survivor fails it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from marker_sim.cli.progress import Progress
from marker_sim.cli.request import parse_duration, parse_number
from marker_sim.errors import HarnessError, UsageError
from marker_sim.mutants.catalogue import MUTANTS, Mutant
from marker_sim.mutants.kill import Kill, kill
from marker_sim.mutants.load import find_mutant
from marker_sim.pool import die_with_parent
from marker_sim.report.directory import open_report
from marker_sim.report.kill_matrix import closing_lines, matrix_dict, matrix_text
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_VIOLATED
from marker_sim.report.write import write_text

SEEDS_MAX = 1000
JOBS_MAX = 64


def mutants(
    *, seeds: str, budget_per_mutant: str, only: str | None, jobs: str, report: str, as_json: bool, argv: Sequence[str]
) -> int:
    """Hunt the mutants asked for; 0 when each was killed by its guarantee, 1 with a survivor, 130 when interrupted."""
    starts = parse_number(seeds, "--seeds", SEEDS_MAX)
    budget_s = parse_duration(budget_per_mutant, "--budget-per-mutant")
    workers = parse_number(jobs, "--jobs", JOBS_MAX)
    chosen = MUTANTS if only is None else _chosen(only)
    directory = Path(report)
    with open_report(directory, argv) as earlier:
        if earlier is not None:
            print(f"marker-sim: the matrix that was in {directory} is in {earlier} now", file=sys.stderr)
        return _hunt(chosen, starts, budget_s, workers, directory, as_json)


def _hunt(chosen: Sequence[Mutant], starts: int, budget_s: float, workers: int, directory: Path, as_json: bool) -> int:
    kills: dict[str, Kill] = {}
    interrupted, trouble = False, None
    with Progress() as progress:
        try:
            for done in _kills(chosen, starts, budget_s, workers):
                kills[done.mutant.name] = done
                how = "killed" if done.killed else "SURVIVED"
                progress(f"{len(kills)} of {len(chosen)}: {done.mutant.name} {how}")
        except KeyboardInterrupt:
            interrupted = True
        except HarnessError as error:
            interrupted, trouble = True, error  # An hour of hunting is not lost with one of them.
    ordered = [kills[mutant.name] for mutant in chosen if mutant.name in kills]
    settings = {"seeds": starts, "budget_per_mutant_s": budget_s}
    content = matrix_dict(ordered, settings, interrupted)
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


def _kills(chosen: Sequence[Mutant], seeds: int, budget_s: float, workers: int) -> Iterator[Kill]:
    """As they come; with several workers each is a process of its own, and times are those of its core."""
    if workers == 1:
        yield from (kill(mutant, seeds, budget_s) for mutant in chosen)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_belong_to_the_parent)
    try:
        for future in as_completed([pool.submit(_by_name, mutant.name, seeds, budget_s) for mutant in chosen]):
            yield future.result()
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _by_name(name: str, seeds: int, budget_s: float) -> Kill:
    return kill(find_mutant(name), seeds, budget_s)


def _belong_to_the_parent() -> None:
    """Interrupts are for the parent; a worker whose parent was killed would wait for ever."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
    """The mutants, who sees them and how soon; the whole matrix is too wide for a terminal and is in mutants.txt."""
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

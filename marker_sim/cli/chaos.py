"""`chaos`: the nightly. A request checked, a night run, its summary printed."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from rich.console import Console
from rich.table import Table

from marker_sim.campaign.nightly.nightly_run import NightEnd, NightRequest, run_night
from marker_sim.campaign.nightly.stages import parse_stages
from marker_sim.campaign.nightly.summary import (
    COLUMNS,
    exit_code,
    failure_lines,
    night_row,
    remarks,
    summary_of,
    verdict_of,
)
from marker_sim.cli.progress import Progress
from marker_sim.cli.request import SEED_MAX, parse_duration, parse_seed
from marker_sim.errors import UsageError
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_INTERRUPTED
from marker_sim.report.words import printable
from marker_sim.targets.table import PLANNED, parse_target
from marker_sim.worker_pool import parse_jobs

NIGHTS_SHOWN = 7
# A directory continues its seeds each night; a drawn first seed leaves room for later ones.
DRAWN_MAX = SEED_MAX // 2


def chaos(
    *,
    budget: str,
    directory: str,
    sut: str | None,
    seed: str | None,
    jobs: str | None,
    stages: str | None,
    new_night: bool,
    as_json: bool,
) -> int:
    """Run a night and print its summary; the exit code."""
    if sut is not None and not parse_target(sut).can.plans:
        raise UsageError(
            f"--sut was given {sut!r}; chaos runs {', '.join(PLANNED)}, and `marker-sim verify` runs servers and Hudi"
        )
    request = NightRequest(
        directory=Path(directory),
        budget_s=parse_duration(budget, "--budget"),
        sut=sut,
        seed=None if seed is None else parse_seed(seed),
        jobs=parse_jobs(jobs),
        stages=None if stages is None else parse_stages(stages),
        new_night=new_night,
    )
    with Progress() as progress:
        ended = run_night(request, lambda: secrets.randbelow(DRAWN_MAX), progress)
    if as_json:
        print(json.dumps(summary_of(ended.totals), indent=1))
    else:
        _print(ended, request.directory, output_console())
    return EXIT_INTERRUPTED if ended.interrupted else exit_code(ended.totals.night)


def _print(ended: NightEnd, directory: Path, console: Console) -> None:
    totals, night = ended.totals, ended.totals.night
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("", *(str(each.number) for each in totals.nights[-NIGHTS_SHOWN:])):
        table.add_column(name, overflow="fold")
    rows = [night_row(each) for each in totals.nights[-NIGHTS_SHOWN:]]
    for place, column in enumerate(COLUMNS):
        if place:
            table.add_row(column, *(row[place] for row in rows))
    console.print(table)
    for line in (*remarks(night), *failure_lines(totals.failures.open, directory)):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    said = f"night {night.number} is {night.state}, {verdict_of(night)}; summary: {directory / 'summary.html'}"
    if ended.interrupted:
        said += "; the same command continues it"
    console.print(said, markup=False, highlight=False, soft_wrap=True)

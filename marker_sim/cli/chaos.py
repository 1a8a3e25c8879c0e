"""`chaos`: checks a request, runs a night and prints its summary."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from marker_sim.campaign.nightly.nightly_run import run_night
from marker_sim.campaign.nightly.opening import NightRequest, parse_stages
from marker_sim.campaign.nightly.summary import (
    columns,
    exit_code,
    failure_lines,
    night_row,
    remarks,
    summary_of,
    verdict_of,
)
from marker_sim.campaign.nightly.totals import PAUSED, Totals
from marker_sim.cli.output import Progress
from marker_sim.cli.request import SEED_MAX, ServerWords, parse_duration, parse_seed
from marker_sim.errors import UsageError
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_INTERRUPTED
from marker_sim.report.words import printable
from marker_sim.surroundings.spark_session import parse_master
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.surroundings.worker_pool import parse_jobs
from marker_sim.targets.table import DEFAULT, parse_target
from marker_sim.targets.target import REAL_STORAGES, ServerOptions

NIGHTS_SHOWN = 7
BOTH = "both"
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
    storage: str | None = None,
    spark_master: str | None = None,
    **server_words: Any,
) -> int:
    """Run a night, print its summary and return the exit code. server_words: of `ServerWords`."""
    server, storages = _foreign(sut, storage, stages, server_words)
    request = NightRequest(
        directory=Path(directory),
        budget_s=parse_duration(budget, "--budget"),
        sut=sut,
        seed=None if seed is None else parse_seed(seed),
        jobs=0 if spark_master is not None and jobs is None else parse_jobs(jobs),
        spark_master=parse_master(spark_master),
        stages=None if stages is None else parse_stages(stages),
        new_night=new_night,
        server=server,
        storages=storages,
    )
    with Progress() as progress, TimeLimit() as limit:
        limit.set(request.budget_s + REST_S, f"a night with a budget of {budget}")
        totals = run_night(request, lambda: secrets.randbelow(DRAWN_MAX), progress)
    if as_json:
        print(json.dumps(summary_of(totals), indent=1))
    else:
        _print(totals, request.directory, output_console())
    return EXIT_INTERRUPTED if totals.night.state == PAUSED else exit_code(totals.night)


def _foreign(
    sut: str | None, storage: str | None, stages: str | None, server_words: dict[str, Any]
) -> tuple[ServerOptions | None, tuple[str, ...]]:
    """The start command and storages of a foreign system; None and () for one that runs plans, or without a name."""
    words = ServerWords(**server_words)
    target = parse_target(DEFAULT if sut is None else sut)
    if target.can.plans:
        if storage is not None:
            raise UsageError(f"--storage was given with --sut {target.sut}, whose stages run on all; leave it out")
        words.parse(target, "local", {})
        return None, ()
    if stages is not None:
        raise UsageError(f"--stages was given with --sut {target.sut}, whose night has one stage; leave it out")
    if storage not in (None, BOTH, *REAL_STORAGES):
        raise UsageError(f"--storage was given {storage!r}; write {', '.join(REAL_STORAGES)} or {BOTH}")
    if storage is None:
        only_s3 = any(name in (words.start or "") for name in ("{endpoint}", "{bucket}"))
        storage = BOTH if not words.start else "s3" if only_s3 else "local"
    storages = tuple(REAL_STORAGES) if storage == BOTH else (storage,)
    options = [words.parse(target, each, os.environ) for each in storages]
    return options[0], storages


def _print(totals: Totals, directory: Path, console: Console) -> None:
    night = totals.night
    for line in (f"{verdict_of(night)}: night {night.number}", "", *failure_lines(totals.failures.open, directory)):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("", *(str(each.number) for each in totals.nights[-NIGHTS_SHOWN:])):
        table.add_column(name, overflow="fold")
    named = columns(totals)
    rows = [night_row(each, named) for each in totals.nights[-NIGHTS_SHOWN:]]
    for place, column in enumerate(named):
        if place:
            table.add_row(column, *(row[place] for row in rows))
    console.print(table)
    for line in remarks(night):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    said = f"night {night.number} is {night.state}, {verdict_of(night)}; summary: {directory / 'summary.html'}"
    if night.state == PAUSED:
        said += "; the same command continues it"
    console.print(said, markup=False, highlight=False, soft_wrap=True)

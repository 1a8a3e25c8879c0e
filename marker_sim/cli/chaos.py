"""`chaos`: checks a request, runs a night and prints its summary."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from marker_sim.campaign.nightly.nightly_run import run_night
from marker_sim.campaign.nightly.opening import NightRequest, parse_stages
from marker_sim.campaign.nightly.summary import (
    exit_code,
    failure_lines,
    headline,
    night_rows,
    remarks,
    summary_of,
    verdict_of,
)
from marker_sim.campaign.nightly.totals import PAUSED, Totals
from marker_sim.cli import options as given
from marker_sim.cli.output import Progress, say
from marker_sim.cli.request import SEED_MAX, parse_duration, parse_jobs, parse_seed, parse_server
from marker_sim.errors import EXIT_INTERRUPTED, UsageError
from marker_sim.judges.promises.profiles import SHIPPED, load_profile
from marker_sim.report.table import output_console, plain_table, print_line
from marker_sim.surroundings.spark_session import parse_master
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import DEFAULT, NAMES, parse_target
from marker_sim.targets.target import REAL_STORAGES, ServerOptions

NIGHTS_SHOWN = 7
BOTH = "both"
# A directory continues its seeds each night; a drawn first seed leaves room for later ones.
DRAWN_MAX = SEED_MAX // 2


def chaos(
    context: typer.Context,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time of the whole run: 8h, 20m, 30s.")] = "8h",
    directory: Annotated[
        str, typer.Option("--dir", metavar="DIR", help="Directory for ledger, failures and summary.")
    ] = "chaos",
    sut: Annotated[str | None, typer.Option(metavar="SUT", help=f"{', '.join(NAMES)}.")] = None,
    storage: given.ChaosStorage = None,
    start: given.Start = None,
    reader: given.Reader = None,
    dir_format: given.Form = None,
    identity: given.Identity = False,
    batch_threads: given.BatchThreads = None,
    profile: given.Promises = None,
    s3_endpoint: given.S3Endpoint = None,
    s3_bucket: given.S3Bucket = None,
    seed: Annotated[str | None, typer.Option(metavar="N", help="Seed of a new directory.")] = None,
    jobs: given.Jobs = None,
    stages: given.Stages = None,
    spark_master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run plans on executors: local[N], local-cluster[N,C,MB], spark://HOST:PORT."),
    ] = None,
    new_night: Annotated[
        bool, typer.Option("--new-night", help="Start a new night; do not continue an unfinished one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of summary.json.")] = False,
) -> int:
    """Search for a night in every world that is installed; resumes where it was stopped."""
    server, storages = _foreign(sut, storage and storage.lower(), stages, context.params)
    request = NightRequest(
        directory=Path(directory),
        budget_s=parse_duration(budget, "--budget"),
        sut=sut,
        seed=None if seed is None else parse_seed(seed),
        jobs=0 if spark_master is not None and jobs is None else parse_jobs(jobs),
        spark_master=parse_master(spark_master),
        stages=None if stages is None else parse_stages(stages),
        new_night=new_night,
        profile=None if profile is None else _lasting(profile),
        server=server,
        storages=storages,
    )
    with Progress() as progress, TimeLimit() as limit:
        limit.set(request.budget_s + REST_S, f"a night with a budget of {budget}")
        totals = run_night(request, lambda: secrets.randbelow(DRAWN_MAX), progress, say)
    if as_json:
        print(json.dumps(summary_of(totals), indent=1))
    else:
        _print(totals, request.directory, output_console())
    return EXIT_INTERRUPTED if totals.night.state == PAUSED else exit_code(totals.night)


def _foreign(
    sut: str | None, storage: str | None, stages: str | None, words: dict[str, Any]
) -> tuple[ServerOptions | None, tuple[str, ...]]:
    """The start command and storages of a foreign system; None and () for one that runs plans, or without a name."""
    target = parse_target(DEFAULT if sut is None else sut)
    if target.can.plans:
        if storage is not None:
            raise UsageError(f"--storage was given with --sut {target.sut}, whose stages run on all; leave it out")
        parse_server(words, target, "local", {})
        return None, ()
    if stages is not None:
        raise UsageError(f"--stages was given with --sut {target.sut}, whose night has one stage; leave it out")
    if storage not in (None, BOTH, *REAL_STORAGES):
        raise UsageError(f"--storage was given {storage!r}; write {', '.join(REAL_STORAGES)} or {BOTH}")
    if storage is None:
        only_s3 = any(name in (words["start"] or "") for name in ("{endpoint}", "{bucket}"))
        storage = BOTH if not words["start"] else "s3" if only_s3 else "local"
    storages = tuple(REAL_STORAGES) if storage == BOTH else (storage,)
    options = [parse_server(words, target, each, os.environ) for each in storages]
    return options[0], storages


def _lasting(profile: str) -> str:
    """A profile as a night from another directory finds it again; UsageError for none."""
    load_profile(profile)
    return profile if profile in SHIPPED else str(Path(profile).resolve())


def _print(totals: Totals, directory: Path, console: Console) -> None:
    night = totals.night
    for line in (f"{verdict_of(night)}, {headline(totals)}", "", *failure_lines(totals, directory)):
        print_line(console, line)
    rows = night_rows(totals)[-NIGHTS_SHOWN:]
    table = plain_table("", *(row["night"] for row in rows))
    for column in list(rows[0])[1:]:
        table.add_row(column, *(row[column] for row in rows))
    console.print(table)
    for line in remarks(night):
        print_line(console, line)
    said = f"night {night.number} is {night.state}, {verdict_of(night)}; summary: {directory / 'summary.html'}"
    if night.state == PAUSED:
        said += "; the same command continues it"
    print_line(console, said)

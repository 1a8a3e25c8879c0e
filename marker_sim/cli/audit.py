"""`marker-sim audit`: checks the options, audits, prints and stores the report."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from marker_sim.cli import options as given
from marker_sim.cli.request import JOBS_MAX, parse_number, seconds_in
from marker_sim.cli.serve import OtherEndpoint, check_endpoint
from marker_sim.errors import EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED, UsageError
from marker_sim.report.directory import open_report, writing
from marker_sim.report.table import output_console
from marker_sim.surroundings.spark_session import parse_master
from marker_sim.tables.audit.audit import audit_table
from marker_sim.tables.audit.output import json_text, print_report, write_report
from marker_sim.tables.sources import local_path, open_source

JOBS = 16
_EXITS = {"damaged": EXIT_VIOLATED, "undecided": EXIT_INCONCLUSIVE, "clean": EXIT_HOLDS}


def audit(
    context: typer.Context,
    table: given.Table,
    report: given.AuditReport = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of audit.json.")] = False,
    s3_endpoint: OtherEndpoint = None,
    jobs: given.AuditJobs = None,
    stuck_after: given.StuckAfter = "2h",
    spark_master: given.SparkMaster = None,
) -> int:
    """Find out what defects of markers, rollbacks and commits left in an existing Hudi table; only reads it."""
    check_endpoint(s3_endpoint)
    threads = JOBS if jobs is None else parse_number(jobs, "--jobs", JOBS_MAX)
    stuck_after_s = seconds_in(stuck_after)
    if stuck_after_s is None:
        raise UsageError(f"--stuck-after was given {stuck_after!r}; write a time such as 2h, 30m or 0s")
    master = parse_master(spark_master)
    directory = None if report is None else Path(report)
    if directory is not None:
        _refuse_inside(directory, table)
    source = open_source(table, s3_endpoint, threads)
    with ExitStack() as stack:
        stack.callback(source.close)
        if directory is not None:
            stack.enter_context(open_report(directory, context.obj))
        listing = None
        if master is not None:
            from marker_sim.tables.audit.spark import listing_on_spark

            listing = stack.enter_context(listing_on_spark(master, table, s3_endpoint))
        result = audit_table(source, table, now_s=time.time(), stuck_after_s=stuck_after_s, listing=listing)
        if directory is not None:
            with writing(directory):
                write_report(result, directory)
    if as_json:
        print(json_text(result))
    else:
        print_report(result, output_console(), "" if directory is None else str(directory))
    return _EXITS[result.verdict]


def _refuse_inside(directory: Path, table: str) -> None:
    root = local_path(table)
    if root is not None and directory.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"--report {directory} lies in the table, where an audit writes nothing; give a directory elsewhere"
        )

"""`marker-sim audit`: checks the options, audits, prints and stores the report."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from marker_sim.cli.options import check_endpoint
from marker_sim.cli.request import parse_number
from marker_sim.errors import UsageError
from marker_sim.report.directory import open_report, unwritable
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED
from marker_sim.surroundings.spark_session import parse_master
from marker_sim.tables.audit.audit import Listing, audit_table
from marker_sim.tables.audit.findings import TableReport
from marker_sim.tables.audit.output import as_json, print_report, write_report
from marker_sim.tables.sources import local_path, open_source

JOBS = 16
_JOBS_MAX = 256
_SPAN = re.compile(r"([0-9]+)(s|m|h|d)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_EXITS = {"damaged": EXIT_VIOLATED, "undecided": EXIT_INCONCLUSIVE, "clean": EXIT_HOLDS}


def audit(
    table: str, *, report: str | None, json_only: bool, s3_endpoint: str | None, jobs: str | None, stuck_after: str,
    spark_master: str | None, argv: Sequence[str],
) -> int:  # fmt: skip
    """Audit a table; returns the exit code."""
    check_endpoint(s3_endpoint)
    threads = JOBS if jobs is None else parse_number(jobs, "--jobs", _JOBS_MAX)
    stuck_after_s = _seconds(stuck_after)
    master = parse_master(spark_master)
    directory = None if report is None else Path(report)
    if directory is not None:
        _refuse_inside(directory, table)
    source = open_source(table, s3_endpoint, threads)
    with ExitStack() as stack:
        stack.callback(source.close)
        if directory is not None:
            stack.enter_context(open_report(directory, argv))
        listing = None
        if master is not None:
            listing = stack.enter_context(_spark(master, table, s3_endpoint))
        result = audit_table(source, table, now_s=time.time(), stuck_after_s=stuck_after_s, listing=listing)
        if directory is not None:
            _store(result, directory)
    if json_only:
        print(as_json(result))
    else:
        print_report(result, output_console(), "" if directory is None else str(directory))
    return _EXITS[result.verdict]


def _spark(master: str, table: str, endpoint: str | None) -> AbstractContextManager[Listing]:
    from marker_sim.tables.audit.spark import listing_on_spark

    return listing_on_spark(master, table, endpoint)


def _store(result: TableReport, directory: Path) -> None:
    try:
        write_report(result, directory)
    except OSError as error:
        raise unwritable(directory, error) from error


def _refuse_inside(directory: Path, table: str) -> None:
    root = local_path(table)
    if root is not None and directory.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"--report {directory} lies in the table, where an audit writes nothing; give a directory elsewhere"
        )


def _seconds(text: str) -> float:
    match = _SPAN.match(text)
    if match is None:
        raise UsageError(f"--stuck-after was given {text!r}; write a time such as 2h, 30m or 0s")
    return float(int(match[1]) * _SECONDS[match[2]])

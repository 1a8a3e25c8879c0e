"""An audit's report as text, JSON, Parquet and HTML. A directory gets audit.json, findings.parquet and audit.html."""

from __future__ import annotations

import json
from functools import partial
from itertools import groupby
from pathlib import Path

from rich.console import Console

from marker_sim.report.table import print_line
from marker_sim.report.templates import render
from marker_sim.tables.audit.findings import COLUMNS, Level, TableFinding, TableReport

SHOWN_PER_KIND = 5
SHOWN_ON_PAGE = 500
STYLES = {Level.DAMAGE: "bold red", Level.UNDECIDED: "yellow", Level.NOTE: "dim"}
# The class of page.css for each level.
_CLASSES = {Level.DAMAGE: "violated", Level.UNDECIDED: "inconclusive", Level.NOTE: "not-applicable"}
_VERDICT_CLASSES = {"damaged": "violated", "undecided": "inconclusive", "clean": "holds"}


def headline(report: TableReport) -> str:
    """The verdict as one sentence."""
    many = {level: sum(f.level is level for f in report.findings) for level in Level}
    if report.verdict == "clean":
        return f"{report.table}: no damage found"
    number = many[Level.DAMAGE if report.verdict == "damaged" else Level.UNDECIDED]
    findings = f"{number:,} finding{'' if number == 1 else 's'}"
    if report.verdict == "undecided":
        return f"{report.table}: no damage found, {findings} could not be decided"
    return f"{report.table}: damaged, {findings}"


def facts_line(report: TableReport) -> str:
    """The facts of the audited table in one line: type, versions, numbers, duration."""
    counts = report.counts
    version = f"table version {report.version}" if report.version else "unknown table version"
    return (
        f"{report.kind or 'unknown type'}, {version}, timeline layout {report.layout}; {counts['files']:,} data files"
        f" ({counts['bytes']:,} bytes), {counts['instants']:,} instants, {counts['requests']:,} requests,"
        f" {report.duration_s:.1f} s"
    )


def _groups(report: TableReport) -> list[tuple[Level, str, list[TableFinding]]]:
    """The findings by level, kind and next step."""
    groups = groupby(report.findings, key=lambda finding: (finding.level, finding.kind, finding.next_step))
    return [(level, kind, list(findings)) for (level, kind, _), findings in groups]


def print_report(report: TableReport, console: Console, where: str) -> None:
    """The report for a terminal, some findings of each kind. where: the report directory, "" for none."""
    say = partial(print_line, console)
    say(headline(report), style="bold")
    say(facts_line(report), style="dim")
    for level, kind, findings in _groups(report):
        say("")
        say(f"{level.value}: {kind} ({len(findings):,})", style=STYLES[level])
        for finding in findings[:SHOWN_PER_KIND]:
            say(f"  {finding.path or finding.instant}" if finding.path or finding.instant else "")
            say(f"    {finding.message}")
            for line in finding.evidence[:SHOWN_PER_KIND]:
                say(f"      {line}", style="dim")
        if len(findings) > SHOWN_PER_KIND:
            say(f"  and {len(findings) - SHOWN_PER_KIND:,} more" + (f" in {where}" if where else ""))
        say(f"  next: {findings[0].next_step}")
    say("")
    for sentence in report.not_checked:
        say(f"not checked: {sentence}", style="dim")
    if where:
        say(f"report: {where}/audit.html", style="dim")


def json_text(report: TableReport) -> str:
    """The content of audit.json; text that is not UTF-8 is escaped."""
    return json.dumps(report.as_dict(), indent=1)


def write_report(report: TableReport, directory: Path) -> None:
    """Write the three files; OSError when the place cannot be written."""
    (directory / "audit.json").write_text(json_text(report), encoding="ascii")
    import pyarrow as pa

    from marker_sim.report.columns import write_rows

    columns = {**dict.fromkeys(COLUMNS, pa.string()), "evidence": pa.list_(pa.string())}
    write_rows(directory / "findings.parquet", columns, (finding.as_dict() for finding in report.findings))
    (directory / "audit.html").write_text(render_audit(report), encoding="utf-8", errors="backslashreplace")


def render_audit(report: TableReport) -> str:
    """audit.html: one file, nothing from the network."""
    return render(
        "tables/audit/audit.html.j2",
        report=report,
        headline=headline(report),
        facts=facts_line(report),
        groups=_groups(report),
        classes=_CLASSES,
        verdict_class=_VERDICT_CLASSES[report.verdict],
        most=SHOWN_ON_PAGE,
    )

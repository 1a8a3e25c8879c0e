"""What `marker-sim audit` says of tables that were made: no healthy one may be accused, each damage must be found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.audit_kind import PENDING
from properties.audit.damages import DAMAGES
from properties.audit.disk import Unfit
from properties.faces.tables import audit_table, json_text, open_source

AUDIT_S = 120.0
EXIT_CODES = {"clean": 0, "damaged": 1, "undecided": 3}


class Told(NamedTuple):
    """What an audit said. error: why it said nothing, "" when it did."""

    verdict: str
    findings: list[dict[str, Any]]
    not_checked: list[Any]
    error: str

    def kinds(self) -> Counter[str]:
        """The kinds of findings with their levels."""
        return Counter(f"{each['kind']}/{each['level']}" for each in self.findings)

    def new(self, before: Told) -> list[dict[str, Any]]:
        """The findings that the other does not have."""
        known = {_identity(each) for each in before.findings}
        return [each for each in self.findings if _identity(each) not in known]


def _identity(finding: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(finding.get(key)) for key in ("kind", "level", "instant", "path"))


def audit_here(table: Path) -> Told:
    """Audit a table in this process, which spares starting Python."""
    source = open_source(str(table), None, 2)
    try:
        said = json.loads(json_text(audit_table(source, str(table), now_s=time.time())))
    except Exception as error:
        return Told("none", [], [], f"{type(error).__name__}: {error}")
    finally:
        source.close()
    return Told(said["verdict"], said["findings"], said["not_checked"], "")


def audit(table: Path, *more: str) -> Told:
    """Run the command on a table."""
    words = [sys.executable, "-m", "marker_sim", "audit", str(table), "--json", *more]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=AUDIT_S, check=False)
    except subprocess.TimeoutExpired:
        return Told("none", [], [], f"no answer in {AUDIT_S:.0f} s")
    try:
        said = json.loads(done.stdout)
        told = Told(said["verdict"], said["findings"], said["not_checked"], "")
    except (ValueError, KeyError, TypeError):
        return Told("none", [], [], f"exit code {done.returncode}, no JSON; {done.stderr.strip()[-300:]!r}")
    if EXIT_CODES.get(told.verdict) != done.returncode or "Traceback" in done.stderr:
        return told._replace(error=f"verdict {told.verdict} with exit code {done.returncode}; {done.stderr[-300:]!r}")
    return told


class Judged(NamedTuple):
    """One row. damage: "" for a healthy table; right: whether the audit was."""

    version: str
    kind: str
    damage: str
    done: str
    told: Told
    right: bool

    def as_json(self) -> str:
        """A line of the result file."""
        return json.dumps({**self._asdict(), "told": self.told._asdict()}, ensure_ascii=False)


def judge_healthy(version: str, table: Path) -> Judged:
    """A healthy table is not accused; without pending work nothing is undecided either."""
    told = audit(table)
    allowed = ("clean", "undecided") if table.name in PENDING else ("clean",)
    return Judged(version, table.name, "", "", told, not told.error and told.verdict in allowed)


def judge_damages(
    version: str, healthy: dict[Path, Told], scratch: Path, names: Iterable[str], times: int
) -> Iterator[Judged]:
    """Each damage on so many tables that it fits, other ones for each; a row that is not right when it fits none."""
    for number, each in enumerate(DAMAGES[name] for name in names):
        fitting, turn = 0, number * times % max(1, len(healthy))
        for table, before in (*list(healthy.items())[turn:], *list(healthy.items())[:turn]):
            if fitting == times:
                break
            copy = scratch / table.name
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(table, copy)
            try:
                done = each.do(copy)
            except Unfit:
                continue
            told = audit_here(copy)
            found = any(finding["kind"] in each.told_by for finding in told.new(before))
            right = found and not told.error and told.verdict != "clean"
            yield Judged(version, copy.name, each.name, done, told, right)
            fitting += 1
        shutil.rmtree(scratch, ignore_errors=True)
        if not fitting:
            yield Judged(version, "", each.name, "no table of the version fits", Told("none", [], [], ""), False)


def judge_all(tables: dict[str, list[Path]], scratch: Path, names: Iterable[str], times: int, results: Path) -> int:
    """Judge tables by version; prints rows, writes lines; how many rows are not right."""
    rows: list[Judged] = []
    wanted = tuple(names)
    with results.open("w", encoding="utf-8") as lines:
        for version, paths in tables.items():
            healthy = [judge_healthy(version, path) for path in paths]
            told = dict(zip(paths, (each.told for each in healthy), strict=True))
            for row in (*healthy, *judge_damages(version, told, scratch, wanted, times)):
                rows.append(row)
                print(_line(row), flush=True)
                lines.write(row.as_json() + "\n")
    for version in tables:
        print(_summary(version, [row for row in rows if row.version == version]))
    return sum(not row.right for row in rows)


def _line(row: Judged) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(row.told.kinds().items())) or "nothing"
    what = f"{row.kind} + {row.damage}" if row.damage else row.kind
    sign = "ok   " if row.right else "WRONG"
    error = f"; {row.told.error}" if row.told.error else ""
    return f"{sign} {row.version:7} {what:58} {row.told.verdict:10} {kinds}{error}"


def _summary(version: str, rows: list[Judged]) -> str:
    healthy = [row for row in rows if not row.damage]
    damaged = [row for row in rows if row.damage and row.kind]
    unfit = [row.damage for row in rows if row.damage and not row.kind]
    numbers = {DAMAGES[row.damage].number for row in damaged} - {0}
    missed = {DAMAGES[row.damage].number for row in damaged if not row.right} - {0}
    return (
        f"{version}: {len(healthy)} healthy tables, {sum(not row.right for row in healthy)} accused;"
        f" {len(damaged)} damages, {sum(not row.right for row in damaged)} missed;"
        f" required kinds found {len(numbers - missed)} of {len(numbers)}; no table fits {', '.join(unfit) or 'none'}"
    )

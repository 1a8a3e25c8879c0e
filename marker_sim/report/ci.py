"""The verdict for CI systems: JUnit XML, SARIF, and annotations with a summary of the job for GitHub Actions.

`--junit` has a test case for each guarantee in its mode, world and storage, and one more, "verdict", for the whole
suite, as the exit code.

    violated, and not in the baseline                failure
    violated, and in the baseline; not promised,     skipped, with the reason
    not applicable
    inconclusive; an error that ended the campaign   error, which must not look like a pass
    holds                                            passed

`--sarif` has a rule for each guarantee and a result for each violation; those of a baseline are suppressed there. What
is undecided is no result but a notification of the run. A violation of a Python class is shown at the line of the
class, any other at the plan that shows it again.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim import __version__
from marker_sim.errors import EXIT_HOLDS, UsageError
from marker_sim.report.directory import writing
from marker_sim.report.notes import notes
from marker_sim.report.table import merged, title
from marker_sim.report.templates import render
from marker_sim.report.verdict import VerdictOutcome, plan_name
from marker_sim.report.write import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ForCi:
    """What is written beside a report. junit, sarif: files. github: whether GitHub Actions is told."""

    junit: Path | None = None
    sarif: Path | None = None
    github: bool = False

    def check(self) -> None:
        """UsageError when a file cannot be written, which is seen before a campaign and not after it."""
        for option, file in (("--junit", self.junit), ("--sarif", self.sarif)):
            if file is None or (file.exists() and not file.is_file() and not file.is_dir()):
                continue  # A device is written to as it is.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=file.parent).close()
                if not file.is_dir():
                    continue
            raise UsageError(f"{option} was given {file}, which cannot be written; write the path of a file")

    def write(self, outcome: VerdictOutcome, report: Path) -> None:
        """Write all of it; HarnessError when that fails. report: the directory of the report."""
        texts = ((self.junit, partial(junit_xml, outcome)), (self.sarif, partial(sarif_text, outcome, report)))
        for file, text in texts:
            if file is not None:
                with writing(file):
                    write_text(file, text())
        if self.github:
            tell_github(outcome, report)


NOTHING = ForCi()


def junit_xml(outcome: VerdictOutcome) -> str:
    """The verdict as JUnit XML; names of markers are escaped, so that any reader takes it."""
    way = ""
    if outcome.campaign.trouble or outcome.exit_code() != EXIT_HOLDS:
        way = "failure" if outcome.verdict == "violated" and not outcome.campaign.trouble else "error"
    return render("report/templates/junit.xml.j2", outcome=outcome, campaign=outcome.campaign, way=way) + "\n"


def _source_of(sut: str) -> tuple[str, int]:
    """The file below the current directory and the line where a Python class begins; "" and 1 for another system."""
    module, _, name = sut.partition(":")
    system: Any = getattr(sys.modules.get(module), name, None)
    try:
        file = Path(inspect.getfile(system)).resolve().relative_to(Path.cwd())
        return file.as_posix(), inspect.getsourcelines(system)[1]
    except (OSError, TypeError, ValueError):
        return "", 1


def _rendered(template: str, outcome: VerdictOutcome, report: Path) -> str:
    """A text from a template, for which a failure is where its class begins, or in its plan."""
    file, line = _source_of(outcome.campaign.sut)
    return render(
        f"report/templates/{template}.j2",
        outcome=outcome,
        place=lambda failure: file or os.path.relpath(report / plan_name(outcome.number(failure), failure)),
        line=line,
        title=title,
        remarks=[line for note in notes(outcome) for line in note.brief],
        rows=merged(outcome.rows),
        version=__version__,
    )


def sarif_text(outcome: VerdictOutcome, report: Path) -> str:
    """The verdict as a SARIF log of one run. report: the directory of its plans."""
    return _rendered("sarif.json", outcome, report)


def tell_github(outcome: VerdictOutcome, report: Path) -> None:
    """Print annotations on standard error, which GitHub reads as well, and add the verdict to the job's summary."""
    print(_rendered("annotations.txt", outcome, report), end="", file=sys.stderr)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with writing(Path(summary)), Path(summary).open("a", encoding="utf-8") as file:
            file.write(_rendered("summary.html", outcome, report))

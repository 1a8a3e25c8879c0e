"""The table of targets: what `--sut` accepts. A new target is a module of this package and a row here."""

from __future__ import annotations

from marker_sim.errors import UsageError
from marker_sim.targets import command, http, hudi, hudi_java, hudi_spark, python
from marker_sim.targets.target import Target

TARGETS = (
    *(python.REFERENCE, python.MUTANT, python.ROW, command.ROW, http.ROW, hudi.ROW),
    *(hudi_spark.ROW, hudi_java.ROW),
)
DEFAULT = python.REFERENCE.words
NAMES = tuple(row.words for row in TARGETS)
PLANNED = tuple(row.words for row in TARGETS if row.plans)


def parse_target(text: str) -> Target:
    """The target with a name; UsageError says what is accepted. Nothing is loaded or started."""
    for row in sorted(TARGETS, key=lambda row: row is python.ROW):  # Last: any two words with a colon may be a factory.
        target = row.parse(text)
        if target is not None:
            return target
    accepted = ", ".join(f"{row.words}{row.note}" for row in TARGETS)
    raise UsageError(f"--sut was given {text!r}; accepted are {accepted}")

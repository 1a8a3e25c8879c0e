"""The table of targets: what `--sut` accepts. A new target is a module of this package with `parse`, and a row here.

Only the module of the target that is named is imported, so that judging a Python class loads no server, JVM or Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from marker_sim.errors import UsageError
from marker_sim.targets.target import Target


class TargetRow(NamedTuple):
    """A row of the table of targets.

    words: what `--sut` accepts; the part before a colon is the name.
    module: of this package. Its `parse(text)` is the target of a text with this name, None for one that it does not
        accept; UsageError says what to write instead.
    plans: whether its runs are simulated plans.
    note: what else a user has to write.
    """

    words: str
    module: str
    plans: bool = False
    note: str = ""

    def parse(self, text: str) -> Target | None:
        """The target of a text, by the module, which is imported now."""
        found: Target | None = import_module(f"marker_sim.targets.{self.module}").parse(text)
        return found


FACTORY = TargetRow("package.module:factory", "python", plans=True)
TARGETS = (
    TargetRow("reference", "python", plans=True),
    TargetRow("mutant:NAME", "python", plans=True),
    FACTORY,
    TargetRow("command:COMMAND", "command", plans=True),
    TargetRow("http", "http", note=" (with --start)"),
    TargetRow("hudi:VERSION|PATH", "hudi"),
    TargetRow("hudi-spark:VERSION|PATH", "hudi_spark"),
    TargetRow("hudi-java:VERSION|PATH", "hudi_java"),
)
DEFAULT = "reference"
NAMES = tuple(row.words for row in TARGETS)
PLANNED = tuple(row.words for row in TARGETS if row.plans)


def parse_target(text: str) -> Target:
    """The target with a name; UsageError says what is accepted. The system is neither loaded nor started."""
    named = (row for row in TARGETS if row.words.partition(":")[0] == text.partition(":")[0])
    for row in (*named, FACTORY):  # Any two words with a colon may be a factory.
        target = row.parse(text)
        if target is not None:
            return target
    accepted = ", ".join(f"{row.words}{row.note}" for row in TARGETS)
    raise UsageError(f"--sut was given {text!r}; accepted are {accepted}")

"""The rules as SQL that Spark runs over files of facts, configured by the user's environment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.judges.sets.rules import RULES, Difference, counting_query, showing_query
from marker_sim.surroundings.spark_session import open_session

COLUMNS = ("fact", "directory", "name", "moment")
Ask = Callable[[str], Sequence[Sequence[Any]]]
FactCounts = tuple[frozenset[str], dict[str, Difference]]


class SqlFacts:
    """Facts behind a function that answers queries. text: of an id."""

    def __init__(self, ask: Ask, text: Callable[[int], str] = str) -> None:
        self._ask, self._text = ask, text
        self.kinds = frozenset(row[0] for row in ask("SELECT DISTINCT fact FROM facts WHERE fact IS NOT NULL"))

    def differences(self) -> dict[str, Difference]:
        """The result of each rule."""
        ((*counts,),) = self._ask(counting_query("facts"))
        found = {}
        for number, rule in enumerate(RULES):
            judged, excused, broken = map(int, counts[3 * number : 3 * number + 3])
            shown = self._ask(showing_query("facts", rule)) if broken else ()
            names = tuple((self._text_of(directory), self._text_of(name)) for directory, name in shown)
            found[rule.id] = Difference(judged, excused, broken, names)
        return found

    def _text_of(self, value: str | int) -> str:
        return self._text(value) if isinstance(value, int) else value


def counted_by_spark(places: list[str], form: str, text: Callable[[int], str], master: str) -> FactCounts:
    """The kinds of facts in files that Spark reads, and the result of each rule, computed on the cluster of
    `master`; UsageError if it cannot read them.
    """
    with (
        tempfile.TemporaryDirectory(prefix="marker-sim-judge-") as scratch,
        open_session("judge", master, Path(scratch)) as session,
    ):
        from pyspark.errors import PySparkException

        try:
            reader = session.read.option("header", True) if form == "csv" else session.read
            found: Any = getattr(reader, form)(*places) if form == "parquet" else getattr(reader, form)(places)
            found.selectExpr(*COLUMNS[:3], "CAST(moment AS BIGINT) AS moment").createOrReplaceTempView("facts")
            facts = SqlFacts(lambda query: session.sql(query).collect(), text)
            return facts.kinds, facts.differences()
        except PySparkException as error:
            raise unreadable(places[0], error) from error


def unreadable(place: str, error: Exception) -> UsageError:
    """The error for files that hold no facts."""
    return UsageError(
        f"{place} cannot be read as facts ({_first_line(error)}); give Parquet, CSV or JSON files with the columns"
        f" {', '.join(COLUMNS)}, as in docs/scale.md"
    )


def _first_line(error: object) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

"""The rules as set differences: of interned ids in columns in memory, or as SQL that Spark runs over files of facts.

In memory, which needs only pyarrow, directory and name of a fact become one number, so that texts are compared once,
when they are interned; facts whose directories and names were recorded as ids are not touched by any text at all. Two
facts must differ in one of the two numbers if they differ in one of the two texts, which is so because ids are counted
and not hashed. Spark is configured by the user's environment.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from marker_sim.errors import UsageError
from marker_sim.judges.sets.rules import (
    FACTS,
    NOTHING,
    OF_DIRECTORIES,
    RULES,
    SHOWN,
    Difference,
    SetRule,
    counting_query,
    showing_query,
)
from marker_sim.surroundings.spark_session import open_session

COLUMNS = ("fact", "directory", "name", "moment")
Ask = Callable[[str], Sequence[Sequence[Any]]]
FactCounts = tuple[frozenset[str], dict[str, Difference]]
_SLICE = 1 << 15
_LIMIT, _KEYS = 1 << 31, 1 << 62


class ArrowFacts:
    """The facts of a table with columns fact, directory, name and moment, split by kind. text: of an id."""

    def __init__(self, table: pa.Table, text: Callable[[int], str] = str) -> None:
        self._text = text
        words, fact = _numbered(table["fact"], 0)
        numbers = {word: number for number, word in enumerate([] if words is None else words.to_pylist())}
        self.kinds = frozenset(pc.unique(table["fact"]).to_pylist()) - {None}
        self._directories, place = _numbered(table["directory"], _LIMIT)
        self._width = 1 + (pc.max(place).as_py() or 0)
        self._names, name = _numbered(table["name"], _KEYS // self._width)
        columns = {"place": place, "key": pc.add(pc.multiply(name, self._width), place), "at": table["moment"]}
        split = partial(_of, pa.table(columns), fact, numbers)
        with ThreadPoolExecutor(pa.cpu_count()) as pool:  # The work is pyarrow's, which lets go of Python's lock.
            self._by_fact = dict(zip(FACTS, pool.map(split, FACTS), strict=True))

    def differences(self) -> dict[str, Difference]:
        """The result of each rule."""
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            return {rule.id: found for rule, found in zip(RULES, pool.map(self._difference, RULES), strict=True)}

    def _difference(self, rule: SetRule) -> Difference:
        of = self._by_fact[rule.of]
        listed = self._latest(rule.within) if rule.within else None
        if listed is not None:
            of = of.filter(pc.is_in(of["place"], value_set=listed["place"].combine_chunks()))
        if not len(of):
            return NOTHING
        missing = of
        for fact in rule.minus:
            others = self._by_fact[fact]["key"]
            if len(others):
                missing = missing.filter(pc.invert(_is_in(missing["key"], others)))
        missing = missing.group_by(["key", "place"]).aggregate([("at", "max")])
        at, place = pc.fill_null(missing["at_max"], FACTS[rule.of]), missing["place"]
        if rule.before:
            until = _looked_up(self._latest(rule.before), place)
            excused = pc.less(at, pc.fill_null(until, FACTS[rule.of]))
        elif listed is not None:
            excused = pc.greater_equal(at, _looked_up(listed, place))
        else:
            excused = pa.chunked_array([pa.repeat(False, len(missing))])
        broken = missing.filter(pc.invert(excused))
        count = len(missing) - len(broken)
        return Difference(_distinct(of["key"]) - count, count, len(broken), self._shown(broken))

    def _latest(self, fact: str) -> pa.Table:
        """For each directory with such a fact: its position, and the latest `at`."""
        return self._by_fact[fact].group_by("place").aggregate([("at", "max")])

    def _shown(self, broken: pa.Table) -> tuple[tuple[str, str], ...]:
        columns = {"directory": broken["place"], "name": pc.divide(broken["key"], self._width)}
        if self._directories is not None:
            columns["directory"] = pa.chunked_array([self._directories]).take(columns["directory"])
        if self._names is not None:
            columns["name"] = pa.chunked_array([self._names]).take(columns["name"])
        found = pa.table(columns)
        first = found.take(pc.select_k_unstable(found, SHOWN, [("directory", "ascending"), ("name", "ascending")]))
        return tuple(
            (_spelled(row["directory"], self._text), _spelled(row["name"], self._text)) for row in first.to_pylist()
        )


def _of(columns: pa.Table, facts: pa.ChunkedArray, numbers: dict[str, int], fact: str) -> pa.Table:
    """The facts of one kind, with their moments; those about a directory have no key."""
    if fact not in numbers:
        return columns.slice(0, 0)
    own = columns.filter(pc.equal(facts, numbers[fact]))
    own = own.filter(pc.is_valid(own["place" if fact in OF_DIRECTORIES else "key"]))
    at = pc.fill_null(own["at"].cast(pa.int64()), FACTS[fact])
    return own.set_column(2, "at", at)


def _numbered(column: pa.ChunkedArray, limit: int) -> tuple[pa.Array | None, pa.ChunkedArray]:
    """The different values of a column, and the index of each row's value among them.

    Ids from 0 to a limit are what they are, and have no values.
    """
    if pa.types.is_integer(column.type):
        bounds = pc.min_max(column).as_py()
        if bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] < limit):
            return None, column.cast(pa.int64())
    recorded = pa.types.is_dictionary(column.type)
    encoded = column.unify_dictionaries() if recorded else column.dictionary_encode()
    chunks = encoded.chunks
    values = chunks[0].dictionary if chunks else pa.array([], pa.string())
    return values, pa.chunked_array([chunk.indices.cast(pa.int64()) for chunk in chunks], pa.int64())


def _distinct(keys: pa.ChunkedArray) -> int:
    """How many different keys there are; where each is larger than the one before, as ids are when they are given out
    in order, nothing needs to be looked up.
    """
    return len(keys) if _ascend(keys) else int(pc.count_distinct(keys).as_py())


def _ascend(keys: pa.ChunkedArray) -> bool:
    """Whether each key is larger than the one before."""
    return pc.all(pc.greater(keys.slice(1), keys.slice(0, max(0, len(keys) - 1)))).as_py() is not False


def _is_in(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each key is in a set; done in slices where both ascend, because a small set stays in the cache."""
    values = others.combine_chunks()
    if len(keys) <= _SLICE or not _ascend(keys) or not _ascend(others):
        return pc.is_in(keys, value_set=values)
    found, at = [], 0
    for start in range(0, len(keys), _SLICE):
        part = keys.slice(start, _SLICE)
        until = bisect_right(values, part[-1].as_py(), lo=at, key=methodcaller("as_py"))
        found += pc.is_in(part, value_set=values.slice(at, until - at)).chunks
        at = until
    return pa.chunked_array(found, pa.bool_())


def _looked_up(table: pa.Table, place: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each position the latest `at` in a table, null where there is none."""
    at = pc.index_in(place, value_set=table["place"].combine_chunks())
    return table["at_max"].take(at)


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
            names = tuple((_spelled(directory, self._text), _spelled(name, self._text)) for directory, name in shown)
            found[rule.id] = Difference(judged, excused, broken, names)
        return found


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
    why = next(iter(str(error).splitlines()), type(error).__name__)
    return UsageError(
        f"{place} cannot be read as facts ({why}); give Parquet, CSV or JSON files with the columns"
        f" {', '.join(COLUMNS)}, as in docs/scale.md"
    )


def _spelled(value: str | int, text: Callable[[int], str]) -> str:
    """A directory or a name as text. text: of an id."""
    return text(value) if isinstance(value, int) else value

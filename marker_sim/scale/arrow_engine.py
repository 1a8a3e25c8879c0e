"""The rules over columns in memory, by differences of sets of interned ids. Needs no more than pyarrow.

Directory and name of a fact become one number, so that texts are compared once, when they are interned; facts whose
directories and names were recorded as ids are not touched by any text at all. Two facts must differ in one of the two
numbers if they differ in one of the two texts, which is so because ids are counted and not hashed.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from marker_sim.judges.sets.rules import FACTS, NOTHING, RULES, SHOWN, Difference, SetRule

_LIMIT = 1 << 62


class ArrowFacts:
    """The facts of a table with the columns fact, directory, name and moment, split by kind. text: of a recorded id."""

    def __init__(self, table: pa.Table, text: Callable[[int], str] = str) -> None:
        self._text = text
        self._directories, place = _interned(table["directory"])
        names, name = (None, table["name"].cast(pa.int64())) if _is_id(table["name"]) else _interned(table["name"])
        self._width = max(1, len(self._directories))
        if names is None and (pc.max(name).as_py() or 0) >= _LIMIT // self._width:
            names, name = _interned(table["name"])
        self._names = names
        key = pc.add(pc.multiply(name, self._width), place)
        columns = pa.table({"fact": table["fact"], "place": place, "key": key, "at": table["moment"].cast(pa.int64())})
        self._by_fact = {fact: _of(columns, fact) for fact in FACTS}
        self.kinds = frozenset(pc.unique(table["fact"]).to_pylist()) - {None}

    def differences(self) -> dict[str, Difference]:
        """What each rule found."""
        return {rule.id: self._difference(rule) for rule in RULES}

    def _difference(self, rule: SetRule) -> Difference:
        of = self._by_fact[rule.of]
        of = of.filter(pc.is_valid(of["key"]))
        listed = self._latest(rule.within) if rule.within else None
        if listed is not None:
            of = of.filter(pc.is_in(of["place"], value_set=listed["place"].combine_chunks()))
        if not len(of):
            return NOTHING
        each = of.group_by("key", use_threads=False).aggregate([("at", "max")])
        missing = each
        for fact in rule.minus:
            others = self._by_fact[fact]["key"].drop_null()
            missing = missing.filter(pc.invert(pc.is_in(missing["key"], value_set=others.combine_chunks())))
        place = pc.subtract(missing["key"], pc.multiply(pc.divide(missing["key"], self._width), self._width))
        missing = missing.append_column("place", place)
        if rule.before:
            until = _looked_up(self._latest(rule.before), place)
            excused = pc.less(missing["at_max"], pc.fill_null(until, FACTS[rule.of].unknown))
        elif listed is not None:
            excused = pc.greater_equal(missing["at_max"], _looked_up(listed, place))
        else:
            excused = pa.chunked_array([pa.repeat(False, len(missing))])
        broken = missing.filter(pc.invert(excused))
        count = len(missing) - len(broken)
        return Difference(len(each) - count, count, len(broken), self._shown(broken))

    def _latest(self, fact: str) -> pa.Table:
        """Of each directory with a fact about it: its place, and the latest `at`."""
        return self._by_fact[fact].group_by("place").aggregate([("at", "max")])

    def _shown(self, broken: pa.Table) -> tuple[tuple[str, str], ...]:
        places = pc.cast(broken["place"], pa.int64())
        names = pc.divide(broken["key"], self._width)
        directories = _taken(self._directories, places)
        found = pa.table(
            {"directory": directories, "name": names if self._names is None else _taken(self._names, names)}
        )
        first = found.take(pc.select_k_unstable(found, SHOWN, [("directory", "ascending"), ("name", "ascending")]))
        return tuple((self._said(row["directory"]), self._said(row["name"])) for row in first.to_pylist())

    def _said(self, value: str | int) -> str:
        return self._text(value) if isinstance(value, int) else value


def _of(columns: pa.Table, fact: str) -> pa.Table:
    own = columns.filter(pc.equal(columns["fact"], fact))
    at = pc.fill_null(own["at"], FACTS[fact].unknown)
    return pa.table({"place": own["place"], "key": own["key"], "at": at}).filter(pc.is_valid(own["place"]))


def _is_id(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_integer(column.type))


def _interned(column: pa.ChunkedArray) -> tuple[pa.Array, pa.ChunkedArray]:
    """The different values of a column, and for each of its rows which it is."""
    recorded = pa.types.is_dictionary(column.type)
    encoded = column.unify_dictionaries() if recorded else column.dictionary_encode()
    chunks = encoded.chunks
    values = chunks[0].dictionary if chunks else pa.array([], pa.string())
    return values, pa.chunked_array([chunk.indices.cast(pa.int64()) for chunk in chunks], pa.int64())


def _taken(values: pa.Array, places: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([values]).take(places)


def _looked_up(table: pa.Table, place: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each place the latest `at` in a table, null where there is none."""
    at = pc.index_in(place, value_set=table["place"].combine_chunks())
    return table["at_max"].take(at)

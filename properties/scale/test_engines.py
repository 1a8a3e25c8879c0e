"""Every engine finds exactly what was planted, and whatever facts are drawn, columns and SQL find the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marker_sim.errors import UsageError
from marker_sim.judges.sets.rules import FACTS, OF_DIRECTORIES, RULES
from marker_sim.scale.engines import ArrowFacts, SqlFacts
from marker_sim.scale.set_judging import TEXTS, find_facts, judge_facts, lacking_facts
from properties.scale.planted import Rows, as_columns, as_ids, planted, write
from properties.volume import volume

NAMES = ("p", "q/r", "é", '"', "ﬀ", "𐀀")
MOMENTS = st.one_of(st.none(), st.integers(0, 5))
FACT = st.one_of(
    st.tuples(
        st.sampled_from(sorted(FACTS.keys() - set(OF_DIRECTORIES))),
        st.sampled_from("ab"),
        st.sampled_from(NAMES),
        MOMENTS,
    ),
    st.tuples(st.sampled_from(OF_DIRECTORIES), st.sampled_from("ab"), st.none(), MOMENTS),
)


class BitOr:
    """Spark's aggregate function for SQLite."""

    def __init__(self) -> None:
        self.bits = 0

    def step(self, value: int) -> None:
        self.bits |= value

    def finalize(self) -> int:
        return self.bits


def by_sql(table: pa.Table) -> SqlFacts:
    """The query that Spark runs, by SQLite."""
    connection = sqlite3.connect(":memory:")
    connection.create_aggregate("bit_or", 1, BitOr)
    connection.execute("CREATE TABLE facts (fact, directory, name, moment)")
    connection.executemany("INSERT INTO facts VALUES (:fact, :directory, :name, :moment)", table.to_pylist())
    return SqlFacts(lambda query: connection.execute(query).fetchall())


@settings(max_examples=volume(25), deadline=None)
@given(st.lists(FACT, min_size=1, max_size=40))
def test_columns_and_sql_find_the_same_in_any_facts(rows: Rows) -> None:
    table = as_columns(rows)
    ids, texts = as_ids(table)
    text = texts["text"].to_pylist()
    expected = ArrowFacts(table)
    by_ids, queried = ArrowFacts(ids, text.__getitem__), by_sql(table)
    assert expected.kinds == queried.kinds == {row[0] for row in rows}
    assert expected.differences() == by_ids.differences() == queried.differences()


def test_each_rule_is_broken_by_what_was_planted_for_it_in_every_form(tmp_path: Path) -> None:
    rows, expected = planted(volume(40_000), volume(500))
    table = as_columns(rows)
    assert {rule for rule, each in expected.items() if each.breaches} == {r.id for r in RULES} - {
        "committed-and-undone"
    }
    for form in ("parquet", "csv", "json", "ids", "ordered", "csv of ids", "json of ids"):
        place = tmp_path / form
        place.mkdir()
        ids, texts = as_ids(table.sort_by([("name", "ascending")]) if form == "ordered" else table)
        chosen = table if form in ("parquet", "csv", "json") else ids
        half = len(table) // 2
        for part in (0, 1):
            write(chosen.slice(part * half, half + part * len(table)), place, part)
        if chosen is ids:
            pq.write_table(texts, place / TEXTS)
        facts = find_facts(place)
        assert facts is not None
        judged = judge_facts(facts, None)
        assert {rule: judged.differences[rule] for rule in expected} == expected, form
        assert not judged.lacking


def test_a_rule_without_its_facts_is_not_judged_and_a_word_that_is_no_fact_is_refused() -> None:
    lacking = lacking_facts(frozenset({"answered", "stored", "present"}))
    assert set(lacking) == {"stored-not-requested", "stored-not-committed", "stored-and-rolled-back"}
    assert "'requested'" in lacking["stored-not-requested"]
    assert lacking_facts(frozenset(FACTS)) == {}
    with pytest.raises(UsageError, match="'answerd' is no fact"):
        lacking_facts(frozenset({"answerd"}))

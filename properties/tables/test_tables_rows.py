"""G24 from writes and rows alone, on stories by hand and on drawn ones that a simple table obeys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables.frozen import Frozen, Writes

NOTHING = Frozen({}, {})


def story(*writes: tuple[str, tuple[str, ...]]) -> Writes:
    told = Writes()
    for outcome, rows in writes:
        told.write(outcome, *rows)
    return told


TWO = (("ok", ("a=1", "b=1")), ("info", ("a=2", "b=2")))
OVERWRITTEN = (*TWO, ("ok", ("a=3",)))
GONE = (("ok", ("a=1", "b=1")), ("ok", ("a=", "b=2")))
PERHAPS = (("ok", ("a=1", "b=1")), ("info", ("a=", "b=2")))
TWICE = (("ok", ("a=1", "b=1")), ("info", ("a=2", "b=")), ("info", ("a=3", "b=")))
AGAIN = (*GONE, ("info", ("a=3", "b=3")), ("info", ("a=", "c=4")))


@pytest.mark.parametrize(
    ("writes", "rows", "said"),
    (
        (TWO, ("a=1", "b=1"), ""),
        (TWO, ("a=2", "b=2"), ""),
        (TWO, ("a=2", "b=1"), "in part"),
        (TWO, ("a=1", "b=2"), "in part"),
        (TWO, ("a=1",), "not found"),
        (TWO, ("b=2",), "not found"),
        (TWO, (), "not found"),
        (TWO, ("a=1", "b=1", "b=1"), "2 times"),
        (TWO, ("a=1", "b=1", "c=1"), "no write"),
        (TWO, ("a=9", "b=1"), "no write"),
        (OVERWRITTEN, ("a=3", "b=2"), ""),
        (OVERWRITTEN, ("a=3", "b=1"), ""),
        (OVERWRITTEN, ("a=2", "b=2"), "not found"),
        (OVERWRITTEN, ("a=1", "b=1"), "not found"),
        ((("ok", ("a=1",)), ("fail", ("a=2",))), ("a=2",), "failed"),
        ((("ok", ("a=1",)), ("info", ("b=2",))), ("a=1",), ""),
        (GONE, ("b=2",), ""),
        (GONE, ("a=1", "b=2"), "'a' (deleted), for which 'a=1' is"),
        (GONE, ("b=1",), "not found"),
        (PERHAPS, ("a=1", "b=1"), ""),
        (PERHAPS, ("b=2",), ""),
        (PERHAPS, ("b=1",), "in part: 'a' (deleted) is and 'b=2' is not"),
        (PERHAPS, ("a=1", "b=2"), "in part: 'b=2' is and 'a' (deleted) is not"),
        ((*PERHAPS, ("ok", ("a=3",))), ("b=2",), "not found"),
        (AGAIN, ("b=2",), ""),
        (AGAIN, ("a=3", "b=3"), ""),
        (AGAIN, ("b=3", "c=4"), ""),
        (AGAIN, ("a=3", "b=2"), "in part"),
        ((("ok", ("c=",)), ("info", ("a=2", "c=2")), ("info", ("a=3", "c="))), ("a=2",), "in part"),
        (
            (("ok", ("a=1", "b=1")), ("info", ("a=2", "b=")), ("info", ("a=3", "b="))),
            ("a=1",),
            "'b=1', for which nothing",
        ),
        ((("ok", ("a=1", "b=1")), ("info", ("a=2", "b=")), ("info", ("a=3", "b="))), ("a=2",), ""),
        ((("ok", ("a=1",)), ("fail", ("a=",))), (), "failed"),
    ),
)
def test_a_key_shows_the_last_write_of_it_that_is_visible(
    writes: tuple[tuple[str, tuple[str, ...]], ...], rows: tuple[str, ...], said: str
) -> None:
    for reader in ("hudi", "hudi-rs"):
        told = story(*writes)
        told.read(*rows, reader=reader)
        found = told.judged("G24")
        assert found.judged == 1
        assert bool(found.breaches) == bool(said)
        assert not said or any(said in breach.message and reader in breach.message for breach in found.breaches)


def test_a_write_of_unknown_outcome_is_decided_once() -> None:
    for second, count in ((("a=1",), 0), (("a=2",), 1)):
        told = story(("ok", ("a=1",)), ("info", ("a=2",)))
        told.read("a=1")
        told.write("ok", "b=3")
        told.read(*second, "b=3")
        found = told.judged("G24")
        assert found.judged == 2 and len(found.breaches) == count
    told = story(("ok", ("a=1",)), ("info", ("a=2",)))
    told.read("a=2")
    told.read("a=2", reader="hudi-rs")
    told.write("ok", "b=3")
    told.read("a=1", "b=3")
    assert len(told.judged("G24").breaches) == 1


@pytest.mark.parametrize(
    ("services", "rows", "judged", "count"),
    (
        (("restore",), ("a=1",), 1, 0),
        (("restore",), ("a=2",), 1, 1),
        (("restore",), (), 1, 1),
        (("compact", "clean", "archive", "cluster"), ("a=2",), 1, 0),
        (("compact", "clean", "archive", "cluster"), ("a=1",), 1, 1),
        (("restore info",), ("a=1",), 1, 0),
        (("restore info",), ("a=2",), 1, 0),
        (("restore info",), ("b=1",), 1, 1),
        (("restore info",), (), 1, 0),
        (("restore info", "restore"), ("a=1",), 1, 0),
        (("restore info", "restore"), ("a=2",), 1, 1),
        (("savepoint", "restore"), ("a=2",), 1, 0),
        (("savepoint", "restore"), ("a=1",), 1, 1),
        (("savepoint info", "restore"), ("a=1",), 1, 0),
    ),
)
def test_a_restore_takes_back_what_was_written_after_the_last_savepoint(
    services: tuple[str, ...], rows: tuple[str, ...], judged: int, count: int
) -> None:
    told = story(("ok", ("a=1",)))
    told.serve("savepoint")
    told.write("ok", "a=2")
    for service in services:
        name, _, outcome = service.partition(" ")
        told.serve(name, outcome or "ok")
    told.read(*rows)
    found = told.judged("G24")
    assert (found.judged, len(found.breaches)) == (judged, count)
    unsure = services in (("restore info",), ("savepoint info", "restore"))
    assert ("restore-unfinished" in dict(found.excused)) == unsure


def test_what_is_written_after_a_restore_stays() -> None:
    for rows, count in ((("a=1", "c=4"), 0), (("a=1",), 1), (("a=3", "c=4"), 1)):
        told = story(("ok", ("a=1",)))
        told.serve("savepoint")
        told.write("ok", "a=2", "b=2")
        told.serve("restore", "info")
        told.write("ok", "a=3")
        told.serve("restore")
        told.write("ok", "c=4")
        told.read(*rows)
        assert len(told.judged("G24").breaches) == count


def test_a_table_that_cannot_be_read_is_a_breach_and_a_reader_that_cannot_read_any_is_not() -> None:
    told = story(*TWO)
    told.read(error="no such file")
    assert len(told.judged("G24").breaches) == 1
    told = story(*TWO)
    told.read(error="unsupported: log files")
    found = told.judged("G24")
    assert found.applicable and not found.judged and not found.breaches and "unsupported" in found.undecided


def test_nothing_read_or_nothing_completed_is_not_judged() -> None:
    assert not story(*TWO).judged("G24").applicable
    told = story(("info", ("a=1",)))
    told.read(error="no table yet")
    found = told.judged("G24")
    assert found.applicable and not found.judged and not found.breaches


TORN = (("info", ("a=1", "b=1")),)


@pytest.mark.parametrize(
    ("writes", "rows", "count"),
    ((TORN, (), 0), (TORN, ("a=1", "b=1"), 0), (TORN, ("a=1",), 1), (TORN, ("a=1", "b=1", "c=1"), 1)),
)
def test_half_a_write_is_seen_before_any_write_completed(
    writes: tuple[tuple[str, tuple[str, ...]], ...], rows: tuple[str, ...], count: int
) -> None:
    told = story(*writes)
    told.read(*rows)
    assert len(told.judged("G24").breaches) == count and told.judged("G24").judged == 1


@pytest.mark.parametrize(
    ("first", "second", "between", "count"),
    (
        (("a=1", "b=1"), ("a=1", "b=1"), False, 0),
        (("a=2", "b=2"), ("a=2", "b=2"), False, 0),
        (("a=2", "b=2"), ("a=1", "b=1"), False, 1),
        (("a=1", "b=1"), ("a=2", "b=2"), False, 1),
        (("a=1", "b=1"), ("a=2", "b=2"), True, 0),
    ),
)
def test_readers_of_one_rest_agree_about_a_write_of_unknown_outcome(
    first: tuple[str, ...], second: tuple[str, ...], between: bool, count: int
) -> None:
    """Between rests another reader is another matter: each is held to what it said itself."""
    told = story(*TWO)
    told.read(*first)
    if between:
        told.write("ok", "c=3")
    told.read(*second, *(("c=3",) if between else ()), reader="hudi-rs")
    found = told.judged("G24")
    assert len(found.breaches) == count
    assert all("found by" in breach.message and "hudi-rs" in breach.message for breach in found.breaches)


@pytest.mark.parametrize(("world", "count"), (("spark", 0), ("foreign", 1)))
def test_a_key_holds_an_equals_sign_where_the_kit_wrote(world: str, count: int) -> None:
    """Elsewhere the first one ends the key, so that `a=b` and `a=c` are two values of `a`."""
    told = Writes(world=world)
    told.write("ok", "a=b=1")
    told.write("ok", "a=c=3")
    told.read("a=b=1", "a=c=3")
    assert bool(told.judged("G24").breaches) == bool(count)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[str, ...]]], dict[str, str]]:
    """Writes of one table, and its rows when each write of unknown outcome is visible or not."""
    rows: dict[str, str] = {"k9": "w0"}
    writes: list[tuple[str, tuple[str, ...]]] = [("ok", ("k9=w0",))]
    for number in range(1, draw(st.integers(1, 6))):
        keys = draw(st.sets(st.sampled_from(["k0", "k1", "k2", "k3"]), min_size=1))
        mine = {key: draw(st.sampled_from([f"w{number}", f"w{number}", ""])) for key in sorted(keys)}
        outcome = draw(st.sampled_from(["ok", "ok", "info", "fail"]))
        writes.append((outcome, tuple(f"{key}={value}" for key, value in mine.items())))
        if outcome == "ok" or (outcome == "info" and draw(st.booleans())):
            rows |= mine
    return writes, {key: value for key, value in rows.items() if value}  # No value: deleted.


@settings(max_examples=150, deadline=None)
@given(tables(), st.data())
def test_what_a_table_may_show_holds_and_what_a_completed_write_lost_does_not(
    drawn: tuple[list[tuple[str, tuple[str, ...]]], dict[str, str]], data: st.DataObject
) -> None:
    writes, rows = drawn
    told = story(*writes)
    told.read(*(f"{key}={value}" for key, value in rows.items()))
    assert not told.judged("G24").breaches
    done = {row for outcome, mine in writes if outcome == "ok" for row in mine}
    deleted = {row for _, mine in writes for row in mine if row.endswith("=")}  # It may be by any of these.
    key = data.draw(
        st.sampled_from(sorted(key for key in rows if f"{key}={rows[key]}" in done and f"{key}=" not in deleted))
    )
    worse = story(*writes)
    worse.read(*(f"{other}={value}" for other, value in rows.items() if other != key))
    assert worse.judged("G24").breaches

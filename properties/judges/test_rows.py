"""G24: what a reader of completed commits finds, on histories that the reference made and on ones bent by hand."""

from __future__ import annotations

import pytest

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.plan import Plan, Task, Write
from marker_sim.system import reference
from properties.faces.campaign import execute
from properties.faces.judges import Finding

TWO = Plan(
    mode="direct",
    directories=(),
    writes=(
        Write(tasks=(Task(), Task(group="f1"))),
        Write(tasks=(Task(kind="MERGE"), Task(group="f1", kind="APPEND"))),
    ),
    merge_on_read=True,
)


def finding(history: History) -> Finding:
    return judge(history, frozenset({"G24"}))[0]


def bent(rows: tuple[str, ...] | None, error: str | None = None) -> History:
    """The history of TWO with other rows read in the end."""
    history, _ = execute(TWO, reference())
    events = tuple(e._replace(value=rows, error=error) if e.operation == "rows" else e for e in history.events)
    return History(history.header, events)


def rows_of(history: History) -> tuple[str, ...]:
    value = next(event.value for event in history.events if event.operation == "rows")
    assert isinstance(value, tuple)
    return value


def test_the_rows_of_all_writes_are_found() -> None:
    history, _ = execute(TWO, reference())
    found = finding(history)
    assert found.applicable and found.judged == 12 and not found.breaches


@pytest.mark.parametrize("lost", ["/f0/1=1", "/f1/2=2", "/f0/all=3", "/f1/odd=1"])
def test_a_row_that_is_lost_is_a_breach(lost: str) -> None:
    rows = rows_of(execute(TWO, reference())[0])
    assert lost in rows
    found = finding(bent(tuple(row for row in rows if row != lost)))
    assert found.breaches and lost.rpartition("=")[0] in found.breaches[0].message
    assert ("wrote its group last" in found.breaches[0].message) == (lost != "/f1/2=2")


def test_a_row_of_an_older_write_is_a_breach() -> None:
    rows = rows_of(execute(TWO, reference())[0])
    found = finding(bent(tuple("/f1/all=1" if row == "/f1/all=2" else row for row in rows)))
    assert len(found.breaches) == 1 and "shows '1'" in found.breaches[0].message


def test_a_table_that_cannot_be_read_is_a_breach() -> None:
    found = finding(bent(None, "f0 ends in the middle of a row"))
    assert len(found.breaches) == 1 and "cannot be read" in found.breaches[0].message


def test_a_history_without_writes_says_nothing() -> None:
    history, _ = execute(Plan(mode="direct"), reference())
    assert not finding(history).applicable


def test_a_history_from_before_the_third_row_is_not_accused() -> None:
    rows = rows_of(execute(TWO, reference())[0])
    older = finding(bent(tuple(row for row in rows if "/odd=" not in row and "/even=" not in row)))
    assert older.judged == 8 and not older.breaches

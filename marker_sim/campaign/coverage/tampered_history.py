"""Tampered histories: a false statement in a copy of a recorded history, where no mutant can serve as canary.

    tampered event                                                 its judge
    the last answered listing has one name more                    G4 exact-set
    the last marker file read at rest has one name more            G4 exact-set
    the last rows read from a table have a row that was not written  G24 rows-survive

The campaign recorded and judged the history itself, so this detects a recorder whose histories the judges cannot use as
well as a judge that detects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from marker_sim.campaign.result import Canary
from marker_sim.history import Event, History, Value
from marker_sim.judges import judge
from marker_sim.names import encode_names, marker_file_index

NAME = "planted/canary.parquet.marker.CREATE"


class TamperedHistory(NamedTuple):
    """One kind of false statement. value: the false value of an event, None for events of another kind."""

    name: str
    guarantee: str
    value: Callable[[Event], Value]


def find_false_statement(history: History | None) -> Canary | None:
    """The first false statement that a judge detects, tried one after the other; None where none is possible.

    One is not enough: a listing may be of a directory that is not judged.
    """
    last: Canary | None = None
    for number, (plant, planted) in enumerate(_planted(history) if history is not None else (), start=1):
        assert history is not None
        caught = _breaches(planted, plant.guarantee) > _breaches(history, plant.guarantee)
        last = Canary(mutant=plant.name, guarantee=plant.guarantee, plans=number, caught=caught)
        if caught:
            return last
    return last


def _planted(history: History) -> list[tuple[TamperedHistory, History]]:
    made = []
    for plant in PLANTS:
        for position in range(len(history.events) - 1, -1, -1):
            event = history.events[position]
            value = plant.value(event)
            if value is not None:
                made.append((plant, History(history.header, tuple(_instead(history, event, value)))))
                break
    return made


def _instead(history: History, tampered: Event, value: Value) -> Iterator[Event]:
    """The events with a false value in one, and in all effects and reads that state the same of that file."""
    for event in history.events:
        same = event.path is not None and (event.path, event.value) == (tampered.path, tampered.value)
        yield event._replace(value=value) if event is tampered or (same and _at_rest(event)) else event


def _at_rest(event: Event) -> bool:
    return (event.kind, event.operation) in (("observe", "file"), ("effect", "put"))


def _breaches(history: History, guarantee: str) -> int:
    return sum(len(finding.breaches) for finding in judge(history, frozenset({guarantee})))


def _longer_listing(event: Event) -> Value:
    if event.kind == "ok" and event.operation == "list" and isinstance(event.value, tuple):
        return tuple(sorted((*event.value, NAME)))
    return None


def _longer_file(event: Event) -> Value:
    name = (event.path or "").rpartition("/")[2]
    if _at_rest(event) and isinstance(event.value, bytes) and marker_file_index(name) is not None:
        return event.value + encode_names((NAME,))
    return None


def _longer_table(event: Event) -> Value:
    if event.kind == "observe" and event.operation == "rows" and isinstance(event.value, tuple):
        return tuple(sorted((*event.value, "planted/canary=0")))
    return None


PLANTS = (
    TamperedHistory("a listing holds a name that was not requested", "G4", _longer_listing),
    TamperedHistory("a marker file holds a name that was not requested", "G4", _longer_file),
    TamperedHistory("a table holds a row that was not written", "G24", _longer_table),
)

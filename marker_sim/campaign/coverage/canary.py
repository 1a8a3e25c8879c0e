"""The canary: before a campaign is believed it must detect a known defect, one mutant drawn by the seed.

The mutant is treated like the system under test: plans of the same generators, one of the campaign's own modes and
storages, the same judges and profile. Every canary is killed by few plans wherever the table below lists it
(docs/mutants.md has the measurement), so a campaign that misses it is not reliable.

    world         the known defect
    simulated     a mutant of the reference, found by the campaign's own search
    any other     a false statement in a copy of the last history

    tampered event                                                 its judge
    the last answered listing has one name more                    G4 exact-set
    the last marker file read at rest has one name more            G4 exact-set
    the last rows read from a table have a row that was not written  G24 rows-survive

The campaign recorded and judged the history itself, so a false statement detects a recorder whose histories the judges
cannot use as well as a judge that detects nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import Event, History, Value
from marker_sim.judges import judge
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import Profile
from marker_sim.mutants import Mutant
from marker_sim.mutants.load import find_mutant
from marker_sim.names import encode_names, marker_file_index
from marker_sim.outcome.result import Canary

PLANS_MAX = 200

_DIRECT = ("direct/s3", "direct/s3-unconditional", "direct/local", "direct/hdfs")
_TIMELINE = ("timeline/s3", "timeline/local")
_FALLS_BACK = ("timeline/s3-unconditional", "timeline/hdfs")
_CONDITIONAL = ("direct/s3", "direct/local", "direct/hdfs", "timeline/hdfs")
_EVERYWHERE = (*_DIRECT, *_TIMELINE, *_FALLS_BACK)

# Each was found in at most 25 plans of the mix in that place, from each of six seeds.
CANARIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ack-before-flush", _TIMELINE),
    ("only-the-new-names", _TIMELINE),
    ("leading-slash", _TIMELINE),
    ("two-creators", _TIMELINE),
    ("file-for-every-batch", _TIMELINE),
    ("one-file-too-many", _TIMELINE),
    ("delete-answered-early", _TIMELINE),
    ("list-fails-during-creates", _TIMELINE),
    ("deleted-and-put", ("timeline/s3",)),
    ("rewritten-in-place-seen", ("timeline/local",)),
    ("batched-on-hdfs", ("timeline/hdfs",)),
    ("silent-fallback", ("timeline/hdfs",)),
    ("batched-without-conditions", ("timeline/s3-unconditional",)),
    ("direct-fire-and-forget", _CONDITIONAL),
    ("direct-without-condition", _CONDITIONAL),
    ("direct-marker-has-content", _CONDITIONAL),
    ("direct-flat", (*_DIRECT, *_FALLS_BACK)),
    ("delete-forgets-one", _EVERYWHERE),
    ("file-before-marker", _EVERYWHERE),
    ("no-reconcile", _EVERYWHERE),
    ("markers-deleted-before-commit", _EVERYWHERE),
    ("instant-used-again", _EVERYWHERE),
)
NAME = "planted/canary.parquet.marker.CREATE"


def draw(
    seed: int, places: Iterable[tuple[str, str]], guarantees: frozenset[str] | None, profile: Profile
) -> tuple[Mutant, tuple[str, str]] | None:
    """The canary that a seed draws, with its place; None when no promised guarantee is broken by a canary there.

    It breaks a judged guarantee, if there is such a canary; otherwise any, to test worlds and generators.
    """
    open_to = {f"{mode}/{storage}": (mode, storage) for mode, storage in places}
    fitting = [
        (mutant, open_to[where])
        for name, homes in CANARIES
        for mutant in (find_mutant(name),)
        for where in homes
        if where in open_to and _promised(profile, mutant.kills, *open_to[where])
    ]
    judged = [(mutant, place) for mutant, place in fitting if guarantees is None or mutant.kills in guarantees]
    chosen = judged or fitting
    return random.Random(f"canary/1/{seed}").choice(chosen) if chosen else None


def _promised(profile: Profile, guarantee: str, mode: str, storage: str) -> bool:
    """Whether a guarantee is promised under every class of faults under which the profile promises any."""

    def kept(one: str, under: str) -> bool:
        return profile.promise(one, mode, storage, under).promised

    return kept(guarantee, "none") and all(
        kept(guarantee, under) for under in FAULT_CLASSES if any(kept(other.id, under) for other in GUARANTEES)
    )


class TamperedHistory(NamedTuple):
    """One kind of false statement. value: the false value of an event, None for events of another kind."""

    name: str
    guarantee: str
    value: Callable[[Event], Value]


def find_false_statement(history: History | None) -> Canary | None:
    """The first false statement that a judge detects, else the last one tried, not caught; None where none is possible.

    One is not enough: a listing may be of a directory that is not judged.
    """
    last: Canary | None = None
    if history is None:
        return last
    for number, (plant, planted) in enumerate(_planted(history), start=1):
        caught = _breaches(planted, plant.guarantee) > _breaches(history, plant.guarantee)
        last = Canary(mutant=plant.name, guarantee=plant.guarantee, plans=number, caught=caught)
        if caught:
            break
    return last


def _planted(history: History) -> list[tuple[TamperedHistory, History]]:
    made = []
    for plant in PLANTS:
        for event in reversed(history.events):
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
    return (event.kind, event.operation) in (("observe", "file"), ("effect", "put"), ("effect", "overwrite-end"))


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
    TamperedHistory("a table holds such a row in the end of its future", "G30", _longer_table),
)

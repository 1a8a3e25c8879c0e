"""A run on Spark that is over, and the data files that one of the reference's left behind. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from marker_sim.faults import Fault
from marker_sim.history import History
from marker_sim.names import data_path
from marker_sim.timeline import ROLLBACK, State, decode_commit, parse_entry
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.played import PlayedRun
from marker_sim.worlds.spark.plans import DRIVER

TOO_LATE = "after its instant was over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun(PlayedRun):
    """A run by a plan of jobs or of a table, without the steps that there was no time for.

    missed: the faults of jobs that never had their effect.
    armed, met: steps of a table by name, how often each was tried and met. refused: why it took no write any more.
    calls: storage calls of each write, where its driver tells them.
    """

    missed: tuple[Fault, ...] = ()
    armed: Mapping[str, int] = field(default_factory=dict)
    met: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    calls: tuple[tuple[StorageCall, ...], ...] = ()


class LeftFiles(NamedTuple):
    """The data files that no completed commit names, though another write began after them, sorted.

    strays: their driver had listed their marker, and their attempt lived to look for its marker.
    unlisted: no listing had their marker. abandoned: their attempt died before it could look.
    """

    strays: tuple[str, ...]
    unlisted: tuple[str, ...]
    abandoned: tuple[str, ...]


def left_files(history: History) -> LeftFiles:
    """What a run left behind."""
    written: dict[str, int] = {}  # The event that wrote each data file last.
    ended, listed = set[str](), set[str]()  # Those whose attempts ended; whose markers a driver's listing contains.
    begun = -1  # The event at which the last write began.
    for event in history.events:
        if event.kind == "effect" and event.operation in ("put", "overwrite") and event.path:
            written[event.path] = event.index
        elif event.operation == "attempt" and event.kind != "invoke":
            ended.add(f"{event.table}/{event.path}")
        elif (event.role, event.kind, event.operation) == (DRIVER, "ok", "list") and isinstance(event.value, tuple):
            listed.update(f"{event.table}/{data_path(name)}" for name in event.value)
        elif (event.kind, event.operation) == ("invoke", "begin"):
            begun = event.index
    before = {path for path in _unnamed(history) if written.get(path, -1) < begun}
    return LeftFiles(
        strays=tuple(sorted(before & ended & listed)),
        unlisted=tuple(sorted((before & ended) - listed)),
        abandoned=tuple(sorted(before - ended)),
    )


def _unnamed(history: History) -> set[str]:
    """The data files at the end that no completed commit names."""
    files = {e.path: e.value for e in history.events if e.kind == "observe" and e.operation == "file" and e.path}
    named: set[str] = set()
    for path, content in files.items():
        entry = parse_entry(path)
        if entry is None or entry.state is not State.COMPLETED or entry.action == ROLLBACK:
            continue
        table = path.partition("/.hoodie/")[0]
        assert isinstance(content, bytes)
        named |= {f"{table}/{stat.path}" for stat in decode_commit(content)}
    return {path for path in files if "/.hoodie/" not in path and path not in named}

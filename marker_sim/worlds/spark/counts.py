"""A run on Spark that is over, and what really happened in one of the reference's, from its history alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from marker_sim.faults import Fault
from marker_sim.history import History
from marker_sim.names import data_path
from marker_sim.plan import Plan
from marker_sim.timeline import ROLLBACK, State, decode_commit, parse_data_file, parse_entry

TOO_LATE = "after its instant was over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRun:
    """A run that is over (`targets.target.PlayedRun`), by plans of jobs or of a table.

    plan: without the steps that there was no time for.
    counts: how often what happened.
    missed: the faults of jobs that never had their effect.
    armed, met: steps of a table by name, how often each was tried and met. refused: why it took no write any more.
    interrupted: by Ctrl-C.
    cut: there was no time for the rest of it.
    trouble: of the kit's surroundings, which ended it.
    """

    history: History
    plan: Plan
    counts: Mapping[str, int]
    missed: tuple[Fault, ...] = ()
    armed: Mapping[str, int] = field(default_factory=dict)
    met: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    interrupted: bool = False
    cut: bool = False
    trouble: str = ""


@dataclass(slots=True, kw_only=True)
class SparkCounts:
    """The counts of runs, added up.

    kills: of drivers, by phase.
    faults: all others, by their word; an executor's death is one.

    jobs: writes that began, completed: commits on the timeline. copies: attempts that succeeded beside another one of
    their task, so that one file had to go; again: those that succeeded after another one had. late: attempts that took
    back their own file. strays: data files that no completed commit names, though another write began after them, their
    driver had listed their marker and their attempt lived to look for its marker directory. unlisted: those whose
    marker no listing had; abandoned: those whose attempt died before it could look.
    """

    jobs: int = 0
    completed: int = 0
    rollbacks: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    copies: int = 0
    again: int = 0
    late: int = 0
    strays: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()

    def add(self, other: SparkCounts) -> None:
        """Add the counts of another run."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def count(history: History) -> SparkCounts:
    """The counts of one run, including the last write, which the kit adds to the plan."""
    counts = SparkCounts()
    attempts: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    for event in history.events:
        what = (event.kind, event.operation)
        if what == ("fault", "kill") and event.role == "driver":
            counts.kills[event.error or "kill"] += 1
        elif what == ("fault", "kill"):
            if event.role == "timeline-server" and event.value is None:
                counts.faults["kill-server"] += 1
        elif event.kind == "fault" and event.value != "end":
            counts.faults[event.operation] += 1
        elif what == ("ok", "begin"):
            counts.jobs += 1
        elif what == ("ok", "rollback"):
            counts.rollbacks += 1
        elif what == ("ok", "attempt") and event.caused_by is not None:
            file = parse_data_file(event.path or "")
            key = (event.instant, file.file_id if file is not None else "")
            attempts.setdefault(key, []).append((event.caused_by, event.index))
        elif what == ("info", "attempt") and TOO_LATE in (event.error or ""):
            counts.late += 1
    for spans in attempts.values():
        counts.attempts += len(spans)
        beside = sum(began < spans[0][1] for began, _ in spans[1:])
        counts.copies += beside
        counts.again += len(spans) - 1 - beside
    counts.completed, unnamed = _unnamed(history)
    lives = _lives(history)
    before = {path for path in unnamed if lives.written.get(path, -1) < lives.begun}
    counts.abandoned = tuple(sorted(before - lives.ended))
    counts.unlisted = tuple(sorted((before & lives.ended) - lives.listed))
    counts.strays = tuple(sorted(before & lives.ended & lives.listed))
    return counts


@dataclass(slots=True)
class _Lives:
    """The data files of a run. written: the event that wrote each last. ended: those whose attempt ended. begun: the
    event at which the last write began. listed: those whose markers an answered listing contains.
    """

    written: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    begun: int = -1


def _lives(history: History) -> _Lives:
    lives = _Lives()
    for event in history.events:
        if event.kind == "effect" and event.operation in ("put", "overwrite") and event.path:
            lives.written[event.path] = event.index
        elif event.operation == "attempt" and event.kind != "invoke":
            lives.ended.add(f"{event.table}/{event.path}")
        elif (event.kind, event.operation) == ("ok", "list") and isinstance(event.value, tuple):
            lives.listed.update(f"{event.table}/{data_path(name)}" for name in event.value)
        elif (event.kind, event.operation) == ("invoke", "begin"):
            lives.begun = event.index
    return lives


def _unnamed(history: History) -> tuple[int, set[str]]:
    """The number of completed commits at the end, and the data files stored then that none of them names."""
    files = {e.path: e.value for e in history.events if e.kind == "observe" and e.operation == "file" and e.path}
    named: set[str] = set()
    commits = 0
    for path, content in files.items():
        entry = parse_entry(path)
        if entry is None or entry.state is not State.COMPLETED or entry.action == ROLLBACK:
            continue
        commits += 1
        table = path.partition("/.hoodie/")[0]
        assert isinstance(content, bytes)
        named |= {f"{table}/{stat.path}" for stat in decode_commit(content)}
    return commits, {path for path in files if "/.hoodie/" not in path and path not in named}

"""What really happened in a run of the reference's jobs on Spark, from its history alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from marker_sim.history import History
from marker_sim.timeline import ROLLBACK, State, parse_data_file, parse_entry
from marker_sim.worlds.spark.outcome import TOO_LATE, left_files


@dataclass(slots=True, kw_only=True)
class SparkCounts:
    """The counts of runs, added up.

    kills: of drivers, by phase.
    faults: all others, by their word; an executor's death is one.

    jobs: writes that began, completed: commits on the timeline. copies: attempts that succeeded beside another one of
    their task, so that one file had to go; again: those that succeeded after another one had. late: attempts that took
    back their own file. strays, unlisted, abandoned: as in LeftFiles.
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
    entries = [parse_entry(e.path) for e in history.events if e.kind == "observe" and e.operation == "file" and e.path]
    completed = [entry for entry in entries if entry is not None and entry.state is State.COMPLETED]
    counts.completed = sum(entry.action != ROLLBACK for entry in completed)
    counts.strays, counts.unlisted, counts.abandoned = left_files(history)
    return counts

"""Coverage goals: events that must have happened before a campaign may say that a guarantee holds, as data.

A goal is found in finished histories: as a mark of outcome/marks.py, or as a fault in a phase of
outcome/process_phase.py. The first turns are sampled, and then one in `LOOK_EVERY`, in every mode and on every storage.
`one_in` says, with a margin of two, in one of how many applicable runs the goal occurs, in the place and the kind of
system where it is rarest; benchmarks/reached_rates.py measures it. A campaign in which `SURE` occurrences are expected
and none is found has not missed it by chance: a generator, the system or the mark is broken, and the guarantees that
depend on the goal are inconclusive. Smaller campaigns only name it. A goal that the kit cannot cause, or cannot
observe, with a kind of system does not apply to that kind: `why_not` decides this by the kind of system, never by its
behaviour, so that a system whose defect prevents a goal still has to reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marker_sim.outcome.statistics import Statistics
from marker_sim.system import System

LOOK_EVERY = 5  # No common factor with WRITES_EVERY, so that both kinds of plans are sampled.
LOOK_FIRST = 60  # So many turns are all sampled: a short campaign has to say what it met.
SURE = 14  # exp(-14): fewer than one in a million campaigns miss a goal by chance.
_BATCHED = ("s3", "local")
OPERATIONS, WRITES = "operations", "writes"
# Requirements of some goals on a system, as texts of `not_applicable`.
SEEN = "it is seen only in files of Hudi's format"
WORDED = "a system with a format of its own may report a throttled store in words of its own"
LAID_OUT = "the kit leaves an unfinished instant before the run only with markers in Hudi's format"
CHANGED = "a write asks for the other marker mode only of a system that has both in Hudi's format"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageGoal:
    """One event that must have happened.

    name: in `reached` of verdict.json; also the name of the mark, unless `faults` is given.
    one_in, own_one_in: see the module; the second of a system with a format of its own, 0 where that is no other.
    guarantees: those that are inconclusive without it.
    plans: "operations", "writes", "" for both.
    modes, storages: where it can happen, empty for everywhere.
    faults, phases: any of these faults in any of these phases.
    needs: why it does not occur with systems of some kinds, "" where it can with every one.
    """

    name: str
    sentence: str
    one_in: int
    guarantees: tuple[str, ...]
    plans: str = ""
    modes: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    needs: str = ""
    own_one_in: int = 0

    def applies(self, mode: str, storage: str, plans: str) -> bool:
        """Whether the event can happen in such a run."""
        return (
            (not self.modes or mode in self.modes)
            and (not self.storages or storage in self.storages)
            and self.plans in ("", plans)
        )

    def times(self, statistics: Statistics) -> int:
        """The number of sampled runs in which the event happened; for a fault in several phases, of occurrences."""
        names = [f"{kind} in {phase}" for kind in self.faults for phase in self.phases] or [self.name]
        keys = [key for key in statistics.looked if self.applies(*key.split("/"))]
        return sum(statistics.met_in[f"{key}/{name}"] for key in keys for name in names)

    def why_not(self, system: System) -> str:
        """The reason why this is no goal of a system, "" where it is one; from what the system is, not what it did."""
        able = system.layout == "hudi" and (self.needs != CHANGED or None not in (system.direct, system.server))
        return "" if able else self.needs

    def eligible_runs(self, looked: Mapping[str, int]) -> int:
        """The number of sampled runs that could have reached it."""
        return sum(count for key, count in looked.items() if self.applies(*key.split("/")))

    def expected(self, looked: Mapping[str, int], own_format: bool) -> float:
        """The least number of occurrences expected in the sampled runs."""
        return self.eligible_runs(looked) / ((own_format and self.own_one_in) or self.one_in)


# Common arguments of goals: for a timeline server on batching storage, for a server or driver that dies in some
# phases, for a write client, and for clients of any marker store.
_SERVING: Mapping[str, Any] = {
    "guarantees": ("G1", "G3", "G4"),
    "plans": OPERATIONS,
    "modes": ("timeline",),
    "storages": _BATCHED,
    "needs": SEEN,
}
_SERVER_DIED: Mapping[str, Any] = {
    "plans": OPERATIONS,
    "modes": ("timeline",),
    "storages": _BATCHED,
    "faults": ("kill",),
}
_DRIVER_DIED: Mapping[str, Any] = {"plans": WRITES, "faults": ("kill",)}
_WRITING: Mapping[str, Any] = {"plans": WRITES}
_ASKING: Mapping[str, Any] = {"plans": OPERATIONS}


def _goal(
    common: Mapping[str, Any], name: str, sentence: str, one_in: int, *guarantees: str, **own: Any
) -> CoverageGoal:
    settled = {**common, **({"guarantees": guarantees} if guarantees else {}), **own}
    return CoverageGoal(name=name, sentence=sentence, one_in=one_in, **settled)


GOALS: tuple[CoverageGoal, ...] = (
    _goal(
        _SERVER_DIED,
        "batch-cut",
        "a server died between taking a batch and its last reply",
        8,
        "G1",
        "G2",
        "G3",
        "G6",
        phases=("server: batch pending", "server: written and not answered", "server: between replies"),
        own_one_in=40,
    ),
    _goal(
        _SERVER_DIED,
        "died-unanswered",
        "a server died after writing a batch and before any reply",
        60,
        "G2",
        "G3",
        phases=("server: written and not answered",),
        needs=SEEN,
    ),
    _goal(
        _SERVER_DIED,
        "died-between-replies",
        "a server died after answering only part of a batch",
        110,
        "G1",
        "G3",
        phases=("server: between replies",),
        needs=SEEN,
    ),
    _goal(
        _SERVER_DIED,
        "died-deleting",
        "a server died during a deletion",
        40,
        "G10",
        phases=("server: deleting",),
        own_one_in=240,
    ),
    _goal(
        _SERVER_DIED,
        "died-recovering",
        "a server died during recovery",
        80,
        "G3",
        "G4",
        "G6",
        phases=("server: recovering",),
        needs=SEEN,
    ),
    _goal(_SERVING, "batch-of-several", "a batch had more than one request", 2, plans=""),
    _goal(_SERVING, "all-batch-files-used", "all marker files of a directory existed at once", 4, "G8", "G4"),
    _goal(
        _SERVING, "all-batch-files-busy", "a create came while every batch file was being written", 24, storages=("s3",)
    ),
    _goal(_SERVING, "server-recovered", "a server wrote to a directory of a dead server", 12),
    _goal(_SERVING, "two-servers-wrote", "two live servers wrote to one directory", 35),
    _goal(_SERVING, "request-twice", "one request reached a server twice", 120, "G4", "G5", plans="", needs=""),
    _goal(
        _SERVING,
        "request-in-two-lives",
        "a copy of a request reached a later server life",
        4000,
        "G5",
        plans="",
        needs="",
    ),
    _goal(_SERVING, "listing-met-rewrite", "a listing ran while a marker file was replaced", 60, "G11"),
    _goal(_SERVING, "damaged-type-read", "a type file that was empty or missing was read", 48, "G9", "G11"),
    _goal(
        _SERVING, "torn-left-recovered", "a server read what a torn write had left", 42, "G3", "G4", storages=("local",)
    ),
    _goal(
        _SERVING,
        "throttled-for-good",
        "throttling outlasted every retry of a server",
        54,
        "G6",
        storages=("s3",),
        needs=WORDED,
    ),
    _goal(
        _ASKING,
        "fell-back",
        "timeline-server markers fell back to direct ones",
        2,
        "G22",
        modes=("timeline",),
        storages=("hdfs", "s3-unconditional"),
    ),
    _goal(
        _ASKING, "duplicate-waited", "a create waited for the flush of another create of the same name", 6, "G1", "G5"
    ),
    _goal(_ASKING, "resend-met-flush", "a resend came before the first request was answered", 10, "G5"),
    _goal(_ASKING, "resend-told-created", "a resend was answered `created` again", 32, "G5"),
    _goal(_ASKING, "name-collided", "a create was answered that its name exists", 3, "G2", "G5"),
    _goal(_ASKING, "deletion-met-creates", "a deletion and creates overlapped", 6, "G10"),
    _goal(_ASKING, "created-after-deletion", "a create succeeded in a directory that had been deleted", 6, "G10", "G3"),
    _goal(_ASKING, "hostile-refused", "a hostile name was refused", 20, "G12"),
    _goal(
        {},
        "applied-after-death",
        "a request was applied after its sender had died",
        48,
        "G3",
        "G10",
        storages=("s3", "s3-unconditional", "hdfs"),
    ),
    _goal(
        {},
        "late-request-applied",
        "a request was applied after its time-out",
        100,
        "G3",
        "G10",
        "G17",
        storages=("s3",),
    ),
    _goal(_WRITING, "copies-succeeded", "two attempts of one task succeeded", 8, "G14"),
    _goal(_WRITING, "stage-again", "a stage ran again", 80, "G14"),
    _goal(_WRITING, "finalize-deleted", "finalize deleted a stray file", 14, "G14"),
    _goal(_WRITING, "wrote-after-finalize", "an attempt wrote its file after finalize had begun", 32, "G18", "G20"),
    _goal(_WRITING, "zombie-wrote", "an attempt that its driver counted as failed wrote its file", 60, "G14", "G20"),
    _goal(_WRITING, "rollback-deleted", "a rollback deleted data files", 5, "G15"),
    _goal(_WRITING, "rollback-deleted-log", "a rollback deleted a log file", 100, "G15"),
    _goal(_WRITING, "rollback-again", "a rollback was interrupted and run again", 14, "G16"),
    _goal(
        _WRITING,
        "other-format-rolled-back",
        "a write in one marker mode rolled back one of the other mode",
        80,
        "G15",
        "G16",
        storages=_BATCHED,
        needs=CHANGED,
    ),
    _goal(_WRITING, "marker-of-another-file", "a rollback found a marker of a base file of another instant", 75, "G15"),
    _goal(_WRITING, "marker-of-another-log", "a rollback found a marker of a log file of another instant", 360, "G15"),
    _goal(_WRITING, "marker-of-another-kind", "a rollback found a marker whose kind does not fit its file", 60, "G15"),
    _goal(
        _WRITING,
        "stray-files-listed",
        "files that are no markers lay beside those that were listed",
        140,
        "G15",
        "G18",
        needs=SEEN,
    ),
    _goal(
        _WRITING, "completed-before", "a write completed on a table that held commits before the run", 18, "G14", "G24"
    ),
    _goal(_WRITING, "archived-before", "a write completed on a table with files of archived commits", 30, "G15"),
    _goal(
        _WRITING,
        "earlier-instant-rolled-back",
        "an instant that was left before the run was rolled back",
        22,
        "G15",
        "G19",
        needs=LAID_OUT,
    ),
    _goal(_WRITING, "sweep-deleted", "a sweep deleted the file of a late attempt", 100, "G18"),
    _goal(_WRITING, "many-attempts", "one write had a hundred attempts", 1200, "G13", "G14"),
    _goal(_WRITING, "write-abandoned", "a write was abandoned after its tasks", 20, "G15", "G19"),
    _goal(_WRITING, "driver-gave-up", "a driver gave up because storage or markers failed", 80, "G15", "G19", "G25"),
    _goal(
        _WRITING,
        "successor-waited",
        "a driver waited until no request of its predecessor could still be applied",
        4,
        "G15",
        "G19",
        storages=("s3", "s3-unconditional", "hdfs"),
    ),
    _goal(
        _DRIVER_DIED, "driver-died-in-stage", "a driver died while its tasks ran", 14, "G15", phases=("driver: stage",)
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-finalizing",
        "a driver died during finalize",
        30,
        "G14",
        "G15",
        phases=("driver: finalize: listing", "driver: finalize: deleting"),
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-before-entry",
        "a driver died in a commit before its entry was stored",
        30,
        "G14",
        "G15",
        phases=("driver: commit: before the entry",),
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-after-entry",
        "a driver died right after its completed entry was stored",
        32,
        "G17",
        "G24",
        phases=("driver: commit: after the entry", "driver: marker deletion"),
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-deleting-markers",
        "a driver died during the marker deletion",
        70,
        "G17",
        "G18",
        modes=("direct",),
        phases=("driver: marker deletion",),
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-awaiting-deletion",
        "a driver died while the server deleted its markers",
        120,
        "G17",
        "G18",
        modes=("timeline",),
        storages=_BATCHED,
        phases=("driver: marker deletion",),
        own_one_in=1500,
    ),
    _goal(
        _DRIVER_DIED,
        "driver-died-rolling-back",
        "a driver died during a rollback",
        20,
        "G16",
        phases=("driver: rollback", "driver: rollback: listing", "driver: rollback: markers"),
    ),
    _goal(
        _WRITING,
        "attempt-died-between",
        "an attempt died between its marker and its file",
        100,
        "G13",
        "G15",
        faults=("attempt-killed", "kill"),
        phases=("executor: between marker and data",),
    ),
)

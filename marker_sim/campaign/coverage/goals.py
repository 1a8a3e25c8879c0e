"""Coverage goals: events that must have happened before a campaign may say that a guarantee holds, as data.

A goal is found in finished histories: as a mark of coverage/marks.py, or as a fault in a phase of
coverage/process_phase.py. One turn in `LOOK_EVERY` is sampled, in every mode and on every storage. `one_in` says, with
a margin of two, in one of how many applicable runs the goal occurs, in the place and the kind of system where it is
rarest; benchmarks/reached_rates.py measures it. A campaign in which `SURE` occurrences are expected and none is found
has not missed it by chance: a generator, the system or the mark is broken, and the guarantees that depend on the goal
are inconclusive. Smaller campaigns only name it. A goal that the kit cannot bring about, or cannot see, with a kind of
system is not that kind's goal: `why_not` says so from what the system is, never from what it did, so that a system that
keeps a goal from happening by a defect is still asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marker_sim.campaign.statistics import Statistics
from marker_sim.system import System

LOOK_EVERY = 5  # Has no factor in common with WRITES_EVERY, so that plans of both kinds are sampled.
SURE = 14  # exp(-14): less than one in a million campaigns misses it by chance, far fewer by the margin of `one_in`.
_BATCHED = ("s3", "local")
OPERATIONS, WRITES = "operations", "writes"
# What some goals need of a system, in the words of `not_applicable`.
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
        """Whether it can happen in such a run."""
        return (
            (not self.modes or mode in self.modes)
            and (not self.storages or storage in self.storages)
            and self.plans in ("", plans)
        )

    def times(self, statistics: Statistics) -> int:
        """In how many sampled runs it happened; for a fault in several phases, how often."""
        names = [f"{kind} in {phase}" for kind in self.faults for phase in self.phases] or [self.name]
        keys = [key for key in statistics.looked if self.applies(*key.split("/"))]
        return sum(statistics.met_in[f"{key}/{name}"] for key in keys for name in names)

    def why_not(self, system: System) -> str:
        """Why it is not a goal of a system, "" where it is one: what the system is decides, not what it did."""
        able = system.layout == "hudi" and (self.needs != CHANGED or None not in (system.direct, system.server))
        return "" if able else self.needs

    def looked(self, looked: Mapping[str, int]) -> int:
        """How many sampled runs could have reached it."""
        return sum(count for key, count in looked.items() if self.applies(*key.split("/")))

    def expected(self, looked: Mapping[str, int], own_format: bool) -> float:
        """How often it occurred at least in sampled runs."""
        return self.looked(looked) / ((own_format and self.own_one_in) or self.one_in)


def _serving(
    name: str, sentence: str, one_in: int, needs: str = SEEN, plans: str = OPERATIONS, **more: tuple[str, ...]
) -> CoverageGoal:
    """Of a timeline server on a storage that batches."""
    given: dict[str, Any] = {"guarantees": ("G1", "G3", "G4"), "storages": _BATCHED, **more}
    return CoverageGoal(
        name=name, sentence=sentence, one_in=one_in, plans=plans, modes=("timeline",), needs=needs, **given
    )


def _died(
    name: str, sentence: str, one_in: int, role: str, *phases: str, guarantees: tuple[str, ...], **more: Any
) -> CoverageGoal:
    """A process of one role that died in one of some phases."""
    server = role == "server"
    where = {"modes": ("timeline",), "storages": _BATCHED} if server else {}
    return CoverageGoal(
        name=name,
        sentence=sentence,
        one_in=one_in,
        guarantees=guarantees,
        plans=OPERATIONS if server else WRITES,
        faults=("kill",),
        phases=tuple(f"{role}: {phase}" for phase in phases),
        **where | more,
    )


def _writing(
    name: str, sentence: str, one_in: int, *guarantees: str, storages: tuple[str, ...] = (), needs: str = ""
) -> CoverageGoal:
    """Of a write client."""
    return CoverageGoal(
        name=name,
        sentence=sentence,
        one_in=one_in,
        guarantees=guarantees,
        plans=WRITES,
        storages=storages,
        needs=needs,
    )


def _asking(name: str, sentence: str, one_in: int, *guarantees: str) -> CoverageGoal:
    """A goal of clients of any marker store."""
    return CoverageGoal(name=name, sentence=sentence, one_in=one_in, guarantees=guarantees, plans=OPERATIONS)


GOALS: tuple[CoverageGoal, ...] = (
    _died(
        "batch-cut",
        "a server died between taking a batch and its last reply",
        8,
        "server",
        "batch pending",
        "written and not answered",
        "between replies",
        guarantees=("G1", "G2", "G3", "G6"),
        own_one_in=40,
    ),
    _died(
        "died-unanswered",
        "a server died after writing a batch and before any reply",
        60,
        "server",
        "written and not answered",
        guarantees=("G2", "G3"),
        needs=SEEN,
    ),
    _died(
        "died-between-replies",
        "a server died after answering only part of a batch",
        110,
        "server",
        "between replies",
        guarantees=("G1", "G3"),
        needs=SEEN,
    ),
    _died(
        "died-deleting",
        "a server died during a deletion",
        40,
        "server",
        "deleting",
        guarantees=("G10",),
        own_one_in=240,
    ),
    _died(
        "died-recovering",
        "a server died during recovery",
        80,
        "server",
        "recovering",
        guarantees=("G3", "G4", "G6"),
        needs=SEEN,
    ),
    _serving("batch-of-several", "a batch had more than one request", 2, plans=""),
    _serving("all-batch-files-used", "all marker files of a directory existed at once", 4, guarantees=("G8", "G4")),
    _serving("all-batch-files-busy", "a create came while every batch file was being written", 24, storages=("s3",)),
    _serving("server-recovered", "a server wrote to a directory of a dead server", 12),
    _serving("two-servers-wrote", "two live servers wrote to one directory", 35),
    _serving("request-twice", "one request reached a server twice", 120, needs="", plans="", guarantees=("G4", "G5")),
    _serving(
        "request-in-two-lives",
        "a copy of a request reached a later server life",
        4000,
        needs="",
        plans="",
        guarantees=("G5",),
    ),
    _serving("listing-met-rewrite", "a listing ran while a marker file was replaced", 60, guarantees=("G11",)),
    _serving("damaged-type-read", "a type file that was empty or missing was read", 48, guarantees=("G9", "G11")),
    _serving(
        "torn-left-recovered",
        "a server read what a torn write had left",
        42,
        storages=("local",),
        guarantees=("G3", "G4"),
    ),
    _serving(
        "throttled-for-good",
        "throttling outlasted every retry of a server",
        54,
        needs=WORDED,
        storages=("s3",),
        guarantees=("G6",),
    ),
    CoverageGoal(
        name="fell-back",
        sentence="timeline-server markers fell back to direct ones",
        one_in=2,
        guarantees=("G22",),
        plans=OPERATIONS,
        modes=("timeline",),
        storages=("hdfs", "s3-unconditional"),
    ),
    _asking("duplicate-waited", "a create waited for the flush of another create of the same name", 6, "G1", "G5"),
    _asking("resend-met-flush", "a resend came before the first request was answered", 10, "G5"),
    _asking("resend-told-created", "a resend was answered `created` again", 32, "G5"),
    _asking("name-collided", "a create was answered that its name exists", 3, "G2", "G5"),
    _asking("deletion-met-creates", "a deletion and creates overlapped", 6, "G10"),
    _asking("created-after-deletion", "a create succeeded in a directory that had been deleted", 6, "G10", "G3"),
    _asking("hostile-refused", "a hostile name was refused", 20, "G12"),
    CoverageGoal(
        name="applied-after-death",
        sentence="a request was applied after its sender had died",
        one_in=48,
        guarantees=("G3", "G10"),
        storages=("s3", "s3-unconditional", "hdfs"),
    ),
    CoverageGoal(
        name="late-request-applied",
        sentence="a request was applied after its time-out",
        one_in=100,
        guarantees=("G3", "G10", "G17"),
        storages=("s3",),
    ),
    _writing("copies-succeeded", "two attempts of one task succeeded", 8, "G14"),
    _writing("stage-again", "a stage ran again", 80, "G14"),
    _writing("finalize-deleted", "finalize deleted a stray file", 14, "G14"),
    _writing("wrote-after-finalize", "an attempt wrote its file after finalize had begun", 32, "G18", "G20"),
    _writing("zombie-wrote", "an attempt that its driver counted as failed wrote its file", 60, "G14", "G20"),
    _writing("rollback-deleted", "a rollback deleted data files", 5, "G15"),
    _writing("rollback-deleted-log", "a rollback deleted a log file", 100, "G15"),
    _writing("rollback-again", "a rollback was interrupted and run again", 14, "G16"),
    _writing(
        "other-format-rolled-back",
        "a write in one marker mode rolled back one of the other mode",
        80,
        "G15",
        "G16",
        storages=_BATCHED,
        needs=CHANGED,
    ),
    _writing("marker-of-another-file", "a rollback found a marker of a base file of another instant", 75, "G15"),
    _writing("marker-of-another-log", "a rollback found a marker of a log file of another instant", 360, "G15"),
    _writing("marker-of-another-kind", "a rollback found a marker whose kind does not fit its file", 60, "G15"),
    _writing(
        "stray-files-listed",
        "files that are no markers lay beside those that were listed",
        140,
        "G15",
        "G18",
        needs=SEEN,
    ),
    _writing("completed-before", "a write completed on a table that held commits before the run", 18, "G14", "G24"),
    _writing("archived-before", "a write completed on a table with files of archived commits", 30, "G15"),
    _writing(
        "earlier-instant-rolled-back",
        "an instant that was left before the run was rolled back",
        22,
        "G15",
        "G19",
        needs=LAID_OUT,
    ),
    _writing("sweep-deleted", "a sweep deleted the file of a late attempt", 100, "G18"),
    _writing("many-attempts", "one write had a hundred attempts", 1200, "G13", "G14"),
    _writing("write-abandoned", "a write was abandoned after its tasks", 20, "G15", "G19"),
    _writing("driver-gave-up", "a driver gave up because storage or markers failed", 80, "G15", "G19", "G25"),
    _writing(
        "successor-waited",
        "a driver waited until no request of its predecessor could still be applied",
        4,
        "G15",
        "G19",
        storages=("s3", "s3-unconditional", "hdfs"),
    ),
    _died("driver-died-in-stage", "a driver died while its tasks ran", 14, "driver", "stage", guarantees=("G15",)),
    _died(
        "driver-died-finalizing",
        "a driver died during finalize",
        30,
        "driver",
        "finalize: listing",
        "finalize: deleting",
        guarantees=("G14", "G15"),
    ),
    _died(
        "driver-died-before-entry",
        "a driver died in a commit before its entry was stored",
        30,
        "driver",
        "commit: before the entry",
        guarantees=("G14", "G15"),
    ),
    _died(
        "driver-died-after-entry",
        "a driver died right after its completed entry was stored",
        32,
        "driver",
        "commit: after the entry",
        "marker deletion",
        guarantees=("G17", "G24"),
    ),
    _died(
        "driver-died-deleting-markers",
        "a driver died during the marker deletion",
        70,
        "driver",
        "marker deletion",
        guarantees=("G17", "G18"),
        modes=("direct",),
    ),
    _died(
        "driver-died-awaiting-deletion",
        "a driver died while the server deleted its markers",
        120,
        "driver",
        "marker deletion",
        guarantees=("G17", "G18"),
        modes=("timeline",),
        storages=_BATCHED,
        own_one_in=1500,
    ),
    _died(
        "driver-died-rolling-back",
        "a driver died during a rollback",
        20,
        "driver",
        "rollback",
        "rollback: listing",
        "rollback: markers",
        guarantees=("G16",),
    ),
    CoverageGoal(
        name="attempt-died-between",
        sentence="an attempt died between its marker and its file",
        one_in=100,
        guarantees=("G13", "G15"),
        plans=WRITES,
        faults=("attempt-killed", "kill"),
        phases=("executor: between marker and data",),
    ),
)

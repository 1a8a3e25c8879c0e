"""Runs against one version of Hudi's Java client: a walk over the storage calls of a write, of its rollback, and of
table services.

    a point ──► lives of a warm JVM ──► judged: every promise kept ──────────────────────────────► the run counts
                                            ├─ one broken ──► the same plan by processes, killed ──► that run counts
                                            └─ one that processes had broken so before ──► of a confirmed story

So nothing is a violation that no process showed which was really killed. What writes without a fault break, they show
as well. A story is a kind of violation, a kind of call and a fate; processes play its first point, and its next one
if they kept their promise. What a warm life broke and no process did is counted, and named in the report. Plans that
are played again, by `replay` or to become smaller, are of processes. Some points are played beside each other, each
in a warm JVM of its own or by its own processes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.black_box import OF_FUTURES
from marker_sim.judges.black_box.futures import leaves
from marker_sim.judges.findings import by_number
from marker_sim.outcome.failure import Kind, failures_in
from marker_sim.outcome.result import OF_STORY, UNCONFIRMED, Campaign, Deciding
from marker_sim.plan import FutureStep, Plan
from marker_sim.search.numbered_calls import WalkPoint
from marker_sim.surroundings.supervisor import end_marked
from marker_sim.targets.hudi_java_walk import FAILED, KILLED, TableWalk
from marker_sim.targets.hudi_spark_runs import TableRuns, open_program, tally
from marker_sim.targets.jvm.java_start import archived, compiled
from marker_sim.targets.target import CampaignRequest
from marker_sim.worlds.door.front import UNSEEN
from marker_sim.worlds.http.servers import VARIABLE
from marker_sim.worlds.spark.application import Application
from marker_sim.worlds.spark.hudi.future import FUTURES, with_future
from marker_sim.worlds.spark.hudi.java_driver import GATE, MAIN, JavaDrivers, asked_once, java_words
from marker_sim.worlds.spark.hudi.settings import shape_of, table_type
from marker_sim.worlds.spark.hudi.steps import PREPARED, with_steps
from marker_sim.worlds.spark.hudi.table import Pace
from marker_sim.worlds.spark.outcome import SparkRun

FIRST_S = 20.0  # A run until one has ended.
PROCESSES_S = 60.0  # The least time for a run of processes.
SHRINKING_S = 90.0
TIMES = 2  # A story of a warm life is played by processes until one breaks the same, so often at most.
LANES = min(4, 2 * (os.cpu_count() or 1))  # Some points wait for seconds, as Hudi does after an error.
LIVES_MAX = 1_000  # Of a JVM: a dead life may leave threads.
CONFIRMED = "broken in a warm JVM, and by processes that were killed there"
NOT_CONFIRMED = "broken in a warm JVM, and not by processes that were killed there"
NO_WRITE = "a later write that completes"  # As where each one hangs: what judges do not accuse is not kept either.
AS_BEFORE = "broken in a warm JVM, as by processes at another call of its kind"
_DECIDES = {
    KILLED["write"]: ("G13", "G14", "G15", "G18", "G19", "G24"),
    KILLED["rollback"]: ("G15", "G16", "G18", "G24"),
    FAILED["write"]: ("G13", "G19", "G24"),
    FAILED["rollback"]: ("G15", "G16", "G24"),
}
# Where they alone are walked; else nothing waits for them.
_DECIDED_BY_SERVICES = {names[each]: ("G14", "G15", "G19", "G24") for names in (KILLED, FAILED) for each in PREPARED}


@contextmanager
def open_runs(
    request: CampaignRequest,
    version: str,
    java: str,
    jars: list[str],
    progress: Callable[[str], None],
    made: Callable[..., JavaRuns] | None = None,
) -> Iterator[JavaRuns]:
    """The runs of a campaign, those of the walk unless others are made.

    HarnessError when storage calls cannot be stopped here, or Java does not compile.
    """
    sources = [Path(str(files("marker_sim.targets.jvm") / f"{name}.java")) for name in (MAIN, GATE)]
    with open_program(request, java, tuple(map(Path, jars))) as (common, scratch):
        program_jar = compiled(java, [*jars, str(common.home / "jars" / "*")], sources, progress)
        program = replace(common, jars=(program_jar, *common.jars))
        walk = TableWalk(request.modes, request.seed, request.server.services, storage=request.storage)
        with asked_once(walk.bases[0][1], version, scratch / "once") as asked:
            words = archived(java_words(java, program.jars, program.home), program_jar, asked, progress)
        runs = (made or JavaRuns)(
            request=request, version=version, program=program, words=words, scratch=scratch, walk=walk
        )
        try:
            yield runs
        finally:
            runs.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPoint:
    """A run of the walk. point: None where a workload is numbered."""

    number: int
    plan: Plan
    point: WalkPoint | None
    words: str

    @property
    def line(self) -> str:
        """The line of progress."""
        return f"run {self.number}: {self.plan.mode}, {table_type(self.plan)}: {self.words}"


@dataclass(slots=True, kw_only=True)
class JavaRuns(TableRuns):
    """The runs of one campaign; `targets.target.RealRuns` says what each method is for.

    decides: guarantees, by the faults that have to be met for them.
    unconfirmed: what was broken in a warm JVM alone, and by which points. met, tried: faults by mode and place.
    _shown: what processes broke, by kinds of points; _plays: how often they played what a warm JVM broke; _faultless:
    what they broke without a fault, by tables.
    """

    decides: ClassVar[Mapping[str, tuple[str, ...]]] = _DECIDES
    words: list[str]
    walk: TableWalk
    lanes: int = LANES
    unconfirmed: Counter[str] = field(default_factory=Counter)
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    _paces: tuple[Pace, Pace] = field(default_factory=lambda: (Pace(), Pace()))  # Of processes and of warm lives.
    _took_s: float = FIRST_S
    _drawn: int = 0
    _out_of_time: bool = False
    _shown: dict[Hashable, set[Kind]] = field(default_factory=dict)
    _plays: Counter[tuple[Hashable, Kind]] = field(default_factory=Counter)
    _faultless: dict[Plan, set[Kind]] = field(default_factory=dict)
    _settled: dict[WalkPoint, str] = field(default_factory=dict)
    _futures: dict[Hashable, tuple[FutureStep, ...]] = field(default_factory=dict)  # That decided, by kinds of points.
    _lives: Counter[int] = field(default_factory=Counter)  # By thread, as the JVMs.
    _jvms: dict[int, Application] = field(default_factory=dict)
    _closed: bool = False
    _confirming: dict[Hashable, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def draw(self, reached: Mapping[str, int]) -> DrawnPoint | None:
        """The next run, None when none fits into the budget; the first always does."""
        if self._out_of_time or not self._has_room:
            return None
        found = self.walk.next() or self.walk.beyond()
        if found is None:
            return None
        self._drawn += 1
        if isinstance(found, Plan):
            bare = with_future(found, ())
            numbered = "its calls are numbered" if any(plan == bare for _, plan in self.walk.bases) else "drawn"
            words = "without a fault" if found in self.walk.controls else numbered
            return DrawnPoint(number=self._drawn, plan=found, point=None, words=words)
        return DrawnPoint(number=self._drawn, plan=found.plan, point=found, words=self.walk.shown(found))

    def play(self, drawn: DrawnPoint) -> SparkRun:
        """The result of the drawn run: of warm lives where they keep every promise, else of processes."""
        began, until = time.monotonic(), self.program.deadline - self.spared_s
        played = self._run(drawn.plan, until, self._drivers(self._warm))
        if drawn.point and not (played.cut or _broke(played, "G24")) and leaves(played.history):
            played = self._with_future(drawn.point, played, until)
        self._took_s = (self._took_s + time.monotonic() - began) / 2
        broken = self._broken(played)
        if not broken or played.interrupted or played.trouble:
            return played
        if drawn.point is None:
            # What is broken before the future needs none.
            late = any(each.guarantee in OF_FUTURES for each in broken)
            run = self._run(drawn.plan if late else with_future(drawn.plan, ()), until, self._drivers())
            if drawn.plan in self.walk.controls:
                self._faultless[_table_of(drawn.plan)] = self._broken(run)
            if alone := " ".join(by_number(each.guarantee for each in broken - self._broken(run))):
                self.unconfirmed[f"{alone} by {drawn.line}"] += 1
            return replace(run, calls=played.calls)  # Processes tell none, and the walk needs them.
        with self._confirming[self.walk.kind(drawn.point)]:
            return self._confirmed(drawn.point, broken, replace(played, findings=()))

    def _with_future(self, point: WalkPoint, played: SparkRun, until: float) -> SparkRun:
        """The run of a point that left something, with the first future in which a reader sees it; with the last one
        where none does. Of points of one kind the first decides.
        """
        kind = self.walk.kind(point)
        known = self._futures.get(kind)
        for others, steps in enumerate([known] if known else FUTURES.values()):
            found = self._run(with_future(point.plan, steps, others), until, self._drivers(self._warm))
            if found.interrupted or found.trouble or found.cut:
                return played
            played, self._futures[kind] = found, steps
            if _broke(found, "G30"):
                break
        return played

    def _confirmed(self, point: WalkPoint, broken: set[Kind], played: SparkRun) -> SparkRun:
        """The run of processes by a point that broke something in a warm JVM; `played` where there is none."""
        shape = shape_of(played.plan)
        plan = with_future(point.plan, shape.future, shape.harmless)
        kind, counts = self.walk.kind(point), AS_BEFORE
        shown = self._shown.setdefault(kind, set())
        shown |= self._faultless.get(_table_of(plan), set())  # No fault does that.
        while (open_ := {each for each in broken - shown if self._plays[kind, each] < TIMES}) and self._has_time:
            run = self._run(plan, self.program.deadline, self._drivers())
            if run.trouble and self._has_time:  # A JVM that did not start in time may do so now.
                run = self._run(plan, self.program.deadline, self._drivers())
            if run.interrupted or run.trouble:
                return run
            self._plays.update((kind, each) for each in open_)
            shown |= self._broken(run)
            if counts != CONFIRMED:
                played, counts = replace(run, calls=played.calls), CONFIRMED if self._broken(run) else AS_BEFORE
        if alone := " ".join(by_number(each.guarantee for each in broken - shown)):
            self.unconfirmed[f"{alone} by {self.walk.shown(point)}"] += 1
            counts = counts if counts == CONFIRMED else NOT_CONFIRMED
        as_before = OF_STORY + " ".join(by_number(each.guarantee for each in broken))
        self._settled[point] = UNCONFIRMED if alone else as_before
        return replace(played, counts={**played.counts, counts: 1})

    @property
    def _has_room(self) -> bool:
        """Whether the budget has room for one more run; it has for the first."""
        return not self._drawn or self.program.left_s() - self.spared_s >= 2 * self._took_s

    @property
    def _has_time(self) -> bool:
        return self.program.left_s() > PROCESSES_S

    def _drivers(self, warm: Callable[[], Application] | None = None) -> JavaDrivers:
        return JavaDrivers(self.version, self.words, warm, lambda: self._closed)

    def _run(self, plan: Plan, deadline: float, drivers: JavaDrivers | None = None) -> SparkRun:
        # A race is stopped at the calls of threads, of one JVM.
        drivers = drivers or self._drivers(self._warm if shape_of(plan).writers else None)
        played = self._play(plan, deadline, self._paces[drivers.warm is not None], drivers)
        return replace(played, findings=judge(played.history, self.request.guarantees) or None)

    def _warm(self) -> Application:
        """The JVM of warm lives of this thread, a new one when it ended or had its number of lives."""
        lane = threading.get_ident()
        self._lives[lane] += 1
        with self._guard:
            jvm = self._jvms.get(lane)
            if jvm is None or not jvm.alive or self._lives[lane] % LIVES_MAX == 0:
                if jvm is not None:
                    jvm.kill()
                log = self.program.logs / f"jvm-{len(self._lives)}-{self._lives[lane]}.txt"
                jvm = self._jvms[lane] = Application("jvm", self.words, self.program.environment(), log)
                jvm.wait_ready()
            return jvm

    def _broken(self, played: SparkRun) -> set[Kind]:
        return set(failures_in(played.history, played.findings or (), self.request.profile))

    def reserve(self, share: float) -> None:
        """Reserve time for shrinking: little, for a plan of the walk has one fault already."""
        self.spared_s = min(share * self.request.budget_s, SHRINKING_S)

    def took(self, drawn: DrawnPoint, played: SparkRun, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        if drawn.point is None:
            self.walk.number(drawn.plan, played.calls)
            return
        tally(played, self.tried, self.met)
        struck = any(played.met.get(name) for name in (*KILLED.values(), *FAILED.values()))
        settled = self._settled.pop(drawn.point, "")
        if played.cut and not broken and not settled:
            self._out_of_time = True  # The time was over before its fault, or before the audit after it.
            return
        if struck and not broken and not settled and not _recovered(played.history):
            settled = UNCONFIRMED
            self.unconfirmed[f"{NO_WRITE} by {self.walk.shown(drawn.point)}"] += 1
        self.walk.took(drawn.point, struck, {kind.guarantee for kind in broken}, settled, played.calls)

    def close(self) -> None:
        """End every JVM; no further one begins."""
        self._closed = True
        end_marked(VARIABLE, self.program.mark)

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with the calls of the walk, and with what no process confirmed."""
        decides = _DECIDED_BY_SERVICES if self.walk.services else self.decides
        reached = campaign.statistics.reached
        return replace(
            campaign,
            not_reached=tuple(sorted(name for name in reached if name.startswith(UNSEEN))),
            left_out=tuple(
                f"{each}{f' ({times} times)' if times > 1 else ''}: {NOT_CONFIRMED}"
                for each, times in self.unconfirmed.items()
            ),
            deciding=tuple(
                Deciding(
                    name=name,
                    guarantees=guarantees,
                    mode=mode,
                    tried=self.tried[mode, name],
                    met=self.met[mode, name],
                )
                for mode in self.request.modes
                for name, guarantees in decides.items()
            ),
            walked=self.walk.rows(),
            server=self.request.server.to_dict(),
        )


def _table_of(plan: Plan) -> Plan:
    return with_future(with_steps(plan, ()), ())


def _broke(played: SparkRun, guarantee: str) -> bool:
    return any(finding.guarantee == guarantee and finding.breaches for finding in played.findings or ())


def _recovered(history: History) -> bool:
    """Whether the last write of a run completed, so that the table was audited after its faults."""
    ended = [event.kind for event in history.events if event.operation == "write" and event.kind in ("ok", "info")]
    return ended[-1:] == ["ok"]

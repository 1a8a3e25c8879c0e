"""Judge of whether writes complete: G25 writes-go-on.

A write that does not complete must be explained by a fault that can have touched it: of its own driver, of the
executors that made its attempts, of the servers it called, of the disk they share, from the storage time-out and late
effects before the failed call until its end. Other faults are no explanation, and an error that no seam raises has
none. Each reason has a name (docs/guarantees.md). A breach shows the last answer that the write received, or its
begin where there was none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON, Event
from marker_sim.history.index.calls import DEADLY, MS, WriteStep
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.history.index.write_path import Key
from marker_sim.judges.findings import Inquiry, judge_of
from marker_sim.judges.write_path.steps import of_its_own
from marker_sim.names import TEMP
from marker_sim.timeline import parse_data_file

_EVERYWHERE = frozenset({"disk-full", "power-loss"})
# Faults that do not prevent a write from completing.
_HARMLESS = frozenset({"clock-jump", "damage", "placeholder", "stray-files"})
_TRIES_ENOUGH = 4  # Spark's default of spark.task.maxFailures.
_TASK_FAULTS = frozenset({"speculative", "stage-retried"})
Span = tuple[int, int]  # Indices of the first and last event.


@judge_of("G25")
def writes_go_on(case: Inquiry) -> None:
    """G25, for each write that began and each driver that ended by itself; effects on storage are not needed."""
    view = case.view
    case.applicable = bool((view.header.plan or {}).get("writes")) or view.stepped
    for write in _attempted(case) if case.applicable else ():
        excuse = write.judge()
        if excuse:
            view.excuse(excuse)
        else:
            case.judged += 1


def _attempted(case: Inquiry) -> Iterator[_Attempted]:
    """Every write of every driver, from its begin on, or, without a begin, from its driver's end or its abandonment."""
    view = case.view
    begins: dict[str, list[WriteStep]] = {}
    for step in sorted(view.steps):
        if step.operation == "begin":
            begins.setdefault(step.process, []).append(step)
    for process, own in begins.items():
        starts = [step.invoke for step in own]
        for step, until in zip(own, (*starts[1:], NEVER), strict=True):
            yield _Attempted(case, process, (step.table, step.instant), step.invoke, until)
    gone = {p: i for p, i in view.exits.items() if view.events[i].role == "driver" and p not in begins}
    clients = {view.events[call.invoke].process for _, call in view.calls()} if gone else set()
    for process, index in gone.items():
        if process not in clients:
            yield _Attempted(case, process, ("", ""), index, NEVER)
    for event in view.given_up:
        if event.process not in begins:
            yield _Attempted(case, event.process, ("", ""), event.index, event.index + 1)


class _Attempted:
    """One write, from its begin or its driver's end until the driver's next one."""

    def __init__(self, case: Inquiry, process: str, key: Key, low: int, until: int) -> None:
        self.case, self.view = case, case.view
        self.process, self.key, self.low, self.until = process, key, low, until

    def judge(self) -> str:
        """The name of an excuse; "" for a write that completed, or whose breach was added."""
        view, exit_ = self.view, self.view.exits.get(self.process, NEVER)
        ended = self.low <= exit_ < self.until
        if ended and view.events[exit_].error != APPLICATION_ENDED:
            error = view.events[exit_].error or ""
            if error == NOT_GETTING_ON:
                return self._hung(exit_, "still-working")
            return self._failed(exit_, f"ended by itself: {error}")
        for event in view.given_up:
            if event.process == self.process and self.low <= event.index < self.until:
                if event.value == "abandoned":
                    return "abandoned-as-planned"
                return self._failed(event.index, f"gave up a write: {event.error}")
        if any(s.operation == "commit" and s.outcome == "ok" for s in self.steps):
            return ""
        if any(
            f.process == self.process and f.kind in DEADLY and self.low <= f.begin < self.until for f in view.faults
        ):
            return "driver-died"
        if self.until == NEVER and not ended:
            return self._hung(min(view.phase("end"), view.end - 1), "run-ended")
        how = "ended its application" if ended else "began its next write"
        at = min(exit_, self.until)
        return self._breach(f"{how} and had neither committed nor given up this one", self.low, at)

    @cached_property
    def steps(self) -> list[WriteStep]:
        """The driver's steps of this write, in order of invocation."""
        own = (s for s in self.view.steps if s.process == self.process and s.operation != "attempt")
        return sorted(step for step in own if self.low <= step.invoke < self.until)

    def _failed(self, at: int, how: str) -> str:
        """The excuse or the breach of a write whose driver ended or gave up at an event."""
        view = self.view
        bad = [step for step in self.steps if step.outcome != "ok" and step.done <= at]
        if bad:
            step = bad[-1]
            reason = "" if of_its_own(view, step) else self._touched(step.invoke, step.done, frozenset())
            return reason or self._breach(how, step.invoke, at)
        if view.events[at].operation == "exited":
            return self._breach(f"{how}, and no step of its write had failed", at)
        dropped = self._never_tried_again(at)
        if dropped is not None:
            return self._breach(f"{how}, and a task that failed was never tried again", dropped, at)
        if view.header.world == "simulated":  # In other worlds a busy machine can be the reason.
            idle_ns = self._executors.idle_ns(last := self._last_act(at), at)
            if idle_ns > view.header.answer_bound_ms * MS and not self._waits(at):
                what = f"{how}, and had done nothing for {idle_ns / 1e9:.0f} s while an executor was idle"
                return self._breach(what, last, at)
        failed = [a for a in self._attempts(at) if a.outcome != "ok" and a.done <= at]
        reasons = [self._touched(a.invoke, a.done, frozenset({a.process})) for a in failed]
        for attempt, reason in zip(failed, reasons, strict=True):
            if not reason:
                return self._breach(f"{how}, and no fault touched an attempt that failed", attempt.invoke, at)
        under_way = (self._touched(a.invoke, at, frozenset({a.process})) for a in self._attempts(at) if a.done > at)
        reason = reasons[0] if reasons else self._of_tasks(at) or next(filter(None, under_way), "")
        return reason or self._breach(f"{how}, although no fault explains it", self.low, at)

    def _never_tried_again(self, at: int) -> int | None:
        """The end of the last attempt of a task that failed before an event and was wrongly not retried, or None.

        A task is wrongly not retried if it had few attempts and executors of its driver were idle for longer than the
        bound and none failed meanwhile: a task waits while they work on others. Only in virtual time, where no busy
        machine can be the reason.
        """
        view, tasks = self.view, dict[tuple[str, str, int], list[WriteStep]]()
        if view.header.world != "simulated":
            return None
        for attempt in self._attempts(at):
            tasks.setdefault(self._task(attempt), []).append(attempt)
        for own in tasks.values():
            over = max(attempt.done for attempt in own)  # Not if its executor died: there may be no other.
            if over > at or len(own) >= _TRIES_ENOUGH or any(attempt.outcome == "ok" for attempt in own):
                continue
            met = any(fault.cls == "client" and over < fault.begin <= at for fault in view.faults)
            if not met and self._executors.idle_ns(over, at) > view.header.answer_bound_ms * MS:
                return over
        return None

    def _hung(self, at: int, until_then: str) -> str:
        """The excuse or the breach of a write not finished at an event; until_then: the excuse while it is active.

        In virtual time, where no busy machine can be the reason, an active write without a fault since its begin also
        hangs when no task of it succeeded for the first time for that long.
        """
        view = self.view
        executors = frozenset(attempt.process for attempt in self._attempts(at))
        last = self._last_act(at)
        quiet_ns = view.time_ns(at) - view.time_ns(last)
        patience_ns = self._patience_ns(at)
        if quiet_ns >= patience_ns:
            message = f"hangs: its write had no event after event {last} for {quiet_ns / 1e9:.0f} s"
            return self._touched(last, at, executors) or self._breach(message, last, at)
        if until_then == "run-ended" or view.header.world != "simulated":
            return until_then
        if self._touched(self.low, at, executors) or self._of_tasks(at):
            return until_then
        done = {self._task(a): a.done for a in reversed(self._attempts(at)) if a.outcome == "ok" and a.done < at}
        times = [view.time_ns(index) for index in (self.low, *sorted(done.values()), at)]
        if max(later - earlier for earlier, later in pairwise(times)) < patience_ns:
            return until_then
        took_s = (times[-1] - times[0]) / 1e9
        return self._breach(f"had not completed a write after {took_s:.0f} s without a fault", self.low, at)

    def _last_act(self, at: int) -> int:
        """The last event before `at` of the driver, its executors or a server in the table; without one, the begin."""
        own = {self.process, *(attempt.process for attempt in self._attempts(at))}
        acts = (e for e in self.view.events[self.low : at] if e.kind != "fault" and (e.process in own or self._of(e)))
        return max((event.index for event in acts), default=self.low)

    @cached_property
    def _executors(self) -> Executors:
        return Executors(self.view, self.process)

    def _waits(self, at: int) -> bool:
        """Whether an attempt waits at an event for a call that a fault delayed or lost."""
        alive = [a for a in self._attempts(at) if min(self._executors.over(a), self.view.ended(a.process)) > at]
        struck = [(f.process, f.touched) for f in self.view.faults if f.touched is not None and f.begin < at]
        lost = [(process, call) for process, call in struck if self.view.answers.get(call, NEVER) > at]
        return any(process == a.process and call > a.invoke for process, call in lost for a in alive)

    def _patience_ns(self, at: int) -> int:
        """How long a write may be inactive or repeat: bound, late effects, a storage time-out a task and one more.

        A store may read every marker separately, and a rollback before the write lists those of an earlier one.
        """
        header = self.view.header
        begun = (s for s in self.view.steps if s.operation == "attempt" and s.table == self.key[0] and s.invoke < at)
        tasks = len({(step.instant, self._task(step)) for step in begun})
        return (header.answer_bound_ms + tasks * header.storage_timeout_ms) * MS + self.view.rest_ns

    @staticmethod
    def _task(attempt: WriteStep) -> tuple[str, str, int]:
        """The key of a task, common to all its attempts: partition, file group and number."""
        file = parse_data_file(attempt.path)
        return (attempt.path, "", 0) if file is None else (file.partition, file.file_id, file.token.task)

    def _of(self, event: Event) -> bool:
        """Whether a server acted in the write's table."""
        return event.process in self._servers and (event.path or "").startswith(f"{self.key[0]}/")

    def _attempts(self, at: int) -> list[WriteStep]:
        return sorted(
            s
            for s in self.view.steps
            if s.operation == "attempt" and (s.table, s.instant) == self.key and self.low < s.invoke < at
        )

    @cached_property
    def _servers(self) -> frozenset[str]:
        timeline = self.view.mode_of(f"{self.key[0]}{TEMP}{self.key[1]}") == "timeline"
        return frozenset(life.process for life in self.view.lives.values()) if timeline else frozenset()

    def _touched(self, low: int, high: int, executors: frozenset[str]) -> str:
        """The fault that may have made the driver or some executors fail between two events, "" for none."""
        view = self.view
        begin_ns = view.time_ns(low) - view.rest_ns
        for fault in view.faults:
            lasts = fault.end >= low or view.time_ns(fault.end) >= begin_ns
            if fault.begin > high or not lasts or fault.kind in _HARMLESS:
                continue
            if fault.process == self.process:
                return "driver-fault"
            if fault.process in executors:
                return "executor-fault"
            if fault.process in self._servers and (
                not (fault.storage and fault.path) or fault.path.startswith(f"{self.key[0]}/")
            ):
                return "server-fault"
            if fault.kind in _EVERYWHERE:
                return "shared-storage"
        lives = [life for life in view.lives.values() if life.start <= high]
        if self._servers and lives and not any(life.well(low, high) or life.exited for life in lives):
            return "server-gone"
        return ""

    def _of_tasks(self, at: int) -> str:
        """The excuse "executor-fault" if executors of the driver died or its tasks were retried, else "".

        An executor that died in an earlier write counts until a later life of it has made an attempt.
        """
        view = self.view
        attempts = [s for s in view.steps if s.operation == "attempt"]
        others = {s.process for s in attempts} - self._executors.attempts.keys()
        since = min((step.invoke for step in view.steps if step.process == self.process), default=self.low)
        for fault in view.faults:
            if fault.cls != "client" or not since <= fault.begin <= at or fault.kind in _HARMLESS:
                continue
            if fault.process == self.process:
                counts = fault.kind in _TASK_FAULTS and fault.begin > self.low
            elif fault.process in others or view.events[fault.begin].role == "driver":
                counts = False
            else:
                actor = fault.process.partition("#")[0]
                back = (s for s in attempts if s.process != fault.process and s.process.partition("#")[0] == actor)
                missed = not any(fault.begin < step.invoke < at for step in back)
                counts = fault.begin > self.low or (fault.kind in DEADLY and missed)
            if counts:
                return "executor-fault"
        return ""

    def _breach(self, how: str, *evidence: int) -> str:
        """Add a breach: there is no excuse."""
        message = f"{self.process} {how}"
        last = (max((step.done for step in self.steps if step.done <= evidence[-1]), default=self.low),)
        if self.key[0]:
            self.case.about(self.key, message, *evidence, also=last)
        else:
            self.case.breach(message, evidence, also=last)
        return ""


class Executors:
    """The executors that made `attempts` for a driver's writes: how long at least one of them was idle.

    One is idle from its first attempt to its death while none of its attempts is under way and it is not paused. One
    that has made no attempt yet leaves no trace in a history, so it is never idle.
    """

    def __init__(self, view: HistoryIndex, driver: str) -> None:
        self._view, self._driver = view, driver
        begun = {(s.table, s.instant) for s in view.steps if s.operation == "begin" and s.process == driver}
        self.attempts: dict[str, list[WriteStep]] = {}
        for step in sorted(view.steps):
            if step.operation == "attempt" and (step.table, step.instant) in begun:
                self.attempts.setdefault(step.process, []).append(step)

    def idle_ns(self, low: int, high: int) -> int:
        """The time between two events in which the driver ran and at least one executor was idle."""
        idle: list[Span] = []
        for process, attempts in self.attempts.items():
            alive = max(low, attempts[0].invoke), min(high, self._view.ended(process))
            busy = [(step.invoke, self.over(step)) for step in attempts]
            idle += _outside(alive, [*busy, *self._pauses(process)])
        both = _outside((low, high), self._pauses(self._driver))
        spans = [(max(a, c), min(b, d)) for a, b in _merged(idle) for c, d in both]
        return sum(self._view.time_ns(end) - self._view.time_ns(begin) for begin, end in spans if begin < end)

    def over(self, attempt: WriteStep) -> int:
        """The event at which an attempt was over: answered, or killed while its executor lived on."""
        own = (f for f in self._view.faults if f.process == attempt.process and f.path == attempt.path)
        killed = (f.begin for f in own if f.kind == "attempt-killed" and f.begin > attempt.invoke)
        return min(killed, default=attempt.done)

    def _pauses(self, process: str) -> list[Span]:
        return [(f.begin, f.end) for f in self._view.faults if f.kind == "pause" and f.process == process]


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The union of spans, in order and without overlaps."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _outside(span: Span, holes: Iterable[Span]) -> list[Span]:
    """The parts of a span that lie outside some others."""
    left, (at, end) = [], span
    for begin, until in _merged(holes):
        if begin > at:
            left.append((at, min(begin, end)))
        at = max(at, until)
    left.append((at, end))
    return [(a, b) for a, b in left if a < b]

"""In which phase each process was when a fault happened, from one pass over a finished history.

docs/honesty.md lists the phases of each role. A phase is derived from events, not from memory: a batch that was taken
and one that still waits look the same until the first effect. "Between replies" is known only when an answer of the
batch arrives. Nothing here is a verdict. `marks` counts the goals of coverage/goals.py; one may be counted several
times per run.
"""

from __future__ import annotations

from collections import Counter

from marker_sim.faults import FAULT_CLASS
from marker_sim.history import Event, History
from marker_sim.history.index.calls import DEADLY, LISTINGS
from marker_sim.outcome.marks import CoverageMarks

# Values of fault events that are no faults: the end of a fault or of the run, and planned ends of a server.
NO_FAULT = frozenset({"end", "end-of-run", "with-its-driver", "second-server"})
_SERVER = "timeline-server"
_DRIVING = frozenset({"begin", "rollback", "sweep", "finalize", "commit"})
_REQUESTS = {"list-data": "list", "list-log": "list"}


class PhaseWalk:
    """The phases in which faults struck, from one pass over a history; linear in its events.

    faults_by_phase: faults by ("fault", "role: phase"). marks: coverage goals.
    open: the invocations of a process that have not ended, in order.
    """

    def __init__(self, history: History) -> None:
        self.faults_by_phase: Counter[tuple[str, str]] = Counter()
        self.marks = CoverageMarks(history)
        self.open: dict[str, dict[int, Event]] = {}
        self.roles: dict[str, str] = {}
        self.in_stage: set[str] = set()
        self.entered: set[str] = set()
        self._undecided: list[tuple[str, int]] = []
        for event in history.events:
            self._read(event)
        for kind, batch in self._undecided:  # The phases of these faults depend on later answers.
            phase = "between replies" if batch in self.marks.replied else "written and not answered"
            self.faults_by_phase[kind, f"server: {phase}"] += 1

    def _read(self, event: Event) -> None:
        """Process the next event."""
        index, process, kind, operation = event.index, event.process, event.kind, event.operation
        if kind == "invoke":
            self.open.setdefault(process, {})[index] = event
            self.roles[process] = event.role
            self.marks.invoked(event)
            if operation in ("begin", "attempt"):
                self.in_stage.discard(process)
            elif operation == "commit":
                self.entered.discard(process)
        elif kind == "ok" or kind == "fail" or kind == "info":
            invoke = self.open.get(process, {}).pop(event.caused_by if event.caused_by is not None else -1, None)
            if invoke is not None:
                self.marks.ended(invoke, event)
                if operation == "begin" and kind == "ok":
                    self.in_stage.add(process)
                elif operation == "commit":
                    self.in_stage.discard(process)
        elif kind == "effect":
            inside = self._inside(process)
            if inside == "commit" and "/.hoodie/" in (event.path or "") and not (event.path or "").endswith(".tmp"):
                self.entered.add(process)
            self.marks.effect(event, inside)
        elif kind == "fault":
            self._fault(event)
        elif operation == "arrived" and kind == "observe":
            self.marks.arrived(event)
        else:
            self.marks.observed(event)

    def _fault(self, event: Event) -> None:
        kind, process = event.operation, event.process
        if event.value not in NO_FAULT:
            cls = FAULT_CLASS.get(kind)
            if cls == "wire" and event.caused_by is not None:
                invoke = self.open.get(process, {}).get(event.caused_by)
                if invoke is not None:
                    self.faults_by_phase[kind, f"request: {_REQUESTS.get(invoke.operation, invoke.operation)}"] += 1
            else:
                self._strike(kind, event)
        self.marks.fault(event)
        if kind in DEADLY or (kind == "second-server" and event.value == "end"):
            self.open.pop(process, None)

    def _strike(self, kind: str, event: Event) -> None:
        process, role = event.process, event.role
        if role == "nemesis":
            role = self.roles.get(process, "")
        if process == "kit":
            waits = any(self.marks.waiting.values())
            self.faults_by_phase[kind, "kit: markers asked for" if waits else "kit: idle"] += 1
        elif role == _SERVER or process in self.marks.started:
            phase, batch = self.marks.server_phase(process)
            if batch is not None:
                self._undecided.append((kind, batch))
            else:
                self.faults_by_phase[kind, f"server: {phase}"] += 1
        elif not self.marks.of_writes:
            inner = self._inside(process)
            self.faults_by_phase[kind, f"client: {_REQUESTS.get(inner, inner) or 'idle'}"] += 1
        elif role == "driver" or process.startswith("driver"):
            self.faults_by_phase[kind, f"driver: {self._driver(process)}"] += 1
        else:
            self.faults_by_phase[kind, f"executor: {self._executor(process, event.path)}"] += 1

    def _inside(self, process: str) -> str:
        """The operation that a process invoked last and has not ended, "" for none."""
        calls = self.open.get(process)
        return calls[next(reversed(calls))].operation if calls else ""

    def _driver(self, process: str) -> str:
        names = [invoke.operation for invoke in self.open.get(process, {}).values()]
        steps = [name for name in names if name in _DRIVING]
        inner = names[-1] if names else ""
        match steps[-1] if steps else "":
            case "rollback" if inner == "delete" or inner in LISTINGS:
                return "rollback: markers" if inner == "delete" else "rollback: listing"
            case "finalize":
                return "finalize: listing" if inner in LISTINGS else "finalize: deleting"
            case "commit":
                return f"commit: {'after' if process in self.entered else 'before'} the entry"
            case "":
                if inner == "delete":
                    return "marker deletion"
                return "stage" if process in self.in_stage else "idle"
            case step:
                return step

    def _executor(self, process: str, path: str | None) -> str:
        attempts = [invoke for invoke in self.open.get(process, {}).values() if invoke.operation == "attempt"]
        chosen = next((invoke for invoke in attempts if invoke.path == path), attempts[-1] if attempts else None)
        return "between tasks" if chosen is None else self.marks.attempts.get(chosen.index, "between tasks")

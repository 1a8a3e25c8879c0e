"""What of a run against real servers can decide a guarantee, measured in its history: a fault that a plan has decides
nothing by itself.

    a server killed after an answer     it had answered "created" for a name that no deletion may have removed since
    power lost after an answer          the same, and what was not synced was lost
    a server killed at a rewrite        at a write of a marker file that held answered names
    two servers asked in turn           one answers, the other one a change, the first again; both alive, none paused
    two servers asked at once           creates in one directory at the same time, likewise
    a server paused while asked         it had a request when it was paused, and ended it later
    a directory removed and missed      another program removed answered names, and one of them was asked for again
    a write refused                     a create met failing storage: an error, a connection that its server ended, or
                                        no answer before storage worked again
    a type file refused                 the same, and what failed was the type file
    a refused name asked for again      answered by the server that had refused it
    a crowd refused                     many of these creates waited at the same moment
    storage refused in one directory    meanwhile a create of another directory was answered
    an answered name deleted            by a deletion that was answered
    a table of an odd name listed       with %, + or = in it, after a create was answered there
    a listing at another endpoint       by a client that had read the directory, with a name in it, at one before
    a listing compressed and not        the same, one with and one without compression offered

A server that refuses to run beside another one keeps what two servers must keep; it counts for both where that is its
own doing and the other one answers afterwards: storage did not fail, and that one stood still at no time. One that
stores nothing below marker directories has no storage that fails in one of them alone; it counts for that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from marker_sim.faults import FaultKind
from marker_sim.faults.row import READS
from marker_sim.history import History
from marker_sim.history.index.calls import CHANGED_BY_KIT, LISTINGS, Directory, FaultSpan, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, directory_of, stores_elsewhere
from marker_sim.names import TEMP, TYPE_FILE, marker_file_index
from marker_sim.plan import ALONE, Plan

KILLED = "a server killed after an answer"
POWER_LOST = "power lost after an answer"
REWRITTEN = "a server killed at a rewrite"
IN_TURN = "two servers asked in turn"
AT_ONCE = "two servers asked at once"
PAUSED = "a server paused while asked"
REMOVED = "a directory removed and missed"
REFUSED = "a write refused"
TYPE_REFUSED = "a type file refused"
ASKED_AGAIN = "a refused name asked for again"
CROWD_REFUSED = "a crowd refused"
ONE_REFUSED = "storage refused in one directory"
DELETED = "an answered name deleted"
ODD_TABLE = "a table of an odd name listed"
ELSEWHERE = "a listing at another endpoint"
COMPRESSED = "a listing compressed and not"
CONDITIONS = (
    KILLED,
    POWER_LOST,
    REWRITTEN,
    IN_TURN,
    AT_ONCE,
    PAUSED,
    REMOVED,
    REFUSED,
    TYPE_REFUSED,
    ASKED_AGAIN,
    CROWD_REFUSED,
    ONE_REFUSED,
    DELETED,
    ODD_TABLE,
    ELSEWHERE,
    COMPRESSED,
)
CROWD = 8
_STATUS = re.compile(r"\d{3}\b")
_ODD = re.compile("[%+=]")


def conditions_met(history: History) -> Counter[str]:
    """How often each of `CONDITIONS` was met in a run; those that were not are left out."""
    return +_Conditions(history).met


class _Conditions:
    def __init__(self, history: History) -> None:
        self.view = view = HistoryIndex(history)
        self.met: Counter[str] = Counter()
        for path, directory in view.directories.items():
            self._of_servers(directory)
            self._of_storage(path, directory)
            self._of_reads(path, directory)
        self._of_deaths()
        if stores_elsewhere(history.header, history.events):
            self.met[ONE_REFUSED] += any(directory.answers for directory in view.directories.values())
        self._of_forms(history)
        if any(span.kind == "second-server" and self._refused_beside(span) for span in view.faults):
            self.met.update((IN_TURN, AT_ONCE))

    def _refused_beside(self, span: FaultSpan) -> bool:
        """Whether a second server refused to start by its own choice, while the first one continued to serve."""
        view, low, high = self.view, span.begin, span.end
        failed = any(fault.storage and fault.begin <= high and low <= fault.end for fault in view.faults)
        if failed or any(low < start < high for start in view.lives):
            return False
        first = {life.start for life in view.lives.values() if life.well(low, high)}
        return any(call.life in first and call.invoke > high and call.outcome == "ok" for _, call in view.calls())

    def answered(self, call: RecordedCall) -> bool:
        """Whether a server answered a call, with an error or not."""
        if call.outcome == "ok":
            return True
        return _STATUS.match(self.view.error_of(call)) is not None

    def _both(self, one: RecordedCall, other: RecordedCall, low: int, high: int) -> bool:
        lives = self.view.lives
        return one.life != other.life and all(
            each.life in lives and lives[each.life].well(low, high) for each in (one, other)
        )

    def _of_servers(self, directory: Directory) -> None:
        """Count conditions in which two servers change one directory, one after the other or at the same time."""
        own = (directory.creates, directory.listings, directory.deletes, directory.others)
        calls = sorted(call for kind in own for call in kind if self.answered(call) and call.life in self.view.lives)
        last: dict[int, RecordedCall] = {}
        changed: dict[int, RecordedCall] = {}  # For each server, the last answered change by the other one.
        for call in calls:
            change = changed.get(call.life)
            if change is not None and change.done < call.invoke:
                before = last[call.life]
                self.met[IN_TURN] += self._both(call, change, before.invoke, call.done)
                del changed[call.life]
            if call.operation in ("create", "delete"):
                for life, earlier in last.items():
                    if life != call.life and earlier.done < call.invoke:
                        changed[life] = call
            if call.life not in changed:
                last[call.life] = call
        creates = sorted(call for call in directory.creates if self.answered(call))
        for one, other in pairwise(creates):
            if other.invoke < one.done:
                self.met[AT_ONCE] += self._both(one, other, one.invoke, max(one.done, other.done))

    def _of_storage(self, path: str, directory: Directory) -> None:
        """Count the creates that met failing storage."""
        spans = [span for span in self.view.faults if span.storage and span.concerns(path)]
        refused: list[tuple[RecordedCall, FaultSpan]] = []
        for call in directory.creates:
            span = next((span for span in spans if self._refused(call, span)), None)
            if span is not None:
                refused.append((call, span))
        self.met[REFUSED] += len(refused)
        self.met[TYPE_REFUSED] += sum((span.path or "").endswith(f"/{TYPE_FILE}") for _, span in refused)
        moments = sorted([(call.invoke, 1) for call, _ in refused] + [(call.done, -1) for call, _ in refused])
        waiting = most = 0
        for _, step in moments:
            waiting += step
            most = max(most, waiting)
        self.met[CROWD_REFUSED] += most >= CROWD
        earliest: dict[tuple[str, int], int] = {}
        for call, _ in refused:
            key = call.name, call.life
            earliest[key] = min(call.done, earliest.get(key, NEVER))
        self.met[ASKED_AGAIN] += sum(
            self.answered(call) and call.invoke > earliest.get((call.name, call.life), NEVER)
            for call in directory.creates
        )
        confined = [call for call, span in refused if span.home == path]
        others = [each for home, each in self.view.directories.items() if home != path]
        answers = sorted(call for each in others for call in each.answers)
        self.met[ONE_REFUSED] += sum(
            any(call.invoke < other.done < call.done for other in answers) for call in confined
        )

    def _refused(self, call: RecordedCall, span: FaultSpan) -> bool:
        """Whether a create was sent before a storage fault was over, and had no successful answer meanwhile."""
        life = self.view.lives.get(call.life)
        if life is None or not (call.invoke <= span.end and span.begin <= call.done):
            return False
        if span.begin == span.end and span.process != life.process:
            return False
        if call.outcome == "ok":
            return span.begin < call.invoke and span.end < call.done
        return self._ended(call) and not life.paused(call.invoke, call.done)

    def _ended(self, call: RecordedCall) -> bool:
        """Whether a server that continues to serve ended a call, by an answer or by closing its connection."""
        if self.answered(call):
            return True
        life, view = self.view.lives[call.life], self.view
        broke = call.outcome == "info" and not view.timed_out(call) and call.invoke not in view.touched
        return broke and life.well(call.invoke, call.done)

    def _of_reads(self, path: str, directory: Directory) -> None:
        first = min((call.done for call in directory.answers), default=NEVER)
        if _ODD.search(path.partition(TEMP)[0]):
            self.met[ODD_TABLE] += sum(call.outcome == "ok" and call.invoke > first for call in directory.listings)
        removals = {span.begin for span in self.view.faults if span.kind in CHANGED_BY_KIT}
        for deletion in directory.deletions:
            lost = {call.name for call in directory.answers if call.done < deletion.invoke}
            if not lost:
                continue
            self.met[DELETED] += not deletion.kit and deletion.answered < NEVER
            if deletion.kit and deletion.invoke in removals:
                self.met[REMOVED] += any(
                    call.name in lost and call.invoke > deletion.settled and self.answered(call)
                    for call in directory.creates
                )

    def _of_deaths(self) -> None:
        """Count kills and pauses of servers by what they put at risk."""
        view = self.view
        for life in view.lives.values():
            for begin, end in life.pauses:
                self.met[PAUSED] += any(
                    call.life == life.start and call.invoke < begin and end < call.done < NEVER
                    for _, call in view.calls()
                )
            if life.end not in view.kills or view.events[life.end].value is not None:
                continue
            answered = any(
                call.life == life.start and call.done < life.end and not directory.disturbed(call.done, life.end)
                for directory in view.directories.values()
                for call in directory.answers
            )
            self.met[KILLED] += answered
            own = (fault.kind for fault in view.faults if fault.process == life.process)
            self.met[POWER_LOST] += answered and FaultKind.POWER_LOST.value in own
            self.met[REWRITTEN] += self._rewritten(life.end)

    def _rewritten(self, kill: int) -> bool:
        """Whether a kill hit a marker file with content that was already observed some time before."""
        path = self.view.events[kill].path or ""
        # The error of a kill at a storage call says how the call was seen.
        if self.view.events[kill].error in READS or marker_file_index(path.rpartition("/")[2]) is None:
            return False
        seen = [
            event.value
            for event in self.view.events[:kill]
            if event.path == path and (event.kind == "effect" or (event.kind, event.operation) == ("observe", "file"))
        ]
        directory = self.view.directories.get(directory_of(path) or "")
        content = next((value for value in reversed(seen[:-1] or seen) if isinstance(value, bytes)), b"")
        lines = set(content.split(b"\n"))
        return directory is not None and any(
            call.done < kill
            and call.name.encode("utf-8", "surrogatepass") in lines
            and not directory.disturbed(call.done, kill)
            for call in directory.answers
        )

    def _of_forms(self, history: History) -> None:
        """Count pairs of listings by one client of one directory that differ in the form of the request."""
        if not history.header.plan:
            return
        asked: dict[str, list[str]] = {}
        for op in Plan.from_dict(history.header.plan).single_ops:
            asked.setdefault(op.actor, []).append(op.form)
        turns: Counter[str] = Counter()
        forms: dict[int, str] = {}
        for event in history.events:
            actor = event.process.partition(".")[0]
            if event.kind == "invoke" and turns[actor] < len(asked.get(actor, ())):
                forms[event.index] = asked[actor][turns[actor]]
                turns[actor] += 1
        for before, after in self._read_twice(history, forms):
            self.met[ELSEWHERE] += before.operation != after.operation
            self.met[COMPRESSED] += (forms[before.invoke] in ALONE) != (forms[after.invoke] in ALONE)

    def _read_twice(self, history: History, forms: dict[int, str]) -> Iterator[tuple[RecordedCall, RecordedCall]]:
        for directory in self.view.directories.values():
            first = sorted(call.done for call in directory.answers)
            own: dict[str, list[RecordedCall]] = {}
            for call in sorted(directory.listings):
                known = call.outcome == "ok" and call.operation in LISTINGS and call.invoke in forms
                if known and bisect_right(first, call.invoke):
                    own.setdefault(history.events[call.invoke].process, []).append(call)
            for calls in own.values():
                yield from pairwise(calls)

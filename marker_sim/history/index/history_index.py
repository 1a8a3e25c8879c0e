"""One indexed view of a history, computed once and read by every judge.

directories  the calls of each marker directory, and from when until when deletions of it may have had an effect
lives        each server life: when it began, when and how it ended, when it was paused
crowded      when two or more servers were live, paused ones included
faults       each fault: from when until when, and where
rest, raw    when each name was stored (presence.py)
writes       instants, data files and timeline of write clients (write_path.py)
tables       audits of the tables of a black-box write path (tables.py)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from marker_sim.history import CallError, Event, History
from marker_sim.history.index.calls import (
    CHANGED_BY_KIT,
    DAMAGE,
    DEADLY,
    MS,
    NO_LIFE,
    Deletion,
    Directory,
    NameLife,
    RecordedCall,
    life_from_effects,
)
from marker_sim.history.index.event_reader import END_OF_RUN, EventReader, content_of
from marker_sim.history.index.presence import NEVER, PresenceIndex, directory_of
from marker_sim.history.index.write_path import WritePathIndex
from marker_sim.names import TEMP, TYPE_FILE, data_path, is_append

if TYPE_CHECKING:
    from marker_sim.history.index.tables import Tables

_PRECEDENCE = ("second-server", "outside", "restart", "pause", "storage", "wire", "client")


class HistoryIndex(EventReader):
    """Facts derived from the events. Build it once with `HistoryIndex(history)`; read-only except for `excuse`.

    excused: by name, how often an excuse decided since it was cleared.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.excused: Counter[str] = Counter()
        self._named: dict[str, tuple[str, str]] = {}
        self._lives: dict[tuple[str, str], NameLife] = {}
        if self.header.world == "foreign":  # In the kit's own worlds nobody else creates marker directories.
            self.faults = [each if each.home in self.named else each._replace(home=None) for each in self.faults]
        self._settle_deletions()
        self._check_against_observations()

    @cached_property
    def raw(self) -> PresenceIndex:
        """The presence of markers with every effect; equal to the view at rest when nothing was written in place."""
        if not self.in_place:
            return self.rest
        fold = PresenceIndex(False)
        for event in self.events:
            if event.kind == "effect" and event.path is not None:
                fold.put(event.index, event.path, content_of(event.value))
        return fold

    @cached_property
    def effective_mode(self) -> str:
        """The mode of writes and directories that chose none themselves: direct after a fallback."""
        chosen = [e for e in self.modes if e.instant is None and e.value in ("direct", "timeline")]
        return str(chosen[-1].value) if chosen else self.header.mode

    @cached_property
    def _modes_of_writes(self) -> dict[str, str]:
        own = [e for e in self.modes if e.instant is not None and e.value in ("direct", "timeline")]
        return {f"{event.table}{TEMP}{event.instant}": str(event.value) for event in own}

    def life_of(self, directory: str, name: str) -> NameLife:
        """The life of a name in a marker directory, from effects where they exist and show names."""
        if self.reads and self.header.witness == "effects" and (effects := self._effects_in.get(directory)):
            life = self._lives.get((directory, name)) or life_from_effects(effects, directory, name)
            self._lives[directory, name] = life
            if life.spans or not self.rest.home(directory).spans.get(name):
                return life
        return NameLife(tuple(self.rest.home(directory).spans.get(name, ())), witnessed=not self.reads)

    @cached_property
    def _effects_in(self) -> dict[str, list[Event]]:
        """The effects on the files of each marker directory."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            if event.kind == "effect" and event.path is not None:
                found.setdefault(directory_of(event.path) or "", []).append(event)
        return found

    def mode_of(self, directory: str) -> str:
        """The mode of a marker directory: that of the write it belongs to, else that of the run."""
        return self._modes_of_writes.get(directory, self.effective_mode)

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The marker directories that a request or a step of a write named, sorted; also where hostile ones lead. All
        others are a server's own, into which it may move what it deletes, for instance.
        """
        others = {call.name for directory in self.directories.values() for call in directory.hostile}
        others |= {f"{step.table}{TEMP}{step.instant}" for step in self.steps}
        return tuple(sorted(self.directories.keys() | (others & self.rest.homes.keys())))

    @cached_property
    def batches(self) -> bool:
        """Whether any marker directory may have batched markers, as a timeline server stores them."""
        return self.effective_mode == "timeline" or "timeline" in self._modes_of_writes.values()

    @cached_property
    def writes(self) -> WritePathIndex:
        """The write path of the run, for histories with a write."""
        return WritePathIndex(self)

    @cached_property
    def tables(self) -> Tables:
        """The tables at rest, for histories of a black-box write path."""
        from marker_sim.history.index.tables import Tables

        return Tables(self)

    @property
    def stepped(self) -> bool:
        """Whether a write began whose steps are recorded."""
        return any(step.operation == "begin" for step in self.steps)

    @property
    def black_box(self) -> bool:
        """Whether the history records whole writes without their steps."""
        return not self.stepped and bool(self.table_writes or self.audited)

    def excuse(self, name: str) -> bool:
        """Count that an excuse prevented a judgement or a breach; returns True."""
        self.excused[name] += 1
        return True

    def ended(self, process: str) -> int:
        """The event at which a process was killed or ended by itself; NEVER when it lived until the end of the run."""
        return self._ended.get(process, NEVER)

    @cached_property
    def _ended(self) -> dict[str, int]:
        ended = dict(self.exits)
        for fault in self.faults:
            if fault.kind in DEADLY:
                ended[fault.process] = min(fault.begin, ended.get(fault.process, NEVER))
        return ended

    def time_ns(self, index: int) -> int:
        """The time of an event in ns; NEVER when the argument is NEVER."""
        return NEVER if index >= self.end else self.events[index].time_ns

    def index_at(self, time_ns: int) -> int:
        """The first event at or after a time, NEVER when the run ended before it."""
        at = bisect_left(self.events, time_ns, key=lambda event: event.time_ns)
        return at if at < self.end else NEVER

    def overlapping_servers(self, low: int, high: int) -> bool:
        """Whether two servers were live at any time from `low` to `high`."""
        return any(begin <= high and low <= end for begin, end in self.crowded)

    def answered_busy(self, call: RecordedCall) -> bool:
        """Whether a call was answered 503, whatever it asked for: its server cannot serve it now."""
        return self.error_of(call).startswith("503")

    def sent_elsewhere(self, call: RecordedCall) -> bool:
        """Whether a call was answered 503 while two servers lived, each of which may own what the other refuses.

        A second server may own directories before it serves, and until it is dead.
        """
        if not self.answered_busy(call):
            return False
        seconds = (fault for fault in self.faults if fault.kind == "second-server")
        lived = any(fault.begin <= call.done and call.invoke <= fault.end for fault in seconds)
        return lived or self.overlapping_servers(*call.span)

    def refused(self, call: RecordedCall) -> bool:
        """Whether the answer to a hostile request states that nothing was changed."""
        return self.had_no_effect(call) or self.sent_elsewhere(call)

    def killed(self, low: int, high: int) -> int | None:
        """The first event between `low` and `high` that killed a server."""
        at = bisect_right(self.kills, low)
        return self.kills[at] if at < len(self.kills) and self.kills[at] < high else None

    def names_data(self, name: str) -> tuple[str, str]:
        """The listing besides "list" that shows a marker, and the data path in it; cached by name."""
        known = self._named.get(name)
        if known is None:
            known = self._named[name] = ("list-log" if is_append(name) else "list-data", data_path(name))
        return known

    def served_well(self, directory: str, call: RecordedCall, until: int) -> bool:
        """Whether the server of a call lived unpaused during the call; True for direct markers.

        A write may be rolled back in another marker mode than it had, so the target of the call decides.
        """
        if call.life == NO_LIFE:
            return self.mode_of(directory) == "direct"
        life = self.lives.get(call.life)
        return life is not None and life.well(call.invoke, until)

    def served_by(self, call: RecordedCall) -> str:
        """The process that performs a call: the server that it was sent to, else its client."""
        life = self.lives.get(call.life)
        return self.events[call.invoke].process if life is None else life.process

    def phase(self, name: str) -> int:
        """The first event of a phase, NEVER when it did not begin."""
        return next((index for index, phase in self.phases if phase == name), NEVER)

    def calls(self) -> Iterator[tuple[Directory, RecordedCall]]:
        """Every call that is not hostile, by directory."""
        for directory in self.directories.values():
            for calls in (directory.creates, directory.listings, directory.deletes, directory.others):
                for call in calls:
                    yield directory, call

    def may_act_again(self, call: RecordedCall) -> bool:
        """Whether the wire copied the request, so that it may act after its first answer."""
        return call.invoke in self.touched and "duplicated" in self.touched[call.invoke]

    @property
    def rest_ns(self) -> int:
        """The latest time after which a request to storage may still be applied."""
        return (self.header.storage_timeout_ms + self.header.late_effect_ms) * MS

    def over(self, call: RecordedCall) -> int:
        """The last event at which a call may take effect: its end if the outcome is certain, as for deletions."""
        if call.outcome in ("ok", "fail") and not self.may_act_again(call):
            return call.done
        return self._latest_effect(call)

    def had_no_effect(self, call: RecordedCall) -> bool:
        """Whether a call certainly had no effect: it failed, and no copy of its request existed."""
        return call.outcome == "fail" and not self.may_act_again(call)

    def blamed(self, low: int, high: int, directory: str | None = None) -> tuple[str, int | None]:
        """The fault class to count a breach under (begun at `low`, seen at `high`), and the event of its last fault.

        A loss of power first, because its harm stays. Then two live servers, as long as one of them lives, because its
        memory outlives the other. Then faults that were active in between, then earlier ones. A wire fault is active
        for the calls it touched, or as long as it lasts, a storage fault for its directory, and the removal of the
        directory by another program as long as a server lives that may remember what was in it.
        """
        if lost := [fault.begin for fault in self.faults if fault.begin <= high and fault.cls == "power-loss"]:
            return "power-loss", max(lost)
        lives = self.lives.values()
        crowds = [
            begin
            for begin, end in self.crowded
            if begin <= high and any(life.start <= end and max(begin, low) <= life.end for life in lives)
        ]
        if crowds:
            begun = [fault.begin for fault in self.faults if fault.begin <= high and fault.kind == "second-server"]
            return "second-server", max(begun, default=crowds[-1])
        before = [fault for fault in self.faults if fault.begin <= high and fault.kind != "second-server"]
        own = (fault for fault in before if fault.cls == "outside" and fault.path == directory)
        removed = [fault for fault in own if any(life.start <= fault.begin and low <= life.end for life in lives)]
        near = [fault for fault in before if fault.end >= low and fault.reaches(low, directory)] + removed
        near = [fault for fault in near if fault.cls != "none"] or before
        last = {fault.cls: fault.begin for fault in sorted(near, key=lambda fault: fault.begin)}
        return next(((name, last[name]) for name in _PRECEDENCE if name in last), ("none", None))

    @cached_property
    def answers(self) -> dict[int, int]:
        """The completion of each invocation that has one."""
        completions = (event for event in self.events if event.kind in ("ok", "fail", "info"))
        return {event.caused_by: event.index for event in completions if event.caused_by is not None}

    def _settle_deletions(self) -> None:
        for directory in self.directories.values():
            for call in directory.deletes:
                if self.had_no_effect(call):
                    continue
                settled = self.over(call)
                answered = call.done if call.outcome == "ok" else NEVER
                directory.deletions.append(Deletion(call.invoke, settled, answered, call.life))
        for fault in self.faults:
            # Without its type file a directory still holds every name, so that damage is no excuse for a loss.
            if fault.kind in CHANGED_BY_KIT and fault.path and not fault.path.endswith(TYPE_FILE):
                home = fault.home or fault.path
                if home in self.directories:
                    settled = self.later(fault.end, self.rest_ns) if fault.kind == DAMAGE else fault.end
                    self.directories[home].deletions.append(Deletion(fault.begin, settled, NEVER, NO_LIFE, kit=True))
        for directory in self.directories.values():
            directory.deletions.sort()

    def _latest_effect(self, call: RecordedCall) -> int:
        """The last event at which a call of unknown outcome may take effect.

        Its server was killed, or answered, or should have answered by now; a request that it had sent to storage by
        then is applied before the storage time-out and `late_effect_ms` have passed. Copies on the wire, pauses and
        waits for a processor make it later. Without a server the end of the client counts.
        """
        rest_ns = self.rest_ns
        if call.life == NO_LIFE:
            client = self.events[call.invoke].process
            # Killed or ended, but not paused: a paused client may still send its deletion.
            died = [fault.begin for fault in self.faults if fault.process == client and fault.kind in DEADLY]
            gone = (at for at in (*died, self.exits.get(client, -1)) if at > call.invoke)
            return self.later(call.done if call.done != NEVER else min(gone, default=NEVER), rest_ns)
        arrivals = self.arrivals_again.get(call.invoke) or [self._arrival(call)]
        last = max(index for index, _ in arrivals)
        lives = [self.lives[life] for _, life in arrivals if life in self.lives]
        if len(arrivals) == 1 and call.done != NEVER and self._was_answered(call) and not self.may_act_again(call):
            return self.later(call.done, rest_ns)
        dead = max((life.end for life in lives), default=NEVER)
        if dead != NEVER and self.events[dead].value != END_OF_RUN:  # The kill at the end of the run does not count.
            return self.later(max(last, dead), rest_ns)
        ends = [last, call.invoke if call.done == NEVER else call.done]
        ends += [fault.end for fault in self.faults if fault.touched == call.invoke]
        ends += [end for life in lives for _, end in life.pauses]
        starved_ns = self.starved_ns(self.time_ns(call.invoke), self.events[-1].time_ns)
        bound_ns = self.header.answer_bound_ms * MS + starved_ns
        waited_ns = self.time_ns(self.awaited_until(call)) - max(self.time_ns(last), self.healthy_ns)
        if self.timed_out(call) and call.invoke not in self.touched and waited_ns > bound_ns:
            return NEVER  # A request without an answer breaks G6, and it is unknown when its server has finished it.
        wait_ns = rest_ns + bound_ns
        return self.later(self._held_up(call, {life.process for life in lives}, max(ends), wait_ns), wait_ns)

    def _held_up(self, call: RecordedCall, own: set[str], end: int, wait_ns: int) -> int:
        """The event until which storage kept failing for a call's servers in its directory, behind which it waits."""
        asked = self.events[call.invoke]
        home = f"{asked.table}{TEMP}{asked.instant}"
        for fault in sorted(self.faults, key=lambda fault: fault.begin):
            here = fault.storage and fault.process in own and fault.concerns(home)
            if here and fault.begin > end and self.time_ns(fault.begin) - self.time_ns(end) <= wait_ns:
                end = fault.begin if fault.end == NEVER else fault.end
        return end

    @cached_property
    def healthy_ns(self) -> int:
        """The time at which the last fault was over."""
        return max((self.time_ns(f.begin if f.end == NEVER else f.end) for f in self.faults), default=0)

    def _arrival(self, call: RecordedCall) -> tuple[int, int]:
        """The event and server life at which a request arrived, where it did so once; late if its client is gone."""
        since = {"info": call.done, "open": call.invoke}.get(call.outcome, self.end)
        for event in self.events[since:]:
            if event.operation == "arrived" and event.caused_by == call.invoke:
                return event.index, self.arrived[call.invoke]
        return call.invoke, call.life

    def later(self, index: int, wait_ns: int) -> int:
        """The first event more than `wait_ns` after an event, NEVER when the run ended before it."""
        return NEVER if index >= self.end else self.index_at(self.events[index].time_ns + wait_ns + 1)

    def awaited_until(self, call: RecordedCall) -> int:
        """The event at which a call was over; for an open one, the end of the run, when the kit kills its process."""
        return call.done if call.done != NEVER else min(self.phase("end"), self.end - 1)

    def timed_out(self, call: RecordedCall, *how: CallError) -> bool:
        """Whether a call had no answer: it is open, or its client stopped waiting, or it ended in a way of `how`."""
        unanswered = call.outcome == "info" and self.error_of(call).startswith((CallError.WAITED, *how))
        return call.outcome == "open" or unanswered

    def keeps_deleting(self, call: RecordedCall, directory: str, silence_ns: int) -> bool:
        """Whether a deletion made progress: never longer than `silence_ns` without removing a file of the directory.

        A server that deletes a large directory, one storage call after another, is not hanging.
        """
        process, until = self.served_by(call), self.awaited_until(call)
        last_ns = self.time_ns(call.invoke)
        for event in self.events[call.invoke : until]:
            if event.operation == "delete" and event.kind == "effect" and event.process == process:
                if not (event.path or "").startswith(f"{directory}/"):
                    continue
                if event.time_ns - last_ns > silence_ns:
                    return False
                last_ns = event.time_ns
        return self.time_ns(until) - last_ns <= silence_ns

    def _was_answered(self, call: RecordedCall) -> bool:
        """Whether the server itself reported an unknown outcome: "500 ...", "503 ..."."""
        error = self.error_of(call)
        return error[:3].isdigit() and error[0] == "5"

    def _check_against_observations(self) -> None:
        """Compare the effects with the files read at the end; a difference is a defect of the kit."""
        busy = self.rest.rewriting()
        for path in sorted(self.closing):
            prefix = path + "/"
            folded = self.rest.contents(path)
            seen = {
                name: content
                for name, content in self.observed.items()
                if content is not None and name.startswith(prefix) and name not in busy
            }
            differ = sorted(name for name in seen.keys() | folded.keys() if seen.get(name) != folded.get(name))
            assert not differ, f"the effects and the last snapshot of {path} disagree about {differ[:5]}"

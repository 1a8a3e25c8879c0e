"""Walks: a short workload is run once to number its storage calls, then once for each call and each fate of it.

    numbered   the workload without faults, and the same with one death in its middle: what a restarted server calls,
               while it starts and when it serves
    a point    the n-th call of a kind on a path, and a fate: the server dies before or after it, or it fails
    a run      the workload with the point as its last fault; what a failed change left meets a death and a start at its
               end as well; then a server lives, is probed, and all is judged
    a pair     a death that was played, and a death at a call of the start after it: when all single points are played

A path stands for all that differ in numbers alone, but for the two directories of the workload, so neither temporary
names, of files or directories, nor the choice of a marker file move a point. Where threads decide the order, a run may
have no such call: then the point is not met.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, Site
from marker_sim.faults.model import FaultSettings, When
from marker_sim.faults.row import READ_CALLS, READS
from marker_sim.history.index.presence import directory_of
from marker_sim.judges.findings import by_number
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET, WalkedCall
from marker_sim.plan import COPY, Op, Plan
from marker_sim.worlds.interceptor import HEAD, StorageCall

WRITTEN, DELETED = "walk/.hoodie/.temp/10", "walk/.hoodie/.temp/1"  # A deletion by prefix would show.
AT_ONCE = 4
AFTER_IT = 2  # Requests after the death at the end.
SECOND_MS = 250  # When a second client asks, where a change fails.
CHANGES = {
    "local": ("open", "write", "cut", "allocate", "rename", "link", "symlink", "delete", "mkdir", "rmdir", "sync"),
    "s3": ("put", "delete"),
}
# Parts of a name that may be others in the next run: UUIDs, numbers, hexadecimal ones, those of Python's `tempfile`.
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_VARYING = re.compile(_UUID + r"|(?<![A-Za-z0-9])(?=[a-f]*\d)[0-9a-f]{4,}(?![A-Za-z0-9])|(?<=tmp)[a-z0-9_]{8}|\d+")
IN_A_ROW = 4
_AT_ONCE_MS = 1_200  # How long a caller waits for a reply that never comes.


class Fate(NamedTuple):
    """What a call meets. kind and settings: of the fault. when: of a death."""

    name: str
    kind: FaultKind
    when: When = "before"
    settings: FaultSettings = FaultSettings()

    def at(self, call: Call) -> Fault:
        """The fault that makes a server's call meet it."""
        return Fault(kind=self.kind, target="server", trigger=call._replace(when=self.when), settings=self.settings)


def _errors(kind: FaultKind) -> tuple[Fate, ...]:
    """An error once, which libraries may hide by trying again, and some in a row."""
    return Fate("error", kind), Fate(f"{IN_A_ROW} errors", kind, settings=FaultSettings(calls=IN_A_ROW))


_DEATHS = tuple(Fate(f"death {when}", FaultKind.KILL, when) for when in ("before", "after"))
_NO_REPLY = Fate("done, no reply", FaultKind.TIMEOUT_APPLIED, settings=FaultSettings(for_ms=_AT_ONCE_MS))
FATES = {
    "local": {
        **dict.fromkeys(CHANGES["local"], (*_DEATHS, *_errors(FaultKind.IO_ERROR))),
        **dict.fromkeys(READ_CALLS, _errors(FaultKind.IO_ERROR)),
    },
    "s3": {
        **dict.fromkeys(CHANGES["s3"], (*_DEATHS, *_errors(FaultKind.SERVER_ERROR), _NO_REPLY)),
        **dict.fromkeys(READ_CALLS, _errors(FaultKind.SERVER_ERROR)),
    },
}
_APPLIED = Fate("done, error", FaultKind.IO_ERROR, settings=FaultSettings(applied=True))
_FULL = Fate("disk full", FaultKind.DISK_FULL)
_FULL_WITHIN = Fate("disk full within", FaultKind.DISK_FULL, settings=FaultSettings(calls=2))
_TORN = Fate("death within", FaultKind.TORN_WRITE)
# Of a deletion of many: each third key stays and has an error in the reply, as the kit's S3 does it.
_PARTLY, _PARTLY_KEYS = Fate("done in part", FaultKind.SERVER_ERROR, settings=FaultSettings(applied=True)), 3
_POWER = (
    Fate("power lost", FaultKind.POWER_LOST, "after"),
    Fate("power lost, names kept", FaultKind.POWER_LOST, "after", FaultSettings(names=True)),
    Fate("power lost, lengths kept", FaultKind.POWER_LOST, "after", FaultSettings(lengths=True)),
)
# How many times less often they come: what differs little from a death after the call before, or an error; reads.
OF_OPERATIONS = 0.65  # The power for deaths and for failures of an operation; writes have five kinds of failures.
LATER, READS_LATER = dict.fromkeys(("death before", "disk full"), 3), 1.5


class WalkPoint(NamedTuple):
    """One call and one fate of it.

    base: of `BASES`. number: of the call in its numbered workload, from 1; of a pair, among its kinds of calls.
    kind: what the call is called on, in any marker directory. turn: of a pair, how many there were of its kind by then.
    deaths: besides it.
    """

    base: int
    number: int
    fate: str
    kind: str
    turn: int
    fault: Fault
    deaths: tuple[Fault, ...] = ()


BASES = ("whole life", "after a restart", "while starting after a death", "pairs: while starting after each death")
STARTING, PAIRS = 2, 3


@dataclass(slots=True)
class Walk:
    """The points of one walk in the order in which they are tried, which a seed draws, and what came of each.

    The next plan may be asked for while others run; none is given while a workload is being numbered.
    power: whether it may be lost.
    """

    storage: str
    threads: int
    interval_ms: int
    seed: int
    power: bool = False
    _bases: list[Plan] = field(default_factory=list)
    _calls: list[tuple[StorageCall, ...]] = field(default_factory=list)
    _left: list[WalkPoint] = field(default_factory=list)
    _pairs: list[WalkPoint] = field(default_factory=list)
    _kinds: dict[str, int] = field(default_factory=dict)  # Calls of pairs, as shown, numbered.
    _going: dict[Plan, WalkPoint | None] = field(default_factory=dict)
    _came: dict[WalkPoint, str] = field(default_factory=dict)
    _silent: set[object] = field(default_factory=set)  # Kinds of calls after which requests were awaited in vain.

    def next(self) -> Plan | None:
        """The plan of the next run; None when all were given, or while the calls of a workload are not known."""
        if None in self._going.values():
            return None
        if not self._bases:
            self._bases.append(workload(self.storage, self.threads, self.interval_ms, self.seed))
        if len(self._calls) < len(self._bases):
            plan, point = self._bases[-1], None
        elif self._left or self._pairs:
            point = self._left.pop() if self._left else min(self._pairs, key=lambda pair: pair.turn)
            if point.base == PAIRS:
                self._pairs.remove(point)
            base = self._bases[0]
            again = asked_again() if self._end in point.deaths else ()
            plan = replace(base, ops=(*base.ops, *again), faults=(*point.deaths, point.fault))
        else:
            return None
        self._going[plan] = point
        return plan

    def point(self, plan: Plan) -> WalkPoint | None:
        """The point of a plan that was given and not taken in so far; None for one that numbers the calls."""
        return self._going[plan]

    def patient(self, plan: Plan) -> bool:
        """Whether requests of a plan that was given are awaited: not after a kind of call that broke G6 already."""
        point = self._going[plan]
        return point is None or _kind(point) not in self._silent

    def took(
        self, plan: Plan, calls: Sequence[StorageCall], struck: bool, broken: Collection[str], hung: bool = False
    ) -> None:
        """Take in a run. calls: of servers, while faults were armed, with the paths of the plan, in order.

        struck: whether the last fault happened, in a run that was judged. broken: the guarantees that the run broke.
        hung: whether requests hung and were not awaited.
        """
        point = self._going.pop(plan)
        if point is None:
            self._number(tuple(calls))
        else:
            named = " ".join(by_number(broken))
            self._came[point] = named or (NO_ANSWER if hung else KEPT if struck else NOT_MET)
            if "G6" in broken:
                self._silent.add(_kind(point))
            if point.base == 0 and point.fault.kind.row.kills:
                self._pair(point.fault, [call for call in calls if call.starting])

    def rows(self) -> tuple[WalkedCall, ...]:
        """The calls in their order, with the fates of each."""
        fates: dict[tuple[int, int], dict[str, list[str]]] = {}
        points = {*self._left, *self._pairs, *self._came, *filter(None, self._going.values())}
        for point in sorted(points, key=lambda each: each[:3]):
            own = fates.setdefault(point[:2], {})
            own.setdefault(point.fate, []).append(self._came.get(point, ""))
        calls = {(PAIRS, number): call for call, number in self._kinds.items()}
        calls |= {each: shown(self._calls[min(each[0], 1)][each[1] - 1]) for each in fates if each[0] != PAIRS}
        return tuple(
            walked_call(BASES[base], number, calls[base, number], own, pair=base == PAIRS)
            for (base, number), own in fates.items()
        )

    def _pair(self, death: Fault, calls: Sequence[StorageCall]) -> None:
        """The pairs of a death that was played: with a death at each call of the start after it."""
        turns = Counter(pair.number for pair in (*self._pairs, *self._came) if pair.base == PAIRS)
        for call, trigger in zip(calls, numbered(calls), strict=True):
            number = self._kinds.setdefault(shown(call), len(self._kinds) + 1)
            for fate in fates_of(self.storage, call, self.power):
                if fate.kind.row.kills:
                    turns[number] += 1
                    own = number, fate.name, shown(call), turns[number]
                    self._pairs.append(WalkPoint(PAIRS, *own, fate.at(trigger), (death,)))

    def _number(self, calls: tuple[StorageCall, ...]) -> None:
        """The points of a workload; then the next workload is the same with a death in the middle of this one."""
        base, first = len(self._calls), calls[0].process if calls else ""
        deaths = tuple(fault for fault in self._bases[base].faults if fault.kind.row.kills)
        self._calls.append(calls)
        triggers = list(numbered(calls))
        for number, (call, trigger) in enumerate(zip(calls, triggers, strict=True), 1):
            if base and call.process == first:
                continue  # Before the death of this workload, as in the one before.
            kind = _VARYING.sub("#", _parted(call.path)[1])
            which = STARTING if call.starting else base
            for fate in fates_of(self.storage, call, self.power):
                dies = fate.kind.row.kills or call.operation not in CHANGES[self.storage]
                more = deaths if dies else (*deaths, self._end)
                self._left.append(WalkPoint(which, number, fate.name, kind, 0, fate.at(trigger), more))
        random.Random(f"walk/1/{self.seed}").shuffle(self._left)
        self._left = in_order(self._left)[::-1]
        changing = [each for each, call in zip(triggers, calls, strict=True) if call.operation in CHANGES[self.storage]]
        if not base and changing:
            death = Fault.of(FaultKind.KILL, "server", changing[len(changing) // 2]._replace(when="after"))
            self._bases.append(replace(self._bases[0], faults=(death, *self._bases[0].faults)))

    @property
    def _end(self) -> Fault:
        """The death at the end of a run in which a change fails."""
        asked = len(self._bases[0].single_ops) + len(asked_again())
        return Fault.of(FaultKind.KILL, "server", Site("server: reply", asked - AFTER_IT))


def in_order(points: Sequence[WalkPoint]) -> list[WalkPoint]:
    """Points so that deaths and failures of each operation take turns, among these fates, and among these kinds of
    paths: one that has n points has the square root of n turns, so that calls of each create come more often than those
    of a directory and do not crowd them out.

    `LATER` fates and reads come less often. What is equal stays in its order.
    """

    def group(point: WalkPoint, *more: object) -> tuple[object, ...]:
        call = point.fault.trigger
        assert isinstance(call, Call)
        return call.operations, call.starting, *more

    def in_turns(sized: Sequence[WalkPoint], keys: Sequence[object], power: float = 0.5) -> dict[WalkPoint, float]:
        size, met, turns = Counter(keys), Counter[object](), dict[WalkPoint, float]()
        for point, key in zip(sized, keys, strict=True):
            met[key] += 1
            turns[point] = met[key] / size[key] ** power
        return turns

    found = sorted(points, key=in_turns(points, [group(point, point.fate, point.kind) for point in points]).__getitem__)
    found.sort(key=in_turns(found, [group(point, point.fate) for point in found]).__getitem__)
    turns = in_turns(found, [group(point, point.fault.kind.row.kills) for point in found], OF_OPERATIONS)
    return sorted(found, key=lambda point: turns[point] * _rarity(point))


def _kind(point: WalkPoint) -> tuple[str, object]:
    return point.kind, point.fault.trigger.operations if isinstance(point.fault.trigger, Call) else ()


def _rarity(point: WalkPoint) -> float:
    call = point.fault.trigger
    reads = isinstance(call, Call) and not READS.isdisjoint(call.operations)
    return LATER.get(point.fate, READS_LATER if reads else 1)


def workload(storage: str, threads: int, interval_ms: int, seed: int) -> Plan:
    """Creates in two directories, one after the other and a few at once; one is deleted and used again.

    The first creates are repeated at once, as by a client that had no answer.
    Its only fault shows the reads: the first one is a millisecond late.
    """

    def read(actor: str, directory: int, kind: str) -> Op:
        return Op(actor=actor, kind=kind, directory=directory)

    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=threads,
        interval_ms=interval_ms,
        directories=(WRITTEN, DELETED),
        ops=(
            *(_create("executor-0", 0, number) for number in (0, 0, 1, 2, 3)),
            _create("executor-1", 0, f"c{COPY}", copies=AT_ONCE),
            *(_create("executor-2", 1, number) for number in (0, 0, 1, 2)),
            read("executor-2", 1, "list"),
            read("executor-2", 1, "delete"),
            _create("executor-2", 1, 0),
            read("executor-2", 1, "exists"),
            read("executor-0", 0, "list"),
            _create("executor-0", 0, 0),
        ),
        faults=(Fault.of(FaultKind.SLOW_STORAGE, "server", Call("", READ_CALLS), late_ms=1),),
        seed=seed,
    )


def asked_again() -> tuple[Op, ...]:
    """A second client asks for the names of the first one, whose requests wait at that time if a write failed."""
    return tuple(_create("executor-3", 0, number, after_ms=0 if number else SECOND_MS) for number in range(4))


def _create(actor: str, directory: int, number: int | str, **more: Any) -> Op:
    name = f"p={number}/f{number}_0-0-0_001.parquet.marker.CREATE"
    return Op(actor=actor, kind="create", directory=directory, name=name, **more)


def numbered(calls: Iterable[StorageCall]) -> Iterator[Call]:
    """How a plan names each call: the n-th of its operation on such a path, of servers that serve or that start."""
    count: Counter[tuple[str, str, bool]] = Counter()
    for call in calls:
        key = _pattern(call.path), call.operation, call.starting
        count[key] += 1
        yield Call(key[0], (call.operation,), count[key], starting=call.starting)


def fates_of(storage: str, call: StorageCall, power: bool = False) -> tuple[Fate, ...]:
    """The fates of a call; none for one that cannot fail, like the closing of a file. power: it may be lost."""
    known = FATES[storage].get(call.operation, ())
    if storage == "local" and call.operation in CHANGES[storage] and call.operation != "sync":
        known = (*known, _APPLIED)
        known += (_FULL,) if call.needs_room else ()
        known += (_FULL_WITHIN, _TORN) if call.operation == "write" else ()
    if storage == "s3" and call.operation == "delete" and len(call.path.split("\n")) >= _PARTLY_KEYS:
        known = (*known, _PARTLY)
    return (*known, *_POWER) if power and call.operation in CHANGES[storage] else known


def shown(call: StorageCall) -> str:
    """A call in words."""
    first, *more = call.path.split("\n")  # Of a deletion of many, which S3 has.
    folder, name = _parted(first)
    others = f" and {len(more)} more" if more else ""
    return f"{HEAD if HEAD in call.also else call.operation} {folder}{_VARYING.sub('#', name)}{others}"


def walked_call(base: str, number: int, call: str, came: Mapping[str, Sequence[str]], *, pair: bool) -> WalkedCall:
    """A call with what came of it, by fate. pair: whether it stands for pairs, of which the worst is shown."""
    fates, every = {fate: max(own, key=_rank) for fate, own in came.items()}, [*chain(*came.values())] if pair else []
    return WalkedCall(base=base, number=number, call=call, fates=fates, pairs=len(every), tried=sum(map(bool, every)))


def _rank(came: str) -> int:
    """Of what came of several pairs the highest is shown: guarantees that were broken."""
    known = "", NOT_MET, NO_ANSWER, KEPT
    return known.index(came) if came in known else len(known)


def _pattern(path: str) -> str:
    folder, name = _parted(path)
    varying = (_UUID if "-" in each[0] else "[0-9a-z_]+" for each in _VARYING.finditer(name))
    parts = (re.escape(fixed) + next(varying, "") for fixed in _VARYING.split(name))
    return f"^{re.escape(folder)}{''.join(parts)}$"


def _parted(path: str) -> tuple[str, str]:
    """What of a path is the same in each run, a directory of the workload, and the rest, whose numbers may differ."""
    home = directory_of(f"{path}/")
    return (path[: len(home) + 1], path[len(home) + 1 :]) if home in (WRITTEN, DELETED) else ("", path)

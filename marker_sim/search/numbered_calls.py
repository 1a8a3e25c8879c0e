"""Numbered storage calls: how a plan names each of them, the fates that it can meet, and the points of a walk.

A path stands for all that differ in numbers alone, but for the two directories of a server's workload, so neither
temporary names, of files or directories, nor the choice of a marker file move a point. Where threads decide the order,
a run may have no such call: then the point is not met.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.model import FaultSettings, When
from marker_sim.faults.row import READ_CALLS
from marker_sim.history.index.presence import directory_of
from marker_sim.judges.findings import by_number
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET, WalkedCall
from marker_sim.plan import Plan
from marker_sim.worlds.interceptor import HEAD, StorageCall

WRITTEN, DELETED = "walk/.hoodie/.temp/10", "walk/.hoodie/.temp/1"  # A deletion by prefix would show.
CHANGES = {
    "local": ("open", "write", "cut", "allocate", "rename", "link", "symlink", "delete", "mkdir", "rmdir", "sync"),
    "s3": ("put", "delete"),
}
# Parts of a name that may be others in the next run: UUIDs, numbers, hexadecimal ones, those of Python's `tempfile`.
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
VARYING = re.compile(UUID + r"|(?<![A-Za-z0-9])(?=[a-f]*\d)[0-9a-f]{4,}(?![A-Za-z0-9])|(?<=tmp)[a-z0-9_]{8}|\d+")
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
_REQUEST = (
    Fate("lost", FaultKind.REQUEST_LOST),
    Fate("reply lost", FaultKind.REPLY_LOST),
    Fate("answered false", FaultKind.FALSE_ANSWER),
)
FATES = {
    "local": {
        **dict.fromkeys(CHANGES["local"], (*_DEATHS, *_errors(FaultKind.IO_ERROR))),
        **dict.fromkeys((*READ_CALLS, "status"), _errors(FaultKind.IO_ERROR)),
        "request": _REQUEST,
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
# A name that is there without its content, as a store leaves it that did not sync. Of the plan of a rollback alone: one
# that cannot be read is made again (BaseHoodieTableServiceClient.getPendingRollbackInfos of Hudi 1.2.0), and nothing
# says what becomes of a table that lost another entry.
_PLAN = re.compile(r"\.rollback\.requested$")
_LOST = (
    Fate("death after, empty", FaultKind.TORN_WRITE, settings=FaultSettings(empty=True)),
    Fate("death after, in part", FaultKind.TORN_WRITE),
)
# Of a deletion of many: each third key stays and has an error in the reply, as the kit's S3 does it.
_PARTLY, _PARTLY_KEYS = Fate("done in part", FaultKind.SERVER_ERROR, settings=FaultSettings(applied=True)), 3
_POWER = (
    Fate("power lost", FaultKind.POWER_LOST, "after"),
    Fate("power lost, names kept", FaultKind.POWER_LOST, "after", FaultSettings(names=True)),
    Fate("power lost, lengths kept", FaultKind.POWER_LOST, "after", FaultSettings(lengths=True)),
)


class WalkPoint(NamedTuple):
    """One call and one fate of it.

    base: the number of the workload. number: of the call in its numbered workload, from 1; of a pair, among its kinds
    of calls. turn: how many there were of its kind by then. plan: of its run, whose last fault is the point's.
    place, call: the workload and the call in words. kind: what calls that are alike share.
    death: of a pair, the one before, in words.
    """

    base: int
    number: int
    fate: str
    turn: int
    plan: Plan
    place: str = ""
    call: str = ""
    kind: Hashable = ""
    death: str = ""

    @property
    def fault(self) -> Fault:
        """The fault that is the fate."""
        return self.plan.faults[-1]

    @property
    def trigger(self) -> Call:
        """The call, as the plan names it."""
        assert isinstance(self.fault.trigger, Call)
        return self.fault.trigger


@dataclass(slots=True, kw_only=True)
class CallWalk:
    """The points at the numbered calls of some workloads: which is next, and what came of each.

    Pairs come when all single points were given, first ones of a kind before later ones.
    power: whether it may be lost.
    """

    storage: str = "local"
    power: bool = False
    _left: list[WalkPoint] = field(default_factory=list)
    _pairs: list[WalkPoint] = field(default_factory=list)
    _kinds: dict[str, int] = field(default_factory=dict)  # Calls of pairs, as shown, numbered.
    _turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    _came: dict[WalkPoint, str] = field(default_factory=dict)  # "" for a point that was given.

    def pop(self) -> WalkPoint | None:
        """The next point; None when all that are known were given."""
        if self._left:
            point = self._left.pop()
        elif self._pairs:
            point = min(self._pairs, key=lambda pair: pair.turn)
            self._pairs.remove(point)
        else:
            return None
        self._came[point] = ""
        return point

    def add(
        self,
        calls: Iterable[tuple[int, str, int, StorageCall, Call]],
        kind_of: Callable[[StorageCall], Hashable],
        made: Callable[[StorageCall, Fate, Call], Plan],
    ) -> None:
        """Add the points of calls of a workload.

        calls: number and words of the workload, number of the call, the call, and how a plan names it.
        made: the plan of a point.
        """
        turns = Counter[Hashable]()
        for base, place, number, call, trigger in calls:
            kind = kind_of(call)
            turns[kind] += 1
            for fate in fates_of(self.storage, call, self.power):
                plan = made(call, fate, trigger)
                self._left.append(WalkPoint(base, number, fate.name, turns[kind], plan, place, shown(call), kind))

    def add_pairs(
        self,
        base: int,
        place: str,
        calls: Iterable[tuple[StorageCall, Call]],
        death: str,
        made: Callable[[Fate, Call], Plan],
        *,
        by_fate: bool = False,
    ) -> None:
        """Add the pairs of a death that was played: with a death at each of the calls after it.

        by_fate: whether turns are counted for each fate.
        """
        for call, trigger in calls:
            name = shown(call)
            number = self._kinds.setdefault(name, len(self._kinds) + 1)
            for fate in fates_of(self.storage, call, self.power):
                if fate.kind.row.kills:
                    alike = name, fate.name if by_fate else ""
                    self._turns[alike] += 1
                    turn, plan = self._turns[alike], made(fate, trigger)
                    self._pairs.append(WalkPoint(base, number, fate.name, turn, plan, place, name, name, death))

    def settle(self, point: WalkPoint, broken: Collection[str], otherwise: str) -> None:
        """Take in what came of a point: the guarantees that were broken, or else `otherwise`."""
        self._came[point] = " ".join(by_number(broken)) or otherwise

    def rows(self) -> tuple[WalkedCall, ...]:
        """The calls in their order, with the fates of each."""
        fates: dict[tuple[bool, int, int, str, str], dict[str, list[str]]] = {}
        points = {*self._left, *self._pairs, *self._came}
        for point in sorted(points, key=lambda each: (bool(each.death), *each[:4])):
            row = fates.setdefault((bool(point.death), point.base, point.number, point.place, point.call), {})
            row.setdefault(point.fate, []).append(self._came.get(point, ""))
        found = []
        for (pair, _, number, place, call), own in fates.items():
            worst = {fate: max(came, key=_rank) for fate, came in own.items()}  # It may stand for several pairs.
            every = [*chain(*own.values())] if pair else []
            tried = sum(map(bool, every))
            found.append(WalkedCall(base=place, number=number, call=call, fates=worst, pairs=len(every), tried=tried))
        return tuple(found)


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
    if call.operation == "rename" and _PLAN.search(call.path):
        known += _LOST
    if storage == "s3" and call.operation == "delete" and len(call.path.split("\n")) >= _PARTLY_KEYS:
        known = (*known, _PARTLY)
    if call.operation == "request" and "?" in call.path:
        known = known[:-1]  # Only what creates a marker is answered true or false.
    return (*known, *_POWER) if power and call.operation in CHANGES[storage] else known


def shown(call: StorageCall) -> str:
    """A call in words."""
    first, *more = call.path.split("\n")  # Of a deletion of many, which S3 has.
    folder, name = parted(first)
    others = f" and {len(more)} more" if more else ""
    return f"{HEAD if HEAD in call.also else call.operation} {folder}{VARYING.sub('#', name)}{others}"


def _rank(came: str) -> int:
    """Of what came of several pairs the highest is shown: guarantees that were broken."""
    known = "", NOT_MET, NO_ANSWER, KEPT
    return known.index(came) if came in known else len(known)


def _pattern(path: str) -> str:
    folder, name = parted(path)
    varying = (UUID if "-" in each[0] else "[0-9a-z_]+" for each in VARYING.finditer(name))
    parts = (re.escape(fixed) + next(varying, "") for fixed in VARYING.split(name))
    return f"^{re.escape(folder)}{''.join(parts)}$"


def parted(path: str) -> tuple[str, str]:
    """What of a path is the same in each run, a directory of the workload, and the rest, whose numbers may differ."""
    home = directory_of(f"{path}/")
    return (path[: len(home) + 1], path[len(home) + 1 :]) if home in (WRITTEN, DELETED) else ("", path)

"""Runs of two writers of one file group in every order of their steps (search/orders/partial_orders.py), each once.

    a race ─► its steps in their order, with what each touches ─► the next order ─► a pause before each change of turn

Two steps depend on each other when both touch one path, or one lists a folder, removes it or looks whether it is there
and the other changes an entry of it, and at least one of them changes something; takings and releases of the lock do.
A look that is no step, `getFileStatus`, goes with the step before it. Of a listing Hudi takes names: sizes are not
counted, nor names that end with a UUID, under which an entry of the timeline is written first (HoodieTableMetaClient
.scanHoodieInstantsFromFileSystem leaves them out, for InstantFileNameParserV2 wants no digit there). Pauses are short,
so no heartbeat is ever late but that of a writer that died.

When all orders were run, the same begins with one death: of a writer before any of its calls that change something,
which is what others can tell apart; a lock that it had is free.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from marker_sim.faults import Fault, FaultKind
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import Campaign, Deciding
from marker_sim.search.numbered_calls import UUID, numbered
from marker_sim.search.orders.partial_orders import OpenOrder, OrderedStep, PartialOrders
from marker_sim.targets.hudi_java_runs import DrawnPoint
from marker_sim.targets.hudi_java_walk import below, table_of
from marker_sim.targets.hudi_spark_runs import tally
from marker_sim.targets.jvm.hudi_java_writers import DECIDES, SCENARIOS, SHAPE, SHORT_MS, WriterRuns
from marker_sim.timeline import HEARTBEATS
from marker_sim.worlds.interceptor import StorageCall
from marker_sim.worlds.spark.hudi.writers import DIED, EXPIRED, MADE, PEEK, STRUCK, writer_name
from marker_sim.worlds.spark.outcome import SparkRun

OF = "orders of two writers of one file group, {mode} markers"
_LOCK = "the lock"
_DIES = " dies"  # The end of the name of a writer's death, which is a writer of one step.
_TOKEN = re.compile(UUID + r"|\d{17}")  # What differs between runs: file ids, and instants.
_UNSEEN = re.compile(r"^\.hoodie/timeline/[^/]*\.<[^/>]*>$")


@dataclass(slots=True, kw_only=True)
class OrderRuns(WriterRuns):
    """The runs of one campaign; `targets.target.RealRuns` says what each method is for. searches: by what of."""

    searches: dict[str, PartialOrders] = field(default_factory=dict)
    _under_way: dict[int, tuple[str, OpenOrder]] = field(default_factory=dict)

    def draw(self, reached: Mapping[str, int]) -> DrawnPoint | None:
        """The next run, None when none fits into the budget, all were run, or those that run may tell of more."""
        if not self._has_room:
            return None
        for name in (OF, f"{OF}, one of which dies"):
            orders = self.searches.setdefault(name, PartialOrders())
            if (branch := orders.pick()) is not None:
                self._drawn += 1
                self._under_way[self._drawn] = name, branch
                base = table_of(self.request.modes[0], self.request.seed, shape=SHAPE, storage=self.request.storage)
                plan = replace(base, writes=SCENARIOS["two of one group"], faults=faults_of(branch))
                return DrawnPoint(number=self._drawn, plan=plan, point=None, words=self._said(name))
            if orders.left:
                break
        return None

    def took(self, drawn: DrawnPoint, played: SparkRun, broken: Collection[Kind]) -> None:
        """Take in that a run has ended."""
        tally(played, self.tried, self.met)
        name, branch = self._under_way.pop(drawn.number)
        if len(played.calls) > 1:  # Else the time was over: it stays open.
            self.searches[name].learn(branch, ordered(*played.calls, deaths=name != OF))

    def complete(self, campaign: Campaign) -> Campaign:
        """Complete the result with how many orders there were; without all of the first kind nothing holds."""
        first = self.searches.get(OF, PartialOrders())
        every = Deciding(
            name="every order", guarantees=DECIDES, mode=self.request.modes[0], tried=first.run, met=int(first.complete)
        )
        words = "; ".join(self._said(name) for name in self.searches)
        return replace(super(OrderRuns, self).complete(campaign), deciding=(every,), orders=words)

    def _said(self, name: str) -> str:
        orders, words = self.searches[name], name.format(mode=self.request.modes[0])
        if orders.complete:
            return f"{orders.run:,} {words}: complete"
        strayed = f", {orders.strayed} could not be followed" if orders.strayed else ""
        known = orders.run + orders.left + orders.strayed
        return f"{orders.run:,} {words}, of at least {known:,} ({100 * orders.run // known} %){strayed}"


def ordered(base: Sequence[StorageCall], race: Sequence[StorageCall], *, deaths: bool = False) -> list[OrderedStep]:
    """The steps of a race in their order, with paths and names that are the same in each run.

    base: the calls before the race. deaths: whether each writer has one that may come at any time, at the end as well.
    """
    named, found, last = _Names(base), list[OrderedStep](), dict[str, int]()
    holder, late, struck = "", dict[str, set[str]](), None
    for call in race:
        writer, path = call.process, named.path(call)
        if call.operation == EXPIRED:
            late.setdefault(writer, set()).add(HEARTBEATS + path)
        elif call.operation == PEEK:
            step = found[last[writer]] if writer in last else None
            if step is not None and step.name != f"list {path.rpartition('/')[0]}":  # It looks at each that it lists.
                found[last[writer]] = step._replace(looks=step.looks | _looks(path))
        elif call.operation == DIED:
            gone = {_LOCK} if holder == writer else set[str]()
            found.append(_death(writer, late.get(writer, set()) | gone, gone, struck))
        elif STRUCK in call.also:
            struck = call
        else:
            looks, changes = touched(call.operation, path, [named.path(call._replace(path=p)) for p in call.also])
            gives = {_LOCK} & changes if call.operation == "unlock" else set[str]()
            if deaths:
                looks = looks | {writer}
                gives = gives if changes - {_LOCK} else gives | {writer}
            holder = {"lock": writer, "unlock": ""}.get(call.operation, holder)
            last[writer] = len(found)
            name = f"{call.operation} {path}"
            found.append(OrderedStep(writer, name, frozenset(looks), frozenset(changes), frozenset(gives), call))
    if deaths and not any(step.writer.endswith(_DIES) for step in found):
        found += [_death(writer, set(), set(), None) for writer in last]
    return found


def _death(writer: str, changes: set[str], gives: set[str], call: StorageCall | None) -> OrderedStep:
    return OrderedStep(
        writer + _DIES, "death", frozenset(), frozenset({writer, *changes}), frozenset(gives), call, True
    )


def touched(operation: str, path: str, also: Sequence[str]) -> tuple[set[str], set[str]]:
    """What a call looks at and what it changes. also: paths that it removed; `MADE` of a folder that was not there.

    A path with a slash at its end is the entries of a folder, with two all that is below it.
    """
    folder = f"{path.rpartition('/')[0]}/"
    match operation:
        case "lock" | "unlock":
            return {_LOCK}, {_LOCK}
        case "list":
            return _looks(path) | {f"{path}/"}, set()
        case "write":
            return _looks(path), {path}
        case "open" | "rename" | "delete" | "rmdir" | "mkdir":
            if operation == "mkdir" and MADE not in also:
                return _looks(path), set()
            if operation == "open" and _UNSEEN.search(path):
                return _looks(path), {path}
            below_it = {f"{path}/", f"{path}//"} if operation == "rmdir" else set()
            gone = {name for each in also if each != MADE for name in (each, f"{each.rpartition('/')[0]}/")}
            return _looks(path), {path, folder} | below_it | gone
        case _:  # A look, or the closing of a file, whose data is stored before.
            return _looks(path), set()


def _looks(path: str) -> set[str]:
    parts = path.split("/")
    return {path} | {f"{'/'.join(parts[:count])}//" for count in range(1, len(parts) + 1)}


class _Names:
    """Names for what differs between runs: after the writer that was first to say it, who made it."""

    def __init__(self, base: Sequence[StorageCall]) -> None:
        self._known: dict[str, str] = {}
        self._counts = Counter[str]()
        for call in base:
            self.path(call._replace(process=""))

    def path(self, call: StorageCall) -> str:
        """The path of a call below its table."""

        def name(found: re.Match[str]) -> str:
            if found[0] not in self._known:
                self._counts[call.process] += 1
                self._known[found[0]] = f"<{call.process} {self._counts[call.process]}>"
            return self._known[found[0]]

        return _TOKEN.sub(name, call.path.partition("/")[2] if "/" in call.path else call.path)


def faults_of(branch: OpenOrder) -> tuple[Fault, ...]:
    """The pauses, and the death, that make two writers do the steps of a branch and then let its writer go on."""
    calls = dict[str, list[StorageCall]]()
    for step in (*branch.steps, *branch.due):
        own = calls.setdefault(step.writer.removesuffix(_DIES), [])
        if step.call is not None:
            own.append(step.call._replace(path=step.call.path.partition("/")[2]))
    named = {writer: [*map(below, numbered(own))] for writer, own in calls.items()}
    found, done, dead = list[Fault](), Counter[str](), set[str]()
    turn, holder = writer_name(0), ""
    for step in (*branch.steps, OrderedStep(branch.writer, "")) if branch.writer else ():
        writer = step.writer.removesuffix(_DIES)
        due = named[turn][done[turn] :][:1]
        if writer != turn and turn not in dead and due and not (due[0].operations == ("lock",) and holder):
            found.append(Fault.of(FaultKind.PAUSE, turn, due[0], for_ms=SHORT_MS))
        turn = writer
        if writer != step.writer:
            found.append(Fault.of(FaultKind.KILL, writer, named[writer][done[writer]]))
            dead.add(writer)
            holder = "" if holder == writer else holder
            continue
        done[writer] += 1
        if step.call is not None and step.call.operation in ("lock", "unlock"):
            holder = writer if step.call.operation == "lock" else ""
    return tuple(found)

"""The sum of the lines of a ledger: a row for each night, every failure, and the plan numbers that are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from marker_sim.campaign.coverage.goals import GOALS, SURE
from marker_sim.campaign.nightly.failures import Failures, read_record
from marker_sim.campaign.nightly.ledger import Line
from marker_sim.errors import HarnessError, UsageError
from marker_sim.outcome.failure import FIXED, SERVER, VIOLATED
from marker_sim.outcome.statistics import RunCounts
from marker_sim.targets.target import ServerOptions

PAUSED = "paused"
NO_END = 1 << 62


@dataclass(slots=True, kw_only=True)
class NightTotals(RunCounts):
    """One night: the counts of its units, its duration and its end.

    seconds: of its budget, `stream_s` of workers by stream.
    kinds: violations, by kind.
    canary: the line of its unit, None before it ran.
    state: "running" until it was paused, or ended.
    unsure: failures that were open when it began and that no replay decided before it ended.
    sut, version: of the system, "" where unknown.
    goals: what its units have to reach together.
    seen: how often each stored failure was found, by name.
    tables: whether its runs are in the tables (parquet.py).
    """

    number: int
    began: str = ""
    kit_version: str = ""
    budget_s: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    state: str = "running"
    seconds: float = 0.0
    units: int = 0
    stream_s: Counter[str] = field(default_factory=Counter)
    stream_runs: Counter[str] = field(default_factory=Counter)
    swarm_units: int = 0
    not_goals: set[str] = field(default_factory=set)
    quiet: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    replayed: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    canary: Line | None = None
    new: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    sut: str = ""
    version: str = ""
    goals: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    tables: bool = False

    def add(self, line: Line) -> None:
        """Count a unit."""
        self.units += 1
        self.stream_s[line["stream"]] += line["seconds"]
        self.stream_runs[line["stream"]] += line.get("runs", 0)
        self.merge(RunCounts.parse(line))
        self.swarm_units += line["stream"] == "swarm"
        self.not_goals |= set(line.get("not_goals", ()))
        if line.get("quiet"):
            self.quiet.append(line["quiet"][0])
        if line.get("trouble"):
            self.trouble.append(f"{line['stream']} {line['first']}: {line['trouble']}")
        self.goals |= set(line.get("goals", ()))
        if line["stream"] == "canary":
            self.canary = line
        elif line.get("canary") and (self.canary is None or not line["canary"]["caught"]):
            self.canary = {"seconds": line["seconds"], **line["canary"]}

    def saw(self, name: str) -> bool:
        """Whether this night found a stored failure, or saw its plan fail again."""
        return self.seen[name] > 0 or self.replayed.get(name) == VIOLATED

    @property
    def still_violated(self) -> list[str]:
        """Failures stored before that were seen again when this night ran them."""
        return sorted(name for name, status in self.replayed.items() if status == VIOLATED)

    @property
    def fixed(self) -> list[str]:
        """Failures stored before that this night ran and did not see again."""
        return sorted(name for name, status in self.replayed.items() if status == FIXED)

    @property
    def not_reached(self) -> list[str]:
        """The coverage goals that a night of this size must reach and did not (campaign/coverage/goals.py)."""
        return [
            f"{goal.name}: {goal.sentence}"
            for goal in GOALS
            if goal.name not in self.not_goals
            and not self.reached[goal.name]
            and min(goal.expected(self.looked, own) for own in (False, True)) >= SURE
        ] + sorted(goal for goal in self.goals if not self.reached[goal])

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: a row of summary.json."""
        return {
            "night": self.number,
            "sut": self.sut,
            "sut_version": self.version,
            "began": self.began,
            "kit_version": self.kit_version,
            "state": self.state,
            "budget_s": self.budget_s,
            "seconds": round(self.seconds, 1),
            "stream_seconds": {name: round(s, 1) for name, s in sorted(self.stream_s.items())},
            "stream_runs": dict(sorted(self.stream_runs.items())),
            "units": self.units,
            **self.counts(),
            "new": self.new,
            "still_violated": self.still_violated,
            "fixed": self.fixed,
            "unsure": sorted(self.unsure),
            "not_reached": self.not_reached,
            "canary": self.canary
            and {name: self.canary.get(name) for name in ("mutant", "caught", "seconds", "plans")},
            "trouble": self.trouble,
            "missing": list(self.missing),
        }


@dataclass(slots=True)
class Totals:
    """The content of a ledger, added up.

    done: finished numbers by stream and space.
    server, storages: of a system whose runs take real time, as in the last night.
    """

    sut: str = ""
    profile: str = ""
    seed: int = 0
    nights: list[NightTotals] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)
    done: dict[tuple[str, str], Ranges] = field(default_factory=dict)
    server: ServerOptions = field(default_factory=ServerOptions)
    storages: tuple[str, ...] = ()

    @property
    def night(self) -> NightTotals:
        """The latest night."""
        return self.nights[-1]

    def add_all(self, lines: Iterable[Line]) -> Totals:
        """Count lines, oldest first; HarnessError for an impossible one, which an edit by hand can leave."""
        for number, line in enumerate(lines, start=1):
            try:
                self.add(line)
            except (AssertionError, AttributeError, IndexError, KeyError, TypeError, UsageError, ValueError) as error:
                why = f"{type(error).__name__}: {error}".partition("\n")[0]
                raise HarnessError(f"line {number} of the ledger does not fit those before it ({why})") from error
        return self

    def add(self, line: Line) -> list[str]:
        """Count one line; returns the names of the failures that it changed."""
        match line["kind"]:
            case "chaos":
                self.sut, self.profile, self.seed = line["sut"], line["profile"], line["seed"]
                self._take_server(line)
            case "night":
                self.sut = line.get("sut", self.sut)
                self._take_server(line)
                self.nights.append(
                    NightTotals(
                        number=line["night"],
                        began=line["at"],
                        kit_version=line["kit_version"],
                        budget_s=line["budget_s"],
                        stages=line["stages"],
                        missing=tuple(line["missing"]),
                        sut=self.sut,
                        version=line.get("sut_version", ""),
                        unsure={failure.name for failure in self.failures.open},
                        tables=line.get("tables", False),
                    )
                )
            case "unit":
                return self._add_unit(line)
            case "replayed":
                self.failures.replayed(line["name"], line["status"], line["at"])
                if self.nights and self.night.state != "ended" and line["status"] in (FIXED, VIOLATED):
                    self.night.unsure.discard(line["name"])
                if line["night"]:
                    self.night.replayed[line["name"]] = line["status"]
                    self._tick(line)
                return [line["name"]] if line["name"] in self.failures.by_name else []
            case "resume" | "pause" | "end":
                states = {"resume": "running", "pause": PAUSED, "end": "ended"}
                self.night.state = states[line["kind"]]
                self._tick(line)
        return []

    def ranges(self, stream: str, space: str = "") -> Ranges:
        """The numbers of a stream that were done in a space."""
        return self.done.setdefault((stream, space), Ranges())

    def _add_unit(self, line: Line) -> list[str]:
        night, stream = self.night, line["stream"]
        self.ranges(stream, line.get("space", "")).add(line["first"], line["count"])
        night.add(line)
        self._tick(line)
        names = []
        for raw in line.get("sightings", ()):
            record = read_record(raw)
            night.kinds[record.kind.place] += 1
            known = frozenset(self.failures.by_name)
            where: dict[str, Any] = {"sut": self.sut, "profile": self.profile, "kit_version": night.kit_version}
            where |= {"server": self.server.to_dict()} if record.world == SERVER else {}
            seen = self.failures.see(record, **where, night=night.number, at=line["at"])
            names.append(seen.name)
            night.seen[seen.name] += 1
            if seen.name not in known:
                night.new.append(seen.name)
        return names

    def _take_server(self, line: Line) -> None:
        if "server" in line:
            self.server = ServerOptions.from_dict(line["server"])
        self.storages = tuple(line.get("storages", self.storages))

    def _tick(self, line: Line) -> None:
        self.night.seconds = max(self.night.seconds, line.get("clock_s", 0.0))


@dataclass(slots=True)
class Ranges:
    """Whole numbers that are taken in turn. free: those that are not, as half-open ranges in order."""

    free: list[tuple[int, int]] = field(default_factory=lambda: [(0, NO_END)])

    def take(self, size: int, end: int = NO_END) -> tuple[int, int] | None:
        """The lowest free (first, count) of at most `size` numbers below `end`, now taken; None when there is none."""
        first, stop = self.free[0]
        count = min(size, stop - first, end - first)
        if count <= 0:
            return None
        self.add(first, count)
        return first, count

    def add(self, first: int, count: int) -> None:
        """Take these numbers; AssertionError when one was taken before, because it would be counted twice."""
        last = first + count
        for at, (begin, stop) in enumerate(self.free):
            if begin <= first and last <= stop:
                self.free[at : at + 1] = [(a, b) for a, b in ((begin, first), (last, stop)) if a < b]
                return
        raise AssertionError(f"numbers from {first} on were done twice")

    def give_back(self, first: int, count: int) -> None:
        """Free numbers that were taken and not done."""
        joined: list[tuple[int, int]] = []
        for begin, stop in sorted((*self.free, (first, first + count))):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
            else:
                joined.append((begin, stop))
        self.free = joined

    def whole(self, end: int) -> bool:
        """Whether all numbers below `end` are taken, and there are any."""
        return self.free[0][0] >= end > 0

"""Adds up the findings of many runs, and turns them into the rows of a verdict by a profile.

A plain value: picklable, and merging two gives the same as adding all their runs to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from copy import deepcopy
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, cast

from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import History
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.guarantees import BY_ID, GUARANTEES
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.process_phase import NO_FAULT, PhaseWalk

if TYPE_CHECKING:
    from marker_sim.judges.baselines.baseline import Differences

BOTH = "both"
_COMPLETIONS = ("ok", "fail", "info")
_Key = tuple[str, str, str, str]
_FEW_JUDGED = 20
_EXCUSED_EACH = 19  # With few judgements, a row with more excuses for each is inconclusive: over 95 %.


def _sum(one: Any, other: Any) -> Any:
    """The sum of two counts: of numbers and counters; for other types the first value."""
    match one:
        case bool() | str():
            return one or other
        case int():
            return one + other
        case Counter():
            one.update(other)
        case dict():
            for key, value in other.items():
                one[key] = _sum(one[key], value) if key in one else deepcopy(value)
        case _Summed():
            one.merge(other)
    return one


class _Summed:
    """A dataclass of counts that can be added to another."""

    __slots__ = ()

    def merge(self, other: _Summed) -> None:
        """Add the other's counts to the fields that both have."""
        for name in (each.name for each in fields(cast(Any, other)) if hasattr(self, each.name)):
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))


@dataclass(slots=True, kw_only=True)
class _Cell(_Summed):
    """The findings about one guarantee in one mode, world and storage."""

    applicable: bool = False
    judged: int = 0
    eligible: int = 0
    undecided: str = ""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    first: dict[str, Breach] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        self.applicable |= finding.applicable
        self.eligible += finding.eligible
        if finding.undecided:
            self.undecided = self.undecided or finding.undecided
        else:
            self.judged += finding.judged
        for name, count in finding.excused:
            self.excused[name] += count
        for breach in finding.breaches:
            self.counts[breach.under, breach.cause] += 1
            self.first.setdefault(breach.under, breach)

    def breakdown(self) -> dict[str, dict[str, int]]:
        """The number of breaches by fault class and cause."""
        counts: dict[str, dict[str, int]] = {}
        for (under, cause), count in sorted(self.counts.items()):
            counts.setdefault(under, {})[cause] = count
        return counts


@dataclass(slots=True, kw_only=True)
class RunCounts(_Summed):
    """The counts over judged runs that a ledger stores and adds up.

    judged, violations, unpromised: by guarantee; unpromised are breaches of guarantees that are not promised.
    excused: by guarantee and excuse.
    reached: coverage goals, and other counted conditions.
    looked: runs that were sampled for coverage (`Statistics.count_coverage`), by "mode/storage/plans".
    reruns: repeated runs: passing ones, failures, and those in a process with another hash seed (elsewhere).
    differences: repeated runs whose history differed.
    """

    runs: int = 0
    steps: int = 0
    differences: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    unpromised: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    looked: Counter[str] = field(default_factory=Counter)
    reruns: Counter[str] = field(default_factory=Counter)

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """The inverse of `counts`; a missing count is zero."""
        found = cls()
        for name in (each.name for each in fields(RunCounts) if raw.get(each.name)):
            setattr(found, name, _sum(getattr(found, name), raw[name]))
        return found

    def counts(self) -> dict[str, Any]:
        """The JSON form; counts by name leave out zeros."""
        found: dict[str, Any] = {}
        for each in fields(RunCounts):
            value = getattr(self, each.name)
            found[each.name] = {k: value[k] for k in sorted(value) if value[k]} if isinstance(value, Counter) else value
        return found


@dataclass(slots=True, kw_only=True)
class Statistics(RunCounts):
    """The counts and findings over many runs, with coverage of sampled runs.

    Counts that depend on a profile (such as `violations`) are only in the result of `by_profile`. Only sampled runs
    count phases and the coverage marks in `reached`.

    with_fault: runs with a fault.
    made: runs by "mode/storage/plans".
    deaths: runs in which a process was killed, by "mode/storage/plans/role".
    faults_by_phase: faults by kind and phase.
    met_in: sampled runs with a coverage mark or a fault in a phase, by "mode/storage/plans/mark".
    broke: runs by guarantee and cause of what they broke, promised or not.
    """

    operations: dict[str, Counter[str]] = field(default_factory=dict)
    with_fault: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    met_in: Counter[str] = field(default_factory=Counter)
    broke: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults_by_phase: dict[str, Counter[str]] = field(default_factory=dict)
    _cells: dict[_Key, _Cell] = field(default_factory=dict)

    def add(self, history: History, findings: Iterable[Finding]) -> None:
        """Count one run and its findings."""
        self.runs += 1
        header = history.header
        self.made[_kind_of(history)] += 1
        for finding in findings:
            key = (finding.guarantee, header.mode, header.world, header.storage)
            self._cells.setdefault(key, _Cell()).add(finding)
            self.broke.update({(finding.guarantee, breach.cause) for breach in finding.breaches})
        counts = Counter(map(attrgetter("kind", "operation"), history.events))
        for (kind, operation), count in counts.items():
            if kind in _COMPLETIONS:
                ended = self.operations.setdefault(operation, Counter(dict.fromkeys(_COMPLETIONS, 0)))
                ended[kind] += count
            elif kind == "observe" and operation in ("started", "exited", "mode", "snapshot"):
                self.reached[operation] += count
            elif kind == "effect":
                self.reached[f"effect {operation}"] += count
        if any(kind == "fault" for kind, _ in counts):
            fired = [e for e in history.events if e.kind == "fault" and e.value not in NO_FAULT]
            self.with_fault += bool(fired)
            killed = {_role(event.process) for event in fired if event.operation == "kill"}
            self.deaths.update(f"{_kind_of(history)}/{role}" for role in killed)
            self.faults.update(event.operation for event in fired)
        if counts["observe", "started"] > 1:
            self.reached["restarted or second server"] += 1

    def count_coverage(self, history: History) -> None:
        """Count faults by phase and coverage marks of a run that `add` has counted."""
        seen, kind_of_run = PhaseWalk(history), _kind_of(history)
        self.looked[kind_of_run] += 1
        for (kind, phase), count in seen.faults_by_phase.items():
            self.faults_by_phase.setdefault(kind, Counter())[phase] += count
            self.met_in[f"{kind_of_run}/{kind} in {phase}"] += 1
        for name, count in seen.marks.seen.items():
            self.reached[name] += count
            self.met_in[f"{kind_of_run}/{name}"] += 1

    def phases_of(self, kind: str) -> Counter[str]:
        """The number of faults of a kind in each phase."""
        return self.faults_by_phase.get(kind, Counter())

    def judged_in(self, guarantee: str, mode: str, storage: str) -> int | None:
        """The number of judgements of a guarantee in one mode and storage, all worlds; None where it never applied."""
        cells = [c for key, c in self._cells.items() if key[:2] == (guarantee, mode) and key[3] == storage]
        applied = [cell.judged for cell in cells if cell.applicable]
        return sum(applied) if applied else None

    def add_pair(self, first: History, second: History, finding: Finding) -> None:
        """Count the finding of two histories of one plan (G21), in mode "both"; `add` counts the runs."""
        header = second.header
        key = (finding.guarantee, BOTH, header.world, header.storage)
        self._cells.setdefault(key, _Cell()).add(finding)
        if first.header.mode != header.mode:
            self.reached["pair of modes"] += 1

    def leave_out(self, places: Set[tuple[str, str]]) -> None:
        """Leave out modes and storages that cannot be judged, except for their violations."""
        for counts in (self.made, self.deaths, self.looked, self.met_in):
            for key in [key for key in counts if tuple(key.split("/")[:2]) in places]:
                del counts[key]
        storages = {storage for _, storage in places}
        out = {*places, *((BOTH, storage) for storage in storages)}
        self._cells = {key: cell for key, cell in self._cells.items() if cell.counts or (key[1], key[3]) not in out}

    def by_profile(self, profile: Profile) -> RunCounts:
        """The part that can be added up later, with breaches turned into violations where the profile promises."""
        found = RunCounts()
        found.merge(self)
        for row in self.rows(profile):
            promised = (under for under in row.under if profile.promise(row.id, row.mode, row.storage, under).promised)
            held = sum(row.under[under] for under in promised)
            found.judged[row.id] += row.judged
            found.violations[row.id] += held
            found.unpromised[row.id] += row.violations - held
            found.excused.update({f"{row.id} {name}": count for name, count in row.excused.items()})
        return found

    def rows(self, profile: Profile) -> tuple[VerdictRow, ...]:
        """One row for each guarantee, mode, world and storage judged, in the order of the table."""
        order = {guarantee.id: number for number, guarantee in enumerate(GUARANTEES)}
        return tuple(
            _row(key, self._cells[key], profile)
            for key in sorted(self._cells, key=lambda key: (order[key[0]], key[1:]))
        )


def overall(rows: Iterable[VerdictRow], differences: Differences | None = None) -> str:
    """The verdict of all rows: "violated" before "inconclusive" before "holds".

    Without promised and applicable rows it is inconclusive: a campaign that judged nothing never holds.

    differences: from a baseline; then only unexpected and stale entries count as violated.
    """
    verdicts = {row.verdict for row in rows}
    if differences is not None:
        if differences.unexpected or differences.stale:
            return "violated"
    elif "violated" in verdicts:
        return "violated"
    if "inconclusive" in verdicts or not verdicts & {"holds", "violated"}:
        return "inconclusive"
    return "holds"


def _kind_of(history: History) -> str:
    header = history.header
    plans = "writes" if (header.plan or {}).get("writes") else "operations"
    return f"{header.mode}/{header.storage}/{plans}"


def _role(process: str) -> str:
    """The role in a process name: "server" for server#2 and second#1, "executor" for executor-0#1."""
    actor = process.partition("#")[0].rstrip("-0123456789")
    return "server" if actor == "second" else actor


def _row(key: _Key, cell: _Cell, profile: Profile) -> VerdictRow:
    guarantee, mode, world, storage = key
    promises = {under: profile.promise(guarantee, mode, storage, under) for under in FAULT_CLASSES}
    breakdown, causes = cell.breakdown(), Counter[str]()
    for counts in breakdown.values():
        causes.update(counts)
    shown = [under for under in FAULT_CLASSES if under in breakdown]
    held = [under for under in shown if promises[under].promised]
    shown = held or shown
    breach = cell.first[shown[0]] if shown else None
    message = breach.message if breach else ""
    if not cell.applicable or not any(promise.applicable for promise in promises.values()):
        verdict = "not-applicable"
    elif held:
        verdict = "violated"
    elif not any(promise.promised for promise in promises.values()):
        verdict = "not-promised"
    elif cell.judged == 0:
        verdict, message = "inconclusive", cell.undecided or "no run had anything to judge"
    elif cell.judged < _FEW_JUDGED and cell.excused.total() > _EXCUSED_EACH * cell.judged:
        name, count = cell.excused.most_common(1)[0]
        verdict, message = "inconclusive", f"excused {cell.excused.total()} times, {count} of them for {name!r}"
    else:
        verdict = "holds"
        message = f"not promised under {', '.join(shown)}: {message}" if breach else ""
    asked = [promises[shown[0]]] if shown else [promises["none"], *promises.values()]
    return VerdictRow(
        id=guarantee,
        slug=BY_ID[guarantee].slug,
        verdict=verdict,
        mode=mode,
        world=world,
        storage=storage,
        judged=cell.judged,
        violations=causes.total(),
        under={under: sum(breakdown.get(under, {}).values()) for under in FAULT_CLASSES},
        causes={cause: causes[cause] for cause in sorted(causes)},
        breakdown=breakdown,
        read_at_ack_share=round(cell.judged / cell.eligible, 4) if cell.eligible else None,
        message=message,
        evidence=breach.evidence if breach else (),
        excused=dict(sorted(cell.excused.items())),
        source=next((promise.source for promise in asked if promise.source), ""),
    )

"""The steps of a run on a table that Hudi writes: what each does to it, where that is, and which guarantees it decides.

A step is one write, or one rollback, and the faults that it meets. A plan has the steps as its writes: one that is
abandoned comes before each whose rollback is what meets the faults, and dies by its own or when its data files are
whole.

    write      requested · inflight · marker (direct) or flush, rewrite, type-file (timeline) · data-file
               · last-data-file · metadata · before-commit · after-commit · marker-deletion
    rollback   rollback-requested · rollback-inflight · rollback-deletion · rollback-before-completion
               · rollback-after-completion · rollback-marker-deletion
    executors  one is killed, or stopped for a while, at a data file: its tasks run again, or a speculative copy of them
               beside it, and what is not accepted must be gone when the write is committed
    services   the steps of PREPARED, then a table service, which meets the faults; a write without faults follows, and
               the service once more
    storage    503, 500, slow puts, puts that are done and not answered: some are repeated by S3A, others fail a task
               attempt, whose file is then there and not accepted

A driver is killed at a put or a deletion of a path of either timeline layout, seen with Hudi 0.15.0, 1.0.2, 1.1.1 and
1.2.0: before it or after it, and on a local file system, where a put is several calls, within it as well.

    part     S3                  a local file system
    before   before the request  before the file is opened or renamed to: nothing is there
    within                       after it was opened: it is empty; or in a write: half of that is there; or after it was
                                 cut to be written again (`rewrite`)
    after    before its reply    when the file is closed, or was renamed: it is whole

Limits: executors are there on a standalone cluster alone (standalone.py); storage fails on the kit's S3 alone.
docs/hudi-spark.md has the table of what decides which guarantee.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.faults.row import READ_CALLS
from marker_sim.plan import Plan, Service, Write
from marker_sim.worlds.interceptor import ArmedFault
from marker_sim.worlds.spark.hudi.settings import partition_names, shape_of
from marker_sim.worlds.spark.plans import DRIVER, EXECUTOR, STORAGE

Stage = Literal["write", "rollback", Service]
Part = Literal["before", "within", "after"]
KILLED_AT = "driver killed at "
# What gives a service something to do, after the first write. An upgrade is of the write that makes it.
PREPARED: dict[Service, tuple[Stage, ...]] = {
    "compact": ("write", "write"),
    "cluster": ("write",),
    "clean": ("write", "compact", "write", "compact"),
    "archive": ("write", "write", "write", "compact", "write", "clean"),
    "savepoint": ("write",),
    "restore": ("write", "savepoint", "write", "write"),
    "upgrade": ("write",),
}
_TIMELINE = r"\.hoodie/(timeline/)?"
_WHOLE = r"(\.[0-9a-f-]{36})?$"  # Since 1.1 an entry is written under another name first, on a local file system.
DATA = r"(?!\.hoodie/)(.*/)?([^/.][^/]*\.parquet|\.[^/]*\.log\.\d+_[\d-]+)$"
PAUSE_MS = (2_000, 6_000)
TORN_SHARE = 0.5  # Of deaths within a put, the others leave the file empty.
REPEATED = 8  # Requests that S3A makes for a put before it gives up, with the settings of settings.py.
_FIRST_TASK = r"(?!\.hoodie/)(.*/)?([^/.][^/]*_0-\d+-\d+_\d+\.parquet|\.[^/]*\.log\.\d+_0-\d+-\d+)$"
_BOTH: tuple[Part, ...] = ("before", "after")
_EACH: tuple[Part, ...] = ("before", "within", "after")
_OPENED, _CLOSED = ("open", "rename"), ("close", "rename")  # Where a local file begins to be put, and where that ends.
_TEMP = r"\.hoodie/\.temp/"
_MARKER_FILES = _TEMP + r"\d+/(?!.*\.crc$)"
_MARKERS = _TEMP + r"\d+/MARKERS\d+$"
_ROLLBACK = _TIMELINE + r"\d+(_\d+)?\.rollback"
_COMPLETED = _TIMELINE + r"\d+(_\d+)?\.(delta)?commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStep:
    """One step of a run, met when its last fault happened.

    name: how it is counted, "" for one that is not.
    stage: "rollback" when the write before it must fail first; a service that it is instead of a write.
    faults: of its driver, an executor or the storage, each at a call on paths below the table.
    before: those of the write that must fail first, none for a death at its last data file.
    """

    name: str
    stage: Stage
    faults: tuple[Fault, ...]
    before: tuple[Fault, ...] = ()

    @property
    def word(self) -> str:
        """The word for its place in `fault` events of kills."""
        return self.name.removeprefix(KILLED_AT)


def steps_of(plan: Plan) -> tuple[TableStep, ...]:
    """The steps of a plan."""
    found, before = list[TableStep](), None
    for write in plan.writes:
        faults = tuple(plan.faults[number] for number in write.faults)
        if not write.abandon:
            stage: Stage = write.service or ("write" if before is None else "rollback")
            found.append(TableStep(name=write.name, stage=stage, faults=faults, before=before or ()))
        before = faults if write.abandon else None
    return tuple(found)


def with_steps(plan: Plan, steps: Iterable[TableStep]) -> Plan:
    """The plan with other steps."""
    writes, faults = list[Write](), list[Fault]()

    def add(write: Write, own: tuple[Fault, ...]) -> None:
        writes.append(replace(write, faults=tuple(range(len(faults), len(faults) + len(own)))))
        faults.extend(own)

    for step in steps:
        if step.stage == "rollback":
            add(Write(abandon=True), step.before)
        add(Write(name=step.name, service=service_of(step.stage)), step.faults)
    return replace(plan, writes=tuple(writes), faults=tuple(faults))


def service_of(stage: Stage) -> Literal["", Service]:
    """The service that a stage is, "" for none."""
    return "" if stage == "write" or stage == "rollback" else stage


def preparation(stage: Stage, merges: bool) -> tuple[Stage, ...]:
    """The steps before a stage that are its own, without faults. merges: whether the table is merge-on-read."""
    service = service_of(stage)
    return tuple(each for each in PREPARED[service] if merges or each != "compact") if service else ()


def call_of(fault: Fault) -> Call:
    """The storage call at which a fault of a step strikes."""
    assert isinstance(fault.trigger, Call), f"{fault} is not due at a call"
    return fault.trigger


def aimed_at(fault: Fault, table: str, caller: str = "") -> ArmedFault:
    """The fault armed for the calls of processes whose names begin so on a table; where it hits executors, the driver's
    call continues.
    """
    call = call_of(fault)
    there = call._replace(pattern=f"^{table}/{call.pattern}")
    exempt = (DRIVER,) if fault.target == EXECUTOR else ()
    return ArmedFault(replace(fault, trigger=there), caller, exempt)


def put_call(pattern: str, n: int, part: Part, storage: str) -> Call:
    """The call at which a fault strikes: before, within or after the n-th put of a path that matches."""
    if storage == "s3":
        return Call(pattern, ("put",), n, "before" if part == "before" else "after")
    operations = {"before": _OPENED, "within": ("open",), "after": _CLOSED}[part]
    return Call(pattern, operations, n, "before" if part == "before" else "after")


@dataclass(frozen=True, slots=True)
class WritePhase:
    """A place where a driver is killed.

    guarantees: those that a death here decides.
    pattern: of paths below the table.
    nths: which of the effects that fit.
    parts: of the put at which the driver dies; within it on a local file system alone.
    mode: the mode that has it, "" for both.
    metadata: whether only a table with a metadata table has it.
    deletes: whether only a table has it whose rollbacks delete log files, and not append to them.
    rewrites: whether only a write has it that writes marker files again, on a local file system.
    """

    word: str
    stage: Stage
    guarantees: tuple[str, ...]
    pattern: str
    operation: Literal["put", "delete", "cut"] = "put"
    nths: tuple[int, ...] = (1,)
    parts: tuple[Part, ...] = _BOTH
    mode: str = ""
    metadata: bool = False
    deletes: bool = False
    rewrites: bool = False

    @property
    def name(self) -> str:
        """The name under which a kill at this place is counted."""
        return KILLED_AT + self.word

    def step(self, rng: random.Random, files: int, storage: str) -> TableStep:
        """A kill of the driver at this place, its details drawn; files: how many a write makes at least."""
        return TableStep(name=self.name, stage=self.stage, faults=(self.fault(rng, files, storage),))

    def fault(self, rng: random.Random, files: int = 1, storage: str = "s3") -> Fault:
        """The fault of a kill at this place, drawn from `nths` and `parts`."""
        part = rng.choice([part for part in self.parts if part != "within" or storage == "local"])
        n = min(rng.choice(self.nths), files)
        if self.operation != "put":
            when: When = "before" if part == "before" else "after"
            return Fault.of(FaultKind.KILL, DRIVER, Call(self.pattern, (self.operation,), n, when))
        if part == "within" and rng.random() < TORN_SHARE:
            return Fault.of(FaultKind.TORN_WRITE, DRIVER, Call(self.pattern, ("write",), n, "after"))
        return Fault.of(FaultKind.KILL, DRIVER, put_call(self.pattern, n, part, storage))


PHASES = (
    WritePhase("requested", "write", ("G19",), _TIMELINE + r"\d+\.(delta)?commit\.requested$"),
    WritePhase("inflight", "write", ("G19",), _TIMELINE + r"\d+(\.deltacommit)?\.inflight$"),
    WritePhase("flush", "write", ("G13", "G15"), _MARKERS, nths=(1, 1, 2), parts=_EACH, mode="timeline"),
    WritePhase("rewrite", "write", ("G13", "G15"), _MARKERS, "cut", parts=("within",), mode="timeline", rewrites=True),
    WritePhase("type-file", "write", ("G15", "G18"), _TEMP + r"\d+/MARKERS\.type$", parts=_EACH, mode="timeline"),
    WritePhase(
        "marker", "write", ("G13", "G15"), _TEMP + r".*\.marker\.(CREATE|MERGE|APPEND)$", nths=(1, 2, 4), mode="direct"
    ),
    WritePhase("data-file", "write", ("G13", "G15", "G19", "G24"), DATA, nths=(1, 2, 3), parts=_EACH),
    WritePhase(
        "metadata",
        "write",
        ("G15", "G24"),
        r"\.hoodie/metadata/\.hoodie/(timeline/)?\d+(_\d+)?\.deltacommit$",
        metadata=True,
    ),
    WritePhase("before-commit", "write", ("G14", "G24"), _COMPLETED + _WHOLE, parts=("before", "within")),
    WritePhase("after-commit", "write", ("G14", "G18", "G24"), _COMPLETED + "$", parts=("after",)),
    WritePhase("marker-deletion", "write", ("G18",), _MARKER_FILES, "delete", nths=(1, 1, 2)),
    WritePhase("rollback-requested", "rollback", ("G16",), _TIMELINE + r"\d+\.rollback\.requested$"),
    WritePhase("rollback-inflight", "rollback", ("G16",), _TIMELINE + r"\d+\.rollback\.inflight$"),
    WritePhase("rollback-deletion", "rollback", ("G15", "G16"), DATA, "delete", nths=(1, 2, 3), deletes=True),
    WritePhase(
        "rollback-before-completion", "rollback", ("G16", "G24"), _ROLLBACK + _WHOLE, parts=("before", "within")
    ),
    WritePhase("rollback-after-completion", "rollback", ("G16", "G18"), _ROLLBACK + "$", parts=("after",)),
    WritePhase("rollback-marker-deletion", "rollback", ("G16", "G18"), _MARKER_FILES, "delete", nths=(1, 1, 2)),
)
REWRITE = next(phase for phase in PHASES if phase.rewrites).name
# The deletion of what an attempt left that was not accepted.
RECONCILE = WritePhase("reconcile", "write", ("G14", "G15"), DATA, "delete")


def last_data_file(plan: Plan, *, third: bool) -> TableStep:
    """The kill at the last data file of a write, before its commit: it leaves a rollback most to do. third: whether it
    is the third write or a later one.
    """
    count = len(partition_names(plan)) - (third and shape_of(plan).rests)
    phase = WritePhase("last-data-file", "write", (), DATA, nths=(count,), parts=("after",))
    return phase.step(random.Random(0), count, plan.storage)


def phases(mode: str, stage: Stage, *, metadata: bool, deletes: bool, rewrites: bool) -> tuple[WritePhase, ...]:
    """The places of a stage that a write in this mode has; metadata, deletes, rewrites: as in WritePhase."""
    return tuple(
        each
        for each in PHASES
        if each.stage == stage
        and each.mode in ("", mode)
        and (metadata or not each.metadata)
        and (deletes or not each.deletes)
        and (rewrites or not each.rewrites)
    )


def executor_troubles(rng: random.Random, files: int, storage: str) -> tuple[TableStep, ...]:
    """Steps with a killed executor, a paused one, and a driver killed while it reconciles. files: of a write."""
    n = min(rng.choice((1, 2, 3)), files)
    call = put_call(DATA, n, rng.choice(_EACH if storage == "local" else _BOTH), storage)
    killed = Fault.of(FaultKind.KILL, EXECUTOR, call)
    paused = Fault.of(FaultKind.PAUSE, EXECUTOR, call, for_ms=rng.randint(*PAUSE_MS))
    return (
        _step("executor killed", killed),
        _step("executor paused", paused),
        _step(RECONCILE.name, killed.at(1), RECONCILE.fault(rng, 1, storage)),
    )


def storage_troubles(rng: random.Random) -> tuple[TableStep, ...]:
    """Steps in each of which the object store fails in another way during one write."""
    lost = _failing(FaultKind.TIMEOUT_APPLIED, Call(_FIRST_TASK, ("put",)), calls=REPEATED, for_ms=200)
    times = rng.choice((1, 3, REPEATED))
    every = Call("", ("put", "delete", *READ_CALLS), rng.randint(1, 20))
    throttled = _failing(FaultKind.THROTTLED, every, calls=rng.randint(2, 10))
    unread = _failing(FaultKind.SERVER_ERROR, Call("", READ_CALLS, rng.randint(1, 30)), calls=rng.choice((1, 3)))
    first = rng.randint(1, 12)
    return (
        _step(RECONCILE.name, lost, RECONCILE.fault(rng)),
        _step("attempt failed after its file was put", lost),
        _step("puts refused", _failing(FaultKind.SERVER_ERROR, Call("", ("put",), first), calls=times)),
        _step("puts slow", _failing(FaultKind.SLOW_STORAGE, Call("", ("put",)), calls=12, late_ms=400)),
        _step("requests throttled", throttled),
        _step("reads refused", unread),
        _step(
            "storage failed in a rollback",
            _failing(FaultKind.SERVER_ERROR, Call(r"\.hoodie/", ("put",), 2), calls=times),
            stage="rollback",
        ),
    )


def _failing(kind: FaultKind, call: Call, **how: int) -> Fault:
    return Fault.of(kind, STORAGE, call, **how)


def _step(name: str, *faults: Fault, stage: Stage = "write") -> TableStep:
    return TableStep(name=name, stage=stage, faults=faults)


class Decides(NamedTuple):
    """A step, the guarantees it decides, and where there is one: "" for both modes, for both storages."""

    step: str
    guarantees: tuple[str, ...]
    mode: str = ""
    storage: str = ""


TABLE = (
    *(Decides(each.name, each.guarantees, each.mode, "local" if each.rewrites else "") for each in PHASES),
    Decides("executor killed", ("G14",)),
    Decides("executor paused", ("G14",)),
    Decides(RECONCILE.name, RECONCILE.guarantees),
    Decides("attempt failed after its file was put", ("G14",), storage="s3"),
    Decides("puts refused", ("G19",), storage="s3"),
    Decides("puts slow", (), storage="s3"),
    Decides("requests throttled", ("G19",), storage="s3"),
    Decides("reads refused", ("G19",), storage="s3"),
    Decides("storage failed in a rollback", ("G16",), storage="s3"),
)


def places_of(mode: str, storage: str) -> tuple[Decides, ...]:
    """The steps that a mode on a storage has. G25 is decided by the writes between the steps, in every run."""
    return tuple(each for each in TABLE if each.mode in ("", mode) and each.storage in ("", storage))

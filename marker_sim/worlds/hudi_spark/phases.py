"""Where a driver is killed: the places of a write, and of the rollback that follows it, told by what reaches storage.

    write      requested · inflight · marker (direct) or flush, rewrite, type-file (timeline) · data-file
               · last-data-file · metadata · before-commit · after-commit · marker-deletion
    rollback   rollback-requested · rollback-inflight · rollback-deletion · rollback-before-completion
               · rollback-after-completion · rollback-marker-deletion

A place is a put or a deletion of a path of either timeline layout, seen with Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0. On
S3 the driver dies before or after the request is applied; on a local file system as soon as the kernel told of the
moment, which is when a file was made (so that it may be torn), closed, or cut to be written again (`rewrite`). Limits:
before means nothing there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from marker_sim.faults import Call, Fault, FaultKind, When
from marker_sim.worlds.hudi_spark.steps import DRIVER, KILLED_AT, Stage, TableStep

_TIMELINE = r"\.hoodie/(timeline/)?"
_WHOLE = r"(\.[0-9a-f-]{36})?$"  # Since 1.1 an entry is written under another name first, on a local file system.
DATA = r"(?!\.hoodie/)(.*/)?([^/.][^/]*\.parquet|\.[^/]*\.log\.\d+_[\d-]+)$"
_MARKER_FILES = r"\.hoodie/\.temp/\d+/(?!.*\.crc$)"
_BOTH: tuple[When, ...] = ("before", "after")
_COMPLETED = _TIMELINE + r"\d+(_\d+)?\.(delta)?commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePhase:
    """A place.

    pattern: of paths below the table.
    nths: which of the effects that fit.
    whens: on S3.
    seen: on a local file system, where before is when a file is made and after when it is whole.
    mode: the mode that has it, "" for both.
    metadata: whether only a table with a metadata table has it.
    deletes: whether only a table has it whose rollbacks delete log files, and not append to them.
    rewrites: whether only a write has it that writes marker files again, on a local file system.
    """

    word: str
    stage: Stage
    pattern: str
    operation: Literal["put", "delete", "cut"] = "put"
    nths: tuple[int, ...] = (1,)
    whens: tuple[When, ...] = _BOTH
    seen: tuple[When, ...] = ("after",)
    mode: str = ""
    metadata: bool = False
    deletes: bool = False
    rewrites: bool = False

    @property
    def name(self) -> str:
        """What is counted."""
        return KILLED_AT + self.word

    def step(self, rng: random.Random, files: int, storage: str) -> TableStep:
        """A kill of the driver at this place, its details drawn; files: how many a write makes at least."""
        return TableStep(name=self.name, stage=self.stage, faults=(self.fault(rng, files, storage),))

    def fault(self, rng: random.Random, files: int = 1, storage: str = "s3") -> Fault:
        """The kill alone."""
        when = rng.choice(self.whens if storage == "s3" else self.seen)
        call = Call(self.pattern, (self.operation,), min(rng.choice(self.nths), files), when)
        return Fault.of(FaultKind.KILL, DRIVER, call)


PHASES = (
    WritePhase(
        word="requested", stage="write", pattern=_TIMELINE + r"\d+\.(delta)?commit\.requested$", seen=_BOTH,
    ),
    WritePhase(word="inflight", stage="write", pattern=_TIMELINE + r"\d+(\.deltacommit)?\.inflight$"),
    WritePhase(
        word="flush", stage="write", pattern=r"\.hoodie/\.temp/\d+/MARKERS\d+$", nths=(1, 1, 2), seen=_BOTH,
        mode="timeline",
    ),
    WritePhase(
        word="rewrite", stage="write", pattern=r"\.hoodie/\.temp/\d+/MARKERS\d+$", operation="cut", whens=("before",),
        seen=("before",), mode="timeline", rewrites=True,
    ),
    WritePhase(
        word="type-file", stage="write", pattern=r"\.hoodie/\.temp/\d+/MARKERS\.type$", seen=("before",),
        mode="timeline",
    ),
    WritePhase(
        word="marker", stage="write", pattern=r"\.hoodie/\.temp/.*\.marker\.(CREATE|MERGE|APPEND)$", nths=(1, 2, 4),
        mode="direct",
    ),
    WritePhase(word="data-file", stage="write", pattern=DATA, nths=(1, 2, 3), seen=_BOTH),
    WritePhase(
        word="metadata", stage="write", pattern=r"\.hoodie/metadata/\.hoodie/(timeline/)?\d+(_\d+)?\.deltacommit$",
        metadata=True,
    ),
    WritePhase(word="before-commit", stage="write", pattern=_COMPLETED + _WHOLE, whens=("before",), seen=("before",)),
    WritePhase(word="after-commit", stage="write", pattern=_COMPLETED + "$", whens=("after",)),
    WritePhase(
        word="marker-deletion", stage="write", pattern=_MARKER_FILES, operation="delete", nths=(1, 1, 2),
    ),
    WritePhase(word="rollback-requested", stage="rollback", pattern=_TIMELINE + r"\d+\.rollback\.requested$"),
    WritePhase(word="rollback-inflight", stage="rollback", pattern=_TIMELINE + r"\d+\.rollback\.inflight$"),
    WritePhase(word="rollback-deletion", stage="rollback", pattern=DATA, operation="delete", nths=(1, 2, 3),
    deletes=True),
    WritePhase(
        word="rollback-before-completion", stage="rollback", pattern=_TIMELINE + r"\d+(_\d+)?\.rollback" + _WHOLE,
        whens=("before",), seen=("before",),
    ),
    WritePhase(
        word="rollback-after-completion", stage="rollback", pattern=_TIMELINE + r"\d+(_\d+)?\.rollback$",
        whens=("after",),
    ),
    WritePhase(
        word="rollback-marker-deletion", stage="rollback", pattern=_MARKER_FILES, operation="delete",
        nths=(1, 1, 2),
    ),
)  # fmt: skip
REWRITE = next(phase for phase in PHASES if phase.rewrites).name
# The deletion of what an attempt left that was not accepted.
RECONCILE = WritePhase(word="reconcile", stage="write", pattern=DATA, operation="delete")


def last_data_file(count: int) -> TableStep:
    """A kill when everything of a write is on storage but its commit: what a rollback has most to do with."""
    phase = WritePhase(word="last-data-file", stage="write", pattern=DATA, nths=(count,), whens=("after",))
    return phase.step(random.Random(0), count, "s3")


def phases(mode: str, stage: Stage, *, metadata: bool, deletes: bool, rewrites: bool) -> tuple[WritePhase, ...]:
    """The places of a stage that a write in this mode has; metadata, deletes, rewrites: as in a Phase."""
    return tuple(
        each
        for each in PHASES
        if each.stage == stage
        and each.mode in ("", mode)
        and (metadata or not each.metadata)
        and (deletes or not each.deletes)
        and (rewrites or not each.rewrites)
    )

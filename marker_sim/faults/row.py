"""The columns of the table of faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

S3_MODELS = ("s3", "s3-unconditional")
REMOTE = (*S3_MODELS, "hdfs")
ANY_STORAGE = (*S3_MODELS, "local", "hdfs")
# On other storages timeline-server markers fall back to direct ones, so no server exists.
BATCHED_STORAGES = ("s3", "local")

CONTENTS = ("put", "overwrite")
CHANGES = (*CONTENTS, "delete")
READ_CALLS = ("get", "list")
ANY_CALL = (*CHANGES, *READ_CALLS)
READS = frozenset({*READ_CALLS, "stat", "status"})  # Read calls of real processes; they change nothing.
ANY_ROLE = ("server", "driver", "executor")
_CALLERS = (*ANY_ROLE, "client")

Family = Literal["process", "task", "wire", "storage", "proxy", "job"]
_TIMES = ("for_ms", "restart_ms", "late_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """The properties of one kind of fault.

    word: its name in plans and events.
    family: what it affects: a process when it arms, the attempt that an executor runs, the target's next request to a
    server,
        its next storage call, its connections through a proxy, or an attempt that Spark runs.
    cls: one of `FAULT_CLASSES`, under which verdicts count violations.
    sentence: a description for reports; "it" is the target, {name} a setting. Of {name?words|others} the first words
    are used
        if the setting is True or more than 1, and # is its value.
    storages: the storage models on which it can happen.
    served: whether it needs a timeline server.
    operations: the storage operations that it can affect. conditional: only puts under a condition.
    roles: the roles at whose sites it can be armed. phases: prefixes of the phases of the fault matrix in which it can
    strike.
    settings: the names of the `FaultSettings` that it takes, each with the values that generators draw.
    simpler: words of the kinds that a shrinker tries instead, the simplest first.
    kills: its target dies. fails: its target's call ends in an error. of_writes: it needs plans of writes.
    drawn: whether generators draw it.
    """

    word: str = field(kw_only=False)
    family: Family
    cls: str
    sentence: str
    storages: tuple[str, ...] = ANY_STORAGE
    served: bool = False
    operations: tuple[str, ...] = ANY_CALL
    conditional: bool = False
    roles: tuple[str, ...] = ANY_ROLE
    phases: tuple[str, ...] = _CALLERS
    settings: dict[str, Sequence[Any]] = field(default_factory=dict)
    simpler: tuple[str, ...] = ()
    kills: bool = False
    fails: bool = False
    of_writes: bool = False
    drawn: bool = True

    @property
    def slots(self) -> tuple[str, str]:
        """The setting that is a duration or delay, and the other one; "" where there is none."""
        first = next((name for name in self.settings if name in _TIMES), "")
        return first, next((name for name in self.settings if name != first), "")

    def possible(self, mode: str, storage: str) -> bool:
        """Whether generators draw this kind for a marker mode and a storage."""
        return self.drawn and storage in self.storages and (mode == "timeline" or not self.served)

    def hits(self, operation: str, storage: str, conditional: bool) -> bool:
        """Whether the kind can affect a storage call. conditional: the call is a put with a condition."""
        return operation in self.operations and storage in self.storages and (conditional or not self.conditional)


def in_batches(mode: str, storage: str) -> bool:
    """Whether a server keeps the markers of writes, in batches, in a marker mode on a storage."""
    return mode == "timeline" and storage in BATCHED_STORAGES


SOME = (*[100] * 6, *range(40, 91, 10))
_FOR_MS = {"clients": range(100, 501), "storage": range(400, 901)}


def proxied(
    word: str,
    sentence: str,
    ends: Literal["clients", "storage"] = "clients",
    fails: bool = False,
    **settings: Sequence[Any],
) -> FaultRow:
    """The row of a fault of connections through a proxy. ends: the side of the proxy that is not a server."""
    return FaultRow(
        word,
        family="proxy",
        cls="storage" if ends == "storage" else "wire",
        sentence=f"for {{for_ms}} ms, of connections between {ends} and servers: {sentence}",
        storages=S3_MODELS if ends == "storage" else BATCHED_STORAGES,
        settings={"for_ms": _FOR_MS[ends], "upstream": (False, True), **settings},
        fails=fails,
        drawn=False,
    )

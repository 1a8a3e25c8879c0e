"""What can go wrong: one row a kind of fault, which generators, matrix, shrinker, sentences and worlds read.

A new kind is a row here and its effect in each world that can have it. A fault arms where its trigger says and happens
at the first call of its target that it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Literal

S3_MODELS = ("s3", "s3-unconditional")
REMOTE = (*S3_MODELS, "hdfs")
ANY_STORAGE = (*S3_MODELS, "local", "hdfs")
# Elsewhere timeline-server markers fall back to direct ones, and there is no server to hit.
BATCHED_STORAGES = ("s3", "local")

CONTENTS = ("put", "overwrite")
CHANGES = (*CONTENTS, "delete")
ANY_CALL = (*CHANGES, "get", "list")
ANY_ROLE = ("server", "driver", "executor")
_CALLERS = (*ANY_ROLE, "client")

Family = Literal["process", "task", "wire", "storage"]
_RESTART_MS = (0, 20, 100, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """What holds of one kind.

    family: what it hits: a process when it arms, the attempt that an executor runs, the target's next request to a
    server, or its next call on storage.
    cls: one of `FAULT_CLASSES`, under which verdicts count violations.
    sentence: what happens, for reports; "it" is the target. One for each value from 1 on where that differs, the last
    for all greater ones.
    storages: the models on which it can happen.
    served: whether it needs a timeline server.
    operations: calls on storage that it can hit. conditional: only puts under a condition.
    roles: whose sites it can be armed at. phases: of the fault matrix in which it can strike, as beginnings of names.
    durations_ms, values: what generators draw; what they mean is said in the sentence as {ms} and {n}.
    simpler: words of the kinds that a shrinker tries instead, the simplest first.
    kills: its target dies. fails: its target's call ends in an error. of_writes: plans of operations cannot have it.
    drawn: whether generators draw it.
    """

    family: Family
    cls: str
    sentence: str | tuple[str, ...]
    storages: tuple[str, ...] = ANY_STORAGE
    served: bool = False
    operations: tuple[str, ...] = ANY_CALL
    conditional: bool = False
    roles: tuple[str, ...] = ANY_ROLE
    phases: tuple[str, ...] = _CALLERS
    durations_ms: tuple[int, ...] = (0,)
    values: tuple[int, ...] = (1,)
    simpler: tuple[str, ...] = ()
    kills: bool = False
    fails: bool = False
    of_writes: bool = False
    drawn: bool = True

    def possible(self, mode: str, storage: str) -> bool:
        """Whether plans of a marker mode and a storage can have it."""
        return storage in self.storages and (mode == "timeline" or not self.served)

    def hits(self, operation: str, storage: str, conditional: bool) -> bool:
        """Whether it can happen to a call on storage. conditional: the call is a put under a condition."""
        return operation in self.operations and storage in self.storages and (conditional or not self.conditional)


_process = partial(FaultRow, family="process")
_server = partial(_process, served=True, storages=BATCHED_STORAGES)
_task = partial(FaultRow, family="task", cls="client", roles=("executor",), phases=("executor",), of_writes=True)
_wire = partial(
    FaultRow,
    family="wire",
    cls="wire",
    served=True,
    storages=BATCHED_STORAGES,
    roles=("driver", "executor"),
    phases=("request",),
)
_link = partial(_wire, phases=("request", "driver", "executor", "client"))
_storage = partial(FaultRow, family="storage", cls="storage")
_refusal = partial(_storage, fails=True)


class FaultKind(Enum):
    """A kind and its row; the value is the word used in plans and in `fault` events. Plans draw in this order."""

    row: FaultRow
    _value_: str

    def __new__(cls, word: str, row: FaultRow | None = None) -> FaultKind:
        """A member, of which `FaultKind(word)` knows the word alone."""
        assert row is not None
        kind = object.__new__(cls)
        kind._value_, kind.row = word, row
        return kind

    @property
    def simpler(self) -> tuple[FaultKind, ...]:
        """The kinds of `FaultRow.simpler`."""
        return tuple(FaultKind(word) for word in self.row.simpler)

    # Processes. A driver's executors go on for {n} ms after its death.
    KILL = (
        "kill",
        _process(
            cls="restart",
            sentence="it is killed and starts again {ms} ms later",
            durations_ms=_RESTART_MS,
            kills=True,
        ),
    )
    PAUSE = (
        "pause",
        _process(
            cls="pause", sentence="it is paused for {ms} ms", durations_ms=(20, 200, 1500, 4000), simpler=("kill",)
        ),
    )
    SECOND_SERVER = (
        "second-server",
        _server(
            cls="second-server",
            sentence="a second server starts on the same storage and runs for {ms} ms",
            roles=("server",),
            phases=("server: idle",),  # It is counted where the second one is: just started.
            durations_ms=(300, 1500, 5000),
            simpler=("kill",),
        ),
    )
    OVERLOADED = (
        "overload",
        _server(
            cls="pause",
            sentence="it becomes slow: one request every {n} ms, for {ms} ms",
            roles=("server",),
            phases=("server",),
            durations_ms=(200, 1500, 4000),
            values=(5, 40, 300),
        ),
    )
    CLOCK_JUMPED = (  # Others keep theirs.
        "clock-jump",
        _process(
            cls="client",
            sentence="its clock jumps by {n} ms",
            roles=("driver",),
            phases=("driver", "client"),
            values=(-3_600_000, -40, 3_600_000),
            of_writes=True,
        ),
    )
    # Tasks, armed on the executor that runs the attempt.
    ATTEMPT_KILLED = (
        "attempt-killed",
        _task(
            sentence="its attempt is killed; the driver is notified {ms} ms later",
            durations_ms=(0, 20, 300),
        ),
    )
    ZOMBIE = (
        "zombie",
        _task(
            sentence="the driver counts its attempt as failed; the attempt stalls for {ms} ms and continues",
            durations_ms=(0, 10, 40, 150, 600, 4000),
            simpler=("attempt-killed",),
        ),
    )
    SPECULATIVE = (
        "speculative",
        _task(
            sentence=(
                "the driver starts a speculative copy of its task",
                "the driver starts {n} speculative copies of its task",
            ),
            phases=("executor", "driver: stage"),
            values=(1, 1, 2),
        ),
    )
    STAGE_RETRIED = (  # On a driver that finalizes or commits nobody counts what the stage produces again.
        "stage-retried",
        _task(
            sentence="the results of the stage are lost and all its tasks run again",
            roles=("executor", "driver"),
            phases=("executor", "driver: finalize", "driver: commit", "driver: marker"),
            simpler=("attempt-killed",),
        ),
    )
    # Wire, armed on the client whose request is touched.
    REQUEST_LOST = "request-lost", _wire(sentence="its request is lost before it reaches the server")
    REPLY_LOST = "reply-lost", _wire(sentence="the server carries out its request, but the reply is lost")
    DUPLICATED = (
        "duplicated",
        _wire(
            sentence="its request reaches the server twice, {ms} ms apart",
            durations_ms=(0, 5, 60, 400, 2500),
            simpler=("reply-lost",),
        ),
    )
    DELAYED = (
        "delayed",
        _wire(
            sentence="its request is delayed by {ms} ms",
            durations_ms=(5, 60, 400, 2500),
            simpler=("request-lost",),
        ),
    )
    RESET = (
        "connection-reset",
        _wire(
            sentence=(
                "its connection is reset after the server has received the request",
                "its connection is reset before the server has received the request",
            ),
            values=(1, 1, 2),
        ),
    )
    SLOW_LINK = (
        "slow-link",
        _link(
            sentence="its link to the servers becomes slow: {n} ms more each way, for {ms} ms",
            durations_ms=(200, 2000),
            values=(30, 400),
        ),
    )
    CUT_LINK = (
        "cut-link",
        _link(
            sentence=(
                "its link to the servers is cut for {ms} ms, and messages wait",
                "its link to the servers is cut for {ms} ms, and messages are lost",
            ),
            durations_ms=(100, 1500, 40_000),
            values=(1, 2),
        ),
    )
    # Object stores. A throttled or silent storage is so for {n} calls in the same marker directory.
    THROTTLED = (
        "throttled",
        _refusal(
            sentence=("storage answers 503 SlowDown", "storage answers 503 SlowDown to {n} calls"),
            storages=S3_MODELS,
            values=(1, 2, 5, 12),
        ),
    )
    SERVER_ERROR = (
        "server-error",
        _refusal(
            sentence=("storage answers 500 and does nothing", "storage answers 500, but does what was asked"),
            storages=S3_MODELS,
            values=(1, 2),
        ),
    )
    CONFLICT = (
        "conflict",
        _refusal(
            sentence="storage answers 409 (another request is under way) and does nothing",
            storages=("s3",),
            operations=("put",),
            conditional=True,
        ),
    )
    PLACEHOLDER = (  # Somebody's tool makes them.
        "placeholder",
        _process(
            cls="storage",
            sentence='another tool creates a key that ends in "/" for every marker directory',
            storages=S3_MODELS,
            phases=("kit",),
        ),
    )
    # Object stores and HDFS.
    TIMEOUT_APPLIED = (
        "timeout-applied",
        _refusal(
            sentence="the call times out, but takes effect",
            storages=REMOTE,
            simpler=("server-error", "timeout-lost"),
        ),
    )
    TIMEOUT_LOST = (
        "timeout-lost",
        _refusal(
            sentence=("the call times out without effect", "{n} calls time out without effect"),
            storages=REMOTE,
            values=(1, 2, 6, 40),
            simpler=("server-error", "throttled"),
        ),
    )
    TIMEOUT_LATE = (
        "timeout-late",
        _refusal(
            sentence="the call times out and takes effect {ms} ms later",
            storages=("s3",),
            operations=("put", "delete"),
            durations_ms=(10, 300, 1900),
            simpler=("server-error", "timeout-lost", "timeout-applied"),
        ),
    )
    ORPHANED = (
        "orphaned-request",
        _storage(
            cls="restart",
            sentence=(
                "it sends a put or delete and dies; the request takes effect {n} ms later and it starts again {ms} ms"
                " later"
            ),
            storages=REMOTE,
            operations=("put", "delete"),
            durations_ms=_RESTART_MS,
            values=(5, 120, 900, 2500),
            simpler=("kill",),
            kills=True,
        ),
    )
    # What a crash of a server with in-place writes leaves, done by the kit itself.
    TYPE_DAMAGED = (
        "damage",
        _server(
            cls="storage",
            sentence=("every type file is emptied", "every type file is removed"),
            roles=("server", "driver"),
            phases=("kit",),
            values=(1, 2),
        ),
    )
    # Any storage.
    SLOW_STORAGE = "slow-storage", _storage(sentence="the call takes {ms} ms longer", durations_ms=(30, 120, 900))
    # Local file systems and HDFS.
    IO_ERROR = (
        "io-error",
        _refusal(
            sentence=("the call fails with EIO and does nothing", "the call fails with EIO, but takes effect"),
            storages=("local", "hdfs"),
            values=(1, 2),
        ),
    )
    # Local file systems. An in-place write stays torn, with {n} 0 empty.
    TORN_WRITE = (
        "torn-write",
        _storage(
            cls="restart",
            sentence="it is killed in the middle of a write and starts again {ms} ms later",
            storages=("local",),
            operations=CONTENTS,
            durations_ms=_RESTART_MS,
            simpler=("kill",),
            kills=True,
        ),
    )
    DISK_FULL = (
        "disk-full",
        _storage(
            sentence="the disk is full for {ms} ms",
            storages=("local",),
            operations=CONTENTS,
            durations_ms=(50, 500, 2000),
            simpler=("kill",),
        ),
    )
    POWER_LOST = (
        "power-loss",
        _process(
            cls="power-loss",
            sentence="power fails: it loses the writes of the last {n} ms and starts again {ms} ms later",
            storages=("local",),
            kills=True,
            drawn=False,
        ),
    )


def drawable(mode: str, storage: str, *, writes: bool = True) -> tuple[FaultKind, ...]:
    """The kinds that plans of a place can have, in the order of the table. writes: plans with tasks and instants."""
    rows = ((kind, kind.row) for kind in FaultKind)
    return tuple(k for k, row in rows if row.drawn and row.possible(mode, storage) and (writes or not row.of_writes))


# The classes that verdicts count violations under, by words in histories. "none" is the absence of every fault.
FAULT_CLASS = {
    **{kind.value: kind.row.cls for kind in FaultKind},
    "restart": "restart",
    # Of real connections (worlds/proxies/faults.py). "wire-broken" is a request that such a fault affected.
    **dict.fromkeys(("wire-latency", "wire-jitter", "wire-bandwidth", "wire-slow-close", "wire-timeout"), "wire"),
    **dict.fromkeys(("wire-reset-peer", "wire-slicer", "wire-limit-data", "wire-down", "wire-broken"), "wire"),
    # Of the connections between a server and its object store (worlds/http/storage_wire_rounds.py).
    **dict.fromkeys(("storage-wire-latency", "storage-wire-reset-peer", "storage-wire-down"), "storage"),
    "kill-client": "client",
    # Of Spark jobs (worlds/spark/plans.py).
    **dict.fromkeys(("task-failed", "slow-task", "late-attempt", "late-failure"), "client"),
    **dict.fromkeys(("kill-worker", "kill-executor", "lost-shuffle"), "client"),
}
FAULT_CLASSES = ("none", "restart", "pause", "second-server", "wire", "storage", "client", "power-loss")

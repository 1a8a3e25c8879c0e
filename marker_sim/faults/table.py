"""The kinds of faults, one row each, which generators, matrix, shrinker, sentences and worlds read.

A new kind is a row here and its effect in each world that supports it. A fault arms at its trigger and happens at the
first suitable call of its target.
"""

from __future__ import annotations

from enum import Enum
from functools import partial

from marker_sim.faults.row import BATCHED_STORAGES, CONTENTS, REMOTE, S3_MODELS, SOME, FaultRow, proxied

_RESTART_MS = (0, 20, 100, 400)
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
_outside = partial(_process, cls="outside", roles=("driver",), phases=("kit",), of_writes=True, drawn=False)
_attempt = partial(FaultRow, family="job", cls="client", drawn=False)


class FaultKind(Enum):
    """A kind of fault with its row; the value is its name in plans and events. The order is that of `drawable`."""

    row: FaultRow
    _value_: str

    def __new__(cls, row: FaultRow | str) -> FaultKind:
        """Make a member from its row; `FaultKind(word)` finds it by the row's word."""
        assert isinstance(row, FaultRow)
        kind = object.__new__(cls)
        kind._value_, kind.row = row.word, row
        return kind

    @property
    def simpler(self) -> tuple[FaultKind, ...]:
        """The kinds that shrinking tries in its place (`FaultRow.simpler`)."""
        return tuple(FaultKind(word) for word in self.row.simpler)

    # Processes.
    KILL = _process(
        "kill",
        cls="restart",
        sentence="it is killed and starts again {restart_ms} ms later",
        settings={"restart_ms": _RESTART_MS, "executors_ms": (1,)},
        kills=True,
    )
    PAUSE = _process(
        "pause",
        cls="pause",
        sentence="it is paused for {for_ms} ms",
        settings={"for_ms": (20, 200, 1500, 4000)},
        simpler=("kill",),
    )
    SECOND_SERVER = _server(
        "second-server",
        cls="second-server",
        sentence="a second server starts on the same storage and runs for {for_ms} ms",
        roles=("server",),
        phases=("server: idle",),  # Counted in the phase of the second server, which just started.
        settings={"for_ms": (300, 1500, 5000)},
        simpler=("kill",),
    )
    OVERLOADED = _server(
        "overload",
        cls="pause",
        sentence="it becomes slow: one request every {pace_ms} ms, for {for_ms} ms",
        roles=("server",),
        phases=("server",),
        settings={"for_ms": (200, 1500, 4000), "pace_ms": (5, 40, 300)},
    )
    CLOCK_JUMPED = _process(  # Other processes keep their clocks.
        "clock-jump",
        cls="client",
        sentence="its clock jumps by {jump_ms} ms",
        roles=("driver",),
        phases=("driver", "client"),
        settings={"jump_ms": (-3_600_000, -40, 3_600_000)},
        of_writes=True,
    )
    # Tasks, armed on the executor that runs the attempt.
    ATTEMPT_KILLED = _task(
        "attempt-killed",
        sentence="its attempt is killed; the driver is notified {late_ms} ms later",
        settings={"late_ms": (0, 20, 300)},
    )
    ZOMBIE = _task(
        "zombie",
        sentence="the driver counts its attempt as failed; the attempt stalls for {for_ms} ms and continues",
        settings={"for_ms": (0, 10, 40, 150, 600, 4000)},
        simpler=("attempt-killed",),
    )
    SPECULATIVE = _task(
        "speculative",
        sentence="the driver starts {attempts?# speculative copies|a speculative copy} of its task",
        phases=("executor", "driver: stage"),
        settings={"attempts": (1, 1, 2)},
    )
    STAGE_RETRIED = _task(  # While the driver finalizes or commits, new results of the stage do not count.
        "stage-retried",
        sentence="the results of the stage are lost and all its tasks run again",
        roles=("executor", "driver"),
        phases=("executor", "driver: finalize", "driver: commit", "driver: marker"),
        simpler=("attempt-killed",),
    )
    # Wire, armed on the client whose request is affected.
    REQUEST_LOST = _wire("request-lost", sentence="its request is lost before it reaches the server")
    REPLY_LOST = _wire("reply-lost", sentence="the server carries out its request, but the reply is lost")
    FALSE_ANSWER = _wire("answered-false", sentence="its request is answered false, and nothing is done", drawn=False)
    DUPLICATED = _wire(
        "duplicated",
        sentence="its request reaches the server twice, {late_ms} ms apart",
        settings={"late_ms": (0, 5, 60, 400, 2500)},
        simpler=("reply-lost",),
    )
    DELAYED = _wire(
        "delayed",
        sentence="its request is delayed by {late_ms} ms",
        settings={"late_ms": (5, 60, 400, 2500)},
        simpler=("request-lost",),
    )
    RESET = _wire(
        "connection-reset",
        sentence="its connection is reset {lost?before|after} the server has received the request",
        settings={"lost": (False, False, True)},
    )
    SLOW_LINK = _link(
        "slow-link",
        sentence="its link to the servers becomes slow: {late_ms} ms more each way, for {for_ms} ms",
        settings={"for_ms": (200, 2000), "late_ms": (30, 400)},
    )
    CUT_LINK = _link(
        "cut-link",
        sentence="its link to the servers is cut for {for_ms} ms, and messages {lost?are lost|wait}",
        settings={"for_ms": (100, 1500, 40_000), "lost": (False, True)},
    )
    # Object stores.
    THROTTLED = _refusal(
        "throttled",
        sentence="storage answers 503 SlowDown{calls? to # calls|}{for_ms?, and to every other one for # ms|}",
        storages=S3_MODELS,
        settings={"calls": (1, 2, 5, 12), "for_ms": (0, 0, 0, 300, 1500)},
    )
    SERVER_ERROR = _refusal(
        "server-error",
        sentence="storage answers 500{applied?, but does what was asked| and does nothing}",
        storages=S3_MODELS,
        settings={"applied": (False, True)},
    )
    CONFLICT = _refusal(
        "conflict",
        sentence="storage answers 409 (another request is under way) and does nothing",
        storages=("s3",),
        operations=("put",),
        conditional=True,
    )
    PLACEHOLDER = _process(  # Other tools create such objects.
        "placeholder",
        cls="storage",
        sentence='another tool creates a key that ends in "/" for every marker directory',
        storages=S3_MODELS,
        phases=("kit",),
    )
    # Object stores and HDFS.
    TIMEOUT_APPLIED = _refusal(
        "timeout-applied",
        sentence="the call times out, but takes effect",
        storages=REMOTE,
        simpler=("server-error", "timeout-lost"),
    )
    TIMEOUT_LOST = _refusal(
        "timeout-lost",
        sentence="{calls?# calls time|the call times} out without effect",
        storages=REMOTE,
        settings={"calls": (1, 2, 6, 40)},
        simpler=("server-error", "throttled"),
    )
    TIMEOUT_LATE = _refusal(
        "timeout-late",
        sentence="the call times out and takes effect {late_ms} ms later",
        storages=("s3",),
        operations=("put", "delete"),
        settings={"late_ms": (10, 300, 1900)},
        simpler=("server-error", "timeout-lost", "timeout-applied"),
    )
    ORPHANED = _storage(
        "orphaned-request",
        cls="restart",
        sentence="it sends a put or delete and dies; the request takes effect {late_ms} ms later"
        " and it starts again {restart_ms} ms later",
        storages=REMOTE,
        operations=("put", "delete"),
        settings={"restart_ms": _RESTART_MS, "late_ms": (5, 120, 900, 2500)},
        simpler=("kill",),
        kills=True,
    )
    TYPE_DAMAGED = _server(  # The kit damages the file as a server would that dies during an in-place write.
        "damage",
        cls="storage",
        sentence="every type file is {removed?removed|emptied}",
        roles=("server", "driver"),
        phases=("kit",),
        settings={"removed": (False, True)},
    )
    DIRECTORY_REMOVED = _server(
        "directory-removed",
        cls="outside",
        sentence="another program removes the marker directory that it is about to ask for",
        roles=("driver", "executor"),
        phases=("kit",),
        drawn=False,
    )
    STRAY_FILES = _outside("stray-files", sentence="another tool leaves files that are no markers beside the markers")
    # Any storage.
    SLOW_STORAGE = _storage(
        "slow-storage", sentence="the call takes {late_ms} ms longer", settings={"late_ms": (30, 120, 900)}
    )
    # Local file systems and HDFS.
    IO_ERROR = _refusal(
        "io-error",
        sentence="the call fails with EIO{applied?, but takes effect| and does nothing}",
        storages=("local", "hdfs"),
        settings={"applied": (False, True)},
    )
    # Local file systems.
    TORN_WRITE = _storage(
        "torn-write",
        cls="restart",
        sentence="it is killed in the middle of a write and starts again {restart_ms} ms later",
        storages=("local",),
        operations=CONTENTS,
        settings={"restart_ms": _RESTART_MS, "empty": (False,)},
        simpler=("kill",),
        kills=True,
    )
    DISK_FULL = _storage(
        "disk-full",
        sentence="the disk is full{for_ms? for # ms|}",
        storages=("local",),
        operations=CONTENTS,
        settings={"for_ms": (50, 500, 2000)},
        simpler=("kill",),
    )
    POWER_LOST = _process(
        "power-loss",
        cls="power-loss",
        sentence="power fails, all that was not synced{unsynced_ms? in the last # ms|}{names? but names|}"
        "{lengths? but names and lengths|} is lost, and it starts again {restart_ms} ms later",
        settings={"restart_ms": (0,), "unsynced_ms": (1,), "names": (False, True), "lengths": (False, True)},
        simpler=("kill",),
        storages=("local",),
        kills=True,
        drawn=False,
    )
    # Faults by a proxy of connections between clients and servers, or servers and their object store. Those that last
    # 0 ms never end.
    WIRE_LATENCY = proxied("wire-latency", "what they carry is {late_ms} ms late", late_ms=range(120, 351))
    WIRE_JITTER = proxied(
        "wire-jitter",
        "what they carry is {late_ms} ms late, {jitter_ms} more or less",
        late_ms=range(100, 151),
        jitter_ms=range(60, 101),
    )
    WIRE_BANDWIDTH = proxied("wire-bandwidth", "they carry {kb_per_s} kB a second", kb_per_s=(2, 3, 4))
    WIRE_SLOW_CLOSE = proxied("wire-slow-close", "their end is {late_ms} ms late", late_ms=range(100, 401))
    WIRE_TIMEOUT = proxied(
        "wire-timeout",
        "what they carry vanishes, and they end after {late_ms} ms",
        fails=True,
        late_ms=(*[0] * 4, *range(100, 401, 100)),
        percent=SOME,
    )
    WIRE_RESET = proxied(
        "wire-reset-peer",
        "they are reset after {late_ms} ms",
        fails=True,
        late_ms=(*[0] * 4, *range(10, 101, 30)),
        percent=SOME,
    )
    WIRE_SLICER = proxied(
        "wire-slicer",
        "they carry pieces of {bytes} bytes, {late_ms} ms apart",
        late_ms=range(2, 9),
        bytes=range(12, 25),
    )
    WIRE_LIMIT = proxied(
        "wire-limit-data", "they end after {bytes} bytes", fails=True, bytes=range(20, 61), percent=SOME
    )
    WIRE_DOWN = proxied("wire-down", "they are refused", fails=True, upstream=(False,))
    STORAGE_WIRE_LATENCY = proxied(
        "storage-wire-latency", "what they carry is {late_ms} ms late", "storage", late_ms=range(100, 401)
    )
    STORAGE_WIRE_RESET = proxied(
        "storage-wire-reset-peer", "they are reset after {late_ms} ms", "storage", fails=True, late_ms=(0, 30)
    )
    STORAGE_WIRE_DOWN = proxied("storage-wire-down", "they are refused", "storage", fails=True, upstream=(False,))
    # Attempts that Spark runs: "it" is a task of a write.
    TASK_FAILED = _attempt("task-failed", sentence="its attempt raises an error")
    WORKER_KILLED = _attempt("kill-worker", sentence="the Python worker of its attempt is killed")
    EXECUTOR_KILLED = _attempt("kill-executor", sentence="the executor of its attempt is killed, JVM and Python")
    SHUFFLE_LOST = _attempt("lost-shuffle", sentence="the other executor is killed when all other tasks have results")
    SLOW_TASK = _attempt("slow-task", sentence="its attempt stands still, so that Spark starts a copy of it")
    LATE_ATTEMPT = _attempt("late-attempt", sentence="its attempt waits until its instant is over, and continues")
    LATE_FAILURE = _attempt("late-failure", sentence="its attempt waits until its instant is over, and fails")


def drawable(mode: str, storage: str, *, writes: bool = True) -> tuple[FaultKind, ...]:
    """The kinds that plans of a place can have, in the order of the table. writes: plans with tasks and instants."""
    possible = (kind for kind in FaultKind if kind.row.possible(mode, storage))
    return tuple(kind for kind in possible if writes or not kind.row.of_writes)


# The classes by which verdicts count violations, by words in histories; "none" without a fault.
FAULT_CLASS = {
    **{kind.value: kind.row.cls for kind in FaultKind},
    "restart": "restart",
    "no-space": "storage",  # The former name of a full disk on real servers, in older histories.
    "wire-broken": "wire",  # A request that a fault of a connection affected.
}
FAULT_CLASSES = ("none", "restart", "pause", "second-server", "outside", "wire", "storage", "client", "power-loss")

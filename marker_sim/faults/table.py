"""The misfortunes a plan can contain, as a closed table: what each does, whom it hits and which class it reports under.

A fault is keyed by an actor and that actor's own n-th step. It arms there and fires at the actor's first call that it
fits, so that it survives edits of the plan around it. `duration_ms` and `value` mean what the table says.
"""

from __future__ import annotations

from enum import Enum


class FaultKind(Enum):
    """What goes wrong; the value is the word used in plans and in `fault` events."""

    # processes
    KILL = "kill"  # dies at the step; duration_ms later it starts again on the same storage (-1: never)
    # (a driver's executors go on for `value` ms; the next driver begins the next write)
    PAUSE = "pause"  # stops at the step for duration_ms; its connections stay open
    SECOND_SERVER = "second-server"  # another server on the same storage lives for duration_ms
    OVERLOADED = "overload"  # a server takes up one request each `value` ms, for duration_ms
    CLOCK_JUMPED = "clock-jump"  # a driver's clock jumps by `value` ms, back if negative; others keep theirs
    # tasks, armed on the executor that runs the attempt
    ATTEMPT_KILLED = "attempt-killed"  # ends there and then; the driver hears of it duration_ms later
    ZOMBIE = "zombie"  # the driver counts it as dead; it stands still for duration_ms and then goes on
    SPECULATIVE = "speculative"  # the driver starts `value` more attempts of the same task beside it
    STAGE_RETRIED = "stage-retried"  # what the stage has produced so far is lost: every task runs again
    # (on a driver that finalizes or commits: the same, and nobody counts what they produce)
    # wire, armed on the client whose request is touched
    REQUEST_LOST = "request-lost"  # the server never sees it
    REPLY_LOST = "reply-lost"  # the server did it, the client never hears
    DUPLICATED = "duplicated"  # the server sees it twice, duration_ms apart
    DELAYED = "delayed"  # arrives duration_ms late, so that others overtake it
    RESET = "connection-reset"  # breaks when the server has the request (value 1) or before (2); heard at once
    SLOW_LINK = "slow-link"  # for duration_ms whatever the client and servers tell each other takes `value` ms longer
    CUT_LINK = "cut-link"  # for duration_ms it waits for the link to be back (value 1) or is lost (2)
    # object store
    THROTTLED = "throttled"  # 503 SlowDown for the next `value` calls in the same marker directory
    SERVER_ERROR = "server-error"  # 500, nothing applied (value 1) or applied (2), and the caller cannot know
    CONFLICT = "conflict"  # 409 to a put under a condition: another was under way, nothing applied, whatever is there
    PLACEHOLDER = "placeholder"  # somebody's tool makes keys that end in "/", for every marker directory
    # object store and HDFS
    TIMEOUT_APPLIED = "timeout-applied"  # applied, and the caller hears nothing until its time-out
    TIMEOUT_LOST = "timeout-lost"  # never applied, the same silence, for `value` calls in the same marker directory
    TIMEOUT_LATE = "timeout-late"  # applied duration_ms after the time-out (S3, only where conditions exist)
    ORPHANED = "orphaned-request"  # sends a put or delete and dies; it is applied `value` ms later; restart as KILL
    # what a crash of a server with in-place writes leaves, done by the kit itself
    TYPE_DAMAGED = "damage"  # the type file of every directory is emptied (value 1) or removed (2)
    # any storage
    SLOW_STORAGE = "slow-storage"  # the call takes duration_ms longer
    # local file system and HDFS
    IO_ERROR = "io-error"  # EIO, nothing applied (value 1) or applied (2), and the caller cannot know
    # local file system
    TORN_WRITE = "torn-write"  # the process dies in mid-write: restart as KILL
    # (an in-place write stays torn, with value 0 empty)
    DISK_FULL = "disk-full"  # writes fail with "no space left" for duration_ms
    POWER_LOST = "power-loss"  # the process dies, and what was written in the last `value` ms; no generator draws it


PROCESS_FAULTS = (
    FaultKind.KILL,
    FaultKind.PAUSE,
    FaultKind.SECOND_SERVER,
    FaultKind.OVERLOADED,
    FaultKind.CLOCK_JUMPED,
    FaultKind.TYPE_DAMAGED,
    FaultKind.PLACEHOLDER,
    FaultKind.POWER_LOST,
)
TASK_FAULTS = (FaultKind.ATTEMPT_KILLED, FaultKind.ZOMBIE, FaultKind.SPECULATIVE, FaultKind.STAGE_RETRIED)
LINK_FAULTS = (FaultKind.SLOW_LINK, FaultKind.CUT_LINK)
WIRE_FAULTS = (
    FaultKind.REQUEST_LOST,
    FaultKind.REPLY_LOST,
    FaultKind.DUPLICATED,
    FaultKind.DELAYED,
    FaultKind.RESET,
    *LINK_FAULTS,
)
STORAGE_FAULTS = (
    FaultKind.THROTTLED,
    FaultKind.SERVER_ERROR,
    FaultKind.CONFLICT,
    FaultKind.IO_ERROR,
    FaultKind.TIMEOUT_APPLIED,
    FaultKind.TIMEOUT_LOST,
    FaultKind.TIMEOUT_LATE,
    FaultKind.SLOW_STORAGE,
    FaultKind.ORPHANED,
    FaultKind.TORN_WRITE,
    FaultKind.DISK_FULL,
)
LOCAL_ONLY = frozenset({FaultKind.TORN_WRITE, FaultKind.DISK_FULL, FaultKind.POWER_LOST})
REMOTE_ONLY = frozenset({FaultKind.TIMEOUT_APPLIED, FaultKind.TIMEOUT_LOST, FaultKind.ORPHANED})
CONDITIONAL_ONLY = frozenset({FaultKind.TIMEOUT_LATE, FaultKind.CONFLICT})  # S3 with conditions.
OBJECT_STORE_ONLY = frozenset(
    {
        FaultKind.THROTTLED,
        FaultKind.SERVER_ERROR,
        FaultKind.CONFLICT,
        FaultKind.PLACEHOLDER,
        FaultKind.TIMEOUT_LATE,
    }
)

# The classes that verdicts count violations under. "none" is the absence of every fault.
FAULT_CLASS = {
    "kill": "restart",
    "torn-write": "restart",
    "orphaned-request": "restart",
    "restart": "restart",
    "pause": "pause",
    "overload": "pause",
    "second-server": "second-server",
    "request-lost": "wire",
    "reply-lost": "wire",
    "duplicated": "wire",
    "delayed": "wire",
    "connection-reset": "wire",
    "slow-link": "wire",
    "cut-link": "wire",
    # Faults of a real wire; the words are those of worlds/proxies/faults.py. "wire-broken" is a request that one
    # touched.
    "wire-latency": "wire",
    "wire-jitter": "wire",
    "wire-bandwidth": "wire",
    "wire-slow-close": "wire",
    "wire-timeout": "wire",
    "wire-reset-peer": "wire",
    "wire-slicer": "wire",
    "wire-limit-data": "wire",
    "wire-down": "wire",
    "wire-broken": "wire",
    "throttled": "storage",
    "server-error": "storage",
    "conflict": "storage",
    "placeholder": "storage",
    "io-error": "storage",
    "timeout-applied": "storage",
    "timeout-lost": "storage",
    "timeout-late": "storage",
    "slow-storage": "storage",
    # The wire between a server and its object store; the words are those of worlds/http/storage_wire_rounds.py.
    "storage-wire-latency": "storage",
    "storage-wire-reset-peer": "storage",
    "storage-wire-down": "storage",
    "disk-full": "storage",
    "damage": "storage",
    "power-loss": "power-loss",
    "kill-client": "client",
    "clock-jump": "client",
    "attempt-killed": "client",
    "zombie": "client",
    "speculative": "client",
    "stage-retried": "client",
    # On a Spark job; the words are those of worlds/spark/plans.py.
    "task-failed": "client",
    "slow-task": "client",
    "late-attempt": "client",
    "late-failure": "client",
    "kill-worker": "client",
    "kill-executor": "client",
    "lost-shuffle": "client",
}
FAULT_CLASSES = ("none", "restart", "pause", "second-server", "wire", "storage", "client", "power-loss")

"""Named places of a run at which a fault may be due, as a closed table, so that a plan says where and not only when.

A site is made of what a seam call is: who makes it, which operation on which kind of path, and, for a driver, within
which part of a write. Nothing in an implementation names its sites, so the reference and anybody else's class meet the
same ones. `after` is the moment when the call has returned; else it is before anything of it happens.

    server      request queued    a request handler hands the request on: before a batch is pulled
                worker started    a batch was pulled, or a load or a deletion begins
                answer handed over, reply: the two ends of an answer; the second of them lies between two replies
    executor    marker asked for, marker told: the same call in both marker modes
    driver      begin, finalize, commit, rollback and sweep are parts of a write
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.names import TYPE_FILE, is_marker_name, marker_file_index
from marker_sim.timeline import HOODIE, ROLLBACK, State, parse_entry

_TEMP = f"/{HOODIE}/.temp/"
WIRE = "call"  # A request to a server, as an operation; its "path" is the server's route.


class Site(NamedTuple):
    """One place. actor: "server", "driver" or "executor" (clients are executors). per: what it is met once for, about;
    a "rollback" and a "sweep" need an instant that was left behind, a "loser" an attempt that nobody counts.

    operation: of the seam call, "" for what is none of storage or wire. what: the kind of path. part: of a write, "*"
    for any.
    """

    name: str
    actor: str
    per: str
    operation: str = ""
    what: str = ""
    after: bool = False
    part: str = "*"


REQUEST_QUEUED = "server: request queued"
WORKER_STARTED = "server: worker started"
WORKER_REPORTS = "server: worker reports"
ANSWER_HANDED_OVER = "server: answer handed over"
REPLY = "server: reply"
LOCK_ASKED = "server: lock asked for"
TASK_TAKEN = "executor: task taken"
RESULT_SENT = "executor: result sent"
TASK_HEARD_OF = "driver: task heard of"

_ROWS = (
    Site(REQUEST_QUEUED, "server", "request"),
    Site(WORKER_STARTED, "server", "batch"),
    Site(WORKER_REPORTS, "server", "batch"),
    Site(ANSWER_HANDED_OVER, "server", "request"),
    Site(REPLY, "server", "request"),
    Site(LOCK_ASKED, "server", "batch"),
    Site("server: directory listed", "server", "write", "list", "marker directory"),
    Site("server: batch file read", "server", "batch", "get", "batch file"),
    Site("server: type file put", "server", "write", "put", "type file"),
    Site("server: type file written", "server", "write", "put", "type file", after=True),
    Site("server: batch file put", "server", "batch", "put", "batch file"),
    Site("server: batch file written", "server", "batch", "put", "batch file", after=True),
    Site("server: batch file deleted", "server", "write", "delete", "batch file"),
    Site("server: type file deleted", "server", "write", "delete", "type file"),
    Site(TASK_TAKEN, "executor", "task"),
    Site("executor: marker asked for", "executor", "task", WIRE, "/create"),
    Site("executor: marker told", "executor", "task", WIRE, "/create", after=True),
    Site("executor: data file read", "executor", "task", "get", "data file"),
    Site("executor: data file put", "executor", "task", "put", "data file"),
    Site("executor: data file written", "executor", "task", "put", "data file", after=True),
    Site(RESULT_SENT, "executor", "task"),
    Site("executor: listing asked for", "executor", "task", "list", "marker directory"),
    Site("driver: timeline listed", "driver", "write", "list", "timeline"),
    Site("driver: timeline entry read", "driver", "write", "get", "entry"),
    Site("driver: marker directories listed", "driver", "write", "list", "marker directories"),
    Site("driver: requested instant put", "driver", "write", "put", "requested"),
    Site("driver: inflight instant put", "driver", "write", "put", "inflight"),
    Site(TASK_HEARD_OF, "driver", "task", after=True),
    Site("driver: markers asked for by finalize", "driver", "write", "list", "marker directory", part="finalize"),
    Site("driver: markers listed by finalize", "driver", "write", "list", "marker directory", True, "finalize"),
    Site("driver: reconcile delete", "driver", "loser", "delete", "data file", part="finalize"),
    Site("driver: completed instant put", "driver", "write", "put", "completed"),
    Site("driver: completed instant written", "driver", "write", "put", "completed", after=True),
    Site("driver: marker deletion", "driver", "write", "delete", "marker directory"),
    Site("driver: marker deletion answered", "driver", "write", "delete", "marker directory", after=True),
    Site("driver: late file delete", "driver", "loser", "delete", "data file", part=""),
    Site("driver: rollback requested", "driver", "rollback", "put", "rollback requested"),
    Site("driver: rollback inflight", "driver", "rollback", "put", "rollback inflight"),
    Site("driver: markers asked for by rollback", "driver", "rollback", "list", "marker directory", part="rollback"),
    Site("driver: markers listed by rollback", "driver", "rollback", "list", "marker directory", True, "rollback"),
    Site("driver: marker file read by rollback", "driver", "rollback", "get", "batch file", part="rollback"),
    Site("driver: rollback delete", "driver", "rollback", "delete", "data file", part="rollback"),
    Site("driver: instant taken off", "driver", "rollback", "delete", "entry"),
    Site("driver: rollback completed put", "driver", "rollback", "put", "rollback completed"),
    Site("driver: rollback ends", "driver", "rollback", "put", "rollback completed", after=True),
    Site("driver: markers listed by sweep", "driver", "sweep", "list", "marker directory", True, "sweep"),
    Site("driver: sweep delete", "driver", "sweep", "delete", "data file", part="sweep"),
)
SITES = {row.name: row for row in _ROWS}
_NAMES = {
    (row.actor, row.operation, row.what, row.after, row.part): row.name
    for row in _ROWS
    if row.operation  # The others are said outright by the world.
}
_ACTORS = {"timeline-server": "server", "driver": "driver", "executor": "executor"}
_ENTRIES = {State.REQUESTED: "requested", State.INFLIGHT: "inflight", State.COMPLETED: "completed"}
# Requests to a server and calls on storage that ask for the same are one site.
_SAME = {
    ("put", "marker"): (WIRE, "/create"),
    (WIRE, "/all"): ("list", "marker directory"),
    (WIRE, "/create-and-merge"): ("list", "marker directory"),
    (WIRE, "/append"): ("list", "marker directory"),
    (WIRE, "/dir/delete"): ("delete", "marker directory"),
    ("delete", "marker"): ("delete", "marker directory"),
    ("overwrite", "data file"): ("put", "data file"),
    ("get", "requested"): ("get", "entry"),
    ("get", "completed"): ("get", "entry"),
    ("get", "rollback requested"): ("get", "entry"),
    ("get", "rollback completed"): ("get", "entry"),
    ("delete", "requested"): ("delete", "entry"),
    ("delete", "inflight"): ("delete", "entry"),
}


def site_of(role: str, part: str, operation: str, path: str, after: bool = False) -> str:
    """The site of a call on storage or to a server (operation `WIRE`, path its route), "" where nothing is named.

    role: of the process, as in histories. part: of a write, "" outside of all.
    """
    actor = _ACTORS.get(role, "")
    what = path if operation == WIRE else kind_of(path)
    operation, what = _SAME.get((operation, what), (operation, what))
    if what == "/create":
        actor = "executor"  # Whoever asks for a marker does an executor's work.
    elif actor == "driver" and operation == "delete" and what in ("batch file", "type file"):
        what = "marker directory"
    exact = _NAMES.get((actor, operation, what, after, part))
    return exact or _NAMES.get((actor, operation, what, after, "*"), "")


def kind_of(path: str) -> str:
    """What a storage path is, in the words of the table."""
    _, found, below = path.partition(_TEMP)
    if found:
        directory, _, name = below.partition("/")
        if not directory:
            return "marker directories"
        if not name:
            return "marker directory"
        if name == TYPE_FILE:
            return "type file"
        return "batch file" if marker_file_index(name) is not None else "marker" if is_marker_name(name) else "other"
    entry = parse_entry(path)
    if entry is not None:
        state = _ENTRIES[entry.state]
        return f"rollback {state}" if entry.action == ROLLBACK else state
    return "timeline" if path.endswith(f"/{HOODIE}/") else "data file"

"""Named places of a run at which a fault can be injected: a closed table, so that a plan says where and not only when.

A site follows from a seam call: which process makes it, which operation on which kind of path, and, for a driver, in
which part of a write (begin, finalize, commit, rollback, sweep). Implementations name no sites, so the reference and
third-party classes have the same ones. The same site serves both marker modes. It is the moment before the call, or,
with `after`, the moment when the call has returned.
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.names import TEMP, TYPE_FILE, is_marker_name, marker_file_index
from marker_sim.timeline import HOODIE, ROLLBACK, State, parse_entry

WIRE = "call"  # The operation of a request to a server; its "path" is the route.


class SiteRow(NamedTuple):
    """A place of a run at which a fault can be injected.

    name: "server: batch file put". It begins with the actor; clients count as executors.
    doing: the same as a predicate without the part, for sentences: "writes a batch file".
    per: the unit of work that reaches this site about once; a "rollback" and a "sweep" need an abandoned instant, a
    "loser"
        an attempt whose result is not used.
    operation: of the seam call, "" for a place that is neither a storage nor a wire call.
    what: the kind of path.
    after: whether the call has returned.
    part: of a write, "*" for any.
    """

    name: str
    doing: str
    per: str
    operation: str = ""
    what: str = ""
    after: bool = False
    part: str = "*"

    @property
    def actor(self) -> str:
        """The role of the process that passes it: "server", "driver" or "executor"."""
        return self.name.partition(":")[0]


REQUEST_QUEUED = "server: request queued"
WORKER_STARTED = "server: worker started"
WORKER_REPORTS = "server: worker reports"
ANSWER_HANDED_OVER = "server: answer handed over"
REPLY = "server: reply"
LOCK_ASKED = "server: lock asked for"
TASK_TAKEN = "executor: task taken"
RESULT_SENT = "executor: result sent"
TASK_HEARD_OF = "driver: task heard of"

_DIR, _FILE, _DATA = "marker directory", "batch file", "data file"
_ROWS = (
    SiteRow(REQUEST_QUEUED, "queues a request", "request"),
    SiteRow(WORKER_STARTED, "starts a worker", "batch"),
    SiteRow(WORKER_REPORTS, "receives the report of a worker", "batch"),
    SiteRow(ANSWER_HANDED_OVER, "hands over an answer", "request"),
    SiteRow(REPLY, "replies to a request", "request"),
    SiteRow(LOCK_ASKED, "asks for a lock", "batch"),
    SiteRow("server: directory listed", "lists a marker directory", "write", "list", _DIR),
    SiteRow("server: batch file read", "reads a batch file", "batch", "get", _FILE),
    SiteRow("server: type file read", "reads a type file", "write", "get", "type file"),
    SiteRow("server: type file put", "writes a type file", "write", "put", "type file"),
    SiteRow("server: type file written", "has written a type file", "write", "put", "type file", after=True),
    SiteRow("server: batch file put", "writes a batch file", "batch", "put", _FILE),
    SiteRow("server: batch file written", "has written a batch file", "batch", "put", _FILE, after=True),
    SiteRow("server: batch file deleted", "deletes a batch file", "write", "delete", _FILE),
    SiteRow("server: type file deleted", "deletes a type file", "write", "delete", "type file"),
    SiteRow(TASK_TAKEN, "takes a task", "task"),
    SiteRow("executor: marker asked for", "asks for a marker", "task", WIRE, "/create"),
    SiteRow("executor: marker told", "has its answer about a marker", "task", WIRE, "/create", after=True),
    SiteRow("executor: data file read", "reads a data file", "task", "get", _DATA),
    SiteRow("executor: data file put", "writes a data file", "task", "put", _DATA),
    SiteRow("executor: data file written", "has written a data file", "task", "put", _DATA, after=True),
    SiteRow(RESULT_SENT, "sends the result of a task", "task"),
    SiteRow("executor: listing asked for", "asks for a list of markers", "task", "list", _DIR),
    SiteRow("driver: timeline listed", "lists the timeline", "write", "list", "timeline"),
    SiteRow("driver: timeline entry read", "reads a timeline entry", "write", "get", "entry"),
    SiteRow("driver: marker directories listed", "lists the marker directories", "write", "list", "marker directories"),
    SiteRow("driver: requested instant put", "writes a requested instant", "write", "put", "requested"),
    SiteRow("driver: inflight instant put", "writes an inflight instant", "write", "put", "inflight"),
    SiteRow(TASK_HEARD_OF, "has the result of a task", "task", after=True),
    SiteRow("driver: markers asked for by finalize", "asks for the markers", "write", "list", _DIR, part="finalize"),
    SiteRow("driver: markers listed by finalize", "has listed the markers", "write", "list", _DIR, True, "finalize"),
    SiteRow("driver: reconcile delete", "deletes a data file", "loser", "delete", _DATA, part="finalize"),
    SiteRow("driver: completed instant put", "writes a completed instant", "write", "put", "completed"),
    SiteRow("driver: completed instant written", "has written a completed instant", "write", "put", "completed", True),
    SiteRow("driver: marker deletion", "deletes the markers", "write", "delete", _DIR),
    SiteRow("driver: marker deletion answered", "has deleted the markers", "write", "delete", _DIR, after=True),
    SiteRow("driver: late file delete", "deletes the file of a late attempt", "loser", "delete", _DATA, part=""),
    SiteRow("driver: rollback requested", "writes a requested rollback", "rollback", "put", "rollback requested"),
    SiteRow("driver: rollback inflight", "writes an inflight rollback", "rollback", "put", "rollback inflight"),
    SiteRow("driver: markers asked for by rollback", "asks for the markers", "rollback", "list", _DIR, part="rollback"),
    SiteRow("driver: markers listed by rollback", "has listed the markers", "rollback", "list", _DIR, True, "rollback"),
    SiteRow("driver: marker file read by rollback", "reads a marker file", "rollback", "get", _FILE, part="rollback"),
    SiteRow("driver: rollback delete", "deletes a data file", "rollback", "delete", _DATA, part="rollback"),
    SiteRow("driver: instant taken off", "removes an instant from the timeline", "rollback", "delete", "entry"),
    SiteRow("driver: rollback completed put", "writes a completed rollback", "rollback", "put", "rollback completed"),
    SiteRow("driver: rollback ends", "has written a completed rollback", "rollback", "put", "rollback completed", True),
    SiteRow("driver: markers listed by sweep", "has listed the markers", "sweep", "list", _DIR, True, "sweep"),
    SiteRow("driver: sweep delete", "deletes a data file", "sweep", "delete", _DATA, part="sweep"),
)
SITES = {row.name: row for row in _ROWS}
_NAMES = {
    (row.actor, row.operation, row.what, row.after, row.part): row.name
    for row in _ROWS
    if row.operation  # Worlds assign the other sites themselves.
}
_ACTORS = {"timeline-server": "server", "driver": "driver", "executor": "executor"}
_ENTRIES = {State.REQUESTED: "requested", State.INFLIGHT: "inflight", State.COMPLETED: "completed"}
# A request to a server and the storage call with the same meaning are one site.
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
    """The site of a storage call or request, "" for a call that has none.

    role: of the process, as in histories.
    part: of a write, "" outside of all parts.
    operation, path: `WIRE` and the route for a request to a server.
    """
    actor = _ACTORS.get(role, "")
    what = path if operation == WIRE else kind_of(path)
    operation, what = _SAME.get((operation, what), (operation, what))
    if what == "/create":
        actor = "executor"  # Clients share the sites of executors.
    elif actor == "driver" and operation == "delete" and what in ("batch file", "type file"):
        what = "marker directory"
    exact = _NAMES.get((actor, operation, what, after, part))
    return exact or _NAMES.get((actor, operation, what, after, "*"), "")


def kind_of(path: str) -> str:
    """The kind of a storage path, as the table names it."""
    _, found, below = path.partition(TEMP)
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

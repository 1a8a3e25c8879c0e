"""The operations and faults of a plan as lines of a script in Python, in the words of `server_script.py.j2`.

One client is a function with its requests and the faults at their places. Several run at once; faults of the server are
then due at the n-th request or reply of all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from errno import EIO, ENOSPC
from itertools import groupby
from typing import Any

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import COPY, OF_CROWD, Op, Plan
from marker_sim.report.words import printable
from marker_sim.worlds.http.plan_faults import OF_REQUESTS, at_a_call, call_of, client_site

_REPLY = OF_REQUESTS[1]
_ON_SERVERS = {
    FaultKind.KILL: "kill_server",
    FaultKind.TORN_WRITE: "kill_server",
    FaultKind.PAUSE: "pause_server",
    FaultKind.SECOND_SERVER: "second_server",
    FaultKind.DISK_FULL: "disk_full",
}
_ON_REQUESTS = (
    FaultKind.KILL,
    FaultKind.REPLY_LOST,
    FaultKind.REQUEST_LOST,
    FaultKind.RESET,
    FaultKind.DUPLICATED,
    FaultKind.DELAYED,
)
_AT_CALLS = (
    FaultKind.KILL,
    FaultKind.TORN_WRITE,
    FaultKind.IO_ERROR,
    FaultKind.DISK_FULL,
    FaultKind.SLOW_STORAGE,
)
_CANNOT = "a script cannot do it"
_OF_CLIENTS = (*_ON_REQUESTS, FaultKind.PAUSE, FaultKind.DIRECTORY_REMOVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSteps:
    """The steps of a script in the making.

    text: the functions of the clients, and the table of them.
    due: faults at the n-th request or reply: which of both, n, what is done, and its duration in ms.
    alone: whether one client performs all steps, one after the other.
    """

    text: str
    due: tuple[tuple[str, int, str, int], ...]
    alone: bool


def not_in_a_script(fault: Fault, plan: Plan) -> str:
    """The reason why a script cannot do a fault, "" when it can."""
    if fault.kind.row.family == "proxy":
        return "a script has no proxy to make connections fail"
    if fault.target == "server":
        if at_a_call(fault):
            if plan.storage != "local":
                trigger, settings = fault.trigger, fault.settings
                if fault.kind is FaultKind.SERVER_ERROR and isinstance(trigger, Call) and not settings.applied:
                    return "a script does not know when a server is starting" if trigger.starting else ""
                return "a script does not see the n-th call of a server to its storage"
            return "" if fault.kind in _AT_CALLS or (fault.site and fault.kind in _ON_SERVERS) else _CANNOT
        return "" if fault.kind in _ON_SERVERS and (fault.site in OF_REQUESTS or not fault.site) else _CANNOT
    return "" if fault.kind in _OF_CLIENTS else _CANNOT


def faults_at_calls(plan: Plan) -> list[dict[str, Any]]:
    """The faults at calls of a server to its storage, as `door.j2` has them."""
    found = []
    for fault in filter(at_a_call, plan.faults):
        call, settings, kind = call_of(fault), fault.settings, fault.kind
        does: dict[str, Any] = {"operations": list(call.operations), "path": call.pattern, "n": call.n}
        does |= {"starting": True} if call.starting else {}
        if kind.row.kills:
            when = call.when if kind is FaultKind.KILL else "before" if settings.empty else "within"
            does |= {"kill": when, "restart_ms": settings.restart_ms}
        elif kind is FaultKind.SLOW_STORAGE:
            does |= {"late_ms": settings.late_ms, "calls": settings.calls}
        elif isinstance(fault.trigger, Call):
            full = kind is FaultKind.DISK_FULL  # On S3 the error is 500, whatever its number.
            does |= {"error": ENOSPC if full else EIO, "calls": settings.calls, "applied": settings.applied}
            does |= {"full": True, "half": settings.calls > 1} if full else {}
        else:
            does |= {"does": _on_server(fault)}
        found.append(does)
    return found


def steps_of(plan: Plan, identity: bool) -> ScriptSteps:
    """The steps of a plan that a script can do. identity: whether each create sends one."""
    clients = _clients(plan)
    of_server = [fault for fault in plan.faults if fault.target == "server"]
    counted = [fault for fault in of_server if not at_a_call(fault)]
    alone = len(counted) == len(of_server) and len(clients) < 2 and not any(client.copies for client in clients)
    inline = {fault.n: fault for fault in counted if fault.site == _REPLY} if alone else {}
    due = tuple(
        ("reply" if fault.site == _REPLY else "request", fault.n, *_on_server(fault))
        for fault in counted
        if inline.get(fault.n) is not fault
    )
    functions, rows = [], []
    for number, client in enumerate(clients):
        lines = _client(plan, client, identity, inline)
        functions += [
            f"def client_{number}(do):  # {printable(client.actor)}",
            *(f"    {line}" for line in lines),
            "\n",
        ]
        rows.append(f"    (client_{number}, {client.copies}, {client.without!r}),")
    table = [
        "# Each: its steps, how many there are of a crowd (0: one client), and numbers that are clients of their own."
    ]
    table += ["CLIENTS = [", *rows, "]", f"ALONE = {alone}"]
    return ScriptSteps(text="\n".join(("\n", *functions, *table)), due=due, alone=alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScriptClient:
    """A client, or a crowd of `copies` without the numbers that are separate clients."""

    actor: str
    ops: tuple[Op, ...]
    copies: int = 0
    without: tuple[int, ...] = ()


def _clients(plan: Plan) -> list[_ScriptClient]:
    """The clients of a plan; a member of a crowd that a fault strikes is a separate client."""
    found = []
    for (actor, crowd), group in groupby(sorted(plan.ops, key=_client_of), key=_client_of):
        ops = tuple(group)
        if not crowd:
            found.append(_ScriptClient(actor=actor, ops=ops))
            continue
        members = {actor for op in ops for actor in op.actors} & {fault.target for fault in plan.faults}
        numbers = sorted(int(member.rpartition(OF_CROWD)[2]) for member in members)
        found.append(_ScriptClient(actor=actor, ops=ops, copies=max(op.copies for op in ops), without=tuple(numbers)))
        for number in numbers:
            own = tuple(op.single()[number] for op in ops if number < op.copies)
            found.append(_ScriptClient(actor=f"{actor}{OF_CROWD}{number}", ops=own))
    return found


def _client_of(op: Op) -> tuple[str, bool]:
    return op.actor, op.copies > 1


def _on_server(fault: Fault) -> tuple[str, int]:
    """What a fault does to a server, and its duration in ms."""
    return _ON_SERVERS[fault.kind], fault.settings.restart_ms if fault.kind.row.kills else fault.settings.for_ms


def _client(plan: Plan, client: _ScriptClient, identity: bool, inline: dict[int, Fault]) -> list[str]:
    """The steps of one client. inline: faults of the server at its n-th reply."""
    lines: list[str] = []
    count: Counter[str] = Counter()
    own = [fault for fault in plan.faults if fault.target == client.actor]

    def due(*sites: str) -> list[Fault]:
        found = []
        for site in dict.fromkeys(sites):
            count[site] += 1
            found += [fault for fault in own if fault.site == site and fault.n == count[site]]
        return found

    replies = 0
    for number, op in enumerate(client.ops):
        before = due("", client_site(op.kind, False))
        meets = next((fault for fault in before if fault.kind in _ON_REQUESTS), None)
        apart = f" + {op.apart_ms} * do.number" if op.apart_ms else ""
        steps = [f"do.ms({op.after_ms}{apart})"] if op.after_ms or apart else []
        steps += _pauses(before)
        steps += [f"do.remove({op.directory})" for fault in before if fault.kind is FaultKind.DIRECTORY_REMOVED]
        steps += _request(op, meets, (op.request or f"{client.actor}-{number}-{COPY}") if identity else "")
        if meets is None or meets.kind in (FaultKind.DUPLICATED, FaultKind.DELAYED):
            replies += 1
            site = client_site(op.kind, True)
            steps += _pauses(due(site) if site else [])
            steps += ["do.{}({})".format(*_on_server(inline[replies]))] if replies in inline else []
        if client.copies > op.copies:
            steps = [f"if do.number < {op.copies}:", *(f"    {step}" for step in steps)]
        lines += steps
    return lines


def _pauses(faults: list[Fault]) -> list[str]:
    return [f"do.ms({fault.settings.for_ms})  # It is paused." for fault in faults if fault.kind is FaultKind.PAUSE]


def _request(op: Op, meets: Fault | None, request: str) -> list[str]:
    """One operation, with the fault of its request."""
    named = op.kind in ("create", "hostile")
    how: dict[str, Any] = {"server": 2} if op.server else {}
    how |= {"spelled": op.spelled} if op.spelled else {}
    how |= {"request": request} if request and op.kind == "create" else {}
    lines: list[str] = []
    after: list[str] = []
    if meets is not None:
        settings = meets.settings
        match meets.kind:
            case FaultKind.DELAYED:  # The client waits before its request.
                lines.append(f"do.ms({settings.late_ms})")
            case FaultKind.DUPLICATED:
                how["twice_ms"] = settings.late_ms
            case FaultKind.REQUEST_LOST:
                how["sent"] = "half"
            case FaultKind.RESET:
                how |= {"sent": "half" if settings.lost else "whole", "reset": True}
            case _:
                how["sent"] = "whole"
        if meets.kind is FaultKind.KILL and settings.restart_ms > 0:
            after = [f"do.ms({settings.restart_ms})"]
    words = [repr(op.kind), str(op.directory), *([ascii(op.name)] if named else [])]
    words += [f"{name}={value!a}" for name, value in how.items()]
    return [*lines, f"do.request({', '.join(words)})", *after]

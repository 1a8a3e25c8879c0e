"""The operations and faults of a plan as lines of a shell script, in the words of `script.sh.j2`.

One client is a list of steps with the faults at their places. Several are functions that run at once; faults of the
server are then due at the n-th request or reply of all of them.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
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
_OPTIONAL = (
    "raw",
    "twice",
    "remove",
    "pause_server",
    "second_server",
    "disk_full",
    "crowd",
    "SPELLED",
)
_ON_SERVERS = {
    FaultKind.KILL: "kill_server {0.restart_ms}",
    FaultKind.TORN_WRITE: "kill_server {0.restart_ms}",
    FaultKind.PAUSE: "pause_server {0.for_ms}",
    FaultKind.SECOND_SERVER: "second_server {0.for_ms}",
    FaultKind.DISK_FULL: "disk_full {0.for_ms}",
}
_ON_REQUESTS = {
    FaultKind.KILL: "raw whole",
    FaultKind.REPLY_LOST: "raw whole",
    FaultKind.REQUEST_LOST: "raw half",
    FaultKind.RESET: "raw {1}",  # A shell can only close a connection, as the script says.
    FaultKind.DUPLICATED: "twice {0.late_ms}",
    FaultKind.DELAYED: "",  # The client waits before its request.
}
_AT_CALLS = (
    FaultKind.KILL,
    FaultKind.TORN_WRITE,
    FaultKind.IO_ERROR,
    FaultKind.DISK_FULL,
    FaultKind.SLOW_STORAGE,
)
_CANNOT = "a shell cannot do it"
_OF_CLIENTS = (*_ON_REQUESTS, FaultKind.PAUSE, FaultKind.DIRECTORY_REMOVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSteps:
    """The lines of a script in the making.

    text: the functions of the clients, if there are several, and `steps`.
    due: faults at the n-th request or reply.
    uses: the functions that not every script needs.
    alone: whether one client performs all steps, one after the other.
    """

    text: str
    due: tuple[str, ...]
    uses: frozenset[str]
    alone: bool


def quoted(text: str) -> str:
    """A word quoted for bash: unchanged where a terminal can show it, else byte by byte."""
    if text.isprintable() and unicodedata.is_normalized("NFC", text):
        return shlex.quote(text)
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in as_bytes(text))
    return "$'" + "".join(shown) + "'"


def as_bytes(text: str) -> bytes:
    """The bytes of a text in a request, where a plan has surrogates for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def not_in_a_shell(fault: Fault, plan: Plan) -> str:
    """The reason why a shell cannot do a fault, "" when it can."""
    if fault.kind.row.family == "proxy":
        return "a script has no proxy to make connections fail"
    if fault.target == "server":
        if at_a_call(fault):
            if plan.storage != "local":
                trigger, settings = fault.trigger, fault.settings
                if fault.kind is FaultKind.SERVER_ERROR and isinstance(trigger, Call) and not settings.applied:
                    return "a script does not know when a server is starting" if trigger.starting else ""
                return "curl and kill do not see the n-th call of a server to its storage"
            return "" if fault.kind in _AT_CALLS or (fault.site and fault.kind in _ON_SERVERS) else _CANNOT
        return "" if fault.kind in _ON_SERVERS and (fault.site in OF_REQUESTS or not fault.site) else _CANNOT
    return "" if fault.kind in _OF_CLIENTS else _CANNOT


def faults_at_calls(plan: Plan) -> list[dict[str, Any]]:
    """The faults at calls of a server to its storage, as `door.py.j2` has them."""
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
    """The steps of a plan that a shell can do. identity: whether each create sends one."""
    clients = _clients(plan)
    of_server = [fault for fault in plan.faults if fault.target == "server"]
    counted = [fault for fault in of_server if not at_a_call(fault)]
    alone = len(counted) == len(of_server) and len(clients) < 2 and not any(client.copies for client in clients)
    inline = {fault.n: fault for fault in counted if fault.site == _REPLY} if alone else {}
    due = tuple(
        f"{'reply' if fault.site == _REPLY else 'request'} {fault.n} {_on_server(fault)}"
        for fault in counted
        if inline.get(fault.n) is not fault
    )
    lines: list[str] = []
    functions: list[str] = []
    if alone:
        lines += [line for client in clients for line in _client(plan, client, identity, inline)]
    else:
        words = []
        for number, client in enumerate(clients):
            own = (f"    {line}" for line in _client(plan, client, identity, {}))
            note = f"{client.actor}; $1 is the number of the client" if client.copies else client.actor
            functions += [f"client_{number}() {{ # {printable(note)}", *own, "}"]
            crowd = f"'{' '.join(('crowd', str(client.copies), f'client_{number}', *map(str, client.without)))}'"
            words.append(crowd if client.copies else f"client_{number}")
        lines.append(f"run {' '.join(words)}")
    text = "\n".join((*functions, "steps() {", *(f"    {line}" for line in lines or [":"]), "}"))
    said = "\n".join((text, *due))
    uses = frozenset(word for word in _OPTIONAL if re.search(rf"(^|[ '=]){word}[ =]", said, re.MULTILINE))
    return ScriptSteps(text=text, due=due, uses=uses, alone=alone)


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


def _on_server(fault: Fault) -> str:
    return _ON_SERVERS[fault.kind].format(fault.settings)


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
        steps = [f"ms {op.after_ms}"] if op.after_ms and not op.apart_ms else []
        steps += [f"ms $(({op.after_ms} + $1 * {op.apart_ms}))"] if op.apart_ms else []
        steps += [f"ms {fault.settings.for_ms} # it is paused" for fault in before if fault.kind is FaultKind.PAUSE]
        steps += [f"remove {op.directory}" for fault in before if fault.kind is FaultKind.DIRECTORY_REMOVED]
        steps += _request(op, meets, _identity(op, client.actor, number) if identity else "")
        if meets is None or meets.kind in (FaultKind.DUPLICATED, FaultKind.DELAYED):
            replies += 1
            site = client_site(op.kind, True)
            after = due(site) if site else []
            steps += [f"ms {fault.settings.for_ms} # it is paused" for fault in after if fault.kind is FaultKind.PAUSE]
            steps += [_on_server(inline[replies])] if replies in inline else []
        if client.copies > op.copies:
            steps = [f'if [ "$1" -lt {op.copies} ]; then', *(f"    {step}" for step in steps), "fi"]
        lines += steps
    return lines


def _request(op: Op, meets: Fault | None, request: str) -> list[str]:
    """One operation, with the fault of its request."""
    words = [op.kind, str(op.directory)]
    if op.kind in ("create", "hostile"):
        words.append('"$1"'.join(quoted(part) if part else "" for part in op.name.split(COPY)) or "''")
    elif op.kind in ("list-data", "list-log") and (meets is None or not _ON_REQUESTS[meets.kind]):
        words = ["list", words[1], op.kind.removeprefix("list-")]
    around = _ON_REQUESTS[meets.kind].format(meets.settings, _sent(meets)) if meets is not None else ""
    settings = "AT=2 " if op.server else ""
    settings += f"SPELLED={op.spelled} " if op.spelled else ""
    settings += f"REQUEST={request} " if request and op.kind == "create" else ""
    lines = [f"ms {meets.settings.late_ms}"] if meets is not None and meets.kind is FaultKind.DELAYED else []
    lines.append(f"{settings}{around}{' ' if around else ''}{' '.join(words)}")
    if meets is not None and meets.kind is FaultKind.KILL and meets.settings.restart_ms > 0:
        lines.append(f"ms {meets.settings.restart_ms}")
    return lines


def _sent(fault: Fault) -> str:
    """How much of a request is sent before its connection ends: "half" or "whole"."""
    return "half" if fault.settings.lost else "whole"


def _identity(op: Op, actor: str, number: int) -> str:
    request = op.request or f"{actor}-{number}-{COPY}"
    return '"${1-}"'.join(quoted(part) if part else "" for part in request.split(COPY))

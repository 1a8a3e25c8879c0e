"""How the faults of a plan are done to real servers and their clients, and which cannot be.

at a client's step or site   by the client itself: it hangs up, waits, loses, doubles or delays its request
at a request or a reply      as soon as a client sent the n-th request, or read the n-th reply, of all clients
at a call on storage         by the interceptor: before it, after it, or in the middle of a write
on connections               by proxies, from when another fault would strike (plan_wires.py)
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.faults.sites import REPLY, REQUEST_QUEUED, WIRE, site_of
from marker_sim.names import TYPE_FILE, MarkerDirectory
from marker_sim.plan import Plan
from marker_sim.worlds.http.fault_injector import PAUSE, ServerFaultInjector
from marker_sim.worlds.http.http_client import BREAKING, ROUTES
from marker_sim.worlds.http.plan_wires import PlanWires, wire_of, wires_of
from marker_sim.worlds.http.servers import Server
from marker_sim.worlds.http.world import RunStorage, within
from marker_sim.worlds.interceptor import SERVERS, ArmedFault, StorageCall
from marker_sim.worlds.proxies.faults import described

FOR_MS_MAX = 1_500
SECOND_MS_MAX = 10_000  # Longer than other faults: clients use the second server meanwhile.
SILENT_CALLS_MAX = 3
TYPE_FILES, MARKER_FILES = rf"/{TYPE_FILE}$", r"/MARKERS\d+$"
_FILE_NAME = re.compile(r"/?MARKERS.*\Z")  # In a pattern; other formats of markers have no such files.
_TEMPORARY = r"MARKERS\d+[^/]*$"  # Marker files, and temporary files that become one.
# The storage calls at a site.
CALLS = {
    "server: directory listed": Call("", ("list",)),
    "server: batch file read": Call(MARKER_FILES, ("get",)),
    "server: type file read": Call(TYPE_FILES, ("get",)),
    "server: type file put": Call(TYPE_FILES, ("put",)),
    "server: type file written": Call(TYPE_FILES, ("put",), when="after"),
    "server: batch file put": Call(MARKER_FILES, ("put",)),
    "server: batch file written": Call(MARKER_FILES, ("put",), when="after"),
    "server: batch file deleted": Call(MARKER_FILES, ("delete",)),
    "server: type file deleted": Call(TYPE_FILES, ("delete",)),
}
OF_REQUESTS = (REQUEST_QUEUED, REPLY)
OF_CLIENTS = (*BREAKING, FaultKind.PAUSE, FaultKind.DIRECTORY_REMOVED)
OUTSIDE = "outside"  # The process name of programs other than servers that change storage.
_EVERYWHERE = (FaultKind.KILL, FaultKind.PAUSE, FaultKind.SECOND_SERVER)
OF_SERVERS = {
    "s3": (
        *_EVERYWHERE,
        FaultKind.THROTTLED,
        FaultKind.SERVER_ERROR,
        FaultKind.TIMEOUT_APPLIED,
        FaultKind.TIMEOUT_LOST,
        FaultKind.SLOW_STORAGE,
        FaultKind.ORPHANED,
    ),
    "local": (
        *_EVERYWHERE,
        FaultKind.DISK_FULL,
        FaultKind.TORN_WRITE,
        FaultKind.IO_ERROR,
        FaultKind.SLOW_STORAGE,
        FaultKind.POWER_LOST,
    ),
}
_BEHIND_A_PROXY = "a link stays slow or cut only behind a proxy; the faults wire-... are that"
_REPAIR = "what other programs damage, no server promises to repair"
# The kinds of faults that cannot strike real servers, and why.
CANNOT = {
    "overload": "only the server itself can be slow at taking up requests",
    "slow-link": _BEHIND_A_PROXY,
    "cut-link": _BEHIND_A_PROXY,
    "damage": _REPAIR,
    "placeholder": _REPAIR,
    "stray-files": _REPAIR,
    "conflict": "the kit's front answers 409 to nobody",
    "timeout-late": "its effect may come after the run",
}


def done(fault: Fault, storage: str) -> Fault | None:
    """The fault as real servers can have it, with limits for real time; None when they cannot have it."""
    kind, site = fault.kind, fault.site
    if fault.target in ("server", "second"):
        if kind not in OF_SERVERS[storage] or fault.target == "second":
            return None
        if isinstance(fault.trigger, Call):
            return fault if kind.row.family == "storage" or kind.row.kills else None
        if site and site not in OF_REQUESTS and site not in CALLS:
            return None
        at_call = site in CALLS
        if kind.row.family == "storage" and kind is not FaultKind.DISK_FULL and not at_call:
            return None
    elif kind not in OF_CLIENTS or (site and site not in _CLIENT_SITES):
        return None
    longest = SECOND_MS_MAX if kind is FaultKind.SECOND_SERVER else FOR_MS_MAX
    shorter = {"for_ms": longest} if "for_ms" in kind.row.settings else {}
    if kind in (FaultKind.TIMEOUT_LOST, FaultKind.TIMEOUT_APPLIED):
        shorter["calls"] = SILENT_CALLS_MAX
    changed = {name: most for name, most in shorter.items() if getattr(fault.settings, name) > most}
    return fault.but(**changed) if changed else fault


def refuses_calls(fault: Fault) -> bool:
    """Whether storage fails at matching calls until the fault is over."""
    return isinstance(fault.trigger, Call) and not fault.kind.row.kills


def at_a_call(fault: Fault) -> bool:
    """Whether the fault is due at a storage call."""
    return fault.site in CALLS or isinstance(fault.trigger, Call)


def client_site(kind: str, after: bool) -> str:
    """The site of a client's operation, before or after it; "" for one without."""
    route = ROUTES[kind][1]
    role = "driver" if kind == "delete" else "executor"
    return site_of(role, "", WIRE, route, after)


_CLIENT_SITES = {client_site(kind, after) for kind in ROUTES for after in (False, True)} - {""}


class PlanFaults:
    """The faults of one run. Clients report their positions; `drive` does what takes time, in the thread of the run.

    met: how often each kind happened.
    calls: the storage calls of servers while faults were armed.
    second_is_coming: whether the second server is starting and does not answer yet.
    wires: injects the faults of connections.
    """

    def __init__(self, plan: Plan, injector: ServerFaultInjector, places: tuple[MarkerDirectory, ...]) -> None:
        self.met: Counter[str] = Counter()
        self.calls: tuple[StorageCall, ...] = ()
        self.wires = PlanWires(plan, injector)
        self.second_is_coming = False
        self._plan = plan
        self._injector = injector
        self._places = places
        self._lock = threading.Lock()
        self._count: Counter[tuple[str, str]] = Counter()
        self._at_calls = tuple(filter(at_a_call, plan.faults))
        self._armed: list[ArmedFault] = []
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._number = itertools.count()
        self._healed = False
        self._waiting: defaultdict[tuple[str, str, int], list[Fault]] = defaultdict(list)
        for fault in plan.faults:
            if not at_a_call(fault):
                # A server's steps are the requests it gets.
                site = fault.site or (REQUEST_QUEUED if fault.target == "server" else "")
                self._waiting[fault.target, site, fault.n].append(fault)

    def arm(self, world: RunStorage) -> None:
        """Arm the faults at storage calls."""
        if world.interceptor is None:
            return
        for fault in self._at_calls:
            call = call_of(fault)
            if isinstance(fault.trigger, Call):
                call = within(self._injector.workdir, call)
            if world.layout != "hudi":
                call = call._replace(pattern=_FILE_NAME.sub("/", call.pattern))
            awhile = fault.kind is FaultKind.DISK_FULL and bool(fault.site)  # And not for one call.
            self._armed.append(ArmedFault(replace(fault, trigger=call), caller=SERVERS, outside=awhile))
        world.interceptor.arm(*self._armed)

    @property
    def struck(self) -> dict[Fault, int]:
        """The faults of the plan that happened at a call, and how often."""
        armed = zip(self._at_calls, self._armed, strict=False)
        return {fault: each.fired for fault, each in armed if each.fired}

    def before(self, actor: str, kind: str) -> list[Fault]:
        """The faults due before a client's request."""
        return self._arrive(*dict.fromkeys(((actor, ""), (actor, client_site(kind, False)))))

    def after(self, actor: str, kind: str) -> list[Fault]:
        """The faults due after a client got its answer."""
        site = client_site(kind, True)
        return self._arrive((actor, site)) if site else []

    def remove(self, place: MarkerDirectory) -> None:
        """Remove a marker directory in the name of another program."""
        recorder, kind = self._injector.recorder, FaultKind.DIRECTORY_REMOVED.value
        with self._lock:
            self.met[kind] += 1
            process = f"{OUTSIDE}-{self.met[kind]}"
        recorder.fault(process, kind, "begin", place.path)
        self._injector.world.remove(place, process)
        recorder.fault(process, kind, "end", place.path)

    def arrived(self, server: Server) -> None:
        """Count a request that was passed to a server."""
        self._strike(server, self._arrive(("server", REQUEST_QUEUED)))

    def answered(self, server: Server) -> None:
        """Count a reply of a server that a client read."""
        self._strike(server, self._arrive(("server", REPLY)))

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        """Inject a fault that is due at a storage call; the recorder's lock is held, so nothing here waits."""
        server = next((server for server in self._injector.running if server.name == call.process), None)
        if server is not None and not server.ended:
            self._begin(server, armed.fault, call)

    def drive(self, over: Callable[[], bool], for_s: float, deadline: float) -> None:
        """Inject due faults until clients are done, time is up, or no server lives and none is to start.

        for_s: how long clients may take, not counting what they wait for, like the start of a server.
        deadline: when all of it has to be over (time.monotonic).
        """
        until = time.monotonic() + for_s
        while not over() and time.monotonic() < min(until, deadline) and (self._injector.servers or self._comes()):
            began = time.monotonic()
            self._do_what_is_due()
            until += time.monotonic() - began
            self._injector.check()
            time.sleep(0.004)

    def heal(self) -> None:
        """End all faults, start no others, and make sure that a server lives."""
        with self._injector.stopping:
            self._healed = True  # A client may have met a fault that has not begun yet.
        world = self._injector.world
        if world.interceptor is not None:
            self.calls = tuple(world.interceptor.calls)
            for armed in world.interceptor.disarm():
                if not armed.injected:
                    self.met[armed.kind.value] += armed.fired
        while self._due:
            self._do_what_is_due(all_of_it=True)
        self._heal_wires()
        self._restart(healed=True)

    def _heal_wires(self) -> None:
        """Heal all wires and count the faults seen on each; where one was not seen, its wire as a whole counts 0."""
        counts, seen = self._injector.counts, self.wires.heal()
        for evidence in seen:
            word = evidence.fault.kind.value
            self.met[word] += evidence.happened
            if not evidence.happened:
                counts[f"{word} {described(evidence.fault)} not seen on its wire: {evidence.seen}"] += 1
            counts["requests that a wire fault broke"] += evidence.broken
        for wire in wires_of(self._plan):
            wanted = sum(wire_of(fault) == wire for fault in self._plan.faults)
            happened = sum(evidence.happened for evidence in seen if wire_of(evidence.fault) == wire)
            self.met[wire] = happened if happened == wanted else 0

    def _arrive(self, *places: tuple[str, str]) -> list[Fault]:
        """The faults due at a site that was reached; those of connections are started in their own thread instead."""
        due: list[Fault] = []
        with self._lock:
            for place in places:
                self._count[place] += 1
                due += self._waiting.pop((*place, self._count[place]), [])
        for fault in filter(wire_of, due):
            self.wires.due(fault)
        return [fault for fault in due if not wire_of(fault)]

    def _strike(self, server: Server, due: list[Fault]) -> None:
        for fault in due:
            if fault.kind.row.kills:  # On a dead server's wire no fault could be seen.
                self.wires.after_those_due(partial(self._strike_now, server, fault))
            else:
                self._strike_now(server, fault)

    def _strike_now(self, server: Server, fault: Fault) -> None:
        with self._injector.stopping:
            if not server.ended and not self._healed:
                self._begin(server, fault)

    def _begin(self, server: Server, fault: Fault, call: StorageCall | None = None) -> None:
        """Begin a fault of a server now, and schedule its later effects."""
        if wire_of(fault):
            self.wires.due(fault)
        elif effect := self._EFFECTS.get(fault.kind):
            effect(self, server, fault, call)

    def _kill(self, server: Server, fault: Fault, call: StorageCall | None) -> None:
        self.met[fault.kind.value] += 1
        self._injector.kill(server, call)
        self._later(0, partial(self._died, server, fault))

    def _lose_power(self, server: Server, fault: Fault, call: StorageCall | None) -> None:
        if not self.second_is_coming:  # The first one would live on.
            self.met[fault.kind.value] += 1
            for dead in self._injector.lose_power(server, fault.settings, call):
                self._later(0, partial(self._died, dead, fault))

    def _pause(self, server: Server, fault: Fault, call: StorageCall | None) -> None:
        """Pause a server, or prolong its pause; a shorter pause within another changes nothing."""
        injector, for_ms = self._injector, fault.settings.for_ms
        until = time.monotonic() + for_ms / 1000
        with injector.recorder.lock:
            pauses = injector.pauses.get(server, [])
            if until <= max(pauses, default=0.0):
                return
            self.met[PAUSE] += 1
            injector.pauses[server] = [*pauses, until]
            if not pauses:
                path = call.path if call is not None else None
                injector.recorder.fault(
                    server.name, PAUSE, "begin", path, lambda: server.program.signal(signal.SIGSTOP)
                )
        self._later(for_ms, partial(self._proceed, server))

    def _second_server(self, _: Server, fault: Fault, __: StorageCall | None) -> None:
        self.second_is_coming = len(self._injector.servers) == 1
        self._later(0, partial(self._second, fault.settings.for_ms))

    def _fill_disk(self, _: Server, fault: Fault, __: StorageCall | None) -> None:
        heal = self._injector.world.fill_disk()
        self._later(fault.settings.for_ms or math.inf, partial(self._has_room, heal))

    # Begins a fault of a server, given the server, the fault, and the call at which it strikes, if there is one.
    _EFFECTS: ClassVar[Mapping[FaultKind, Callable[[PlanFaults, Server, Fault, StorageCall | None], None]]] = {
        FaultKind.KILL: _kill,
        FaultKind.ORPHANED: _kill,
        FaultKind.TORN_WRITE: _kill,
        FaultKind.POWER_LOST: _lose_power,
        FaultKind.PAUSE: _pause,
        FaultKind.SECOND_SERVER: _second_server,
        FaultKind.DISK_FULL: _fill_disk,
    }

    # Later effects of faults, in the thread of the run.

    def _later(self, after_ms: float, act: Callable[[], object]) -> None:
        """Call `act` after a while, at the latest when everything is healed."""
        with self._lock:
            heapq.heappush(self._due, (time.monotonic() + after_ms / 1000, next(self._number), act))

    def _comes(self, by: float = math.inf) -> bool:
        """Whether an effect is scheduled before a time."""
        return bool(self._due) and self._due[0][0] < by

    def _do_what_is_due(self, all_of_it: bool = False) -> None:
        while True:
            with self._lock:
                if not self._due or not (all_of_it or self._comes(time.monotonic())):
                    return
                act = heapq.heappop(self._due)[2]
            act()

    def _died(self, server: Server, fault: Fault) -> None:
        self._injector.look_at_dead(server, self._places)
        if fault.settings.restart_ms >= 0 and not self._injector.servers:
            self._later(fault.settings.restart_ms, self._restart)

    def _restart(self, healed: bool = False) -> None:
        """Start a server when none lives, unless one ended by itself: that is its own fault and recorded."""
        if not self._injector.servers and not self._injector.exited:
            self._injector.restart(healed)

    def _has_room(self, heal: Callable[[], bool]) -> None:
        self.met[FaultKind.DISK_FULL.value] += heal()

    def _proceed(self, server: Server) -> None:
        """End one pause of a server; it continues after the last one."""
        injector = self._injector
        with injector.stopping, injector.recorder.lock:
            injector.pauses[server].pop(0)
            if not injector.pauses[server]:
                del injector.pauses[server]
                if not server.ended:
                    injector.recorder.fault(server.name, PAUSE, "end", act=server.proceed)

    def _second(self, for_ms: int) -> None:
        injector = self._injector
        second = injector.second_begins() if len(injector.servers) == 1 else None
        self.second_is_coming = False
        if second is not None:
            self.met[FaultKind.SECOND_SERVER.value] += 1
            self._later(for_ms, partial(self._end_second, second))

    def _end_second(self, second: Server) -> None:
        self._injector.second_ends(second)
        self._restart()


def call_of(fault: Fault) -> Call:
    """The storage call at which a fault is injected, also for a fault at a site."""
    call = fault.trigger if isinstance(fault.trigger, Call) else CALLS[fault.site]._replace(n=fault.n)
    if fault.kind is FaultKind.TORN_WRITE:
        pattern = _TEMPORARY if call.pattern == MARKER_FILES else call.pattern
        return call._replace(pattern=pattern, operations=("write",), when="after")
    return call._replace(when="after") if fault.kind is FaultKind.ORPHANED and fault.site else call

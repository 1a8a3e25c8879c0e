"""Plans for servers in real time: several plans of the swarm at the same time, on different tables.

A run against a real process costs a second for any number of requests, and a plan of the swarm has some dozen
operations. So one run takes several of them: their clients run at the same time on one server, and some of them share
marker directories. Sometimes there is a crowd too, so that batches are large.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from marker_sim.faults import Call, Fault, FaultKind, Site, Step, by_target
from marker_sim.faults.model import When
from marker_sim.faults.row import CHANGES, READ_CALLS
from marker_sim.names import TYPE_FILE, marker_file
from marker_sim.plan import REQUEST_FORMS, Op, Plan
from marker_sim.search.crowds import (
    Directories,
    around_a_failure,
    crowd,
    hot,
    killed,
    killed_at_a_rewrite,
    readers,
    removed_elsewhere,
    repeated_listings,
    short_scripts,
    side_by_side,
    spaced,
    with_twins,
)
from marker_sim.search.seeds import Draws
from marker_sim.search.swarm import make_plan
from marker_sim.unusual_names import must_be_refused

PARTS = {"deaths": (1, 1, 2, 3, 5), "two servers": (1, 1, 2, 3, 5), "full disk": (1, 1, 2), "confined": (3, 5, 8)}
PROBED_FAST = 4
SMALL_CROWD, SMALL_SCRIPTS = 12, 2
FAULTS_MAX = (2, 4, 8)
DEATHS_MAX = 1  # In addition to the death at a rewrite.
OUTAGES = 0.35
CRASHES = 0.4
CRASH_SITES = (
    "server: type file put",
    "server: type file written",
    "server: batch file put",
    "server: batch file written",
)
AT_ANY_CALL, FIRST_CALLS = 0.5, (1, 2, 3, 4, 6, 9, 14, 20)
AGAIN = 0.3  # Share of plans in which a server dies while it starts after a death, if it changes storage then.
DIES_LATE = 0.4  # Share of plans in which one of two servers dies, after most of the requests.
PAUSED_MS = (400, 1_200)
LATE = 0.5
ALSO_CONFINED = 0.15  # Share of plans in which storage also fails below one marker directory.
HANG_UPS = (0, 1, 3, 6)
GONE = (FaultKind.KILL, FaultKind.REPLY_LOST, FaultKind.RESET)
WAITS_MS = (0, 10, 40, 150)
PREFIXES = ("", "", "a/", "b/", "A/")
ODD_TABLES = ("a%20b=c+", "100% + k=v/", "x+y%2Fz=/", "größe %2B+=", "日本 %+=/")  # Beginnings of table paths.
SERVER_STEPS, CLIENT_STEPS = 6, 4
FOR_GOOD = 1_000_000
SECOND_MS = 10_000
FULL_MS = 2_500  # Longer than a crowd needs for its second requests.
BESIDE = "beside/t/.hoodie/.temp/1"
# Files of which one alone cannot be written, by folder of marker directories: a server may make one under another name.
ONE_FILE = {"one/t/.hoodie/.temp": TYPE_FILE, "two/t/.hoodie/.temp": marker_file(0)}
# What fails below one directory.
CONFINED_FAULTS: dict[str, tuple[tuple[FaultKind, tuple[str, ...], dict[str, Any]], ...]] = {
    "local": (
        (FaultKind.IO_ERROR, ("put",), {"calls": FOR_GOOD}),
        (FaultKind.IO_ERROR, ("put",), {"calls": FOR_GOOD}),
        (FaultKind.IO_ERROR, ("write",), {"calls": 2}),
        (FaultKind.IO_ERROR, READ_CALLS, {"calls": FOR_GOOD}),
        (FaultKind.IO_ERROR, ("put", "delete"), {"calls": 3, "applied": True}),
        (FaultKind.IO_ERROR, ("delete", "rmdir"), {"calls": 4}),
        (FaultKind.DISK_FULL, ("put",), {"calls": FOR_GOOD}),
        (FaultKind.DISK_FULL, ("write",), {"calls": 2}),
        (FaultKind.SLOW_STORAGE, ("put",), {"calls": 8, "late_ms": 700}),
    ),
    "s3": (
        (FaultKind.SERVER_ERROR, ("put",), {"calls": FOR_GOOD}),
        (FaultKind.SERVER_ERROR, ("put",), {"calls": FOR_GOOD}),
        (FaultKind.SERVER_ERROR, READ_CALLS, {"calls": FOR_GOOD}),
        (FaultKind.SERVER_ERROR, ("delete",), {"calls": 4}),
        (FaultKind.SLOW_STORAGE, ("put",), {"calls": 8, "late_ms": 700}),
        (FaultKind.THROTTLED, (*CHANGES, *READ_CALLS), {"calls": FOR_GOOD}),
        (FaultKind.TIMEOUT_APPLIED, ("put",), {"calls": 3, "for_ms": 1_200}),
        (FaultKind.TIMEOUT_LOST, ("put",), {"calls": 3, "for_ms": 1_200}),
    ),
}
Theme = Literal["deaths", "confined", "full disk", "two servers"]
IN_FORMS, NAME_IN_FORMS_MAX = 0.15, 300
MADE_OF = 1 << 20  # Offset of the seeds of parts, so that no other run has them.


def make_merged_plan(
    seed: int,
    storage: str,
    threads: tuple[int, ...],
    intervals_ms: tuple[int, ...],
    done: Callable[[Fault, str], Fault | None],
    theme: Theme = "deaths",
    small: bool = False,
) -> Plan:
    """The plan of a seed for a timeline server on "local" or "s3".

    threads, intervals_ms: the values that servers may receive.
    done: the fault as the world injects it, None if it cannot.
    theme: the faults besides those of clients: servers die, are paused, and have storage that fails for
        all; or storage fails below some marker directories alone, or a local disk is full while a crowd asks; or there
        are two servers, and none dies early.
    small: one plan of the swarm and no crowds but those around a failure, for servers that take long.
    """
    rng = Draws(f"merged/1/{seed}/{storage}")
    latin, second = rng.random() < 0.5, theme == "two servers"
    num_threads, interval_ms = batches(rng, *(_quick(threads, intervals_ms) if second else (threads, intervals_ms)))
    parts = (1,) if small else PARTS[theme][: 2 if num_threads > PROBED_FAST else None]
    directories = Directories()
    ops, faults = _merged(rng, storage, directories, rng.choice(parts), latin)
    odd = [op.directory for op in ops if op.name and tuple(directories)[op.directory].startswith(ODD_TABLES)]
    ops += with_twins(rng, ops, forms=not latin)
    ops += [] if small else _crowds(rng, storage, ops, len(directories), latin, interval_ms)
    askers = sorted({actor for op in ops if op.kind == "create" for actor in op.actors})
    ops += short_scripts(rng, directories, second, SMALL_SCRIPTS if small else None)
    possible = [fault for each in faults if (fault := done(each, storage)) is not None]
    asked_for = tuple(directories)[rng.choices(ops, [op.copies for op in ops])[0].directory]
    match theme:
        case "confined":
            more, faults = _confined_to_some(rng, storage, directories, asked_for)
        case "full disk":
            more, faults = _full_disk(rng, storage, directories, asked_for, ops)
        case "two servers":
            more, removals = removed_elsewhere(rng, directories, [])
            more += side_by_side(seed, storage, len(directories))
            faults = [*_of_two_servers(rng, possible, sum(op.copies for op in (*ops, *more))), *removals]
        case "deaths":
            crash = [fault for each in _crash(rng, storage, asked_for) if (fault := done(each, storage)) is not None]
            early, asked = [*_few(rng, possible), *crash], sum(op.copies for op in ops)
            late, rewriting = killed_at_a_rewrite(rng, storage, directories, num_threads)
            removed, removals = removed_elsewhere(rng, directories, askers)
            more, faults = [*late, *removed], [*(_late(rng, fault, asked) for fault in early), rewriting, *removals]
            faults += [*_outage(rng, storage, asked_for), *_hang_ups(rng, askers), *_again(seed, storage)]
    more += [] if small else readers(seed, storage, len(directories))
    more += repeated_listings(seed, max(odd, key=odd.count, default=0))
    ops += [replace(op, copies=min(op.copies, SMALL_CROWD)) for op in more] if small else more
    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=num_threads,
        interval_ms=interval_ms,
        directories=tuple(directories),
        ops=in_other_forms(seed, ops),
        faults=tuple(faults),
        seed=seed,
    )


def _crowds(rng: Draws, storage: str, ops: list[Op], directories: int, latin: bool, interval_ms: int) -> list[Op]:
    """Crowds of clients beside those that ask already."""
    more = [_accepted(op) for op in crowd(rng, storage, _clients(ops), directories, latin)]
    more += hot(rng, storage, _clients([*ops, *more]), directories)
    return more + spaced(rng, storage, _clients([*ops, *more]), directories, interval_ms)


def _quick(threads: tuple[int, ...], intervals_ms: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The smaller settings of both: exchanges are asked one by one, so each takes many batches."""
    return (min(threads),), tuple(sorted(intervals_ms)[: (len(intervals_ms) + 1) // 2])


def batches(rng: Draws, threads: tuple[int, ...], intervals_ms: tuple[int, ...]) -> tuple[int, int]:
    """Batch threads and the ms between batches, few where there are many files: they are probed with a batch each."""
    num_threads = rng.choice(threads)
    slow = num_threads > PROBED_FAST
    return num_threads, rng.choice(sorted(intervals_ms)[: max(1, len(intervals_ms) // 2)] if slow else intervals_ms)


def in_other_forms(seed: int, ops: Iterable[Op]) -> tuple[Op, ...]:
    """The requests, some of them in another valid form that means the same, but none that is long or of a crowd."""
    rng = Draws(f"forms/1/{seed}")
    return tuple(
        replace(op, form=rng.choice(REQUEST_FORMS))
        if op.copies == 1 and not op.form and len(op.name) <= NAME_IN_FORMS_MAX and rng.random() < IN_FORMS
        else op
        for op in ops
    )


def _merged(
    rng: Draws, storage: str, directories: Directories, parts: int, latin: bool
) -> tuple[list[Op], list[Fault]]:
    """Operations and faults of some plans of the swarm, the first with tables of an odd name.

    directories: gets those that they use.
    """
    ops: list[Op] = []
    faults: list[Fault] = []
    for part in range(parts):
        plan = make_plan(rng.randrange(MADE_OF), "timeline", storage)
        odd = [prefix for prefix in ODD_TABLES if not latin or prefix.isascii()]
        prefix, first = rng.choice(PREFIXES if part else odd), _clients(ops)
        numbers = [directories[f"{prefix}{path}"] for path in plan.directories]
        names = {op.actor: _actor(op.actor, first) for op in plan.ops}
        longest_ms = rng.choice(WAITS_MS)
        ops += [
            replace(
                op,
                actor=names[op.actor],
                directory=numbers[op.directory],
                request=f"{part}.{op.request}" if op.request and part else op.request,
                after_ms=min(op.after_ms, longest_ms),
            )
            for op in plan.ops
        ]
        faults += [replace(_sooner(fault), target=names.get(fault.target, fault.target)) for fault in plan.faults]
    kept = [_accepted(op) for op in ops if op.kind != "hostile" or must_be_refused(op.name)]
    return [_within_latin(op) if latin and op.kind == "create" else op for op in kept], faults


def _clients(ops: list[Op]) -> int:
    return len({op.actor for op in ops})


def _outage(rng: Draws, storage: str, asked_for: str) -> Iterator[Fault]:
    """A paused server; sometimes long trouble with its marker files, or its death in the middle."""
    yield Fault.of(FaultKind.PAUSE, "server", Step(rng.randint(1, 40)), for_ms=rng.choice(PAUSED_MS))
    if rng.random() < ALSO_CONFINED:
        yield _confined(rng, storage, asked_for)
    if rng.random() > OUTAGES:
        return
    site = Site("server: batch file put", rng.randint(1, 6))
    if storage == "s3":
        yield Fault.of(FaultKind.THROTTLED, "server", site, calls=rng.of(40, 200))
    elif rng.random() < 0.5:
        yield Fault.of(FaultKind.TORN_WRITE, "server", site, restart_ms=rng.of(0, 100))
    else:
        yield Fault.of(FaultKind.DISK_FULL, "server", Step(rng.randint(1, 12)), for_ms=rng.of(300, 1_200))


def _changes(storage: str) -> tuple[str, ...]:
    return (*CHANGES, "mkdir", "rmdir", "sync") if storage == "local" else CHANGES


def _crash(rng: Draws, storage: str, asked_for: str) -> tuple[Fault, ...]:
    """Sometimes a server's death at one of its first changes of a marker directory, while it is young in each."""
    if rng.random() > CRASHES:
        return ()
    site = Site(rng.choice(CRASH_SITES), rng.of(1, 1, 2, 4))
    anywhere = rng.random() < AT_ANY_CALL
    return (killed(rng, _first_change(rng, storage, f"^{re.escape(asked_for)}/") if anywhere else site),)


def _first_change(rng: Draws, storage: str, pattern: str, starting: bool = False) -> Call:
    when: When = rng.of("before", "after")
    return Call(pattern, _changes(storage), rng.choice(FIRST_CALLS), when, starting)


def _again(seed: int, storage: str) -> Iterator[Fault]:
    """Sometimes a death of a server at a change of storage while it starts after another one."""
    rng = Draws(f"again/1/{seed}")
    if rng.random() < AGAIN:
        yield Fault.of(FaultKind.KILL, "server", _first_change(rng, storage, "^/", starting=True))


def _late(rng: Draws, fault: Fault, asked: int) -> Fault:
    """The fault; half of the deaths and pauses of servers are moved later, when these know many names.

    asked: how many operations clients perform.
    """
    moved = fault.kind in (FaultKind.KILL, FaultKind.PAUSE) and fault.target == "server" and rng.random() < LATE
    return replace(fault, trigger=Step(rng.randint(1 + asked // 4, 1 + asked))) if moved else fault


def _confined(rng: Draws, storage: str, directory: str) -> Fault:
    """Failing storage calls on one marker directory and below it, mostly until the clients are done."""
    kind, operations, settings = rng.choice(CONFINED_FAULTS[storage])
    trigger = Call(f"^{re.escape(directory)}(/|$)", operations, rng.of(1, 2, 3))
    return Fault.of(kind, "server", trigger, **settings)


def _confined_to_some(
    rng: Draws, storage: str, directories: Directories, asked_for: str
) -> tuple[list[Op], list[Fault]]:
    """Failing storage below a directory, and for a single file in two others, while crowds ask for all of them."""
    failing = tuple(directories[path] for path in (asked_for, *(f"{folder}/1" for folder in ONE_FILE)))
    ops = around_a_failure(rng, storage, failing, directories[BESIDE])
    kind, operations, settings = CONFINED_FAULTS[storage][0]
    alone = (Call(f"^{re.escape(folder)}/[^/]+/{re.escape(file)}$", operations) for folder, file in ONE_FILE.items())
    return ops, [_confined(rng, storage, asked_for), *(Fault.of(kind, "server", each, **settings) for each in alone)]


def _full_disk(
    rng: Draws, storage: str, directories: Directories, asked_for: str, ops: list[Op]
) -> tuple[list[Op], list[Fault]]:
    """A full disk when a crowd first asks, and a server that is paused while it asks again."""
    failing = (directories[asked_for],)
    more, removals = removed_elsewhere(rng, directories, [])
    more += around_a_failure(rng, storage, failing, directories[BESIDE])
    asked = sum(op.copies for op in (*ops, *more))
    paused = Step(rng.randint(asked // 3, asked // 2))
    return more, [
        Fault.of(FaultKind.DISK_FULL, "server", Step(rng.randint(1, 12)), for_ms=FULL_MS),
        Fault.of(FaultKind.PAUSE, "server", paused, for_ms=rng.choice(PAUSED_MS)),
        *removals,
    ]


def _of_two_servers(rng: Draws, possible: list[Fault], asked: int) -> list[Fault]:
    """A second server from the beginning for as long as clients ask, faults of clients, and a late death."""
    faults = [fault for fault in _few(rng, possible) if fault.target != "server"]
    faults.append(Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=SECOND_MS))
    if rng.random() < DIES_LATE:
        late = Step(rng.randint(asked * 3 // 4, asked))
        faults.append(killed(rng, late))
    return faults


def _hang_ups(rng: Draws, askers: list[str]) -> tuple[Fault, ...]:
    """Clients that hang up before their answer, which costs no start of a server."""
    gone = rng.sample(askers, min(len(askers), rng.choice(HANG_UPS)))
    site = Site("executor: marker asked for", 1)
    return tuple(Fault.of(rng.choice(GONE), actor, site) for actor in gone)


def _actor(name: str, first: int) -> str:
    """The client's name with its number moved, so that clients of different parts do not wait for each other."""
    kind, _, number = name.partition("-")
    return f"{kind}-{int(number) + first}" if number.isdigit() else f"{name}-{first}" if first else name


def _sooner(fault: Fault) -> Fault:
    """The fault at an earlier step: steps are requests here, each of which makes several in the simulated world."""
    steps = SERVER_STEPS if fault.target == "server" else CLIENT_STEPS
    return fault if fault.site else fault.at(1 + fault.n // steps)


def _within_latin(op: Op) -> Op:
    """The operation with "_" for what ISO-8859-1 lacks; a server that garbles such names is judged by other plans."""
    latin = op.name if op.name.isascii() else "".join(letter if ord(letter) < 0x100 else "_" for letter in op.name)
    return op if latin == op.name else replace(op, name=latin)


def _accepted(op: Op) -> Op:
    """The operation; a create loses byte order marks in its name, for one that may be refused decides little."""
    return replace(op, name=op.name.replace("\ufeff", "")) if op.kind == "create" and "\ufeff" in op.name else op


def _few(rng: Draws, faults: list[Fault]) -> tuple[Fault, ...]:
    """Some of the faults, without second servers and with few deaths, each of which costs a server's start."""
    chosen = rng.sample(faults, min(len(faults), rng.choice(FAULTS_MAX)))
    deaths = [fault for fault in chosen if fault.kind.row.kills and fault.target == "server"][DEATHS_MAX:]
    seconds = [fault for fault in chosen if fault.kind is FaultKind.SECOND_SERVER]
    left_out = {id(fault) for fault in (*deaths, *seconds)}
    return by_target(each for each in chosen if id(each) not in left_out)

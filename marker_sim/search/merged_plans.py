"""Plans for servers in real time: several plans of the swarm at once, on tables beside each other.

A run against a real process costs a second, whatever it asks, and a plan of the swarm has some dozen operations. So one
run takes several of them: their clients ask at the same time, their tables are one server's, and some of them share
marker directories. Sometimes a crowd asks besides, so that batches are large.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Site, Step
from marker_sim.odd_names import PARTITIONS, must_be_refused, twins
from marker_sim.plan import Op, Plan
from marker_sim.search.swarm import make_plan

PARTS = (1, 1, 2, 3, 5, 8)
# Clients of a crowd; the kit's S3 carries out one call at a time, and its slowness is not the server's.
CROWDS = {"local": (0, 0, 0, 0, 60, 150, 400), "s3": (0, 0, 0, 0, 20, 50, 100)}
FAULTS_MAX = (2, 4, 8)
DEATHS_MAX = 2
OUTAGES = 0.35
SHORT_SCRIPTS = (0, 2, 6)
SCRIPTED = {"create": 9, "list": 4, "list-data": 1, "exists": 2, "delete": 4}
HANG_UPS = (0, 0, 1, 3)
GONE = (FaultKind.KILL, FaultKind.REPLY_LOST, FaultKind.RESET)
PAIRS = (0, 2, 5)  # Of names that look much alike.
WAITS_MS = (0, 10, 40, 150)
PREFIXES = ("", "", "a/", "b/", "A/")
SERVER_STEPS, CLIENT_STEPS = 6, 4
MADE_OF = 1 << 20  # Seeds of parts: none is another run's.


def make_merged_plan(
    seed: int,
    storage: str,
    threads: tuple[int, ...],
    intervals_ms: tuple[int, ...],
    done: Callable[[Fault, str], Fault | None],
) -> Plan:
    """The plan of a seed for a timeline server on "local" or "s3".

    threads, intervals_ms: what servers may be told.
    done: the fault as the world does it, None when it cannot.
    """
    rng = random.Random(f"merged/1/{seed}/{storage}")
    directories: dict[str, int] = {}
    ops: list[Op] = []
    faults: list[Fault] = []
    latin = rng.random() < 0.5
    for part in range(rng.choice(PARTS)):
        plan = make_plan(rng.randrange(MADE_OF), "timeline", storage)
        prefix, first = rng.choice(PREFIXES), len({op.actor for op in ops})
        numbers = [directories.setdefault(f"{prefix}{path}", len(directories)) for path in plan.directories]
        names = {op.actor: _actor(op.actor, first) for op in plan.ops}
        longest_ms = rng.choice(WAITS_MS)
        ops += [
            replace(
                op,
                actor=names[op.actor],
                directory=numbers[op.directory],
                request=_of_part(op.request, part),
                after_ms=min(op.after_ms, longest_ms),
            )
            for op in plan.ops
        ]
        faults += [replace(_sooner(fault), target=names.get(fault.target, fault.target)) for fault in plan.faults]
    ops = [op for op in ops if op.kind != "hostile" or must_be_refused(op.name)]
    ops = [_accepted(op) for op in ops]
    if latin:
        ops = [replace(op, name=_within_latin(op.name)) if op.kind == "create" else op for op in ops]
    ops += _twins(rng, ops, forms=not latin)
    ops += map(
        _accepted, _crowd(rng, rng.choice(CROWDS[storage]), len({op.actor for op in ops}), len(directories), latin)
    )
    askers = sorted({op.actor for op in ops if op.kind == "create"})
    for number in range(rng.choice(SHORT_SCRIPTS)):
        directory = directories.setdefault(f"{number}/t/.hoodie/.temp/{rng.choice(('1', '10'))}", len(directories))
        ops += _short_script(rng, f"executor-s{number}", directory)
    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=rng.choice(threads),
        interval_ms=rng.choice(intervals_ms),
        directories=tuple(directories),
        ops=tuple(ops),
        faults=(
            *_few(rng, [fault for each in faults if (fault := done(each, storage)) is not None]),
            *_outage(rng, storage),
            *_hang_ups(rng, askers),
        ),
        seed=seed,
    )


def _outage(rng: random.Random, storage: str) -> tuple[Fault, ...]:
    """Sometimes what a server does to its marker files goes wrong for long, or it dies in the middle of it."""
    if rng.random() > OUTAGES:
        return ()
    site = Site("server: batch file put", rng.randint(1, 6))
    if storage == "local" and rng.random() < 0.5:
        return (Fault.of(FaultKind.TORN_WRITE, "server", site, restart_ms=rng.choice((0, 100))),)
    if storage == "local":
        return (Fault.of(FaultKind.DISK_FULL, "server", Step(rng.randint(1, 12)), for_ms=rng.choice((300, 1_200))),)
    return (Fault.of(FaultKind.THROTTLED, "server", site, calls=rng.choice((40, 200))),)


def _short_script(rng: random.Random, actor: str, directory: int) -> list[Op]:
    """One client alone in a directory, with a few names as long as each other: each operation after each other one."""
    names = [f"p/f{number}_0-0-0_001.parquet.marker.CREATE" for number in range(rng.choice((1, 2, 3)))]
    ops = []
    for kind in rng.choices(tuple(SCRIPTED), tuple(SCRIPTED.values()), k=rng.randint(4, 12)):
        name = rng.choice(names) if kind == "create" else ""
        ops.append(Op(actor=actor, kind=kind, directory=directory, name=name, server=rng.choice((0, 0, 1))))
    return ops


def _hang_ups(rng: random.Random, askers: list[str]) -> tuple[Fault, ...]:
    """Clients that are gone before their answer: they cost no start of a server."""
    gone = rng.sample(askers, min(len(askers), rng.choice(HANG_UPS)))
    site = Site("executor: marker asked for", 1)
    return tuple(Fault.of(rng.choice(GONE), actor, site) for actor in gone)


def _actor(name: str, first: int) -> str:
    """Clients are numbered on, so that those of no two parts wait for each other."""
    kind, _, number = name.partition("-")
    return f"{kind}-{int(number) + first}" if number.isdigit() else f"{name}-{first}" if first else name


def _sooner(fault: Fault) -> Fault:
    """Steps are requests here, each of which makes several in the simulated world."""
    return (
        fault if fault.site else fault.at(1 + fault.n // (SERVER_STEPS if fault.target == "server" else CLIENT_STEPS))
    )


def _of_part(request: str, part: int) -> str:
    return f"{part}.{request}" if request and part else request


def _crowd(rng: random.Random, clients: int, first: int, directories: int, latin: bool) -> list[Op]:
    """Many clients that ask for a marker or a few at the same moment."""
    partitions = [part for part in PARTITIONS if not latin or part.isascii()]
    directory, each = rng.randrange(directories), rng.choice((1, 1, 3))
    after_ms = rng.choice((0, 0, 100, 400))
    return [
        Op(
            actor=f"executor-{first + client}",
            kind="create",
            directory=directory,
            name=f"{rng.choice(partitions)}/c{client}-{turn}_0-{turn}-0_001.parquet.marker.CREATE".lstrip("/"),
            request=f"c{client}-{turn}",
            after_ms=0 if turn else after_ms,
        )
        for client in range(clients)
        for turn in range(each)
    ]


def _twins(rng: random.Random, ops: list[Op], forms: bool) -> list[Op]:
    """Clients that ask for names which look much like one that is asked for."""
    creates = [op for op in ops if op.kind == "create"]
    first = len({op.actor for op in ops})
    made: list[Op] = []
    for pair in range(rng.choice(PAIRS) if creates else 0):
        like = rng.choice(creates)
        for number, name in enumerate(twins(rng, like.name, forms)):
            actor = f"executor-{first + 2 * pair + number}"
            made.append(Op(actor=actor, kind="create", directory=like.directory, name=name, after_ms=like.after_ms))
    return made


def _within_latin(name: str) -> str:
    """The name with "_" for what is outside ISO-8859-1, so that a server that garbles that is judged by the others."""
    return "".join(letter if ord(letter) < 0x100 else "_" for letter in name)


def _accepted(op: Op) -> Op:
    """Without a byte order mark, which a server may refuse: a create that may be refused decides little."""
    return replace(op, name=op.name.replace("\ufeff", "")) if op.kind == "create" else op


def _few(rng: random.Random, faults: list[Fault]) -> tuple[Fault, ...]:
    """Some of the faults; each death and each second server costs the start of a server."""
    chosen = rng.sample(faults, min(len(faults), rng.choice(FAULTS_MAX)))
    deaths = [fault for fault in chosen if fault.kind.row.kills and fault.target == "server"][DEATHS_MAX:]
    seconds = [fault for fault in chosen if fault.kind is FaultKind.SECOND_SERVER][1:]
    left_out = {id(fault) for fault in (*deaths, *seconds)}
    return tuple(sorted((each for each in chosen if id(each) not in left_out), key=lambda f: (f.target, f.n)))

"""Plans in which connections fail: those between clients and servers, or between servers and their object store.

    clients that send requests all the time ─► a server dies while creates wait on a slow wire
                                     ─► one fault of a wire after the other

There are no other faults. Exchanges of the kit need some time to show a fault, so a due fault waits for those before
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.plan import COPY, Op, Plan
from marker_sim.search.crowds import killed
from marker_sim.search.merged_plans import batches
from marker_sim.search.seeds import Draws
from marker_sim.unusual_names import PARTITIONS

DIRECTORIES = ("t/.hoodie/.temp/001", "t/.hoodie/.temp/002", "u/.hoodie/.temp/003")
WEIGHTS = (6, 3, 1)
PLAIN = tuple(part for part in PARTITIONS if part.isascii())
ODD = tuple(part for part in PARTITIONS if "\ufeff" not in part)  # A server may refuse the others.
GROUPS, CLIENTS = 4, 4  # Groups, and clients in each that send the same requests at the same time.
LASTS_MS, TURNS_MAX = 3_500, {"local": 50, "s3": 25}  # The kit's S3 carries out one call at a time.
TURNS_SMALL = 14
PACES_MS = (20, 40, 60)
READS = ("list", "list-data", "list-log", "exists")
AGAIN, HOT, READ = 0.08, 0.12, 0.14  # Shares of requests for the last name, for a common name, and for a listing.
FIRST, SECOND_WAVE = 24, 32  # Number of requests before a wire is slow, and from then until a server dies.
SLOW_TURNS, SLOW_MS = 7, 100  # First waits of clients, so that the wire is slow before most requests.
FEW = 4  # A plan has all kinds if there are at most this many, otherwise half of them.
EARLY, LATE = 0.2, 0.6  # Share of the requests after which the other faults are due.
HELD_UP = Fault.of(
    FaultKind.WIRE_LATENCY, "server", Step(FIRST), late_ms=250, for_ms=1_000, upstream=True
)  # Its requests wait on the wire when the server dies.


def make_wire_plan(
    seed: int,
    storage: str,
    threads: tuple[int, ...],
    intervals_ms: tuple[int, ...],
    cls: str,
    turn: int,
    small: bool = False,
) -> Plan:
    """The plan of a seed for a timeline server on "local" or "s3".

    threads, intervals_ms: the values that servers may receive.
    cls: of the faults, "wire" for connections of clients, "storage" for those to the object store.
    turn: which part of the kinds it has; two turns have all of them.
    small: with as few requests as show each fault.
    """
    rng = Draws(f"wire/1/{seed}/{storage}/{cls}")
    num_threads, interval_ms = batches(rng, threads, intervals_ms)
    pace_ms = rng.choice(PACES_MS)
    turns = min(TURNS_SMALL if small else TURNS_MAX[storage], LASTS_MS // (pace_ms + interval_ms))
    ops = tuple(op for group in range(GROUPS) for op in _asked(rng, group, turns, pace_ms))
    drawn = draw(rng, cls, turn)
    asked = GROUPS * CLIENTS * turns
    steps = [int(asked * (EARLY + (LATE - EARLY) * number / len(drawn))) for number in range(len(drawn))]
    faults = [fault.at(step) for fault, step in zip(drawn, steps, strict=True)]
    if cls == "wire":
        died = killed(rng, Step(FIRST + SECOND_WAVE))
        faults = [HELD_UP, died, *faults]
    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=num_threads,
        interval_ms=interval_ms,
        directories=DIRECTORIES,
        ops=ops,
        faults=tuple(faults),
        seed=seed,
    )


def draw(rng: Draws, cls: str, turn: int) -> tuple[Fault, ...]:
    """The kinds of a class that take part in a turn, in a drawn order, each with drawn settings."""
    kinds = kinds_of(cls)
    mine = kinds[turn % 2 :: 2] if len(kinds) > FEW else kinds
    return tuple(_draw(kind, rng) for kind in rng.sample(mine, len(mine)))


def kinds_of(cls: str) -> tuple[FaultKind, ...]:
    """The kinds of faults that a proxy can make before servers ("wire") or their object store ("storage")."""
    return tuple(kind for kind in FaultKind if (kind.row.family, kind.row.cls) == ("proxy", cls))


def _draw(kind: FaultKind, rng: Draws) -> Fault:
    settings = {name: rng.choice(choices) for name, choices in kind.row.settings.items()}
    if kind is FaultKind.WIRE_BANDWIDTH and not settings["upstream"]:
        settings["kb_per_s"] = 1  # Replies are short.
    return Fault.of(kind, "server", Step(1), **settings)


def _asked(rng: Draws, group: int, turns: int, pace_ms: int) -> Iterator[Op]:
    """The operations of each client of a group, one after the other."""
    last: Op | None = None
    for turn in range(turns):
        dice, directory = rng.random(), rng.choices(range(len(DIRECTORIES)), WEIGHTS)[0]
        kind, name, request = "create", "", ""
        if dice < READ:
            kind = rng.choice(READS)
        elif last is not None and dice < READ + AGAIN:
            directory, name, request = last.directory, last.name, last.request
        elif dice < READ + AGAIN + HOT:
            name = f"hot/h{turn // 4}_0-0-0_001.parquet.marker.CREATE"
        else:
            partition = rng.choice(ODD if directory == 1 else PLAIN)
            request = f"{group}-{COPY}-{turn}"
            ending = rng.of(".parquet.marker.CREATE", ".parquet.marker.MERGE", ".log.1.marker.APPEND")
            name = f"{partition}/f{request}_001{ending}".lstrip("/")
        op = Op(
            actor=f"executor-{group}",
            kind=kind,
            directory=directory,
            name=name,
            request=request,
            after_ms=SLOW_MS if turn < SLOW_TURNS else pace_ms,
            copies=CLIENTS,
        )
        yield op
        last = op if kind == "create" else last

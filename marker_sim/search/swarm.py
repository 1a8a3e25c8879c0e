"""Seeded swarm: a number determines a dense random plan.

Each seed switches whole kinds of operations and faults on or off and draws their rates, so that some runs have only
time-outs and others a little of everything (swarm testing). Names are drawn from pools in which odd names, names
that differ in one character and collisions are frequent.
"""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Step, by_target, drawable
from marker_sim.faults.row import in_batches
from marker_sim.faults.sites import LOCK_ASKED, SITES
from marker_sim.plan import MALFORMED, Op, Plan
from marker_sim.search.scenarios import apply_scenario
from marker_sim.search.scenarios_of_operations import OF_OPERATIONS
from marker_sim.search.seeds import Draws
from marker_sim.search.site_faults import draw_at_sites, draw_settings
from marker_sim.unusual_names import DIRECTORIES, HOSTILE_NAMES, NEIGHBOURS, PARTITIONS

CLIENT_SITES = (
    "executor: marker asked for",
    "executor: marker told",
    "executor: listing asked for",
    "driver: marker deletion",
    "driver: marker deletion answered",
)
_THREADS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 20)
_INTERVALS_MS = (10, 50, 50, 50, 200)


def make_plan(seed: int, mode: str, storage: str) -> Plan:
    """The plan of a seed; equal arguments give equal plans in every process and version of the same schema."""
    rng = Draws(f"swarm/2/{seed}/{mode}/{storage}")
    directories = tuple(rng.sample(DIRECTORIES, rng.of(1, 1, 2, 3)))
    if len(directories) == 2 and rng.random() < 0.5:
        directories = NEIGHBOURS
    clients = [f"executor-{n}" for n in range(rng.of(2, 3, 4, 5, 6, 6, 24))] + ["driver"]
    ops = _operations(rng, clients, len(directories))
    plan = Plan(
        mode=mode,
        storage=storage,
        num_threads=rng.choice(_THREADS),
        interval_ms=rng.choice(_INTERVALS_MS),
        directories=directories,
        ops=ops,
        faults=_faults(rng, mode, storage, clients, ops),
        jitter=rng.randint(1, 1 << 30),
        seed=seed,
        restart_threads=rng.of(0, 0, 0, 0, 1, 2),
    )
    return apply_scenario(rng, plan, OF_OPERATIONS)


def _operations(rng: Draws, clients: list[str], directories: int) -> tuple[Op, ...]:
    """Creates of unique, colliding and resent names, with lists and deletions in between."""
    collide = rng.of(0.0, 0.1, 0.4)
    resend = rng.of(0.0, 0.15, 0.3)
    lists = rng.of(0.0, 0.1, 0.3)
    deletes = rng.of(0.0, 0.04, 0.1, 0.2)
    again = rng.of(0.0, 0.0, 0.2)
    zipf = rng.random() < 0.3  # Most requests are for a few names.
    hostile = rng.of(0.0, 0.0, 0.05)
    second = rng.of(0.0, 0.5)
    gap_ms = rng.of(0, 0, 20, 150)
    pool = [_name(rng, n) for n in range(rng.of(3, 8))]
    pool.append(pool[0].rpartition("/")[2])  # Without its partition: another name, equal to the first's end.
    partitions = rng.sample(PARTITIONS, rng.randint(1, 4))
    quiet = directories > 1 and rng.random() < 0.2  # The first directory stays empty.
    made: list[tuple[int, str, str]] = []
    ops: list[Op] = []
    for number in range(rng.of(rng.randint(6, 20), rng.randint(15, 40), rng.randint(30, 90))):
        directory = rng.randrange(directories)
        after_ms = rng.randint(0, gap_ms) if gap_ms else 0
        server = int(rng.random() < second)
        op = Op(actor="driver", kind="delete", directory=directory, after_ms=after_ms, server=server)
        dice = rng.random()
        if dice < deletes:
            ops.append(op)
            continue
        actor = rng.choice(clients)
        if dice < deletes + lists:
            kind = rng.of("list", "list", "list-data", "list-log", "exists", "exists")
            ops.append(replace(op, actor=actor, kind=kind))
            continue
        if dice < deletes + lists + hostile:
            ops.append(replace(_hostile(rng, actor), directory=directory, after_ms=after_ms))
            continue
        directory = max(directory, int(quiet))
        request = f"r{number}"
        if made and rng.random() < resend:
            directory, name, request = rng.choice(made[-6:] if rng.random() < 0.8 else made)
        elif made and rng.random() < again:
            directory, name, _ = rng.choice(made)  # By another client, perhaps after a deletion.
        elif rng.random() < collide:
            name = rng.choices(pool, [1 / rank for rank in range(1, len(pool) + 1)])[0] if zipf else rng.choice(pool)
        else:
            name = _name(rng, number, rng.choice(partitions))
        if rng.random() < 0.1:
            request = ""
        made.append((directory, name, request))
        ops.append(replace(op, actor=actor, kind="create", directory=directory, name=name, request=request))
    return tuple(ops)


def _hostile(rng: Draws, actor: str) -> Op:
    """An operation with a hostile name or directory, which must be refused."""
    if rng.random() < 0.2:
        return Op(actor=actor, kind="hostile", name=_name(rng, 0), spelled=rng.choice(MALFORMED))
    return Op(actor=actor, kind="hostile", name=rng.choice(HOSTILE_NAMES))


def _name(rng: Draws, number: int, partition: str | None = None) -> str:
    """A marker name as a task attempt makes it: file id, write token, instant."""
    place = rng.choice(PARTITIONS) if partition is None else partition
    prefix = f"{place}/" if place else ""
    kind = rng.of("CREATE", "CREATE", "MERGE", "APPEND")
    if kind == "APPEND" or rng.random() < 0.03:
        return f"{prefix}.f{number % 7}_001.log.{number}_0-{number}-0.marker.{kind}"
    return f"{prefix}f{number}_{number}-0-{rng.randrange(3)}_001.parquet.marker.{kind}"


def _faults(rng: Draws, mode: str, storage: str, clients: list[str], ops: tuple[Op, ...]) -> tuple[Fault, ...]:
    """A few to many faults of the kinds that this seed switched on, at sites, at steps or both; one in 25 has none."""
    batched = in_batches(mode, storage)
    if rng.random() < 0.04:
        return ()
    kinds = [kind for kind in drawable(mode, storage, writes=False) if rng.random() < 0.5]
    if not kinds:
        return ()
    where = rng.of("sites", "sites", "steps", "both")
    faults = _at_sites(rng, kinds, clients, ops, batched, storage == "local") if where != "steps" else []
    for _ in range(rng.of(1, 2, 3, 5, 8, 12) if where != "sites" else 0):
        kind = rng.choice(kinds)
        if not batched or kind.row.family == "wire":
            actor = rng.choice(clients)
        elif kind.row.roles == ("server",):
            actor = "server"
        else:
            actor = rng.of("server", "server", "server", "server", "second", rng.choice(clients))
            if actor in clients and kind.row.family != "process":
                actor = "server"
        horizon = len(ops) * 6 if actor in ("server", "second") else max(4, len(ops) * 4 // len(clients))
        settings = draw_settings(rng, kind)
        faults.append(Fault(kind=kind, target=actor, trigger=Step(rng.randint(1, horizon)), settings=settings))
    return by_target(faults)


def _at_sites(
    rng: Draws, kinds: list[FaultKind], clients: list[str], ops: tuple[Op, ...], batched: bool, local: bool
) -> list[Fault]:
    servers = ("server", "server", "server", "second") if rng.random() < 0.3 else ("server",)
    # With many clients, a site of one client is a better target than a little of each.
    actors = {"executor": tuple(rng.sample(clients, 2)), "driver": ("driver",), "server": servers}
    sites = tuple(
        site
        for site in SITES.values()
        if site.name in CLIENT_SITES or (batched and site.actor == "server" and (site.name != LOCK_ASKED or local))
    )
    creates = sum(op.kind == "create" for op in ops)
    arrivals = {
        "request": len(ops),
        "batch": 1 + creates // 3,
        "task": 1 + creates // len(clients),
        "write": 1 + sum(op.kind != "create" for op in ops) // 2,
    }
    return draw_at_sites(rng, sites, tuple(kinds), actors, arrivals)

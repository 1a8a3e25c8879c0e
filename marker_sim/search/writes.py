"""Seeded swarm of the write path: a number determines a few writes and their faults.

As in swarm.py each seed switches kinds on and off: kinds of tasks, speculation, writes in the other marker mode,
writes that are given up, and kinds of faults. A kill may happen at any step of any write.

A share of the plans has strays: markers that do not fit their instant, and files that are no markers. In another share
tables have earlier content. Both are drawn from separate random numbers, so that the rest of a plan stays that of its
seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Site, Step, by_target, drawable
from marker_sim.faults.row import in_batches
from marker_sim.faults.sites import LOCK_ASKED, SITES
from marker_sim.history import NO_SERVER
from marker_sim.plan import STRAYS, Action, EarlierLife, Instants, Plan, Task, Write
from marker_sim.search.scenarios import LASTING, apply_scenario, at_site
from marker_sim.search.scenarios_of_writes import OF_WRITES
from marker_sim.search.seeds import Draws
from marker_sim.search.site_faults import draw_at_sites, draw_settings
from marker_sim.unusual_names import PARTITIONS

TABLES = (("t",), ("t",), ("t",), ("t", "t2"), ("lake/größe tafel", "t"), ("t", "t/x"))
_SIZES = (1, 2, 3, 4, 6, 9, 12)
_LARGE = (*(40, 120, 120, 300) * 8, 1000, 2000, 10_000)
_LARGE_SHARE = 0.006
_STUBBORN_CALLS = (1, 2, 4, 5, 8)  # The write client tries four times.
LISTING = "executor: listing asked for"  # Only clients list; executors of a write do not.
_LEAVE_BEHIND = ("driver: task heard of", "driver: markers listed by finalize", "driver: completed instant put")
_LOSE = ("executor: marker told", "executor: data file put", "executor: data file written")
_STRAYS_SHARE = 0.2
_STRAYS_TASKS_MAX = 60
_STRAY_FILES_SHARE = 0.4  # Share of these with other files as well; the same share has only other files.
_STRAY_FILES_SITES = (
    "driver: inflight instant put",
    "driver: task heard of",
    "driver: markers asked for by finalize",
    "driver: completed instant put",
    "driver: completed instant written",
    "driver: marker deletion",
    "driver: marker deletion answered",
    "driver: markers asked for by rollback",
)
_LIVES_SHARE = 0.2


def make_write_plan(seed: int, mode: str, storage: str) -> Plan:
    """The plan of a seed; equal arguments give equal plans in every process and version of the same schema."""
    rng = Draws(f"writes/2/{seed}/{mode}/{storage}")
    tables = rng.choice(TABLES)
    executors = rng.of(1, 2, 2, 3, 4)
    writes = _writes(rng, len(tables))
    plan = Plan(
        mode=mode,
        storage=storage,
        num_threads=rng.of(1, 2, 2, 4, 20),
        interval_ms=rng.of(10, 50, 50, 200),
        directories=(),
        tables=tables,
        writes=writes,
        merge_on_read=rng.random() < 0.5,
        executors=executors,
        embedded=rng.random() < 0.75,
        faults=_faults(rng, mode, storage, executors, writes),
        jitter=rng.randint(1, 1 << 30),
        seed=seed,
    )
    return with_earlier_life(with_strays(apply_scenario(rng, plan, OF_WRITES)))


def _writes(rng: Draws, tables: int) -> tuple[Write, ...]:
    partitions = rng.sample(PARTITIONS, rng.randint(1, 3))
    groups = rng.of(1, 2, 4, 8)
    weights = [1 / rank if groups > 4 else 1.0 for rank in range(1, groups + 1)]  # Some of many are frequent (Zipf).
    kinds = rng.of(("CREATE",), ("CREATE", "MERGE"), ("MERGE", "APPEND"), ("APPEND",), ("CREATE", "APPEND"))
    copies = rng.of(0.0, 0.0, 0.3)
    slow = rng.of(0.0, 0.0, 0.3)
    other = rng.of(0.0, 0.0, 0.4)
    abandon = rng.of(0.0, 0.0, 0.3)
    pauses_ms = rng.of((0,), (0, 0, 40), (0, 500, 3500))
    writes = []
    for _ in range(rng.of(1, 2, 2, 3, 3, 4, 5)):
        size = rng.choice(_LARGE) if rng.random() < _LARGE_SHARE else rng.choice(_SIZES)
        tasks = tuple(
            Task(
                partition=rng.choice(partitions),
                group=f"f{rng.choices(range(groups), weights)[0] if size <= groups else number}",
                kind=rng.choice(kinds),
                copies=rng.of(2, 2, 3) if size <= 2000 and rng.random() < copies else 1,
                slow_ms=rng.of(10, 60, 900) if rng.random() < slow else 0,
            )
            for number in range(size)
        )
        writes.append(
            Write(
                tasks=tasks,
                table=rng.randrange(tables),
                markers=rng.of("direct", "timeline", NO_SERVER) if rng.random() < other else "",
                after_ms=rng.choice(pauses_ms),
                abandon=rng.random() < abandon,
            )
        )
    return tuple(writes)


def _faults(rng: Draws, mode: str, storage: str, executors: int, writes: tuple[Write, ...]) -> tuple[Fault, ...]:
    """A few faults of the kinds that this seed switched on; one seed in 20 has none."""
    quiet = rng.random() < 0.05
    kinds = [kind for kind in drawable(mode, storage) if not quiet and rng.random() < 0.5]
    if not kinds:
        return ()
    tasks = sum(len(write.tasks) for write in writes)
    steps = {"driver": 12 * len(writes) + 4 * tasks, "executor": 2 + 5 * tasks // executors}
    steps["server"] = steps["second"] = 12 * (tasks + len(writes))
    batched = in_batches(mode, storage)
    ends = _completing_steps(writes, "timeline" if batched else "direct")
    where = rng.of("sites", "sites", "steps", "both")
    faults = _at_sites(rng, kinds, executors, writes, batched, storage == "local") if where != "steps" else []
    if len(writes) > 1 and rng.random() < 0.3:
        faults += _interrupted(rng, ends)
    for _ in range(rng.of(1, 1, 2, 3, 4, 6) if where != "sites" else 0):
        kind = rng.choice(kinds)
        actor = _of_whom(rng, kind, executors, batched)
        stays = kind.row.family == "wire" or kind is FaultKind.STAGE_RETRIED
        if actor in ("driver", "server") and not stays and rng.random() < 0.3:
            kind = FaultKind.KILL  # In every seed, beside its other kinds.
        if kind.row.roles in (("driver",), ("server",)):
            (actor,) = kind.row.roles
        settings = draw_settings(rng, kind)
        step = rng.randint(1, steps[actor.partition("-")[0]])
        if actor == "server" and kind is FaultKind.KILL:
            # The last values are longer than the time-out of clients.
            settings = replace(settings, restart_ms=rng.of(0, 20, 400, 3000, 20_000))
        if actor == "driver":
            if kind is FaultKind.KILL:
                settings = replace(settings, executors_ms=rng.of(0, 1, 30, 200, 2000, 6000))
            elif kind in LASTING:
                settings = replace(settings, calls=rng.choice(_STUBBORN_CALLS))
            if ends and (rng.random() < 0.3 or kind is FaultKind.STAGE_RETRIED):
                step = max(1, rng.choice(ends) + rng.of(-1, 0, 0, 0, 1, 2))
        faults.append(Fault(kind=kind, target=actor, trigger=Step(step), settings=settings))
        if actor == "driver" and kind.row.kills:
            faults += _on_the_successor(rng, step, settings.restart_ms, storage, batched)
    return by_target(faults)


def _interrupted(rng: Draws, ends: tuple[int, ...]) -> Iterator[Fault]:
    """For rollbacks: an instant left unfinished shortly before its end, and an interrupted recovery."""
    step = max(1, rng.choice(ends[:-1]) - rng.randint(0, 3))
    for died in (step, step + rng.randint(4, 12)):
        yield Fault.of(FaultKind.KILL, "driver", Step(died), restart_ms=rng.of(0, 100))


def _of_whom(rng: Draws, kind: FaultKind, executors: int, batched: bool) -> str:
    """The driver, an executor or a server, as far as the kind's family allows."""
    family, actor = kind.row.family, "driver"
    if family == "task" or (family == "wire" and rng.random() < 0.7) or rng.random() < 0.3:
        actor = f"executor-{rng.randrange(executors)}"
    if kind is FaultKind.STAGE_RETRIED and rng.random() < 0.3:
        actor = "driver"
    if batched and family not in ("task", "wire") and rng.random() < 0.5:
        actor = rng.of("server", "server", "server", "second")
    return actor


def _at_sites(
    rng: Draws,
    kinds: list[FaultKind],
    executors: int,
    writes: tuple[Write, ...],
    batched: bool,
    local: bool,
) -> list[Fault]:
    tasks = sum(len(write.tasks) for write in writes)
    actors = {
        "driver": ("driver",),
        "executor": tuple(f"executor-{n}" for n in range(executors)),
        "server": ("server",) if rng.random() < 0.9 else ("server", "second"),
    }
    unmet = {LISTING} | (set() if local else {LOCK_ASKED})
    sites = tuple(s for s in SITES.values() if s.name not in unmet and (batched or s.actor != "server"))
    arrivals = {
        "rollback": 2,
        "sweep": 2,
        "loser": 1 + tasks // 4,
        "write": len(writes) + 1,
        "task": 1 + tasks // (1 if rng.random() < 0.2 else executors),
        "batch": 1 + tasks // 2,
        "request": tasks + 2 * len(writes),
    }
    faults = draw_at_sites(rng, sites, tuple(kinds), actors, arrivals)
    return faults + _causes(rng, {SITES[fault.site].per for fault in faults}, len(writes), actors["executor"])


def _causes(rng: Draws, needed: set[str], writes: int, executors: tuple[str, ...]) -> list[Fault]:
    """Faults that make others' sites reachable: an unfinished instant, an attempt that lost."""
    causes = []
    for need, sites in (("rollback", _LEAVE_BEHIND), ("sweep", ("driver: completed instant written",))):
        if need in needed and rng.random() < 0.9:
            step = rng.randint(1, max(1, writes - 1))
            site, value = rng.choice(sites), rng.of(0, 30)
            causes.append(at_site(FaultKind.KILL, site, step, executors_ms=value))
    if "loser" in needed and rng.random() < 0.9:
        kind, site = rng.of(FaultKind.ATTEMPT_KILLED, FaultKind.SPECULATIVE), rng.choice(_LOSE)
        causes.append(Fault.of(kind, rng.choice(executors), Site(site, rng.randint(1, 3))))
    return causes


def _on_the_successor(rng: Draws, step: int, restart_ms: int, storage: str, batched: bool) -> list[Fault]:
    """Faults of the next driver during recovery: its death, repeated refusals by storage, damaged type files.

    A rollback lists the markers at its driver's seventh step, after three listings, a wait and two entries.
    """
    faults = []
    if rng.random() < 0.6:
        again = step + rng.randint(4, 14)
        faults.append(Fault.of(FaultKind.KILL, "driver", Step(again), restart_ms=restart_ms, executors_ms=0))
    if storage.startswith("s3") and rng.random() < 0.4:
        kind, calls = rng.choice(LASTING), rng.of(4, 4, 5, 8)
        ahead = rng.of(7, 7, 8, rng.randint(1, 14))
        faults.append(Fault.of(kind, "driver", Step(step + ahead), calls=calls))
    if batched and rng.random() < 0.15:
        ahead = rng.randint(1, 6)
        faults.append(Fault.of(FaultKind.TYPE_DAMAGED, "driver", Step(step + ahead), removed=rng.of(False, True)))
    return faults


def _completing_steps(writes: tuple[Write, ...], mode: str) -> tuple[int, ...]:
    """The approximate driver steps that complete a plan's instants when no fault comes before.

    Begin reads the timeline, every commit on it and the marker directories and puts two entries; each task sends one
    message; finalize lists once; a deletion of direct markers takes a call for each.
    """
    steps, at = [], 0
    for number, write in enumerate(writes):
        at += 4 + number + len(write.tasks) + 2
        steps.append(at)
        at += 2 + len(write.tasks) if mode == "direct" else 1
    return tuple(steps)


def with_strays(plan: Plan) -> Plan:
    """The plan, or one of the same writes with strays."""
    rng = Draws(f"strays/1/{plan.seed}/{plan.mode}/{plan.storage}")
    if rng.random() >= _STRAYS_SHARE:
        return plan
    files, markers = rng.random() < _STRAY_FILES_SHARE, rng.random() >= _STRAY_FILES_SHARE
    if markers or not files:
        plan = _with_stray_markers(rng, plan)
    if files:
        plan = replace(plan, faults=by_target((*plan.faults, _stray_files(rng, plan))))
    return plan


def _with_stray_markers(rng: Draws, plan: Plan) -> Plan:
    """Some tasks that request strays; sometimes an abandoned instant whose markers name files of earlier instants."""
    kinds, share = rng.sample(STRAYS, rng.of(1, 2, 3)), rng.of(0.3, 1.0)
    made = [
        replace(write, tasks=tuple(_with_some_strays(rng, task, kinds, share) for task in write.tasks))
        for write in plan.writes
    ]
    at = rng.randrange(len(made))
    if len(made[at].tasks) > _STRAYS_TASKS_MAX or rng.random() < 0.4:
        return replace(plan, writes=tuple(made))
    kind = rng.of("MERGE", "APPEND", "APPEND")
    again = replace(made[at], tasks=tuple(replace(task, kind=kind) for task in made[at].tasks), abandon=False)
    made[at + 1 : at + 1] = [*(again,) * rng.of(0, 1, 1), replace(again, abandon=True)]
    return replace(plan, writes=tuple(made), merge_on_read=plan.merge_on_read or kind == "APPEND")


def _with_some_strays(rng: Draws, task: Task, kinds: list[str], share: float) -> Task:
    if rng.random() >= share:
        return task
    return replace(task, strays=tuple(rng.sample(kinds, rng.randint(1, len(kinds)))))


def _stray_files(rng: Draws, plan: Plan) -> Fault:
    sites: tuple[str, ...] = _STRAY_FILES_SITES
    if in_batches(plan.mode, plan.storage):
        sites += ("driver: marker file read by rollback",)
    trigger = Site(rng.choice(sites), rng.randint(1, 1 + len(plan.writes))) if rng.random() < 0.7 else None
    return Fault(kind=FaultKind.STRAY_FILES, target="driver", trigger=trigger or Step(rng.randint(4, 60)))


def with_earlier_life(plan: Plan) -> Plan:
    """The plan, or the same plan on tables that hold earlier instants."""
    rng = Draws(f"earlier/1/{plan.seed}/{plan.mode}/{plan.storage}")
    if rng.random() >= _LIVES_SHARE:
        return plan
    looks: tuple[Instants, ...] = ("millis", "seconds", "bootstrap")
    actions: tuple[Action, ...] = ("", "commit", "deltacommit")
    instants = rng.choice(looks)
    commits = rng.of(0, 1, 2, 3) if instants != "bootstrap" else rng.of(1, 2)
    life = EarlierLife(
        commits=commits,
        instants=instants,
        logs=commits > 1 and rng.random() < 0.5,
        archived=rng.of(0, 1, 2) if instants != "bootstrap" else 0,
        version8=rng.random() < 0.3,
        left=rng.choice(actions),
    )
    return replace(plan, earlier=life)

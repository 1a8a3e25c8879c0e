"""Scenarios of clients and timeline servers round marker directories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Site, Step
from marker_sim.faults.row import BATCHED_STORAGES, in_batches
from marker_sim.plan import Op, Plan
from marker_sim.search.scenarios import REFUSALS, S3, TRIES, Scenario, at_site, calls_refused
from marker_sim.search.seeds import Draws

_ANOTHER = "another/.hoodie/.temp/001"
_UNANSWERED = (
    *(FaultKind.TIMEOUT_LOST,) * 3,
    FaultKind.TIMEOUT_LATE,
    FaultKind.TIMEOUT_APPLIED,
    FaultKind.SERVER_ERROR,
)


def two_hands(rng: Draws, plan: Plan) -> Plan:
    """A second server, and one of the two paused between its check of a file and its put."""
    held = Fault.of(
        FaultKind.PAUSE,
        rng.of("server", "second"),
        Site("server: batch file put", rng.randint(1, 1 + len(plan.ops) // 8)),
        for_ms=rng.of(200, 1500),
    )
    second = _second(5000, rng.randint(1, 8))
    return replace(plan, faults=(second, held))


def deleted_by_the_other(rng: Draws, plan: Plan) -> Plan:
    """A server paused at the rewrite of a file, with its lock held; another server deletes the directory meanwhile."""
    held_ms = rng.of(400, 1500, 4000)
    gap_ms = rng.of(30, 80, 150)
    creates = [_create(n, rng.randint(gap_ms // 2, gap_ms)) for n in range(rng.randint(2, 8))]
    ops = [replace(op, actor=f"executor-{n % 2}") for n, op in enumerate(creates)]
    last_ms = gap_ms * len(ops) // 2 + held_ms
    ops.append(_delete(rng.randint(50, last_ms), server=1))
    faults = (
        _second(rng.of(1500, 5000)),
        at_site(FaultKind.PAUSE, "server: batch file put", rng.of(2, 2, 3, 4), for_ms=held_ms),
    )
    return replace(plan, num_threads=rng.of(1, 1, 2), ops=tuple(ops), faults=faults)


def asked_again_after_a_deletion(rng: Draws, plan: Plan) -> Plan:
    """A directory is deleted, often through another server; then clients create its names anew and ask if it exists."""
    deleted_ms = rng.of(300, 800)
    first = [_create(n, rng.randint(0, 100)) for n in range(rng.randint(1, 4))]
    ops = [*first, _delete(deleted_ms, server=rng.of(1, 1, 0))]
    if rng.random() < 0.4:  # Another name is in the file before.
        ops.append(replace(_create(len(ops), deleted_ms + rng.randint(30, 300)), server=rng.of(1, 1, 0)))
    at_once_ms = rng.of(0, 0, rng.randint(300, 1500))  # Zero: all in one batch, with a new name among them.
    for number in range(len(ops), len(ops) + rng.randint(1, 5)):
        after_ms = deleted_ms + (at_once_ms or rng.randint(50, 1500))
        again = replace(rng.choice(first), actor=f"executor-{number}", after_ms=after_ms)
        ops.append(_by_whom(rng, again, number))
    if at_once_ms:
        ops.append(_create(len(ops), deleted_ms + at_once_ms))
    ops.append(_look("exists", deleted_ms + rng.randint(50, 300)))
    second = _second(5000)
    return replace(plan, ops=tuple(ops), faults=(second,))


def silent_directory(rng: Draws, plan: Plan) -> Plan:
    """The storage of one of several directories does not answer for longer than requests to others may be delayed."""
    silent = at_site(FaultKind.TIMEOUT_LOST, "server: batch file put", rng.randint(1, 3), calls=40)
    plan = replace(plan, num_threads=rng.of(1, 1, 2, plan.num_threads))
    if len(plan.directories) > 1:
        return replace(plan, faults=(silent,))
    where: dict[str, int] = {}  # A name and its resends stay in one directory.
    ops = tuple(replace(op, directory=where.setdefault(op.name, rng.randrange(2))) for op in plan.ops)
    return replace(plan, directories=(*plan.directories, _ANOTHER), ops=ops, faults=(silent,))


def reading_again_refused(rng: Draws, plan: Plan) -> Plan:
    """A server abandons a flush and reads the directory again, which is often refused as well; names are repeated."""
    kind = rng.choice(REFUSALS[plan.storage])
    gap_ms = 4_000 if kind is FaultKind.TIMEOUT_LOST else rng.of(200, 500, 1000)
    ops: list[Op] = []
    for number in range(rng.randint(4, 10)):
        fresh = _create(number, number * gap_ms + rng.randint(0, gap_ms // 3))
        again = replace(fresh, name=(before := rng.choice(ops)).name, request=before.request) if ops else fresh
        ops.append(_by_whom(rng, again, number) if number > 1 and rng.random() < 0.7 else fresh)
    faults = calls_refused(kind, "server: batch file put", rng.of(2, 2, 3), TRIES)
    if rng.random() < 0.6:
        faults += calls_refused(kind, "server: directory listed", 2, TRIES * rng.of(1, 1, 2))
    return replace(plan, num_threads=rng.of(2, 4, 20), ops=tuple(ops), faults=tuple(faults))


def crowd(rng: Draws, plan: Plan) -> Plan:
    """So many clients at once, on one directory and few threads, that batches and marker files have very many names."""
    clients = rng.of(64, 160, 200)
    at_once = rng.random() < 0.5  # All in the first batches, or spread over a second and many batches.
    ops = [_create(n, 0 if at_once else rng.randint(0, 1000)) for n in range(clients)]
    if rng.random() < 0.5:  # Many of them are created again by others.
        asked = rng.randint(8, clients)
        ops += [replace(_create(n, 1500), actor=f"executor-{n}b", request=f"again{n}") for n in range(asked)]
    ops += [Op(actor="driver", kind=kind, after_ms=2000) for kind in ("list", "list-data")]
    return replace(plan, num_threads=rng.of(1, 1, 1, 2), directories=plan.directories[:1], ops=tuple(ops), faults=())


def deleted_by_the_dead(rng: Draws, plan: Plan) -> Plan:
    """A server dies during the end of a deletion; its successor receives creates before that is applied."""
    deleted_ms = rng.randint(40, 300)
    ops = [_create(n, 0) for n in range(rng.randint(1, 4))]
    ops.append(_delete(deleted_ms))
    ops += [_create(n, deleted_ms + rng.randint(0, 900)) for n in range(len(ops), len(ops) + rng.randint(3, 8))]
    ops.append(_create(len(ops), rng.of(4000, 10_000)))  # After all late requests were applied.
    dies = at_site(
        FaultKind.ORPHANED,
        rng.of(*("server: type file deleted",) * 2, "server: batch file deleted"),
        1,
        restart_ms=rng.of(0, 20, 100),
        late_ms=rng.of(300, 900, 2500, 2500),
    )
    damaged = at_site(FaultKind.TYPE_DAMAGED, "driver: marker deletion", 1)
    return replace(plan, ops=tuple(ops), faults=(damaged, dies) if rng.random() < 0.5 else (dies,))


def stored_by_the_dead(rng: Draws, plan: Plan) -> Plan:
    """A server dies during a put, perhaps for names that are stored; its successor deletes before that is applied."""
    first = [_create(n, 0) for n in range(rng.randint(1, 3))]
    ops = list(first)
    ops += _again(rng, first, len(ops), rng.randint(1, 4), 0, 400)
    deleted_ms = rng.randint(500, 1200)
    ops.append(_delete(deleted_ms))
    ops += [_look("exists", rng.of(2000, 4000)) for _ in range(2)]
    dies = at_site(
        FaultKind.ORPHANED,
        "server: batch file put",
        rng.of(1, 2, 2, 2, 3),
        restart_ms=rng.of(0, 20, 100),
        late_ms=rng.of(900, 1500, 2500),
    )
    return replace(plan, num_threads=rng.of(1, 2, 2, 3), ops=tuple(ops), faults=(dies,))


def overtaken(rng: Draws, plan: Plan) -> Plan:
    """A put of a server is not answered; before it tries again, another server changed or made the same file."""
    unanswered = rng.choice(_UNANSWERED)
    last_ms = 300 if unanswered is FaultKind.SERVER_ERROR else 3500
    ops = []
    for number in range(rng.randint(2, 8)):
        ops.append(replace(_create(number, rng.randint(0, last_ms)), server=int(rng.random() < 0.7)))
    ops.append(_create(len(ops), 0))
    faults = (
        _second(rng.of(1500, 5000)),
        at_site(
            unanswered,
            "server: batch file put",
            rng.of(1, 2, 2, 2, 3),
            late_ms=rng.of(10, 1900) if unanswered is FaultKind.TIMEOUT_LATE else 0,
        ),
    )
    return replace(plan, num_threads=rng.of(1, 1, 2), ops=tuple(ops), faults=faults)


def deleted_before_it_lands(rng: Draws, plan: Plan) -> Plan:
    """A put without an answer is applied later; as soon as its marker is answered the directory is deleted."""
    served = plan.mode == "timeline"
    ops = [_create(n, rng.randint(0, 200)) for n in range(rng.randint(1, 5))]
    ops.append(_delete(rng.randint(900, 3200)))
    ops += [_look("list", rng.of(500, 2500)) for _ in range(3)]
    late = at_site(
        FaultKind.TIMEOUT_LATE,
        "server: batch file put" if served else "executor: marker asked for",
        rng.of(1, 1, 2) if served else 1,
        late_ms=rng.of(300, 1000, 1900, 1900),
    )
    return replace(plan, directories=plan.directories[:1], ops=tuple(ops), faults=(late,))


def restarted_and_asked_again(rng: Draws, plan: Plan) -> Plan:
    """A server that filled several files dies; its successor, often with fewer threads, receives the same names."""
    gap_ms = rng.of(0, 60, 100, 250)
    first = [_create(n, n * gap_ms) for n in range(rng.randint(2, 8))]
    died_ms = len(first) * gap_ms + 1500
    ops = [*first, _create(len(first), died_ms)]
    ops += _again(rng, first, len(ops), rng.randint(1, 6), died_ms + 500, died_ms + 2500)
    dies = at_site(FaultKind.KILL, "server: request queued", len(first) + 1, restart_ms=rng.of(0, 20, 400))
    return replace(
        plan,
        num_threads=rng.of(2, 3, 4, 20),
        restart_threads=rng.of(0, 1, 1, 2),
        ops=tuple(ops),
        faults=(dies,),
    )


def slow_deletion(rng: Draws, plan: Plan) -> Plan:
    """The deletion of a directory with many files on slow storage, while others create and list."""
    served = in_batches(plan.mode, plan.storage)
    site = "server: batch file deleted" if served else "driver: marker deletion"
    files, gap_ms = rng.randint(4, 16), 2 * plan.interval_ms if served else 5
    begun_ms = files * gap_ms + 100
    ops = [_create(n, n * gap_ms) for n in range(files)]
    ops.append(_delete(begun_ms))
    ops += [_create(n, begun_ms + rng.randint(0, 1500)) for n in range(files, files + rng.randint(0, 3))]
    ops += [_look("list", rng.of(begun_ms, 400)) for _ in range(2)]
    slow_ms = rng.of((5, 30, 120, 900), (10, 900), (10, 900, 900))
    faults = [
        at_site(FaultKind.SLOW_STORAGE, site, step, late_ms=rng.choice(slow_ms))
        for step in range(1, 3 * files)
        if rng.random() < 0.8
    ]
    directories = plan.directories[:1]
    return replace(plan, num_threads=20, directories=directories, ops=tuple(ops), faults=tuple(faults))


def answered_late(rng: Draws, plan: Plan) -> Plan:
    """A server's read or put is answered late; another one deletes the file by then, and clients ask for it again."""
    late_ms = rng.of(900, 2000)
    first = [_create(n, rng.randint(0, 20)) for n in range(rng.randint(1, 3))]
    deleted_ms = rng.randint(200, 400)
    ops = [*first, _delete(deleted_ms, server=1)]
    ops += _again(rng, first, len(ops), rng.randint(1, 4), deleted_ms, deleted_ms + late_ms)
    site, step = rng.of(("server: batch file put", 1), *(("server: type file read", 2),) * 3)
    faults = (
        _second(5000),
        at_site(FaultKind.SLOW_STORAGE, site, step, late_ms=late_ms),
    )
    # With a spare thread, a request during the flush overlaps it and does not wait behind it.
    return replace(plan, num_threads=rng.of(1, 2, 2, 3, 4), ops=tuple(ops), faults=faults)


def asked_while_flushed(rng: Draws, plan: Plan) -> Plan:
    """A few names requested again and again while slow storage stores the files that will hold them."""
    names = rng.randint(1, 3)
    slow_ms = rng.of(120, 900)
    ops = [_create(n, rng.randint(0, 20)) for n in range(names)]
    ops += _again(rng, list(ops), names, rng.randint(3, 10), 10, 2 * slow_ms)
    faults = [
        at_site(FaultKind.SLOW_STORAGE, site, step, late_ms=slow_ms)
        for site in ("server: batch file put", "server: type file put")
        for step in range(1, 4)
        if rng.random() < 0.6
    ]
    return replace(plan, num_threads=rng.of(2, 3, 4, 20), ops=tuple(ops), faults=tuple(faults))


def damaged_and_restarted(rng: Draws, plan: Plan) -> Plan:
    """Type files are damaged, then the server dies, and its successor receives creates in the same directories."""
    first = rng.randint(1, 5)
    ops = [_create(n, n * 2 * plan.interval_ms) for n in range(first)]
    again_ms = rng.of(1500, 4500)  # A server that just started checks type files in any case.
    ops += [_create(n, first * 2 * plan.interval_ms + again_ms + rng.randint(0, 800)) for n in range(first, 2 * first)]
    ops.append(_create(len(ops), first * 2 * plan.interval_ms + 700))
    queued = "server: request queued"
    faults = (
        at_site(FaultKind.TYPE_DAMAGED, queued, first + 1, removed=rng.of(False, True)),
        at_site(FaultKind.KILL, queued, first + 1, restart_ms=rng.of(0, 20, 100, 400)),
    )
    return replace(plan, ops=tuple(ops), faults=faults)


def deleted_after_long_service(rng: Draws, plan: Plan) -> Plan:
    """Another server deletes the directory of one that expects no late request any more; new names go to that one.

    The other may die in the deletion, of which an end takes effect when the first has written files again.
    """
    served_ms = 4000  # Longer than the time-out of a storage request, and the time that it may be late.
    ops = [_create(0, served_ms), _delete(served_ms + 400, server=1)]
    ops += [_create(n, served_ms + rng.randint(500, 1500)) for n in range(2, rng.randint(4, 7))]
    threads, faults = rng.of(2, 3, 4, 20), [_second(9000)]
    if plan.storage == "s3" and rng.random() < 0.5:
        threads = 1  # The same file is written again.
        site = Site("server: type file deleted", 1)
        faults.append(Fault.of(FaultKind.ORPHANED, "second", site, late_ms=rng.of(900, 2500)))
        ops += [_create(7, 0), _create(8, served_ms + rng.randint(3000, 6000))]
    return replace(plan, num_threads=threads, ops=tuple(ops), faults=tuple(faults))


def left_untyped(rng: Draws, plan: Plan) -> Plan:
    """Another server deletes the type file during a flush, which cannot write it again; its name is asked for again."""
    paused_ms = rng.of(1500, 2500)
    ops = [_create(0, 0), _delete(rng.randint(400, 1000), server=1)]
    ops += _again(rng, ops[:1], 2, 2, paused_ms + 1500, paused_ms + 15_000)
    faults = (
        _second(paused_ms),
        at_site(FaultKind.PAUSE, "server: batch file put", 1, for_ms=paused_ms),
        *calls_refused(rng.choice(REFUSALS[plan.storage]), "server: type file put", 2, TRIES),
    )
    return replace(plan, ops=tuple(ops), faults=faults)


def _second(for_ms: int, step: int = 1) -> Fault:
    return Fault.of(FaultKind.SECOND_SERVER, "server", Step(step), for_ms=for_ms)


def _delete(after_ms: int, server: int = 0) -> Op:
    return Op(actor="driver", kind="delete", after_ms=after_ms, server=server)


def _look(kind: str, after_ms: int) -> Op:
    return Op(actor="executor-looks", kind=kind, after_ms=after_ms)


def _create(number: int, after_ms: int) -> Op:
    """A create of a separate name by a separate client."""
    name = f"f{number}_{number}-0-0_001.parquet.marker.CREATE"
    return Op(actor=f"executor-{number}", kind="create", name=name, request=f"r{number}", after_ms=after_ms)


def _again(rng: Draws, first: list[Op], begin: int, count: int, least_ms: int, most_ms: int) -> Iterator[Op]:
    """Creates of names that are asked for before, each by a client of its own after a drawn time."""
    for number in range(begin, begin + count):
        again = replace(rng.choice(first), actor=f"executor-{number}", after_ms=rng.randint(least_ms, most_ms))
        yield _by_whom(rng, again, number)


def _by_whom(rng: Draws, again: Op, number: int) -> Op:
    """A repeated create: the same request, or a new one."""
    return replace(again, request=f"r{number}") if rng.random() < 0.6 else again


OF_OPERATIONS = (
    Scenario(two_hands, 0.15, "timeline", BATCHED_STORAGES),
    Scenario(deleted_by_the_other, 0.04, "timeline", BATCHED_STORAGES),
    Scenario(silent_directory, 0.04, "timeline", S3),
    Scenario(deleted_by_the_dead, 0.05, "timeline", S3),
    Scenario(asked_again_after_a_deletion, 0.03, "timeline", BATCHED_STORAGES),
    Scenario(reading_again_refused, 0.04, "timeline", BATCHED_STORAGES),
    Scenario(crowd, 0.015, "timeline", BATCHED_STORAGES),
    Scenario(overtaken, 0.04, "timeline", S3),
    Scenario(restarted_and_asked_again, 0.04, "timeline", BATCHED_STORAGES),
    Scenario(slow_deletion, 0.02),
    Scenario(answered_late, 0.04, "timeline", BATCHED_STORAGES),
    Scenario(deleted_before_it_lands, 0.02, "", S3),
    Scenario(asked_while_flushed, 0.03, "timeline", BATCHED_STORAGES),
    Scenario(damaged_and_restarted, 0.02, "timeline", BATCHED_STORAGES),
    Scenario(stored_by_the_dead, 0.02, "timeline", S3),
    Scenario(deleted_after_long_service, 0.02, "timeline", BATCHED_STORAGES),
    Scenario(left_untyped, 0.02, "timeline", BATCHED_STORAGES),
)

"""Scenarios of drivers, their tasks and the recovery by the next driver."""

from __future__ import annotations

from dataclasses import replace

from marker_sim.faults import Fault, FaultKind, Site
from marker_sim.faults.row import in_batches
from marker_sim.plan import Plan, Task, Write
from marker_sim.search.scenarios import REFUSALS, S3, TRIES, Scenario, at_site, calls_refused
from marker_sim.search.seeds import Draws
from marker_sim.unusual_names import PARTITIONS
from marker_sim.writer.client import ASK_TRIES


def refused_deletions(rng: Draws, plan: Plan) -> Plan:
    """Several files are deleted at a time, and storage refuses some of these calls until the driver gives up."""
    part = rng.of("reconcile", "reconcile", "rollback", "rollback", "sweep")
    groups = rng.randint(1, 4)
    copies = rng.of(1, 2, 2, 3) if part == "rollback" else rng.of(2, 2, 3)
    tasks = [Task(group=f"f{n}", kind=rng.of("CREATE", "APPEND"), copies=copies) for n in range(groups)]
    if copies > 1:
        # Its wait gives the losing attempts time to write their files.
        tasks.append(Task(group="slow", slow_ms=rng.of(60, 900)))
    faults = _refused(rng, plan.storage, f"driver: {part} delete", len(tasks) * copies)
    if part == "sweep":
        site, value = "driver: completed instant written", rng.of(0, 30, 2000)
        faults.append(at_site(FaultKind.KILL, site, 1, executors_ms=value))
    write = Write(tasks=tuple(tasks))
    # What is left in a group that no later write touches may become rows: each second one rests.
    later = replace(write, tasks=write.tasks[:: rng.of(1, 2)], after_ms=40)
    writes = (replace(write, abandon=part == "rollback"), *(later,) * rng.of(1, 1, 2))
    return replace(plan, writes=writes, executors=max(plan.executors, rng.randint(2, 4)), faults=tuple(faults))


def _refused(rng: Draws, storage: str, site: str, files: int) -> list[Fault]:
    """A driver's calls at a site fail, from one of the first on, until it has given up some of the files, or all."""
    first, calls = rng.of(1, 1, 1, 2), TRIES * rng.of(1, files, files, files + 1)
    return calls_refused(rng.choice(REFUSALS[storage]), site, first, calls)


def written_by_the_dead(rng: Draws, plan: Plan) -> Plan:
    """An attempt of an application that died writes its file when the next one has written to the same group."""
    tasks = tuple(Task(group=f"f{n}", kind="APPEND") for n in range(rng.of(1, 1, 2)))
    late_ms = rng.of(3500, 4500, 6000, 9000)
    begun = len(tasks) if rng.random() < 0.9 else 0  # The second application dies, or the first.
    faults = (
        at_site(FaultKind.ZOMBIE, "executor: data file put", 1 + begun, for_ms=late_ms),
        at_site(FaultKind.KILL, "driver: task heard of", begun + rng.of(1, 1, 2), executors_ms=rng.of(late_ms, 30_000)),
    )
    pauses_ms = (0, 0, 0, rng.of(0, 2000, 6000), rng.of(0, 8000))
    writes = tuple(Write(tasks=tasks, after_ms=after_ms) for after_ms in pauses_ms[: rng.of(3, 4, 5)])
    return replace(plan, writes=writes, merge_on_read=rng.random() < 0.9, faults=faults)


def many_versions(rng: Draws, plan: Plan) -> Plan:
    """File groups go through many slices: log files, base files made of them, and writes that leave them alone."""
    writes = []
    for _ in range(rng.randint(6, 9)):
        groups = [group for group in ("f0", "f1", "f2", "f3") if rng.random() < 0.5] or ["f0"]
        kinds = ("MERGE", "MERGE", "APPEND")
        writes.append(Write(tasks=tuple(Task(group=group, kind=rng.choice(kinds)) for group in groups)))
    return replace(plan, writes=tuple(writes), merge_on_read=True, faults=())


def unreadable_when_left(rng: Draws, plan: Plan) -> Plan:
    """An instant is left unfinished, and the driver that rolls it back cannot read its markers, once or always."""
    kinds = ("CREATE", "CREATE", "MERGE", "APPEND")
    tasks = tuple(Task(group=f"f{n}", kind=rng.choice(kinds)) for n in range(rng.randint(1, 4)))
    begun = rng.of(0, 1)
    writes = [Write(tasks=tasks, abandon=n == begun, after_ms=rng.of(0, 40)) for n in range(begun + 3)]
    sites = ["driver: markers asked for by rollback"]
    if in_batches(plan.mode, plan.storage):
        sites.append("driver: marker file read by rollback")
    refused = calls_refused(
        rng.choice(REFUSALS[plan.storage]),
        rng.choice(sites),
        rng.of(1, 1, 2),
        TRIES * rng.of(1, 1, 2),
    )
    return replace(plan, writes=tuple(writes), faults=tuple(refused))


def unlisted_until_the_last_try(rng: Draws, plan: Plan) -> Plan:
    """The list that ends a write is refused as often as its client asks, or once less; some attempts have lost."""
    tasks = [Task(group=f"f{n}", copies=2) for n in range(rng.randint(1, 3))]
    tasks.append(Task(group="slow", slow_ms=rng.of(60, 900)))  # Gives the losing attempts time to write their files.
    refused = calls_refused(
        rng.choice(REFUSALS[plan.storage]),
        "driver: markers asked for by finalize",
        1,
        TRIES * (ASK_TRIES - rng.of(1, 1, 0)),
    )
    return replace(plan, writes=(Write(tasks=tuple(tasks)),), executors=2, faults=tuple(refused))


def ended_by_the_dead(rng: Draws, plan: Plan) -> Plan:
    """A driver dies with the end of an instant or a rollback under way; the next one begins before it is applied."""
    ends = rng.of(*("completed instant put",) * 4, "instant taken off", "rollback completed put")
    groups = rng.randint(1, 3)
    write = Write(tasks=tuple(Task(group=f"f{n}", kind=rng.of("CREATE", "MERGE")) for n in range(groups)))
    left = ends != "completed instant put"
    before = rng.of(0, 1)
    writes = [replace(write, abandon=left and n == before) for n in range(before + rng.of(2, 3))]
    dies = at_site(
        FaultKind.ORPHANED,
        f"driver: {ends}",
        1 if left else 1 + before,
        restart_ms=rng.of(0, 20, 400),
        late_ms=rng.of(120, 900, 2500, 2500),
    )
    return replace(plan, writes=tuple(writes), faults=(dies,))


def left_to_the_sweep(rng: Draws, plan: Plan) -> Plan:
    """An uncounted attempt creates its marker and file when its instant is given up and rolled back; others follow."""
    tasks = tuple(Task(group=f"f{n}", kind=rng.of("CREATE", "CREATE", "APPEND")) for n in range(rng.randint(1, 3)))
    late_ms = rng.of(400, 1500, 4000)
    given_up = Write(tasks=tasks, abandon=rng.random() < 0.8)
    writes = (given_up, *(Write(tasks=tasks, after_ms=rng.of(0, late_ms)) for _ in range(rng.randint(1, 3))))
    goes_on = Fault.of(
        FaultKind.ZOMBIE,
        "executor-0",
        Site(
            n=rng.of(1, 1, 2),
            name=rng.of("executor: marker asked for", "executor: marker asked for", "executor: data file put"),
        ),
        for_ms=late_ms,
    )
    return replace(plan, writes=writes, executors=rng.of(2, 2, 3), faults=(goes_on,))


def longer_than_patience(rng: Draws, plan: Plan) -> Plan:
    """One executor performs tasks that together take minutes, and each of which is quick enough; no fault."""
    slow_ms = rng.of(20_000, 30_000)
    tasks = tuple(Task(group=f"f{n}", slow_ms=slow_ms) for n in range(rng.randint(5, 8)))
    return replace(plan, writes=(Write(tasks=tasks),), executors=1, faults=())


def server_refused(rng: Draws, plan: Plan) -> Plan:
    """Storage refuses calls of the server during small writes until it gives up a create, or several."""
    write = Write(tasks=tuple(Task(group=f"f{n}") for n in range(rng.of(1, 1, 2))))
    sites = ("batch file put", "batch file put", "type file put", "directory listed")
    kind, site, calls = rng.choice(REFUSALS[plan.storage]), f"server: {rng.choice(sites)}", rng.of(4, 5, 8, 12)
    faults = calls_refused(kind, site, rng.of(1, 1, 2), calls)
    return replace(plan, writes=(write,) * rng.of(1, 2), faults=tuple(faults))


def odd_partitions_in_peace(rng: Draws, plan: Plan) -> Plan:
    """No fault, while files are written to many partitions with odd paths at once."""
    writes = []
    for _ in range(rng.of(1, 1, 2)):
        partitions = rng.sample(PARTITIONS, rng.randint(8, 20))
        kind = rng.of("CREATE", "CREATE", "MERGE", "APPEND")
        writes.append(Write(tasks=tuple(Task(partition=where, kind=kind) for where in partitions)))
    return replace(plan, tables=plan.tables[:1], writes=tuple(writes), faults=())


OF_WRITES = (
    Scenario(refused_deletions, 0.03),
    Scenario(written_by_the_dead, 0.02),
    Scenario(many_versions, 0.02),
    Scenario(unreadable_when_left, 0.015),
    Scenario(odd_partitions_in_peace, 0.025),
    Scenario(ended_by_the_dead, 0.03, "", (*S3, "s3-unconditional", "hdfs")),
    Scenario(left_to_the_sweep, 0.04),
    Scenario(longer_than_patience, 0.004),
    Scenario(server_refused, 0.01, "timeline", S3),
    Scenario(unlisted_until_the_last_try, 0.02, "direct"),
)

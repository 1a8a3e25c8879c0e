"""A stored plan of several writers of one table as a Python script that plays it by processes, without the kit.

Each writer is a JVM (`writers_script.java.j2`) that stops itself at the calls of the plan; the script
(`writers_script.py.j2`) gives one of them the turn, as the gate of a race does (worlds/spark/hudi/writers.py). A pause
that outlasts a heartbeat is SIGSTOP until the heartbeat is old, then SIGCONT; in a brief one the timers go on.

It has a lock of the operating system where the plan has that of the gate, and shorter heartbeats. It does pauses and
deaths, and judges what the timeline, the files and the rows show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.plan import Plan
from marker_sim.report.scripts.server_script import render_script
from marker_sim.worlds.interceptor import ArmedFault
from marker_sim.worlds.spark.hudi.java_driver import effect_of, told_of
from marker_sim.worlds.spark.hudi.settings import FILE_LOCK, GATE_LOCK
from marker_sim.worlds.spark.hudi.writers import HEALED, writer_name

JUDGED = ("G15", "G24", "G25", "G26", "G28", "G29")


def writers_script(failure: StoredPlan, table: Mapping[str, Any]) -> str:
    """The script of a failure whose plan has several writers. table: what programs of every kind have of it."""
    plan = failure.own_plan
    lock = "hoodie.write.lock.provider"
    locks = {GATE_LOCK: "Writer$FileLock", FILE_LOCK: "Writer$HudiLock"}
    writers = _rows(plan)
    # Rows of a lost commit are lost.
    lost = ["G24"] if failure.guarantee == "G26" and "G24" not in failure.also else []
    content = {
        **table,
        "options": table["options"] | {lock: locks[table["options"][lock]]},
        "first": list(_groups(plan, [*(name for name, _ in writers), "later"])),
        "writers": writers,
        "later": [_key(*HEALED, "later")],
        "claims": [*table["claims"], *lost],
        "stops": [told_of(ArmedFault(fault)) | {"writer": fault.target} for fault in plan.faults],
    }
    return render_script("writers_script.py.j2", **content)


def rows_lost(failure: StoredPlan) -> str:
    """Whose rows a reader loses by a failure of several writers, in a sentence; "" where none are lost."""
    if "G24" not in (failure.guarantee, *failure.also):
        return ""
    rows = dict(_rows(failure.own_plan))
    late = sorted({fault.target for fault in failure.own_plan.faults if effect_of(fault) != "pause"})
    losers = late or [writer for writer, keys in rows.items() if keys]
    keys = ", ".join(key for writer in losers for key, _ in rows[writer])
    return (
        f"A reader loses the rows of a completed write, without an error: of {' or '.join(losers)}"
        f" ({keys} below) it finds what was there before."
    )


def _rows(plan: Plan) -> list[tuple[str, list[tuple[str, str]]]]:
    """The writers, and the keys that each of them updates."""
    writers = ((writer_name(number), write) for number, write in enumerate(plan.writes))
    return [(name, [_key(task.partition, task.group, name) for task in write.tasks]) for name, write in writers]


def _key(partition: str, group: str, owner: str) -> tuple[str, str]:
    """A key and its partition. Of one file group are those that differ in their last part alone."""
    return f"{group}.{partition}.{owner}", partition


def _groups(plan: Plan, owners: list[str]) -> Iterator[list[tuple[str, str]]]:
    """The keys of each group's first write: of all partitions that have it, one for each owner."""
    places = {(task.partition, task.group) for write in plan.writes for task in write.tasks} | {HEALED}
    for name in sorted({group for _, group in places}):
        own = sorted(partition for partition, group in places if group == name)
        yield [_key(partition, name, owner) for partition in own for owner in owners]

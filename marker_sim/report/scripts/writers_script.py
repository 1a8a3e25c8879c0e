"""A stored plan of several writers of one table as a Python script that plays it by processes, without the kit.

Each writer is a JVM (`writers_script.java.j2`) that stops itself at the calls of the plan; the script
(`writers_script.py.j2`) gives one of them the turn, as the gate of a race does (worlds/spark/hudi/writers.py). A pause
that outlasts a heartbeat is SIGSTOP until the heartbeat is old, then SIGCONT; in a brief one the timers go on.

It has a lock of the operating system where the plan has that of the gate, and shorter heartbeats. It does pauses and
deaths, and judges what the timeline, the files and the rows show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.faults import Fault
from marker_sim.plan import Plan
from marker_sim.report.scripts.server_script import head_of, in_docstring, literal, render_script
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.worlds.spark.hudi.java_driver import effect_of, java_options
from marker_sim.worlds.spark.hudi.steps import call_of
from marker_sim.worlds.spark.hudi.writers import HEALED, writer_name
from marker_sim.worlds.spark.session import JVM

JUDGED = ("G15", "G24", "G25", "G26", "G28", "G29")
# Of a guarantee, and of a violation whose message has the words: the title for a tracker, and what it means to users.
_IMPACTS = (
    ("G15", "", "A rolled back write goes on and leaves a data file behind its rollback", "a data file stays for good"),
    ("G24", "", "Rows of a committed write are gone after another writer's rollback", ""),
    ("G25", "", "A write fails after other writers have rolled back a paused one", "a write fails"),
    (
        "G26",
        "wrote the file group",
        "Two writes of one file group overlap and are both completed",
        "one may hide the other",
    ),
    ("G26", "", "Another writer's rollback deletes what a completed commit consists of", "its files are deleted"),
    ("G28", "", "A writer is refused for a conflict that is none", "a write is refused"),
    ("G29", "failed in a rollback", "A rollback fails because another writer does the same one", "a write fails"),
    ("G29", "two rollbacks", "One failed write is rolled back twice, by two plans", "the timeline has both"),
    ("G29", "was completed", "A completed commit is rolled back by another writer", "the timeline has both"),
    ("G29", "", "A write is rolled back while its heartbeat is alive", "a write that is alive is undone"),
)
_HOW = (
    "It needs Linux, Python 3.11 and a JDK 17, and CLASSPATH with these jars, as Maven has them:",
    "  org.apache.hudi:hudi-java-client:{version} (its jar alone)",
    "  org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}",
    "  those of Spark 3.5 (of the package pyspark: '.../pyspark/jars/*')",
    "Each writer is a process. One goes on at a time, until it is paused, waits for the lock or is over. A long pause",
    "is SIGSTOP until its heartbeat is old, then SIGCONT. The lock is one of the operating system, on a file. The",
    "script works in a new folder, which it removes (KEEP=FOLDER copies it), and leaves no process; TRIES is how often",
    "it tries at most (5). Exit codes: 1 violated, 0 held, 3 a step could not be done.",
)


def writers_script(failure: StoredPlan, version: str, schema: str) -> str:
    """The script of a failure whose plan has several writers. schema: how the version calls a table's schema."""
    plan = failure.own_plan
    options = {name: value for name, value in java_options(plan, version).items() if value != WRITE_KEY}
    lock = "hoodie.write.lock.provider"
    options[lock] = options[lock].replace("HudiJavaWriter$GateLock", "Writer$FileLock")
    writers = _rows(plan)
    values = {
        "options": options,
        "first": list(_groups(plan, [*(name for name, _ in writers), "later"])),
        "writers": writers,
        "later": [_key(*HEALED, "later")],
        "stops": [_stop(fault) for fault in plan.faults],
        "claims": [failure.guarantee, *(each for each in failure.also if each in JUDGED)],
        "jvm": JVM.split(),
    }
    return render_script(
        "writers_script.py.j2",
        head=in_docstring((*head_of(failure), "", *(line.format(version=version) for line in _HOW))),
        title=failure.title,
        program=render_script("writers_script.java.j2", table_schema=schema),
        **{name: literal(value) for name, value in values.items()},
    )


def impact_of(failure: StoredPlan) -> tuple[str, str]:
    """The title of a failure of several writers, at most 80 characters long, and who loses what, in a sentence."""
    title, harm = next(
        (title, harm)
        for guarantee, words, title, harm in _IMPACTS
        if guarantee == failure.guarantee and words in failure.message
    )
    paused = {fault.target for fault in failure.own_plan.faults if effect_of(fault) != "pause"}
    rows = [key for writer, keys in _rows(failure.own_plan) if writer in paused for key, _ in keys]
    if "G24" in (failure.guarantee, *failure.also):
        return title, (
            f"A reader loses the rows of a completed write, without an error: of {', '.join(sorted(paused))}"
            f" ({', '.join(rows)} below) it finds what was there before."
        )
    return title, f"No row is lost in this run; {harm}."


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


def _stop(fault: Fault) -> dict[str, Any]:
    call = call_of(fault)
    return {
        "writer": fault.target,
        "operations": " ".join(call.operations),
        "path": call.pattern,
        "n": call.n,
        "does": effect_of(fault),
    }

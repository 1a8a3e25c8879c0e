"""A stored plan of a table as a program that shows the violation without the kit, in one file.

Of Hudi on Spark it is a Python script that needs PySpark alone (`table_script.py.j2`). It writes the table in one
driver after the other and kills those that the plan kills, each exactly in its call: the calls of a driver stop at the
script, as they do at the door (worlds/door).

Of Hudi's Java client it is a Java program that needs Hudi's jars alone (`table_script.java.j2`). Its drivers write the
table by `HoodieJavaWriteClient`, each in a JVM of its own. A small subclass of Hadoop's `RawLocalFileSystem` fails the
calls that the plan fails, and ends the JVM where the plan kills the driver.

Several writers of one table are processes at the same time (writers_script.py).

Then the program looks at the table and decides by itself: 1 violated, 0 held, 3 a step could not be done. Plans that
need more than a local directory, and on Spark more than the death of a driver, are refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.report.scripts.server_script import head_of, render_script, server_script
from marker_sim.report.scripts.writers_script import JUDGED as JUDGED_OF_WRITERS
from marker_sim.report.scripts.writers_script import writers_script
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.targets.hudi_java import NAME as HUDI_JAVA
from marker_sim.worlds.interceptor import ArmedFault
from marker_sim.worlds.spark.hudi.java_driver import java_options, loses, told_of
from marker_sim.worlds.spark.hudi.settings import HEARTBEAT_S, hudi_options, key_count, partition_names, shape_of
from marker_sim.worlds.spark.hudi.steps import call_of, last_data_file, preparation
from marker_sim.worlds.spark.hudi.table import ROWS_MAX, ROWS_MIN
from marker_sim.worlds.spark.plans import DRIVER
from marker_sim.worlds.spark.session import JVM

JUDGED = ("G14", "G15", "G16", "G18", "G19", "G24", "G25")
JUDGED_BY_JAVA = ("G13", "G14", "G15", "G16", "G18", "G19", "G24", "G30", "G31")
ON_S3 = "it was found on S3, where only the kit's own S3 sees the requests at which faults happen"


def script_of(failure: StoredPlan) -> tuple[str, str]:
    """The script of a failure and its language; UsageError says what it cannot do."""
    if failure.own_plan.shape is None:
        return server_script(failure), "python"
    plan, in_java = failure.own_plan, failure.sut.startswith(HUDI_JAVA)
    judged = JUDGED_OF_WRITERS if shape_of(plan).writers else JUDGED_BY_JAVA if in_java else JUDGED
    problem = _problem(failure, in_java, judged)
    if problem:
        raise UsageError(f"{failure.title} cannot be shown by a script: {problem}")
    version = _version(failure)
    table: dict[str, Any] = {
        "head": head_of(failure),
        "title": failure.title,
        "version": version,
        "options": options_of(failure),
        "claims": [failure.guarantee, *(each for each in failure.also if each in judged)],
        "jvm": JVM.split(),
        # 1.1 has no `getTableSchema` yet.
        "table_schema": "getTableAvroSchema" if version.startswith("1.1.") else "getTableSchema",
    }
    if shape_of(plan).writers:
        return writers_script(failure, table), "python"
    table |= {"partitions": list(partition_names(plan)), "keys": key_count(plan)}
    return (_java_program(failure, table), "java") if in_java else (_python_script(plan, table), "python")


def options_of(failure: StoredPlan) -> dict[str, str]:
    """Hudi's options in the runs of a failure of a table."""
    plan = failure.own_plan
    in_java = failure.sut.startswith(HUDI_JAVA)
    options = (java_options if in_java else hudi_options)(plan, _version(failure))
    return {name: value for name, value in options.items() if value != WRITE_KEY}


def _version(failure: StoredPlan) -> str:
    return failure.version or failure.sut.partition(":")[2]


def _problem(failure: StoredPlan, in_java: bool, judged: tuple[str, ...]) -> str:
    """The reason why no script can do the plan, "" when one can."""
    plan = failure.own_plan
    if failure.guarantee not in judged:
        return f"it judges {', '.join(judged)}, what the timeline, the files and the rows of a table show"
    if plan.storage != "local":
        return ON_S3
    if shape_of(plan).sharing.startswith("early-"):
        return "the kit steps its early detection; `marker-sim replay` does it again"
    for fault in plan.faults:
        if in_java and (fault.kind.row.family == "wire" or loses(fault)):
            return f"the kit does {fault.kind.value} outside of the calls of files; `marker-sim replay` does it again"
        if not in_java and (not fault.kind.row.kills or fault.target != DRIVER):
            return f"it needs executors that are processes of their own ({fault.kind.value} of {fault.target})"
    return ""


def _writes(plan: Plan) -> Iterator[tuple[str, bool, tuple[Fault, ...]]]:
    """The writes: name, whether the write is abandoned, and the faults at its calls."""
    for at, write in enumerate(plan.writes):
        last = last_data_file(plan, third=at > 0)
        own = tuple(plan.faults[number] for number in write.faults)
        name = ("" if own else "all data files are there") if write.abandon else write.name
        yield name, write.abandon, own or (last.faults if write.abandon else ())


def _python_script(plan: Plan, table: Mapping[str, Any]) -> str:
    writes = [
        {"name": name, "abandoned": abandoned, "kill": _kill(faults[0]) if faults else None}
        for name, abandoned, faults in _writes(plan)
    ]
    return render_script(
        "table_script.py.j2", **table, writes=writes, seed=plan.seed, rows_min=ROWS_MIN, rows_max=ROWS_MAX
    )


def _kill(fault: Fault) -> dict[str, Any]:
    call = call_of(fault)
    when = "within" if fault.kind is FaultKind.TORN_WRITE else call.when
    return {"path": f"^{call.pattern}", "n": call.n, "operations": list(call.operations), "kill": when}


def _java_program(failure: StoredPlan, table: Mapping[str, Any]) -> str:
    plan = failure.own_plan
    shape = shape_of(plan)
    steps = [
        {
            "name": name,
            "abandoned": abandoned,
            "faults": [told_of(ArmedFault(fault)) for fault in faults],
            "service": write.service,
            "before": preparation(write.service or "write", plan.merge_on_read),
        }
        for write, (name, abandoned, faults) in zip(plan.writes, _writes(plan), strict=True)
    ]
    return render_script(
        "table_script.java.j2",
        **table,
        steps=steps,
        unmarked="G13" in (failure.guarantee, *failure.also),
        shape=shape,
        wait_ms=int(HEARTBEAT_S * 1000) if shape.lazy else 0,
    )

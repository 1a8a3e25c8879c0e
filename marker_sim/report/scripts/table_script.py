"""A stored plan of a table as a Python script that shows the violation with PySpark and kill -9 alone.

The script writes the table in one driver after the other and kills those that the plan kills, each exactly in its call:
the calls of a driver stop at the script, as they do at the door (worlds/door). Then it checks the table and decides by
itself: 1 violated, 0 held, 3 a step could not be done. Plans that need more than a local directory and the death of a
driver are refused in a sentence.
"""

from __future__ import annotations

import pprint
from typing import Any

from marker_sim.campaign.replay import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.report.scripts.java_script import ON_S3, java_script
from marker_sim.report.scripts.shell_script import door_program, head_of, render_script, shell_script
from marker_sim.report.words import printable
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.targets.hudi_java import NAME as HUDI_JAVA
from marker_sim.worlds.spark.hudi.settings import hudi_options, key_count, partition_names
from marker_sim.worlds.spark.hudi.steps import call_of, last_data_file
from marker_sim.worlds.spark.hudi.table import ROWS_MAX, ROWS_MIN
from marker_sim.worlds.spark.plans import DRIVER
from marker_sim.worlds.spark.session import JVM

JUDGED = ("G14", "G15", "G16", "G18", "G19", "G24", "G25")
_HOW = (
    "Set BUNDLE to the Hudi bundle jar (hudi-spark3.5-bundle_2.12-VERSION.jar); it needs Linux 5.19, seccomp's",
    "listener, Java 17 and a Python that has PySpark 3.5. Drivers die exactly in the calls that are named below; what",
    "else they have done by then differs from try to try. It works in new directories and removes them; TRIES is how",
    "often it tries at most (5). Exit codes: 1 violated, 0 held, 3 a step could not be done.",
)


def script_of(failure: StoredPlan) -> tuple[str, str]:
    """The script of a failure and its language; UsageError says what it cannot do."""
    if failure.own_plan.shape is None:
        return shell_script(failure), "bash"
    if failure.sut.partition(":")[0] == HUDI_JAVA:
        return java_script(failure), "java"
    return table_script(failure), "python"


def table_script(failure: StoredPlan) -> str:
    """The script of a failure of a table; UsageError says which part of the plan it cannot do."""
    plan = failure.own_plan
    problem = _problem(failure)
    if problem:
        raise UsageError(f"{failure.title} cannot be shown by a script: {problem}")
    options = hudi_options(plan, failure.version or failure.sut.partition(":")[2])
    return render_script(
        "table_script.py.j2",
        head=[printable(line).replace('"""', "'''") for line in (*head_of(failure), "", *_HOW)],
        title=failure.title,
        jvm=JVM,
        door=door_program(),
        options=_literal({name: value for name, value in options.items() if value != WRITE_KEY}),
        partitions=_literal(list(partition_names(plan))),
        keys=key_count(plan),
        seed=plan.seed,
        rows_min=ROWS_MIN,
        rows_max=ROWS_MAX,
        writes=_literal(_writes(plan)),
        claims=_literal([failure.guarantee, *(each for each in failure.also if each in JUDGED)]),
    )


def _problem(failure: StoredPlan) -> str:
    """The reason why no script can do the plan, "" when one can."""
    plan = failure.own_plan
    if failure.guarantee not in JUDGED:
        return f"it judges {', '.join(JUDGED)}, what the timeline, the files and the rows of a table show at rest"
    if plan.storage != "local":
        return ON_S3
    for fault in plan.faults:
        if not fault.kind.row.kills or fault.target != DRIVER:
            return f"it needs executors that are processes of their own ({fault.kind.value} of {fault.target})"
    return ""


def _writes(plan: Plan) -> list[dict[str, Any]]:
    """The writes, each with the place where its driver is killed."""
    last = last_data_file(len(partition_names(plan)), plan.storage).faults[0]
    made = []
    for write in plan.writes:
        fault = next((plan.faults[number] for number in write.faults), last if write.abandon else None)
        name = ("" if write.faults else "all data files are there") if write.abandon else write.name
        made.append({"name": name, "abandoned": write.abandon, "kill": None if fault is None else _kill(fault)})
    return made


def _kill(fault: Fault) -> dict[str, Any]:
    call = call_of(fault)
    when = "within" if fault.kind is FaultKind.TORN_WRITE else call.when
    return {"path": f"^{call.pattern}", "n": call.n, "operations": list(call.operations), "kill": when}


def _literal(value: object) -> str:
    """The value as a Python literal."""
    return pprint.pformat(value, width=110, compact=True, sort_dicts=False)

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

import json
from collections.abc import Iterable, Iterator
from typing import Any

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.faults import Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.report.scripts.server_script import (
    door_program,
    head_of,
    in_docstring,
    literal,
    render_script,
    server_script,
)
from marker_sim.report.scripts.writers_script import JUDGED as JUDGED_OF_WRITERS
from marker_sim.report.scripts.writers_script import writers_script
from marker_sim.report.words import printable
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.targets.hudi_java import NAME as HUDI_JAVA
from marker_sim.worlds.spark.hudi.java_driver import effect_of, java_options
from marker_sim.worlds.spark.hudi.settings import HEARTBEAT_S, hudi_options, key_count, partition_names, shape_of
from marker_sim.worlds.spark.hudi.steps import call_of, last_data_file
from marker_sim.worlds.spark.hudi.table import ROWS_MAX, ROWS_MIN
from marker_sim.worlds.spark.plans import DRIVER
from marker_sim.worlds.spark.session import JVM

JUDGED = ("G14", "G15", "G16", "G18", "G19", "G24", "G25")
JUDGED_BY_JAVA = ("G13", "G14", "G15", "G16", "G18", "G19", "G24")
ON_S3 = "it was found on S3, where only the kit's own S3 sees the requests at which faults happen"
_SCHEMA = {"1.1": "getTableAvroSchema"}  # How a version calls it that has no `getTableSchema` yet.
_HOW = (
    "Set BUNDLE to the Hudi bundle jar (hudi-spark3.5-bundle_2.12-VERSION.jar); it needs Linux 5.19, seccomp's",
    "listener, Java 17 and a Python that has PySpark 3.5. Drivers die exactly in the calls that are named below; what",
    "else they have done by then differs from try to try. It works in new directories and removes them; TRIES is how",
    "often it tries at most (5). Exit codes: 1 violated, 0 held, 3 a step could not be done.",
)
_HOW_IN_JAVA = (
    "Run it by Java 17 or later: `java -cp CLIENT:BUNDLE:JARS FILE.java`, with CLIENT the jar of hudi-java-client,",
    "BUNDLE that of hudi-spark3.5-bundle_2.12 in the same version, JARS Spark's own ('.../pyspark/jars/*').",
    "Drivers are processes; one that dies does so exactly in the call that is named below. It works in new folders,",
    "which it removes unless KEEP is set; TRIES is how often it tries at most (3). Exit codes: 1 violated, 0 held, 3 a",
    "step could not be done.",
)


def script_of(failure: StoredPlan) -> tuple[str, str]:
    """The script of a failure and its language; UsageError says what it cannot do."""
    if failure.own_plan.shape is None:
        return server_script(failure), "python"
    in_java = failure.sut.partition(":")[0] == HUDI_JAVA
    problem = _problem(failure, in_java)
    if problem:
        raise UsageError(f"{failure.title} cannot be shown by a script: {problem}")
    if shape_of(failure.own_plan).writers:
        version = _version(failure)
        return writers_script(failure, version, _schema(version)), "python"
    return (_java_program(failure), "java") if in_java else (_python_script(failure), "python")


def _problem(failure: StoredPlan, in_java: bool) -> str:
    """The reason why no script can do the plan, "" when one can."""
    plan = failure.own_plan
    judged: tuple[str, ...] = JUDGED_BY_JAVA if in_java else JUDGED
    if shape_of(plan).writers:
        judged = JUDGED_OF_WRITERS
    if failure.guarantee not in judged:
        at_rest = "" if in_java else " at rest"
        return f"it judges {', '.join(judged)}, what the timeline, the files and the rows of a table show{at_rest}"
    if plan.storage != "local":
        return ON_S3
    for fault in () if in_java else plan.faults:
        if not fault.kind.row.kills or fault.target != DRIVER:
            return f"it needs executors that are processes of their own ({fault.kind.value} of {fault.target})"
    return ""


def _table(failure: StoredPlan, options: dict[str, str], judged: Iterable[str]) -> dict[str, Any]:
    """What both programs have of the table and of the promises that it breaks."""
    return {
        "options": {name: value for name, value in options.items() if value != WRITE_KEY},
        "partitions": list(partition_names(failure.own_plan)),
        "claims": [failure.guarantee, *(each for each in failure.also if each in judged)],
    }


def _writes(plan: Plan) -> Iterator[tuple[str, bool, tuple[Fault, ...]]]:
    """The writes: name, whether the write is abandoned, and the faults at its calls."""
    last = last_data_file(len(partition_names(plan)), plan.storage)
    for write in plan.writes:
        own = tuple(plan.faults[number] for number in write.faults)
        name = ("" if own else "all data files are there") if write.abandon else write.name
        yield name, write.abandon, own or (last.faults if write.abandon else ())


def _version(failure: StoredPlan) -> str:
    return failure.version or failure.sut.partition(":")[2]


def _python_script(failure: StoredPlan) -> str:
    plan = failure.own_plan
    table = _table(failure, hudi_options(plan, _version(failure)), JUDGED)
    writes = [
        {"name": name, "abandoned": abandoned, "kill": _kill(faults[0]) if faults else None}
        for name, abandoned, faults in _writes(plan)
    ]
    return render_script(
        "table_script.py.j2",
        head=in_docstring((*head_of(failure), "", *_HOW)),
        title=failure.title,
        jvm=JVM,
        door=door_program(),
        keys=key_count(plan),
        seed=plan.seed,
        rows_min=ROWS_MIN,
        rows_max=ROWS_MAX,
        **{name: literal(value) for name, value in (table | {"writes": writes}).items()},
    )


def _kill(fault: Fault) -> dict[str, Any]:
    call = call_of(fault)
    when = "within" if fault.kind is FaultKind.TORN_WRITE else call.when
    return {"path": f"^{call.pattern}", "n": call.n, "operations": list(call.operations), "kill": when}


def _java_program(failure: StoredPlan) -> str:
    plan, version = failure.own_plan, _version(failure)
    table = _table(failure, java_options(plan, version), JUDGED_BY_JAVA)
    steps = [
        {
            "name": json.dumps(name),
            "abandoned": json.dumps(abandoned),
            "faults": [_java_fault(fault) for fault in faults],
            "operations": {operation for fault in faults for operation in call_of(fault).operations},
        }
        for name, abandoned, faults in _writes(plan)
    ]
    return render_script(
        "table_script.java.j2",
        head=[printable(line).replace("*/", "* /") for line in (*head_of(failure), "", *_HOW_IN_JAVA)],
        title=json.dumps(failure.title),
        options=[(json.dumps(name), json.dumps(value)) for name, value in table["options"].items()],
        partitions=_java_words(table["partitions"]),
        keys=key_count(plan),
        claims=_java_words(table["claims"]),
        steps=steps,
        unmarked="G13" in (failure.guarantee, *failure.also),
        deletes=shape_of(plan).deletes,
        wait_ms=int(HEARTBEAT_S * 1000) if shape_of(plan).lazy else 0,
        operations={name for step in steps for name in step["operations"]},
        jvm=_java_words(JVM.split()),
        table_schema=_schema(version),
    )


def _schema(version: str) -> str:
    """How a version calls the schema of a table."""
    return _SCHEMA.get(version.rpartition(".")[0], "getTableSchema")


def _java_fault(fault: Fault) -> str:
    call = call_of(fault)
    operations, path, effect = map(json.dumps, (" ".join(call.operations), f"^{call.pattern}", effect_of(fault)))
    return f"{operations}, {path}, {call.n}, {fault.settings.calls}, {effect}"


def _java_words(texts: Iterable[str]) -> str:
    """The texts as literals of Java: JSON has the same escapes, for what is no letter of ASCII as well."""
    return ", ".join(map(json.dumps, texts))

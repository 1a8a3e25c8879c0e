"""A stored plan of a table as a Java program that shows the violation with Hudi's jars alone, in one file.

Its drivers write the table by `HoodieJavaWriteClient`, each in a JVM of its own. A small subclass of Hadoop's
`RawLocalFileSystem` fails the calls that the plan fails, and ends the JVM where the plan kills the driver. Then the
program looks at the table and decides by itself: 1 violated, 0 held, 3 a step could not be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from marker_sim.campaign.replay import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.faults import Fault
from marker_sim.report.scripts.shell_script import head_of, render_script
from marker_sim.report.words import printable
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.worlds.spark.hudi.java_driver import effect_of, java_options
from marker_sim.worlds.spark.hudi.settings import HEARTBEAT_S, key_count, partition_names, shape_of
from marker_sim.worlds.spark.hudi.steps import call_of, last_data_file
from marker_sim.worlds.spark.session import JVM

JUDGED = ("G13", "G14", "G15", "G16", "G18", "G19", "G24")
ON_S3 = "it was found on S3, where only the kit's own S3 sees the requests at which faults happen"
_SCHEMA = {"1.1": "getTableAvroSchema"}  # How a version calls it that has no `getTableSchema` yet.
_HOW = (
    "Run it by Java 17 or later: `java -cp CLIENT:BUNDLE:JARS FILE.java`, with CLIENT the jar of hudi-java-client,",
    "BUNDLE that of hudi-spark3.5-bundle_2.12 in the same version, JARS Spark's own ('.../pyspark/jars/*').",
    "Drivers are processes; one that dies does so exactly in the call that is named below. It works in new folders,",
    "which it removes unless KEEP is set; TRIES is how often it tries at most (3). Exit codes: 1 violated, 0 held, 3 a",
    "step could not be done.",
)


def java_script(failure: StoredPlan) -> str:
    """The program of a failure of a table; UsageError says what it cannot show."""
    plan, version = failure.own_plan, failure.version or failure.sut.partition(":")[2]
    if failure.guarantee not in JUDGED:
        raise UsageError(
            f"{failure.title} cannot be shown by a script: it judges {', '.join(JUDGED)}, what the timeline, the files"
            " and the rows of a table show"
        )
    if plan.storage != "local":
        raise UsageError(f"{failure.title} cannot be shown by a script: {ON_S3}")
    steps = _steps(failure)
    options = {name: value for name, value in java_options(plan, version).items() if value != WRITE_KEY}
    return render_script(
        "table_script.java.j2",
        head=[printable(line).replace("*/", "* /") for line in (*head_of(failure), "", *_HOW)],
        title=_literal(failure.title),
        options=[(_literal(name), _literal(value)) for name, value in options.items()],
        partitions=_literals(partition_names(plan)),
        keys=key_count(plan),
        claims=_literals((failure.guarantee, *(each for each in failure.also if each in JUDGED))),
        steps=steps,
        unmarked="G13" in (failure.guarantee, *failure.also),
        deletes=shape_of(plan).deletes,
        wait_ms=int(HEARTBEAT_S * 1000) if shape_of(plan).lazy else 0,
        operations={name for step in steps for name in step["operations"]},
        jvm=_literals(JVM.split()),
        table_schema=_SCHEMA.get(version.rpartition(".")[0], "getTableSchema"),
    )


def _steps(failure: StoredPlan) -> list[dict[str, Any]]:
    """The writes with the calls that fail in each, as literals of Java."""
    plan = failure.own_plan
    last, made = last_data_file(len(partition_names(plan)), plan.storage), []
    for write in plan.writes:
        own = tuple(plan.faults[number] for number in write.faults)
        faults = own or last.faults if write.abandon else own
        name = ("" if own else "all data files are there") if write.abandon else write.name
        made.append({
            "name": _literal(name), "abandoned": str(write.abandon).lower(), "faults": list(map(_fault, faults)),
            "operations": {name for fault in faults for name in call_of(fault).operations},
        })  # fmt: skip
    return made


def _fault(fault: Fault) -> str:
    call, calls = call_of(fault), fault.settings.calls
    operations, path = _literal(" ".join(call.operations)), _literal(f"^{call.pattern}")
    return f"{operations}, {path}, {call.n}, {calls}, {_literal(effect_of(fault))}"


def _literals(texts: Iterable[str]) -> str:
    return ", ".join(map(_literal, texts))


def _literal(text: str) -> str:
    """The text as a literal of Java: JSON has the same escapes, for what is no letter of ASCII as well."""
    return json.dumps(text)

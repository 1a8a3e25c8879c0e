"""A driver from inside: its Spark session, and the loop in which it answers the kit.

The kit asks with one JSON line on standard input, and each answer is one on standard output; {"ready": true} comes
first. When the input ends, nobody is there any more who could ask, and the whole session of processes is killed.

Nothing of the kit is imported, so that a driver starts quickly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hudi measures objects by attaching an agent to its own process, which takes two seconds and changes nothing.
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    " -Djol.skipDynamicAttach=true -Djol.skipHotspotSAAttach=true"
)
SETTINGS = {
    "spark.app.name": "marker-sim",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
}
# Copies of a slow task start within a second, as soon as half of the tasks are through.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}
Respond = Callable[[dict[str, Any]], dict[str, Any]]


def open_session(settings: dict[str, str]) -> SparkSession:
    """A Spark session with these settings, its JVM and executors started."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def answer_kit(begin: Callable[[], Respond]) -> None:
    """Answer the kit's requests until the input ends; `begin` is called once, and makes what answers them."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # What Spark prints is no answer.
    asked: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    respond = begin()
    answer: dict[str, Any] = {"ready": True}
    while True:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        answer = respond(json.loads(asked.get()))


def _listen(asked: SimpleQueue[str]) -> None:
    """Put each line of the input into the queue; at its end kill the whole session, whatever it is doing."""
    for line in sys.stdin:
        asked.put(line)
    os.killpg(0, signal.SIGKILL)

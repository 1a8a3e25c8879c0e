"""The program of a driver: a Spark session with Hudi that writes and reads a table when it is told to.

    {"do": "write", "rows": [[key, part, value, ts], ...], "options": {...}}   {"ok": true} | {"error": "..."}
    {"do": "read"}                                                             {"rows": [[key, value], ...]} | {"error"}
    {"do": "stop"}                                                             the program ends; at the end of input its
                                                                               whole session is killed

One JSON line each; the first line it says itself is {"ready": true}. Its argument is a file with {"conf": settings of
Spark, "options": settings of Hudi, "table": URI}. Nothing of the kit is imported, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

COLUMNS = "key, part, value, ts"
CAUSES_MAX = 6


def main(path: str) -> None:
    """Serve until the input ends; answers leave by the standard output that was there at the start."""
    spec = json.loads(Path(path).read_text(encoding="utf-8"))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # What Spark prints is no answer.
    told: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(told,), daemon=True).start()
    session = _session(spec["conf"])
    _say(answers, {"ready": True})
    while (asked := json.loads(told.get()))["do"] != "stop":
        try:
            answer = _write(session, spec, asked) if asked["do"] == "write" else _read(session, spec)
        except Exception as error:
            answer = {"error": _causes(error)}
        _say(answers, answer)
    session.stop()


def _listen(told: SimpleQueue[str]) -> None:
    """Pass lines on; when nobody is there any more who could send one, the whole session dies, whatever it does."""
    for line in sys.stdin:
        told.put(line)
    os.killpg(0, signal.SIGKILL)


def _session(conf: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _write(session: Any, spec: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    # As SQL and not by createDataFrame, which would start Python workers; JSON's strings are SQL's.
    rows = ", ".join(f"({', '.join(map(json.dumps, row))})" for row in asked["rows"])
    frame = session.sql(f"SELECT key, part, value, CAST(ts AS BIGINT) AS ts FROM VALUES {rows} AS t({COLUMNS})")
    frame.write.format("hudi").options(**spec["options"], **asked["options"]).mode("append").save(spec["table"])
    return {"ok": True}


def _read(session: Any, spec: dict[str, Any]) -> dict[str, Any]:
    session.catalog.clearCache()
    metadata = spec["options"].get("hoodie.metadata.enable", "false")
    frame = session.read.format("hudi").option("hoodie.metadata.enable", metadata).load(spec["table"])
    return {"rows": sorted([row["key"], row["value"]] for row in frame.select("key", "value").collect())}


def _causes(error: Exception) -> str:
    """The exceptions behind an error, outermost first, in one line."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return f"{type(error).__name__}: {error}".splitlines()[0][:500]
    said: list[str] = []
    while java is not None and len(said) < CAUSES_MAX:
        said.append(str(java.toString()).splitlines()[0][:300])
        java = java.getCause()
    return " <- ".join(said)


def _say(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()

"""The program of a driver that writes a table with Hudi and reads it, as the kit asks (worlds/spark/session.py).

    {"do": "write", "rows": [[key, part, value, ts], ...], "options": {...}}   {"ok": true} | {"error": "..."}
    {"do": "read"}                                                             {"rows": [[key, value], ...]} | {"error"}

It is short because it stands alone: nothing of the kit but its loop is imported, so that a driver starts quickly.
"""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.worlds.spark.session import answer_kit, open_session

COLUMNS = "key, part, value, ts"
CAUSES_MAX = 6


def drive(path: str) -> None:
    """Serve until the input ends. path: a file with {"settings": of Spark, "options": of Hudi, "table": URI}."""
    spec = pickle.loads(Path(path).read_bytes())
    answer_kit(lambda: partial(_respond, open_session(spec["settings"]), spec))


def _respond(session: Any, spec: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return _write(session, spec, asked) if asked["do"] == "write" else _read(session, spec)
    except Exception as error:
        return {"error": _causes(error)}


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

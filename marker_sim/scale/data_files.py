"""Facts about data files and completed instants, from the columns of a history of writes that records their steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from marker_sim.history import decode_value
from marker_sim.history.index.presence import NEVER
from marker_sim.names import TEMP
from marker_sim.timeline import (
    HOODIE,
    PARTITION_METADATA,
    ROLLBACK,
    State,
    decode_commit,
    decode_rollback,
    parse_data_file,
    parse_entry,
)

Row = dict[str, Any]
FactRow = tuple[str, str, str | None, int]


class RecordedDataFiles:
    """Collects effects on data files, attempts, steps and the timeline; `facts` evaluates them."""

    def __init__(self) -> None:
        self._effects: list[pa.Table] = []
        self._attempts: list[pa.Table] = []
        self._entries: list[Row] = []
        self._steps: dict[int, Row] = {}
        self._ends: dict[int, Row] = {}
        self._in_place: set[str] = set()
        self._begun = 0
        self._earlier = False

    def add_effects(self, effects: pa.Table) -> None:
        """Take in effects outside marker directories, in order."""
        own = pc.match_substring(effects["path"], f"/{HOODIE}/")
        self._entries += effects.filter(own).to_pylist()
        data = effects.filter(pc.invert(own))
        gone = pc.is_null(data["value"])
        self._effects.append(pa.table({"path": data["path"], "index": data["index"], "gone": gone}))

    def add_attempts(self, attempts: pa.Table) -> None:
        """Take in invocations of attempts."""
        self._attempts.append(attempts.select(["table", "instant", "path", "index"]))

    def take(self, row: Row) -> None:
        """Take in a step, its end, a phase, an earlier instant or an effect in place."""
        if row["kind"] == "effect":
            self._in_place.add(row["path"] or "")
        elif row["kind"] == "invoke":
            self._steps[row["index"]] = row
        elif row["operation"] == "earlier":
            self._earlier = True
        elif row["operation"] == "phase":
            self._begun = self._begun or (row["index"] if self._earlier else 0)
        elif row["caused_by"] in self._steps:
            self._ends.setdefault(row["caused_by"], row)

    def facts(self) -> Iterator[FactRow]:
        """Facts about committed, removed and present files and finished instants; none without a step of a write."""
        tables = {step["table"] for step in self._steps.values() if step["operation"] == "begin"}
        if not tables:
            return
        prefixes = sorted((f"{table}/" for table in tables), key=lambda prefix: (-len(prefix), prefix))
        files = self._present()
        commits, rollbacks = self._completed(prefixes)
        yield from self._committed(commits, files)
        yield from self._over(commits, rollbacks)
        yield from self._owned(prefixes, files)

    def _present(self) -> dict[str, int]:
        """The data files stored at the end, by full path, with the event since which they are there."""
        effects = pa.concat_tables(self._effects)
        gone = effects.filter(effects["gone"]).group_by("path").aggregate([("index", "max")])
        put = effects.filter(pc.invert(effects["gone"]))
        at = pc.index_in(put["path"], value_set=gone["path"].combine_chunks())
        last_gone = pc.fill_null(gone["index_max"].take(at), -1)
        there = put.filter(pc.greater(put["index"], last_gone)).group_by("path").aggregate([("index", "min")])
        pairs = zip(there["path"].to_pylist(), there["index_min"].to_pylist(), strict=True)
        return {path: since for path, since in pairs if not path.endswith((PARTITION_METADATA, f".{since}.tmp"))}

    def _completed(self, prefixes: list[str]) -> tuple[list[tuple[int, str, str, bytes]], list[tuple[int, str, str]]]:
        """Completed commits (event, table, instant, content) and rollbacks (event, table, instant rolled back)."""
        commits, rollbacks = [], []
        for row in self._entries:
            prefix = next((prefix for prefix in prefixes if row["path"].startswith(prefix)), None)
            entry = None if prefix is None else parse_entry(row["path"][len(prefix) :])
            unfinished = row["operation"] in ("overwrite-begin", "overwrite-piece")
            if prefix is None or entry is None or unfinished or row["value"] is None:
                continue
            if entry.state is not State.COMPLETED:
                continue
            held = content(row["value"])
            if entry.action != ROLLBACK:
                commits.append((row["index"], prefix[:-1], entry.instant, held))
                continue
            try:
                rollbacks.append((row["index"], prefix[:-1], decode_rollback(held)[0]))
            except ValueError:
                continue  # Its target cannot be read, so it rolls nothing back.
        return commits, rollbacks

    def _committed(self, commits: list[tuple[int, str, str, bytes]], files: dict[str, int]) -> Iterator[FactRow]:
        """Files named by the run's commits, whether they are stored, and whether a rollback removed them."""
        missing: list[tuple[int, str, str, str]] = []
        for at, table, instant, held in commits:
            try:
                stats = decode_commit(held)
            except ValueError:
                continue
            directory = f"{table}{TEMP}{instant}"
            for stat in stats if at >= self._begun else ():
                yield "committed", directory, stat.path, at
                full = f"{table}/{stat.path}"
                if full in files:
                    yield "present", directory, stat.path, files[full]
                else:
                    missing.append((at, directory, stat.path, full))
        if missing:
            yield from self._undone(missing)

    def _undone(self, missing: list[tuple[int, str, str, str]]) -> Iterator[FactRow]:
        """The missing files that a rollback or sweep may have removed; columns cannot rule that out for the others.

        If a rollback can have, it is undecided which guarantee is broken, and neither is reported.
        """
        effects = pa.concat_tables(self._effects)
        own = effects.filter(pc.is_in(effects["path"], value_set=pa.array([full for *_, full in missing])))
        history: dict[str, list[tuple[int, bool]]] = {}
        for row in own.to_pylist():
            history.setdefault(row["path"], []).append((row["index"], row["gone"]))
        undoing = sorted(index for index, step in self._steps.items() if step["operation"] in ("rollback", "sweep"))
        for at, directory, name, full in missing:
            seen = history.get(full, [])
            before = [gone for index, gone in seen if index < at]
            removed = next((index for index, gone in seen if index > at and gone), NEVER)
            if before and not before[-1] and undoing and undoing[0] < removed:
                yield "cleaned", directory, name, removed

    def _over(
        self, commits: list[tuple[int, str, str, bytes]], rollbacks: list[tuple[int, str, str]]
    ) -> Iterator[FactRow]:
        """For each finished instant, the event at which its markers were listed, or an earlier one."""
        about: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for index, step in self._steps.items():
            about.setdefault((step["table"], step["instant"]), []).append((index, step["operation"]))
        for at, table, instant, _ in commits:
            if at >= self._begun:
                before = [(index, of) for index, of in about.get((table, instant), ()) if index < at]
                listed = [index for index, of in before if of == "finalize"]
                listed = listed or [index for index, of in before if of == "commit"]
                yield "finalized", f"{table}{TEMP}{instant}", None, (listed or [at])[-1]
        for at, table, instant in rollbacks:
            before = [(index, of) for index, of in about.get((table, instant), ()) if index < at]
            listed = [index for index, of in before if of == "rollback"]
            yield "rolled-back", f"{table}{TEMP}{instant}", None, min(listed, default=at)

    def _owned(self, prefixes: list[str], files: dict[str, int]) -> Iterator[FactRow]:
        """The files of each instant, without files that several instants attempted, or that have no known owner."""
        attempts: dict[str, dict[str, int]] = {}
        for row in pa.concat_tables(self._attempts).to_pylist():
            attempts.setdefault(f"{row['table']}/{row['path']}", {}).setdefault(row["instant"], row["index"])
        for path, since in files.items():
            prefix = next((prefix for prefix in prefixes if path.startswith(prefix)), None)
            if prefix is None or path in self._in_place or since < self._begun:
                continue
            relative = path[len(prefix) :]
            asked = attempts.get(path, {})
            file = parse_data_file(relative)
            own = file.instant if file is not None and file.version is None else None
            if len(asked) == 1 and own in (None, *asked):
                instant, first = next(iter(asked.items()))
                if first < since:
                    yield "present", f"{prefix[:-1]}{TEMP}{instant}", relative, since
            elif own is not None and not asked:
                yield "present", f"{prefix[:-1]}{TEMP}{own}", relative, since


def content(value: str) -> bytes:
    """The bytes in a `value` of a history; empty where it has none."""
    found = decode_value(json.loads(value))
    return found if isinstance(found, bytes) else b""

"""The facts of a recorded history, from its columns, without event objects and without an index.

What is frequent (creates, effects below marker directories and of data files, attempts) stays in columns; what there is
once or twice for each write (steps, timeline, deletions, faults) is read row by row. Of a file in storage only the last
content counts. Where the columns do not show what the other judges would find, a fact is left out or an excuse is
stated, so that sets report no breach that judges do not report (properties/scale/test_recorded.py).

Limits: storage effects must be recorded (`witness` "effects", `layout` "hudi").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.compute as pc

from marker_sim.faults import FAULT_CLASS
from marker_sim.history import decode_value
from marker_sim.history.index.calls import CHANGED_BY_KIT
from marker_sim.history.index.presence import NEVER, directory_of
from marker_sim.names import TEMP, decode_names, is_marker_name, marker_file_index
from marker_sim.scale.data_files import RecordedDataFiles, Row, content

READ = ("index", "process", "kind", "operation", "table", "instant", "path", "value", "caused_by", "escaped")
_FACT = pa.schema([("fact", pa.string()), ("directory", pa.string()), ("name", pa.string()), ("moment", pa.int64())])
_RARE = ("begin", "rollback", "sweep", "finalize", "commit", "delete", "hostile")
_IN_PLACE = ("overwrite-begin", "overwrite-piece", "overwrite-end")


class RecordedFacts:
    """Collects the facts of a history, batch by batch. classes: those of the faults in it."""

    def __init__(self) -> None:
        self.classes: set[str] = set()
        self._asked: list[pa.Table] = []
        self._ended: list[pa.Table] = []
        self._files: list[pa.Table] = []
        self._data = RecordedDataFiles()
        self._rows: list[tuple[str, str, str | None, int]] = []
        self._deletions: dict[int, str] = {}
        self._settled: dict[int, int] = {}
        self._copied: set[int] = set()
        self._writing: dict[str, set[str]] = {}
        self._before_run = False
        self._ran = False

    def add(self, batch: pa.Table) -> None:
        """Take in the next rows, in order."""
        batch = _unescaped(batch.select(list(READ)))
        kind, operation = batch["kind"], batch["operation"]
        create = pc.equal(operation, "create")
        self._asked.append(
            batch.filter(pc.and_(create, pc.equal(kind, "invoke"))).select(["index", "table", "instant", "path"])
        )
        ended = pc.is_in(kind, value_set=pa.array(["ok", "fail", "info"]))
        self._ended.append(batch.filter(pc.and_(create, ended)).select(["caused_by", "kind"]))
        effects = batch.filter(pc.and_(pc.equal(kind, "effect"), pc.is_valid(batch["path"])))
        inside = pc.match_substring(effects["path"], TEMP)
        self._files.append(_last_of(effects.filter(inside)))
        self._data.add_effects(effects.filter(pc.invert(inside)))
        self._data.add_attempts(batch.filter(pc.and_(pc.equal(operation, "attempt"), pc.equal(kind, "invoke"))))
        observed = pc.and_(pc.equal(kind, "observe"), pc.is_in(operation, value_set=pa.array(["phase", "earlier"])))
        rare = pc.or_(pc.is_in(operation, value_set=pa.array([*_RARE, *_IN_PLACE])), pc.equal(kind, "fault"))
        for row in batch.filter(pc.or_(rare, observed)).to_pylist():
            self._take(row)
        if self._before_run and not self._ran:
            self._there_before(effects.filter(inside))

    def table(self) -> pa.Table:
        """All facts: fact, directory, name, moment; the moment is the index of an event."""
        asked = pa.concat_tables(self._asked)
        directory = pc.binary_join_element_wise(
            pc.fill_null(asked["table"], "None"), pc.fill_null(asked["instant"], "None"), TEMP
        )
        creates = pa.table({"index": asked["index"], "directory": directory, "name": pc.fill_null(asked["path"], "")})
        ended = _first_ends(pa.concat_tables(self._ended))
        refused = ended.filter(pc.equal(ended["kind"], "fail"))["caused_by"]
        refused = refused.filter(pc.invert(pc.is_in(refused, value_set=pa.array(sorted(self._copied), pa.int64()))))
        answered = ended.filter(pc.equal(ended["kind"], "ok"))["caused_by"]
        made = [
            _facts(
                "requested", creates.filter(pc.invert(pc.is_in(creates["index"], value_set=refused.combine_chunks())))
            ),
            _facts("answered", creates.filter(pc.is_in(creates["index"], value_set=answered.combine_chunks()))),
            self._stored_where_asked(directory),
        ]
        rows = [*self._rows, *self._deleted(), *self._data.facts()]
        made.append(pa.Table.from_pylist([dict(zip(_FACT.names, row, strict=True)) for row in rows], schema=_FACT))
        return pa.concat_tables(made)

    def _take(self, row: Row) -> None:
        """Take in one row of a kind that is rare."""
        operation, kind, index = row["operation"], row["kind"], row["index"]
        if kind == "fault":
            self.classes.add(FAULT_CLASS.get(operation, "none"))
            if operation == "duplicated" and row["caused_by"] is not None:
                self._copied.add(row["caused_by"])
            if operation in CHANGED_BY_KIT and row["path"]:
                home = directory_of(row["path"] + "/") or row["path"]
                self._rows.append(("deleted", home, None, NEVER))
        elif operation == "delete" and kind == "invoke":
            self._deletions[index] = _directory(row)
        elif operation == "delete" and kind in ("ok", "fail", "info"):
            self._settled.setdefault(row["caused_by"], {"ok": index, "fail": -1}.get(kind, NEVER))
        elif operation == "hostile" and kind == "invoke":
            self._hostile(row)
        else:
            if operation in _IN_PLACE:
                writers = self._writing.setdefault(row["path"] or "", set())
                (writers.discard if operation == "overwrite-end" else writers.add)(row["process"])
            self._before_run |= operation == "earlier"
            self._ran |= operation == "phase"
            self._data.take(row)

    def _hostile(self, row: Row) -> None:
        """Take in a hostile request, which may store the names in it, in its own directory or where it resolves to."""
        value = decode_value(json.loads(row["value"])) if row["value"] is not None else ""
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
        for name in (text, *parse_qs(text.rpartition("?")[2], keep_blank_values=True).get("markername", ())):
            for place in (_directory(row), row["path"] or ""):
                self._rows.append(("requested", place, _storable(name), row["index"]))

    def _there_before(self, effects: pa.Table) -> None:
        """Take in names stored before the run as requested, for no call of the run requests them."""
        for row in effects.to_pylist():
            for directory, name in _names_in(row["path"], row["value"]):
                self._rows.append(("requested", directory, name, row["index"]))

    def _deleted(self) -> Iterator[tuple[str, str, str | None, int]]:
        for index, directory in self._deletions.items():
            settled = NEVER if index in self._copied else self._settled.get(index, NEVER)
            if settled >= 0:
                yield "deleted", directory, None, settled

    def _stored_where_asked(self, asked: pa.ChunkedArray) -> pa.Table:
        """The stored names in directories that a request named; what a server keeps elsewhere is its own."""
        stored = self._stored()
        others = {place for fact, place, _, _ in self._rows if fact == "requested"} | {*self._deletions.values()}
        named = pa.concat_arrays([asked.combine_chunks(), pa.array(sorted(others), pa.string())])
        return stored.filter(pc.is_in(stored["directory"], value_set=named))

    def _stored(self) -> pa.Table:
        """The names in the last content of every file; a file that is being written counts as empty."""
        files = _last_of(pa.concat_tables(self._files))
        files = files.filter(pc.is_valid(files["value"]))
        open_ = pa.array(sorted(path for path, writers in self._writing.items() if writers), pa.string())
        unsettled = pc.is_in(files["path"], value_set=open_)
        for path in files.filter(unsettled)["path"].to_pylist():
            self._rows.append(("deleted", directory_of(path) or "", None, NEVER))
        files = files.filter(pc.invert(unsettled))
        direct = pc.match_substring_regex(files["path"], r"[^/]\.marker\.(CREATE|MERGE|APPEND)$")
        single = pc.extract_regex(
            files.filter(direct)["path"], r"(?s)^(?P<directory>.+?/\.hoodie/\.temp/[^/]*)/(?P<name>.+)$"
        )
        names: list[pa.Table] = []
        if len(single):
            found = pa.chunked_array([chunk.field("directory") for chunk in single.chunks])
            name = pa.chunked_array([chunk.field("name") for chunk in single.chunks])
            names.append(pa.table({"directory": found, "name": name, "index": files.filter(direct)["index"]}))
        batched = files.filter(pc.invert(direct))
        for row in batched.to_pylist():
            pairs = list(_names_in(row["path"], row["value"]))
            if pairs:
                table = {"directory": [pairs[0][0]] * len(pairs), "name": [name for _, name in pairs]}
                names.append(pa.table({**table, "index": [row["index"]] * len(pairs)}))
        return pa.concat_tables([_facts("stored", each) for each in names]) if names else _FACT.empty_table()


def _directory(row: Row) -> str:
    return f"{row['table']}{TEMP}{row['instant']}"


def _names_in(path: str, value: str | None) -> Iterator[tuple[str, str]]:
    """The marker directory and the names in the content of a file; value: as a history has it."""
    directory = directory_of(path)
    if directory is None or value is None:
        return
    relative = path[len(directory) + 1 :]
    if marker_file_index(relative) is not None:
        for name in decode_names(content(value)):
            yield directory, _storable(name)
    elif is_marker_name(relative):
        yield directory, relative


def _storable(text: str) -> str:
    """A text that a column can hold: one with bytes that are not UTF-8 becomes a literal."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return text


def _unescaped(batch: pa.Table) -> pa.Table:
    """The rows; the texts of those with JSON literals, because one of them is not UTF-8, are read from these."""
    if not pc.any(batch["escaped"]).as_py():
        return batch
    rows = batch.to_pylist()
    for row in rows:
        if row["escaped"]:
            texts = ("process", "kind", "operation", "table", "instant", "path")
            row |= {name: _storable(json.loads(row[name])) for name in texts if row[name] is not None}
    return pa.Table.from_pylist(rows, schema=batch.schema)


def _last_of(effects: pa.Table) -> pa.Table:
    """The last effect on each path."""
    last = effects.group_by("path").aggregate([("index", "max")])["index_max"]
    return effects.filter(pc.is_in(effects["index"], value_set=last.combine_chunks())).select(
        ["path", "index", "value"]
    )


def _first_ends(ended: pa.Table) -> pa.Table:
    """The completions of different invocations; of an invocation that ended twice none is kept."""
    counts = ended.group_by("caused_by").aggregate([("kind", "count"), ("kind", "min")])
    once = counts.filter(pc.equal(counts["kind_count"], 1))
    return pa.table({"caused_by": once["caused_by"], "kind": once["kind_min"]})


def _facts(fact: str, names: pa.Table) -> pa.Table:
    columns = [pa.repeat(fact, len(names)), names["directory"], names["name"], names["index"]]
    return pa.table(columns, names=_FACT.names).cast(_FACT)

"""One long history made of recorded runs: each run's tables and processes get names of their own, its events follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from marker_sim.history import Event, History
from marker_sim.names import TEMP
from marker_sim.report.columns import as_table

_GAP_NS = 1_000_000_000
SERVER = "server#1"
_ONCE = ("phase", "mode")


def composed(runs: Iterable[History], begins: bool = True, one_server: bool = False) -> Iterator[Event]:
    """The events of these runs, one after another, without gaps in their indices.

    Run n has its tables below `n/` and its processes named `n-...`. Phases and the chosen mode are those of the first
    run, until the phase "faults"; so nothing of a run is said to be healed, and faults stay what they were.

    begins: False for what is to be put behind other runs, so that it has no phases either.
    one_server: their servers are one, which lives on and on; for runs of which each has one server and ends it.
    """
    begin, now_ns = 0, 0
    for number, run in enumerate(runs):
        places: dict[int, int] = {}
        last_ns = now_ns
        for event in run.events:
            if (
                (number or not begins)
                and event.operation in _ONCE
                and event.kind == "observe"
                and event.instant is None
            ):
                continue
            if event.operation == "phase" and event.value != "faults":
                continue
            if one_server and event.operation == "kill":
                continue
            if one_server and event.operation == "started" and (number or not begins):
                continue
            last_ns = now_ns + event.time_ns
            places[event.index] = begin
            moved = _moved(event, number, begin, last_ns, places)
            yield moved._replace(process=event.process) if one_server and event.process == SERVER else moved
            begin += 1
        now_ns = last_ns + _GAP_NS


def write_repeated(path: Path, runs: Sequence[History], odd: History, events: int, odd_every: int) -> tuple[int, int]:
    """Write a long history of these runs over and over; each `odd_every`th block has an odd run as well.

    One server serves all. Returns how many events there are, at least `events`, and how often the odd run was put in.
    """
    header = runs[0].header
    first = as_table(History(header, tuple(composed(runs, True, True))))
    block = as_table(History(header, tuple(composed(runs, False, True))))
    with_odd = as_table(History(header, tuple(composed([*runs, odd], False, True))))
    length_ns = pc.max(with_odd["time_ns"]).as_py() + _GAP_NS
    written = odd_ones = number = 0
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        while written < events:
            is_odd = number % odd_every == 1
            table = first if not number else with_odd if is_odd else block
            writer.write_table(_behind(table, number, written, number * length_ns))
            written, odd_ones, number = written + len(table), odd_ones + is_odd, number + 1
    return written, odd_ones


def _behind(table: pa.Table, number: int, begin: int, since_ns: int) -> pa.Table:
    """A block with names of its own, behind so many events and so much time."""
    own = pc.or_kleene(pc.equal(table["kind"], "effect"), pc.match_substring(table["path"], TEMP))
    own = pc.or_kleene(own, pc.is_in(table["operation"], value_set=pa.array(["file", "raw-file"])))
    prefix = f"b{number}-"
    named = {name: pc.binary_join_element_wise(prefix, table[name], "") for name in ("process", "table", "path")}
    named["process"] = pc.if_else(
        pc.is_in(table["process"], value_set=pa.array(["kit", SERVER])), table["process"], named["process"]
    )
    named["path"] = pc.if_else(pc.fill_null(own, False), named["path"], table["path"])
    moved = {name: pc.add(table[name], begin) for name in ("index", "caused_by")}
    moved["time_ns"] = pc.add(table["time_ns"], since_ns)
    columns = [{**named, **moved}.get(name, table[name]) for name in table.schema.names]
    return pa.table(columns, schema=table.schema)


def _moved(event: Event, number: int, index: int, time_ns: int, places: dict[int, int]) -> Event:
    path = event.path
    if path is not None and (event.kind == "effect" or TEMP in path or event.operation in ("file", "raw-file")):
        path = f"{number}/{path}"
    return event._replace(
        index=index,
        time_ns=time_ns,
        process=event.process if event.process == "kit" else f"{number}-{event.process}",
        table=None if event.table is None else f"{number}/{event.table}",
        path=path,
        caused_by=None if event.caused_by is None else places.get(event.caused_by),
    )

"""One attempt of a task: its marker first, then its file, then the write stat for the driver.

Every attempt has its own write token and therefore its own marker and its own file, so a retried or speculative
attempt never touches what another one wrote. Source: Hudi 0.15.0 HoodieWriteHandle and WriteMarkers; how often and how
long an executor retries is our decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from marker_sim.markers.files import retry_until_decided
from marker_sim.markers.store import Context, Rejected
from marker_sim.names import MarkerType, marker_name
from marker_sim.plan import Task
from marker_sim.seams import Runtime, SeamError, Storage
from marker_sim.timeline import WriteStat, WriteToken, base_file_name, log_file_name
from marker_sim.writer.slices import LINES, Group, RowFormat, Slice

TRIES = 5
PAUSE_MS = 100.0
CreateMarker = Callable[[str, str], object]


class Assignment(NamedTuple):
    """The work of an attempt.

    slice: the current slice of the file group, None for a new one.
    path: of the data file, relative to the table; unique to the attempt.
    kind: "CREATE" for a new file group, "MERGE" or "APPEND" on a slice.
    rows: rows to insert or update, by key.
    strays: `Task.strays`, which the caller creates.
    """

    table: str
    instant: str
    partition: str
    file_id: str
    kind: str
    token: WriteToken
    path: str
    rows: tuple[tuple[str, str], ...]
    slice: Slice | None = None
    strays: tuple[str, ...] = ()


def assigned(task: Task, place: tuple[str, str], slices: Mapping[Group, Slice], merge_on_read: bool) -> Assignment:
    """The work of a task on the current slice of its file group, without token and path. place: table, instant."""
    file_id = f"{task.group}-0"
    there = slices.get((task.partition, file_id))
    kind = "APPEND" if task.kind == "APPEND" and merge_on_read else "MERGE"
    kind = "CREATE" if there is None else kind
    return Assignment(*place, task.partition, file_id, kind, WriteToken(0, 0, 0), "", (), there, task.strays)


def work_of(work: Assignment, token: WriteToken, rows: tuple[tuple[str, str], ...]) -> Assignment:
    """The work completed for one attempt: with its token, path and rows."""
    path = path_of(work.instant, work.partition, work.file_id, work.kind, token, work.slice)
    return work._replace(token=token, path=path, rows=rows)


def path_of(instant: str, partition: str, file_id: str, kind: str, token: WriteToken, there: Slice | None) -> str:
    """The data path of an attempt; an APPEND to an existing slice gets the name of a log file."""
    if kind == "APPEND" and there is not None:
        name = log_file_name(file_id, there.instant, len(there.logs) + 1, token)
    else:
        name = base_file_name(file_id, token, instant)
    return f"{partition}/{name}" if partition else name


def write_file(
    work: Assignment,
    context: Context,
    create: CreateMarker,
    slow_ms: float = 0.0,
    rows_as: RowFormat = LINES,
) -> WriteStat:
    """Create the marker, then the file; when either raises, the attempt has failed.

    create: the marker store's create, called with the name and an identity that is the same for each retry.
    """
    storage, runtime = context.storage, context.runtime
    make_marker(marker_of(work), runtime, create)
    if slow_ms:
        runtime.sleep(slow_ms)
    rows = rows_of(work, storage, runtime, rows_as)
    data = rows_as.encode(rows, str(work.token))
    path = f"{work.table}/{work.path}"
    # A local file is written in place and in pieces, so that a killed process leaves a torn file.
    write = storage.overwrite if storage.capabilities.host_lock else storage.put
    retry_until_decided(storage, runtime, lambda: write(path, data))
    return stat_of(work, len(rows))


def marker_of(work: Assignment) -> str:
    """The name of an attempt's marker."""
    name = work.path.rpartition("/")[2]
    return marker_name(work.partition, name, MarkerType(work.kind))


def rows_of(work: Assignment, storage: Storage, runtime: Runtime, rows_as: RowFormat = LINES) -> dict[str, str]:
    """The rows of the attempt's file; a MERGE includes those of the slice that it replaces."""
    rows = dict(work.rows)
    if work.kind == "MERGE" and work.slice is not None:
        rows = read_slice(work.table, work.slice, storage, runtime, rows_as) | rows
    return rows


def stat_of(work: Assignment, rows: int) -> WriteStat:
    """The write stat of an attempt. rows: the number of rows in its file."""
    return WriteStat(work.partition, work.file_id, work.path, rows, work.slice.instant if work.slice else "")


def make_marker(name: str, runtime: Runtime, create: CreateMarker) -> None:
    """Retry until the marker store answers; CREATED and EXISTS both mean that the marker is stored.

    After an error no file is written (Hudi P 19369).
    """
    request = runtime.unique_id()
    for number in range(TRIES):
        try:
            create(name, request)
            return
        except Rejected:
            raise
        except SeamError:
            if number == TRIES - 1:
                raise
            runtime.sleep(PAUSE_MS * 2**number)


def read_slice(
    table: str, slice_: Slice, storage: Storage, runtime: Runtime, rows_as: RowFormat = LINES
) -> dict[str, str]:
    """The rows of a file slice, later files over earlier ones; NotFound when a committed file is missing."""
    rows: dict[str, str] = {}
    for path in (*((slice_.base,) if slice_.base else ()), *slice_.logs):
        content = retry_until_decided(storage, runtime, lambda path=path: storage.get(f"{table}/{path}"))  # type: ignore[misc]
        rows |= rows_as.decode(content.data)
    return rows

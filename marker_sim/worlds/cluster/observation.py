"""The end of a run: storage is read and recorded as the kit's observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from marker_sim.names import MarkerDirectory
from marker_sim.writer.slices import RowFormat, table_rows


def observe(
    record: Callable[..., int],
    began: int,
    files: Mapping[str, bytes],
    directories: Iterable[MarkerDirectory],
    names_read: Callable[[str], tuple[str, ...] | None],
    tables: Iterable[str],
    rows_as: RowFormat,
) -> None:
    """Record every file and marker directory, and the rows that readers of completed commits find in each table.

    began: the index of the last event before storage is read.
    names_read: what a fresh instance lists in a marker directory, None where judges can read the files themselves.
    """
    for path in sorted(files):
        record("kit", "kit", "observe", "file", path=path, value=files[path])
    for place in directories:
        names = names_read(place.path)
        record("kit", "kit", "observe", "snapshot", *place, place.path, names, caused_by=began)
    for table in tables:
        value, error = None, None
        try:
            value = tuple(f"{key}={row}" for key, row in sorted(table_rows(table, files, rows_as).items()))
        except ValueError as unreadable:
            error = str(unreadable)
        record("kit", "kit", "observe", "rows", table, value=value, error=error)

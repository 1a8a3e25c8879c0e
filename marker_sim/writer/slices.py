"""The files that hold each row, derived from the completed commits alone. Pure functions.

The latest file slice of a file group is its last base file and the log files committed on it since. In the simulated
world a file has "key=value" lines after a line that names its writer; real processes write Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from marker_sim.timeline import ROLLBACK, State, WriteStat, decode_commit, parse_data_file, parse_entry

Group = tuple[str, str]


class Slice(NamedTuple):
    """The current files of a file group, relative to the table. instant: of the base file; base: "" for none."""

    instant: str
    base: str
    logs: tuple[str, ...]


def latest_slices(commits: Iterable[tuple[str, tuple[WriteStat, ...]]]) -> dict[Group, Slice]:
    """The latest file slice of each group, by partition and file id. commits: instants with stats, oldest first."""
    slices: dict[Group, Slice] = {}
    for instant, stats in commits:
        for stat in stats:
            add_to_slices(slices, instant, stat)
    return slices


def add_to_slices(slices: dict[Group, Slice], instant: str, stat: WriteStat) -> None:
    """Apply one write stat of a completed commit."""
    file = parse_data_file(stat.path)
    group = (stat.partition, stat.file_id)
    if file is not None and file.version is not None:
        known = slices.get(group, Slice(file.instant, "", ()))
        slices[group] = known._replace(logs=(*known.logs, stat.path))
    else:
        slices[group] = Slice(instant, stat.path, ())


def encode_rows(rows: Mapping[str, str], made_by: str) -> bytes:
    """The content of a data file; as in a real format, no two attempts write equal content."""
    lines = "".join(f"{key}={value}\n" for key, value in sorted(rows.items()))
    return f"#{made_by}\n{lines}".encode("utf-8", "surrogatepass")


def decode_rows(data: bytes) -> dict[str, str]:
    """The inverse of `encode_rows`; ValueError for a line that is no row, or a file that ends within a line."""
    text = data.decode("utf-8", "surrogatepass")
    if text and not text.endswith("\n"):
        raise ValueError("the file ends in the middle of a row")
    rows = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("#"):
            continue
        key, found, value = line.rpartition("=")
        if not found:
            raise ValueError(f"{line!r} is no row")
        rows[key] = value
    return rows


class RowFormat(NamedTuple):
    """How rows are encoded as a data file. decode: ValueError for an incomplete file."""

    encode: Callable[[Mapping[str, str], str], bytes]
    decode: Callable[[bytes], dict[str, str]]


LINES = RowFormat(encode_rows, decode_rows)


def table_rows(table: str, files: Mapping[str, bytes], rows_as: RowFormat = LINES) -> dict[str, str]:
    """The rows that a reader of completed commits finds, given every file by full path; ValueError when it cannot."""
    commits = []
    for path in sorted(files):
        entry = parse_entry(path)
        if entry is None or entry.path(table) != path or entry.state is not State.COMPLETED or entry.action == ROLLBACK:
            continue
        commits.append((entry.instant, decode_commit(files[path])))
    rows: dict[str, str] = {}
    for (partition, _), latest in sorted(latest_slices(sorted(commits)).items()):
        for relative in (*((latest.base,) if latest.base else ()), *latest.logs):
            content = files.get(f"{table}/{relative}")
            if content is None:
                raise ValueError(f"{relative} of partition {partition!r} is committed and missing")
            rows |= rows_as.decode(content)
    return rows

"""Names of a table's timeline entries and data files, of every release, and the bytes of those that we write. Pure.

    layout 1   <table>/.hoodie/<instant>.<action>[.requested|.inflight]            table versions up to 7
    layout 2   <table>/.hoodie/timeline/<instant>.<action>.requested|inflight      table versions from 8
               <table>/.hoodie/timeline/<instant>_<completion>.<action>
    both       <instant>.inflight is the inflight entry of a commit
    base file  [<partition path>/]<file id>_<write token>_<instant>.<parquet|orc|hfile|...>
    log file   [<partition path>/].<file id>_<instant>.log.<version>[_<write token>][.cdc]
    side file  .hoodie_partition_metadata[.<format>], .<name>.crc, <folder>_$folder$ of object stores
    external   <name>_<instant>[_fg%3D<folder>]_hudiext in a commit, stored as [<folder>/]<name>: another writer's

A write token is <task>-<stage>-<task attempt>; Flink's retries have more numbers. In layout 1 a log file carries the
instant of the base file that it belongs to, so its name does not say which write made it.

There are two views of a name:

    `parse_entry`, `parse_data_file`    what the reference writes, and what judges of files know: layout 1, three
                                        actions, Parquet, a write token in each name; any text may be an instant
    `table_entry`, `parse_table_file`   entries of any release, for readers of a table at rest: both layouts,
                                        every action and format, any token that Hudi's own patterns accept, or
                                        none; an instant is digits

Completed commits are JSON with the write stats, as Hudi writes them; our rollback records are JSON as well, where Hudi
has Avro (our decision: only the kit reads them).
Source: HoodieInstant, HoodieInstantTimeGenerator, HoodieTimeline, FSUtils and HoodieCommitMetadata of Hudi 0.15.0;
FSUtils of 0.5.3 to 1.2.0; ExternalFilePathUtil of 1.2.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

HOODIE = ".hoodie"
HEARTBEATS = f"{HOODIE}/.heartbeat/"
COMMIT, DELTA_COMMIT, ROLLBACK = "commit", "deltacommit", "rollback"
ACTIONS = (COMMIT, DELTA_COMMIT, ROLLBACK)
# A pending one belongs to a write. A replacecommit may be a clustering, which waits for its turn.
WRITES = frozenset({COMMIT, DELTA_COMMIT})
COMMITS = WRITES | {"replacecommit"}
UNDOING = frozenset({ROLLBACK, "restore"})
TIMELINES = (HOODIE, f"{HOODIE}/timeline")
PARTITION_METADATA = ".hoodie_partition_metadata"
_EVERY_ACTION = (
    "commit|deltacommit|replacecommit|clean|rollback|restore|savepoint|compaction|logcompaction|clustering|indexing"
    "|schemacommit"
)
_ENTRY = re.compile(rf"([^./]+)\.(?:({_EVERY_ACTION})(?:\.(requested|inflight))?|(inflight))\Z")
_TIMES = re.compile(r"([0-9]+)(?:_([0-9]+))?\Z")
_LOG = re.compile(r"\.([^/]+)_([^_/]+)\.log\.([0-9]+)_([0-9]+)-([0-9]+)-([0-9]+)\Z")
_BASE = re.compile(r"([^/]+)_([0-9]+)-([0-9]+)-([0-9]+)_([^_/]+)\.parquet\Z")
_ANY_LOG = re.compile(r"\.([^/]+)_([0-9]+)\.log\.([0-9]+)(?:[_.][^/]*)?\Z")
_ANY_BASE = re.compile(r"(?!\.)(?:([A-Za-z0-9-]+)_[A-Za-z0-9-]+|([^/]+)_[0-9]+-[0-9]+-[0-9]+)_([0-9]+)\.[A-Za-z0-9]+\Z")
_EXTERNAL = re.compile(r"([^/]+)_([0-9]+)(?:_fg%3D([^/]+))?_hudiext\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INSTANT_FORMAT = "%Y%m%d%H%M%S"
_INSTANT_LENGTH = 17
# Errors of JSON that is no metadata: RecursionError if nested too deep, OverflowError for 1e999.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class State(StrEnum):
    """The state of an action."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


class Entry(NamedTuple):
    """The parts of a timeline file's name. completion: "" where the name has none, as in layout 1."""

    instant: str
    action: str
    state: State
    completion: str = ""

    def path(self, table: str) -> str:
        """The path of the file."""
        if self.state is State.COMPLETED:
            return f"{table}/{HOODIE}/{self.instant}.{self.action}"
        if self.state is State.INFLIGHT and self.action == COMMIT:
            return f"{table}/{HOODIE}/{self.instant}.inflight"
        return f"{table}/{HOODIE}/{self.instant}.{self.action}.{self.state.value}"


class WriteToken(NamedTuple):
    """Identifies the task attempt that made a file."""

    task: int
    stage: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.task}-{self.stage}-{self.attempt}"


NO_TOKEN = WriteToken(-1, -1, -1)


class DataFile(NamedTuple):
    """The parts of a data file's name.

    instant: of the write, or of a log file's base file.
    token: `NO_TOKEN` in names of other releases, of which nobody needs it.
    version: None for base files.
    """

    partition: str
    file_id: str
    instant: str
    token: WriteToken
    version: int | None

    @property
    def log(self) -> bool:
        """Whether it is a log file."""
        return self.version is not None


class WriteStat(NamedTuple):
    """The record of a file that an accepted attempt wrote.

    path: relative to the table.
    base: the instant of the base file it builds on.
    """

    partition: str
    file_id: str
    path: str
    rows: int
    base: str


@lru_cache(maxsize=4096)
def parse_entry(path: str) -> Entry | None:
    """The reference's timeline entry at a storage path, None for any other file; the table's path may precede it."""
    folder, _, name = path.rpartition("/")
    match = _ENTRY.match(name)
    if match is None or (folder and folder.rpartition("/")[2] != HOODIE):
        return None
    instant, action, state, inflight = match.groups()
    if inflight:
        return Entry(instant, COMMIT, State.INFLIGHT)
    if action not in ACTIONS or (state == State.INFLIGHT and action == COMMIT):
        return None
    return Entry(instant, action, State(state or State.COMPLETED))


def table_entry(name: str) -> Entry | None:
    """The timeline entry with a file name, in any release; None when it is no entry."""
    match = _ENTRY.match(name)
    times = _TIMES.match(match[1]) if match else None
    if match is None or times is None:
        return None
    _, action, state, inflight = match.groups()
    instant, completion = times.groups()
    if inflight:
        return Entry(instant, COMMIT, State.INFLIGHT)
    if completion and state:
        return None
    return Entry(instant, action, State(state or State.COMPLETED), completion or "")


def entry_at(relative: str) -> Entry | None:
    """The entry of any release that a path relative to its table is, None for every other file."""
    folder, _, name = relative.rpartition("/")
    return table_entry(name) if folder in TIMELINES else None


@lru_cache(maxsize=256)
def instant_at(now_ms: float, newest: str) -> str:
    """The instant of a time in ms since 1970, yyyyMMddHHmmssSSS, made later than `newest` ("" for none).

    Later as Hudi compares instants, which is as strings: times of 17 digits, those of 14 that versions before 0.10
    wrote, and what is no time, as in bootstrapped tables ("00000000000001"). Hudi waits until the clock says so.
    """
    return max(_format(_EPOCH + int(now_ms) * _MS), _after(newest) if newest else "")


def base_file_name(file_id: str, token: WriteToken, instant: str) -> str:
    """The name of a base file."""
    return f"{file_id}_{token}_{instant}.parquet"


def log_file_name(file_id: str, base_instant: str, version: int, token: WriteToken) -> str:
    """The name of a log file; version counts from 1 within its file slice."""
    return f".{file_id}_{base_instant}.log.{version}_{token}"


@lru_cache(maxsize=4096)
def parse_data_file(path: str) -> DataFile | None:
    """What a data path relative to its table says; None when it names no base file in Parquet and no log file."""
    partition, _, name = path.rpartition("/")
    if (log := _LOG.match(name)) is not None:
        file_id, instant, version, *numbers = log.groups()
        return DataFile(partition, file_id, instant, WriteToken(*map(int, numbers)), int(version))
    if (base := _BASE.match(name)) is not None:
        file_id, *numbers, instant = base.groups()
        return DataFile(partition, file_id, instant, WriteToken(*map(int, numbers)), None)
    return None


def parse_table_file(path: str) -> DataFile | None:
    """What a path relative to its table says of a data file of any release, without its token; None when it is none."""
    partition, _, name = path.rpartition("/")
    if (log := _ANY_LOG.match(name)) is not None:
        return DataFile(partition, log[1], log[2], NO_TOKEN, int(log[3]))
    if (base := _ANY_BASE.match(name)) is not None:
        return DataFile(partition, base[1] or base[2], base[3], NO_TOKEN, None)
    if (external := _EXTERNAL.match(name)) is not None:
        return DataFile(partition, _in_folder(external), external[2], NO_TOKEN, None)
    return None


def stored_path(path: str) -> str:
    """Where a file that a commit names is stored: one that another writer made keeps its own name."""
    partition, slash, name = path.rpartition("/")
    external = _EXTERNAL.match(name)
    return path if external is None else f"{partition}{slash}{_in_folder(external)}"


def _in_folder(external: re.Match[str]) -> str:
    return f"{unquote(external[3])}/{external[1]}" if external[3] else external[1]


def is_side_file(path: str) -> bool:
    """Whether a path beside data files is Hudi's or Hadoop's own: a partition's metadata, a checksum, a folder."""
    name = path.rpartition("/")[2]
    checksum = name.startswith(".") and name.endswith(".crc")
    return checksum or name.startswith(PARTITION_METADATA) or name.endswith("_$folder$")


def encode_commit(stats: Iterable[WriteStat], extra: dict[str, str]) -> bytes:
    """The content of a completed commit."""
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for stat in sorted(stats):
        row = {"fileId": stat.file_id, "path": stat.path, "prevCommit": stat.base, "numWrites": stat.rows}
        by_partition.setdefault(stat.partition, []).append(row)
    body = {"partitionToWriteStats": by_partition, "extraMetadata": extra, "operationType": "UPSERT"}
    return json.dumps(body, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


@lru_cache(maxsize=256)
def decode_commit(data: bytes) -> tuple[WriteStat, ...]:
    """The write stats of a completed commit, sorted; ValueError when it is not one."""
    try:
        raw = json.loads(data.decode("utf-8", "surrogatepass"))
        stats = [
            WriteStat(
                partition,
                text_of(row["fileId"]),
                text_of(row["path"]),
                int(row.get("numWrites", 0)),
                text_of(row.get("prevCommit") or ""),
            )
            for partition, rows in raw["partitionToWriteStats"].items()
            for row in rows
        ]
    except _MALFORMED as error:
        raise ValueError(f"no commit metadata: {error!r}") from error
    return tuple(sorted(stats))


@lru_cache(maxsize=256)
def write_ordinal(data: bytes) -> int | None:
    """The number of the write in its plan, as stored in a commit; None when it has none."""
    try:
        return int(json.loads(data)["extraMetadata"]["write"])
    except _MALFORMED:
        return None


def encode_rollback(instant: str, action: str) -> bytes:
    """The content of a rollback's entries, the same in every state: the instant rolled back."""
    return json.dumps({"instantToRollback": {"commitTime": instant, "action": action}}).encode("utf-8")


def decode_rollback(data: bytes) -> tuple[str, str]:
    """The instant and action that a rollback reverts; ValueError when it is no rollback."""
    try:
        target = json.loads(data)["instantToRollback"]
        return text_of(target["commitTime"]), text_of(target["action"])
    except _MALFORMED as error:
        raise ValueError(f"no rollback metadata: {error!r}") from error


def text_of(value: object) -> str:
    """A value that must be text; TypeError for any other."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _format(moment: datetime) -> str:
    return f"{moment.year:04}{moment.strftime(_INSTANT_FORMAT[2:])}{moment.microsecond // 1000:03d}"


def _after(instant: str) -> str:
    """A later instant: one millisecond, else the next number with as many digits, else one more character."""
    try:
        later = _format(datetime.strptime(instant[:14], _INSTANT_FORMAT) + int(instant[14:] or "0") * _MS + _MS)
    except (ValueError, OverflowError):
        digits = instant.isascii() and instant.isdigit() and len(instant) <= _INSTANT_LENGTH
        later = str(int(instant) + 1).zfill(len(instant)) if digits else ""
    return later if later > instant else f"{instant}1"

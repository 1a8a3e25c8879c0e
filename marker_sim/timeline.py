"""Names and bytes of a table's timeline and data files in layout 6. Pure functions.

    timeline   <table>/.hoodie/<instant>.<file>, where <file> is, in the order of writing
                 commit.requested       inflight              commit          of a COPY_ON_WRITE table
                 deltacommit.requested  deltacommit.inflight  deltacommit     of a MERGE_ON_READ table
                 rollback.requested     rollback.inflight     rollback
    base file  [<partition path>/]<file id>_<write token>_<instant>.parquet
    log file   [<partition path>/].<file id>_<base instant>.log.<version>_<write token>

A write token is <task>-<stage>-<task attempt>. A log file carries the instant of the base file that it belongs to, so
its name does not say which write made it. Completed commits are JSON with the write stats, as Hudi writes them; our
rollback records are JSON as well, where Hudi has Avro (our decision: nobody but the kit reads them).
Source: Hudi 0.15.0 HoodieInstant, HoodieInstantTimeGenerator, HoodieTimeline, FSUtils, HoodieCommitMetadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

HOODIE = ".hoodie"
COMMIT, DELTA_COMMIT, ROLLBACK = "commit", "deltacommit", "rollback"
ACTIONS = (COMMIT, DELTA_COMMIT, ROLLBACK)
_ENTRY = re.compile(r"([^./]+)\.(?:(commit|deltacommit|rollback)(?:\.(requested|inflight))?|(inflight))\Z")
_LOG = re.compile(r"\.(.+)_([^_]+)\.log\.([0-9]+)_([0-9]+)-([0-9]+)-([0-9]+)\Z")
_BASE = re.compile(r"([^/]+)_([0-9]+)-([0-9]+)-([0-9]+)_([^_/]+)\.parquet\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INSTANT_FORMAT = "%Y%m%d%H%M%S"
_INSTANT_LENGTH = 17
# What JSON that is no metadata ends in: RecursionError when it is nested too deep, OverflowError for 1e999.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class State(Enum):
    """The state of an action."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


class Entry(NamedTuple):
    """One file of the timeline, by its name."""

    instant: str
    action: str
    state: State

    def path(self, table: str) -> str:
        """The path of the file."""
        if self.state is State.COMPLETED:
            return f"{table}/{HOODIE}/{self.instant}.{self.action}"
        if self.state is State.INFLIGHT and self.action == COMMIT:
            return f"{table}/{HOODIE}/{self.instant}.inflight"
        return f"{table}/{HOODIE}/{self.instant}.{self.action}.{self.state.value}"


class WriteToken(NamedTuple):
    """The execution of a task that made a file."""

    task: int
    stage: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.task}-{self.stage}-{self.attempt}"


class DataFile(NamedTuple):
    """The parts of a data file's name.

    instant: of a log file, its base file's; version: None for base files.
    """

    partition: str
    file_id: str
    instant: str
    token: WriteToken
    version: int | None


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
    """The timeline entry of a storage path, None for other files; directories may precede it."""
    folder, _, name = path.rpartition("/")
    match = _ENTRY.match(name)
    if match is None or (folder and folder.rpartition("/")[2] != HOODIE):
        return None
    instant, action, state, inflight = match.groups()
    if inflight:
        return Entry(instant, COMMIT, State.INFLIGHT)
    if state == State.INFLIGHT.value and action == COMMIT:
        return None
    return Entry(instant, action, State(state) if state else State.COMPLETED)


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
    """The parts of a data path relative to its table; None when it names no base or log file."""
    partition, _, name = path.rpartition("/")
    log = _LOG.match(name)
    if log is not None:
        file_id, instant, version, *token = log.groups()
        return DataFile(partition, file_id, instant, WriteToken(*map(int, token)), int(version))
    base = _BASE.match(name)
    if base is None:
        return None
    file_id, task, stage, attempt, instant = base.groups()
    return DataFile(partition, file_id, instant, WriteToken(int(task), int(stage), int(attempt)), None)


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
                partition, _text(row["fileId"]), _text(row["path"]), int(row.get("numWrites", 0)),
                _text(row.get("prevCommit") or ""),
            )
            for partition, rows in raw["partitionToWriteStats"].items()
            for row in rows
        ]  # fmt: skip
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
        return _text(target["commitTime"]), _text(target["action"])
    except _MALFORMED as error:
        raise ValueError(f"no rollback metadata: {error!r}") from error


def _text(value: object) -> str:
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

"""Entries of a Hudi table's timeline, of either layout, as facts about instants and files.

    layout 1   <table>/.hoodie/<instant>.<action>[.requested|.inflight]                   table versions up to 6
    layout 2   <table>/.hoodie/timeline/<instant>.<action>.requested|inflight             table versions from 8
               <table>/.hoodie/timeline/<instant>_<completion>.<action>
    both       <instant>.inflight is the inflight entry of a commit
    archive    <table>/.hoodie/archived/*, <table>/.hoodie/timeline/history/*: archived entries

Contents are Avro containers, which carry their schema, or JSON; their first bytes decide, not the version (an upgraded
table has both). Requested and inflight entries may be empty, completed ones never; the content of a completed savepoint
or schema is not read further.

docs/history.md lists the facts. A path is relative to the table: a partition path and a file name, because some
releases write whole addresses there. Source: HoodieCommitMetadata, HoodieRollbackMetadata, HoodieRollbackPlan,
HoodieCleanMetadata, HoodieCleanerPlan and HoodieRestoreMetadata of Hudi 0.15.0, 1.0.2 and 1.2.0, and tables they
wrote.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from marker_sim.names import data_path, is_marker_name
from marker_sim.surroundings.requirements import importing

WRITE_KEY = "marker_sim.write"
COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})
_TELLING = COMMITS | {"rollback", "clean", "restore"}
_ACTIONS = "commit|deltacommit|replacecommit|clean|rollback|restore|savepoint|compaction|logcompaction|clustering"
_NAME = re.compile(
    rf"([0-9]+)(?:_([0-9]+))?\.(?:({_ACTIONS}|indexing|schemacommit)(?:\.(requested|inflight))?|(inflight))\Z"
)
_FOLDERS = (".hoodie", ".hoodie/timeline")
_ARCHIVES = (".hoodie/archived/", ".hoodie/timeline/history/")
_BASE_FILE = ".parquet"
_AVRO = b"Obj\x01"


class EntryName(NamedTuple):
    """The parts of the name of a timeline entry. completion: "" where the name has none."""

    instant: str
    action: str
    state: str
    completion: str


class Unreadable(Exception):
    """An entry or a table cannot be read; the text says why."""


def place_of(relative: str) -> EntryName | None:
    """The entry that a path relative to its table is, None for every other file."""
    folder, _, name = relative.rpartition("/")
    return entry_name(name) if folder in _FOLDERS else None


def entry_name(name: str) -> EntryName | None:
    """What the name of a file in a timeline's folder says, None when it is no entry."""
    match = _NAME.match(name)
    if match is None:
        return None
    instant, completion, action, state, inflight = match.groups()
    if inflight:
        return EntryName(instant, "commit", "inflight", "")
    if completion and state:
        return None
    return EntryName(instant, action, state or "completed", completion or "")


def is_archive(relative: str) -> bool:
    """Whether a path relative to its table holds entries that left the timeline; an archive's index alone does not."""
    name = relative.rpartition("/")[2]
    return relative.startswith(_ARCHIVES) and (name.endswith(".parquet") or ".archive." in name)


def facts(place: EntryName, content: bytes) -> tuple[str, ...]:
    """The facts of an entry, sorted and each once; Unreadable when its content is malformed."""
    found = [f"action {place.action}", f"state {place.state}"]
    if place.completion:
        found.append(f"completed-at {place.completion}")
    if place.state == "completed" and not content:
        raise Unreadable(f"{place.action} of {place.instant}: it is empty")
    try:
        if place.state == "completed":
            found += completed_facts(place.action, decode(content)) if place.action in _TELLING else ()
        elif content and place.state == "requested":
            found += _requested(place, content)
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, IndexError, OverflowError) as error:
        raise Unreadable(f"{place.action} of {place.instant}: {type(error).__name__}: {error}") from error
    return tuple(sorted(set(found)))


def completed_facts(action: str, record: Mapping[str, Any]) -> Iterator[str]:
    """The facts of a completed record, also of one from an archive; KeyError and its like when it is malformed."""
    if action in COMMITS:
        yield from _commit(record)
    elif action == "rollback":
        yield from _rollback(record)
    elif action == "clean":
        yield from _clean(record)
    elif action == "restore":
        yield from _restore(record)


def _requested(place: EntryName, content: bytes) -> Iterator[str]:
    if place.action in ("rollback", "clean"):
        yield from planned_facts(place.action, decode(content))


def planned_facts(action: str, plan: Mapping[str, Any]) -> Iterator[str]:
    """The facts of the plan of a rollback or a clean, also of one from an archive."""
    if action == "rollback":
        yield f"rolled-back {_text(plan['instantToRollback']['commitTime'])}"
        for request in plan.get("RollbackRequests") or ():
            for file in request.get("filesToBeDeleted") or ():
                yield f"will-delete {file_path(request['partitionPath'], file)}"
    elif action == "clean":
        for partition, files in (plan.get("filePathsToBeDeletedPerPartition") or {}).items():
            yield from (f"will-delete {file_path(partition, file['filePath'])}" for file in files)
        for partition, names in (plan.get("filesToBeDeletedPerPartition") or {}).items():
            yield from (f"will-delete {file_path(partition, name)}" for name in names)


def decode(content: bytes) -> Mapping[str, Any]:
    """The record of an entry: the only one of an Avro container, or a JSON object. ValueError and its like if neither.

    HarnessError when Avro is to be read and fastavro is not installed.
    """
    if content.startswith(_AVRO):
        with importing("a Hudi timeline"):
            import fastavro
        records = list(fastavro.reader(io.BytesIO(content)))
        if len(records) != 1:
            raise ValueError(f"{len(records)} records, not one")
        record: Any = records[0]
    else:
        record = json.loads(content)
    if not isinstance(record, dict):
        raise TypeError(f"{type(record).__name__}, not a record")
    return record


def _commit(record: Mapping[str, Any]) -> Iterator[str]:
    for partition, stats in (record["partitionToWriteStats"] or {}).items():
        for stat in stats:
            if stat.get("path"):
                path = file_path(partition, stat["path"])
                yield f"wrote {path}"
                # A log file may be appended to by later writes, and some stats give the appended bytes alone.
                if path.endswith(_BASE_FILE) and int(stat.get("fileSizeInBytes") or 0) > 0:
                    yield f"size {path} {int(stat['fileSizeInBytes'])}"
    for partition, groups in (record.get("partitionToReplaceFileIds") or {}).items():
        yield from (f"replaced {partition}|{_text(group)}" for group in groups)
    ordinal = (record.get("extraMetadata") or {}).get(WRITE_KEY)
    if ordinal is not None:
        yield f"write {int(ordinal)}"


def _rollback(record: Mapping[str, Any]) -> Iterator[str]:
    targets = [info["commitTime"] for info in record.get("instantsRollback") or ()]
    targets += record.get("commitsRollback") or ()
    yield from (f"rolled-back {_text(target)}" for target in targets)
    for key, partition in (record.get("partitionMetadata") or {}).items():
        where = partition.get("partitionPath", key)
        for file in (*(partition.get("successDeleteFiles") or ()), *(partition.get("failedDeleteFiles") or ())):
            yield f"deleted {file_path(where, file)}"
        yield from (f"appended {file_path(where, file)}" for file in partition.get("rollbackLogFiles") or ())
        yield from (f"undone {file_path(where, file)}" for file in partition.get("logFilesFromFailedCommit") or ())


def _restore(record: Mapping[str, Any]) -> Iterator[str]:
    for rollbacks in (record.get("hoodieRestoreMetadata") or {}).values():
        for rollback in rollbacks:
            yield from _rollback(rollback)
    yield from (f"rolled-back {_text(target)}" for target in record.get("instantsToRollback") or ())


def _clean(record: Mapping[str, Any]) -> Iterator[str]:
    for key, partition in (record.get("partitionMetadata") or {}).items():
        where = partition.get("partitionPath", key)
        lists = (partition.get(name) or () for name in ("deletePathPatterns", "successDeleteFiles"))
        yield from (f"deleted {file_path(where, file)}" for files in lists for file in files)


def file_path(partition: object, address: object) -> str:
    """A path relative to the table, of a file whose partition is known and whose address may be anything before it."""
    name = _text(address).rpartition("/")[2]
    if is_marker_name(name):
        name = data_path(name)
    return f"{_text(partition)}/{name}".lstrip("/")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value

"""What the entries of a Hudi table's timeline say, as facts about instants and files.

Contents are Avro containers, which carry their schema, or JSON; their first bytes decide, not the version (an upgraded
table has both). docs/history.md lists the facts, `every_fact` those that an audit has besides. A path is relative to
the table: a partition path and a file name, because some releases write whole addresses there.

The reader decides how much has to be readable:

                                     a history (`recorded_facts`)    an audit (`audited_facts`)
    an empty completed entry         unreadable                      unreadable
    a completed savepoint            not decoded                     has to be a record
    the plan of a rollback or clean  may be empty                    must not be empty
    the plan of a compaction         not decoded                     must not be empty, has to be a record
    inflight entries, other actions  not decoded                     not decoded

Source: HoodieCommitMetadata, HoodieRollbackMetadata, HoodieRollbackPlan, HoodieCleanMetadata, HoodieCleanerPlan,
HoodieSavepointMetadata and HoodieRestoreMetadata of Hudi 0.15.0, 1.0.2 and 1.2.0, and tables they wrote.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from marker_sim.names import data_path, is_marker_name
from marker_sim.surroundings.requirements import importing
from marker_sim.timeline import COMMITS, Entry, State

WRITE_KEY = "marker_sim.write"
# Errors from reading the records of a damaged table.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, EOFError, IndexError, OverflowError, RecursionError)
_PLANS = frozenset({"rollback", "clean", "compaction", "logcompaction"})
_RECORDS = COMMITS | {"rollback", "clean", "restore"}
_BASE_FILE = ".parquet"
_AVRO = b"Obj\x01"


class TableEntry(NamedTuple):
    """One entry of a timeline at rest.

    state: "" when it is not known.
    path: of its file, or of the archive that has it.
    facts: by their first word, each in order.
    error: why it cannot be read, "" when it can.
    size: -1 of an archived one.
    event: where a history has it.
    """

    instant: str
    action: str
    state: str
    path: str
    facts: Mapping[str, tuple[str, ...]]
    error: str = ""
    size: int = -1
    modified_s: float = 0.0
    archived: bool = False
    event: int = -1

    @property
    def done(self) -> bool:
        """Whether the entry is completed."""
        return self.state == State.COMPLETED

    def of(self, word: str) -> tuple[str, ...]:
        """The values of its facts of one kind."""
        return self.facts.get(word, ())

    def numbers(self, word: str) -> dict[str, str]:
        """The values of facts that are a path and a number, by path."""
        return {path: number for path, _, number in (fact.rpartition(" ") for fact in self.of(word))}


class Unreadable(Exception):
    """An entry or a table cannot be read; the text says why."""


def by_word(found: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Facts by their first word, each in order."""
    facts: dict[str, list[str]] = {}
    for fact in found:
        word, _, rest = fact.partition(" ")
        facts.setdefault(word, []).append(rest)
    return {word: tuple(values) for word, values in facts.items()}


def recorded_facts(entry: Entry, content: bytes) -> tuple[str, ...]:
    """The facts of an entry for a history, sorted and each once; Unreadable when its content is malformed."""
    found = [f"action {entry.action}", f"state {entry.state}"]
    if entry.completion:
        found.append(f"completed-at {entry.completion}")
    try:
        if entry.state == State.COMPLETED:
            found += completed_facts(entry.action, _record(entry, content, _RECORDS))
        elif content and entry.state == State.REQUESTED and entry.action in ("rollback", "clean"):
            found += planned_facts(entry.action, decode(content))
    except (Unreadable, *MALFORMED) as error:
        raise Unreadable(f"{entry.action} of {entry.instant}: {_reason(error)}") from error
    return tuple(sorted(set(found)))


def audited_facts(entry: Entry, content: bytes) -> tuple[list[str], str]:
    """The facts of an entry for an audit as far as it can be read, and why not further, "" when it can."""
    found: list[str] = []
    try:
        if entry.state == State.COMPLETED:
            found += every_fact(entry.action, _record(entry, content, _RECORDS | {"savepoint"}))
        elif has_plan(entry):
            if not content:
                raise Unreadable("its plan is empty")
            found += planned_facts(entry.action, decode(content))
    except (Unreadable, *MALFORMED) as error:
        return found, _reason(error)
    return found, ""


def has_plan(entry: Entry) -> bool:
    """Whether an entry is a request that says what is going to be done; the requests of writes do not."""
    return entry.state == State.REQUESTED and entry.action in _PLANS


def _record(entry: Entry, content: bytes, records: frozenset[str]) -> Mapping[str, Any]:
    if not content:
        raise Unreadable("it is empty")
    return decode(content) if entry.action in records else {}


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"


def every_fact(action: str, record: Mapping[str, Any]) -> Iterator[str]:
    """The facts of a completed record, and those that only an audit needs:

    least PATH BYTES    a commit wrote a log file, which had at least so many bytes
    beside PATH         a commit knows of the file without having written it: a change log, another log file of a slice
    saved PATH          a savepoint keeps the file
    dropped PARTITION   a clean removed a whole partition
    """
    yield from completed_facts(action, record)
    if action in COMMITS:
        for partition, stats in (record.get("partitionToWriteStats") or {}).items():
            for stat in stats:
                yield from _beside(partition, stat)
    elif action == "savepoint":
        for partition, saved in (record.get("partitionMetadata") or {}).items():
            where = saved.get("partitionPath", partition)
            yield from (f"saved {file_path(where, name)}" for name in saved.get("savepointDataFile") or ())
    elif action == "clean":
        for partition, cleaned in (record.get("partitionMetadata") or {}).items():
            if cleaned.get("isPartitionDeleted"):
                yield f"dropped {partition}"


def _beside(partition: str, stat: Mapping[str, Any]) -> Iterator[str]:
    path, size = stat.get("path"), int(stat.get("fileSizeInBytes") or 0)
    if path and size > 0 and not path.endswith(_BASE_FILE):
        yield f"least {file_path(partition, path)} {size}"
    yield from (f"beside {file_path(partition, name)}" for name in stat.get("logFiles") or ())
    yield from (f"beside {file_path(partition, name)}" for name in stat.get("cdcStats") or ())


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
                # Later writes may append to a log file, and some stats have only the appended bytes.
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

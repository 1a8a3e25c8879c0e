"""What the entries of a Hudi table's timeline say, as facts about instants and files.

Contents are Avro containers, which carry their schema, or JSON; their first bytes decide, not the version (an upgraded
table has both). docs/history.md lists the facts, `completed_facts` those that an audit has besides. A path is relative
to the table: a partition path and a file name, because some releases write whole addresses there.

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
from marker_sim.timeline import COMMITS, Entry, State, text_of

WRITE_KEY = "marker_sim.write"
# Errors from reading the records of a damaged table.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, EOFError, IndexError, OverflowError, RecursionError)
# The facts that a history leaves out.
AUDITED_WORDS = frozenset({"least", "beside", "merged", "saved", "dropped", "needs"})
_BASE_FILE = ".parquet"
# The facts in `partitionMetadata` of an action, with the fields that list their files.
_OF_PARTITIONS = {
    "rollback": (
        ("deleted", ("successDeleteFiles", "failedDeleteFiles")),
        ("not-deleted", ("failedDeleteFiles",)),
        ("appended", ("rollbackLogFiles",)),
        ("undone", ("logFilesFromFailedCommit",)),
    ),
    "clean": (("deleted", ("deletePathPatterns", "successDeleteFiles")), ("not-deleted", ("failedDeleteFiles",))),
    "savepoint": (("saved", ("savepointDataFile",)),),
}
AVRO = b"Obj\x01"


class TableEntry(NamedTuple):
    """One entry of a timeline at rest.

    state: "" when it is not known.
    path: of its file, or of the archive that has it.
    facts: by their first word, each in order.
    error: why it cannot be read, "" when it can.
    size: -1 of an archived one.
    event: where a history has it.
    completion: the time when it was completed, "" where layout 1 does not say it.
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
    completion: str = ""

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


# What has to be readable and must not be empty: completed entries of these actions, and requests of those. Of all other
# entries only the names are looked at.
_RECORDS = COMMITS | {"rollback", "clean", "restore", "savepoint"}
_PLANS = frozenset({"rollback", "clean", "compaction", "logcompaction"})


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
    found = {f"action {entry.action}", f"state {entry.state}"}
    if entry.completion:
        found.add(f"completed-at {entry.completion}")
    facts, error = facts_of(entry, content)
    if error:
        raise Unreadable(f"{entry.action} of {entry.instant}: {error}")
    return tuple(sorted(found.union(fact for fact in facts if fact.partition(" ")[0] not in AUDITED_WORDS)))


def facts_of(entry: Entry | TableEntry, content: bytes | Mapping[str, Any]) -> tuple[list[str], str]:
    """The facts of an entry as far as it can be read, and why not further, "" when it can."""
    found: list[str] = []
    done = entry.state == State.COMPLETED
    try:
        if not content and (done or has_plan(entry)):
            raise Unreadable("it is empty" if done else "its plan is empty")
        if done and entry.action in _RECORDS:
            found += completed_facts(entry.action, decode(content))
        elif has_plan(entry):
            found += planned_facts(entry.action, decode(content))
    except Unreadable as error:
        return found, str(error)
    except MALFORMED as error:
        return found, why_malformed(error)
    return found, ""


def why_malformed(error: Exception) -> str:
    """Why a record cannot be read, as the end of a sentence."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error) or "it ends too early"


def has_plan(entry: Entry | TableEntry) -> bool:
    """Whether an entry is a request that says what is going to be done; the requests of writes do not."""
    return entry.state == State.REQUESTED and entry.action in _PLANS


def completed_facts(action: str, record: Mapping[str, Any]) -> Iterator[str]:
    """The facts of a completed record, also of one from an archive; KeyError and its like when it is malformed.

    Those that only an audit needs (`AUDITED_WORDS`):

    least PATH BYTES    a commit wrote a log file, which had at least so many bytes
    beside PATH         a commit knows of the file without having written it: a change log, another log file of a slice
    merged PATH BASE    a commit made the file of its rows and of the group's base file of the instant BASE
    saved PATH          a savepoint keeps the file
    dropped PARTITION   a clean removed a whole partition
    """
    if action in COMMITS:
        yield from _commit(record)
    elif action == "restore":
        for rollbacks in (record.get("hoodieRestoreMetadata") or {}).values():
            for rollback in rollbacks:
                yield from completed_facts("rollback", rollback)
        yield from (f"rolled-back {text_of(target)}" for target in record.get("instantsToRollback") or ())
    elif action == "rollback":
        targets = [info["commitTime"] for info in record.get("instantsRollback") or ()]
        targets += record.get("commitsRollback") or ()
        yield from (f"rolled-back {text_of(target)}" for target in targets)
    for key, partition in (record.get("partitionMetadata") or {}).items() if action in _OF_PARTITIONS else ():
        where = partition.get("partitionPath", key)
        for word, names in _OF_PARTITIONS[action]:
            files = (file for name in names for file in partition.get(name) or ())
            yield from (f"{word} {file_path(where, file)}" for file in files)
        if partition.get("isPartitionDeleted"):
            yield f"dropped {key}"


def planned_facts(action: str, plan: Mapping[str, Any]) -> Iterator[str]:
    """The facts of the plan of a rollback or a clean, also of one from an archive; and those of a compaction's.

    needs PATH    a compaction is going to read a base file
    """
    if action == "rollback":
        yield f"rolled-back {text_of(plan['instantToRollback']['commitTime'])}"
        for request in plan.get("RollbackRequests") or ():
            for file in request.get("filesToBeDeleted") or ():
                yield f"will-delete {file_path(request['partitionPath'], file)}"
    elif action == "clean":
        for partition, files in (plan.get("filePathsToBeDeletedPerPartition") or {}).items():
            yield from (f"will-delete {file_path(partition, file['filePath'])}" for file in files)
        for partition, names in (plan.get("filesToBeDeletedPerPartition") or {}).items():
            yield from (f"will-delete {file_path(partition, name)}" for name in names)
    elif action == "compaction":
        for operation in plan.get("operations") or ():
            if operation.get("dataFilePath"):
                yield f"needs {file_path(operation['partitionPath'], operation['dataFilePath'])}"


def decode(content: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """The record of an entry: the only one of an Avro container, or a JSON object. ValueError and its like if neither.

    A write that failed when it was done may store its record twice; Hudi reads the first.

    HarnessError when Avro is to be read and fastavro is not installed. What is decoded already stays as it is.
    """
    if isinstance(content, Mapping):
        return content
    if content.startswith(AVRO):
        with importing("a Hudi timeline"):
            import fastavro
        records = list(fastavro.reader(io.BytesIO(content)))
        if not records or records[1:] not in ([], records[:1]):
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
            size = int(stat.get("fileSizeInBytes") or 0)
            if stat.get("path"):
                path = file_path(partition, stat["path"])
                yield f"wrote {path}"
                if size > 0:  # Later writes may append to a log file, and some stats have only the appended bytes.
                    yield f"{'size' if path.endswith(_BASE_FILE) else 'least'} {path} {size}"
                yield f"merged {path} {stat.get('prevCommit')}"
            known = (*(stat.get("logFiles") or ()), *(stat.get("cdcStats") or ()))
            yield from (f"beside {file_path(partition, name)}" for name in known)
    for partition, groups in (record.get("partitionToReplaceFileIds") or {}).items():
        yield from (f"replaced {partition}|{text_of(group)}" for group in groups)
    ordinal = (record.get("extraMetadata") or {}).get(WRITE_KEY)
    if ordinal is not None:
        yield f"write {int(ordinal)}"


def file_path(partition: object, address: object) -> str:
    """A path relative to the table, of a file whose partition is known and whose address may be anything before it."""
    name = text_of(address).rpartition("/")[2]
    if is_marker_name(name):
        name = data_path(name)
    return f"{text_of(partition)}/{name}".lstrip("/")

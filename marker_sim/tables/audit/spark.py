"""An audit whose data files are listed, joined with what commits say, and judged by Spark's executors.

The driver reads the timeline and everything below .hoodie; executors get the folders of data files, and the same rules.
They need Python and access to the table under the same address, boto3 for a table on S3, and nothing else: the code of
this package is sent to them. The listing is kept until it is judged, because the timeline is read once more in between.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.tables.audit.audit import Listing
from marker_sim.tables.audit.claims import Claim
from marker_sim.tables.audit.data_files import DataFiles, FileRules, PartitionResult, judge_files
from marker_sim.tables.parts import log_owner
from marker_sim.tables.sources import StoredFile, TableSource, open_source
from marker_sim.timeline import is_side_file

_JOBS = 4
_LEVELS_MAX = 4
_TASKS_PER_CORE = 4


@contextmanager
def listing_on_spark(master: str, table: str, endpoint: str | None) -> Iterator[Listing]:
    """A listing by the executors of a master, for the block; HarnessError when Spark does not start or a job fails."""
    from marker_sim.surroundings.spark_session import (  # Not at the top: executors import this module.
        open_session,
        said_by,
    )

    with (
        tempfile.TemporaryDirectory(prefix="marker-sim-audit-") as folder,
        open_session("audit", master, Path(folder)) as session,
    ):
        context = session.sparkContext
        root = Path(__file__).parent.parent.parent
        context.addPyFile(shutil.make_archive(str(Path(folder) / root.name), "zip", root.parent, root.name))
        try:
            yield lambda source: _listed(context, source, table, endpoint)
        except (HarnessError, UsageError, OSError):
            raise
        except Exception as error:  # PySpark has no common class for its errors.
            raise HarnessError(f"a Spark job of the audit failed: {said_by(error)}") from error


def _listed(context: Any, source: TableSource, table: str, endpoint: str | None) -> tuple[list[StoredFile], DataFiles]:
    below = source.tree(".hoodie")
    tasks = context.defaultParallelism * _TASKS_PER_CORE
    files, folders = _folders(source, tasks)
    address = os.path.abspath(table) if ":" not in table else table
    rows = context.parallelize(folders, tasks).mapPartitions(lambda part: _trees(address, endpoint, part))
    return below, _kept(context, context.parallelize(files, 1).union(rows), tasks, address, endpoint)


def _folders(source: TableSource, wanted: int) -> tuple[list[StoredFile], list[str]]:
    """Enough folders to share out, and the files beside them."""
    files, folders = source.level("")
    folders = [folder for folder in folders if folder != ".hoodie"]
    for _ in range(_LEVELS_MAX):
        if not folders or len(folders) >= wanted:
            break
        deeper: list[str] = []
        for found, inner in source.each(source.level, folders):
            files += found
            deeper += inner
        folders = deeper
    return files, folders


def _trees(table: str, endpoint: str | None, folders: Iterable[str]) -> Iterator[StoredFile]:
    with closing(open_source(table, endpoint, _JOBS)) as source:
        for folder in folders:
            yield from source.tree(folder)


def _kept(context: Any, rows: Any, tasks: int, table: str, endpoint: str | None) -> DataFiles:
    """Data files that executors keep, and so many tasks judge: each partition path by one executor."""
    from pyspark import StorageLevel

    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    pairs = kept.filter(lambda file: not is_side_file(file.path)).map(lambda file: (1, file.size))
    count, size = pairs.fold((0, 0), lambda one, other: (one[0] + other[0], one[1] + other[1]))

    def judge(rules: FileRules) -> PartitionResult:
        claims = [*rules.instants.claims.items()]
        shared = context.broadcast(replace(rules, instants=rules.instants.without_claims(), owner=_nobody))
        named = context.parallelize(claims).map(lambda claim: (claim[0].rpartition("/")[0], claim))
        parts = kept.map(lambda file: (file.path.rpartition("/")[0], file)).cogroup(named, tasks)
        result = PartitionResult()
        for each in parts.mapPartitions(lambda part: _judged(shared.value, table, endpoint, part)).collect():
            result.add(each)
        return result

    return DataFiles(count=count, size=size, judge=judge)


def _judged(
    rules: FileRules,
    table: str,
    endpoint: str | None,
    parts: Iterable[tuple[str, tuple[Iterable[StoredFile], Iterable[tuple[str, Claim]]]]],
) -> Iterator[PartitionResult]:
    result = PartitionResult()
    with closing(open_source(table, endpoint, _JOBS)) as source:
        mine = replace(rules, owner=lambda path: log_owner(source, path))
        for _, (stored, named) in parts:
            result.add(judge_files(mine, stored, dict(named)))
    yield result


def _nobody(_path: str) -> str | None:  # No lambda: a broadcast is pickled.
    return None

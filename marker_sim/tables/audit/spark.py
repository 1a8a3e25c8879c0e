"""An audit whose data files are listed by Spark's executors.

The driver reads the timeline and everything below .hoodie, and judges; executors get the folders of data files. They
need Python and access to the table under the same address, boto3 for a table on S3, and nothing else: the code of this
package is sent to them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.tables.audit.audit import Listing
from marker_sim.tables.sources import StoredFile, TableSource, open_source
from marker_sim.timeline import HOODIE

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


def _listed(context: Any, source: TableSource, table: str, endpoint: str | None) -> list[StoredFile]:
    tasks = context.defaultParallelism * _TASKS_PER_CORE
    files, folders = _folders(source, tasks)
    address = os.path.abspath(table) if ":" not in table else table
    rows = context.parallelize(folders, tasks).mapPartitions(lambda part: _trees(address, endpoint, part))
    return [*source.tree(HOODIE), *files, *rows.collect()]


def _folders(source: TableSource, wanted: int) -> tuple[list[StoredFile], list[str]]:
    """Enough folders to share out, and the files beside them."""
    files, folders = source.level("")
    folders = [folder for folder in folders if folder != HOODIE]
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

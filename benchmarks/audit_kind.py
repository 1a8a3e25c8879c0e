"""What a kind of table is, and the options of Hudi that kinds share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.audit_spark import HudiTable, Spark

Make = Callable[[HudiTable], None]
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
DIRECT = {"hoodie.write.markers.type": "DIRECT", "hoodie.metadata.enable": "false"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
PLAIN = {
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"}
ARCHIVES = {
    **CLEANS,
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.archive.merge.enable": "true",
    "hoodie.archive.merge.files.batch.size": "2",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
CLUSTERS = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
EVERY_WRITE_A_FILE = {"hoodie.parquet.small.file.limit": "0", "hoodie.merge.small.file.group.candidates.limit": "0"}
LAZY = {
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "1",
}
VERSION_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
VERSION_8 = {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"}


class TableKind(NamedTuple):
    """A kind: what makes it, the options of all its writes, and the versions of Hudi that can."""

    name: str
    make: Make
    options: dict[str, str]
    versions: tuple[str, ...]
    on: str


KINDS: dict[str, TableKind] = {}
PENDING: set[str] = set()
# Made first; what others continue is among them.
FIRST = (
    "cow-archived", "mor-archived", "cow-write-pending", "mor-logs", "cow-restored", "cow-write-failed", "cow-upserts",
    "mor-restored-compacted", "cow-clustered", "cow-overwritten-cleaned", "cow-odd-names", "cow-bootstrapped-metadata",
    "mor-write-failed", "mor-compaction-inline-scheduled", "mor-write-pending", "cow-killed", "cow-upgraded-archived",
    "cow-upgraded-pending",
    "mor-upgraded-archived", "mor-plain-direct", "cow-archived-clustered", "mor-archived-version-6", "cow-cdc",
    "mor-compacted", "cow-clustering-run", "mor-deletes", "cow-archived-not-cleaned",
)  # fmt: skip
ALL = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
LAYOUT_1 = ALL[1:]


def kind(
    name: str, *options: dict[str, str], versions: tuple[str, ...] = ALL, pending: bool = False,
    on: str = "",
) -> Callable[[Make], Make]:  # fmt: skip
    """Add a kind. on: the kind of 0.15.0 that it continues."""

    def decorate(make: Make) -> Make:
        assert name not in KINDS, name
        merged = {key: value for some in options for key, value in some.items()}
        KINDS[name] = TableKind(name, make, merged, versions, on)
        PENDING.update([name] * pending)
        return make

    return decorate


def build(spark: Spark, wanted: TableKind, path: Path, base: Path | None) -> None:
    """Make a table at a path. base: the table that it continues."""
    shutil.rmtree(path, ignore_errors=True)
    if base is not None:
        shutil.copytree(base, path)
    wanted.make(HudiTable(spark, path, wanted.options))

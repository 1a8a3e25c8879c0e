"""Kinds of healthy tables: each says in a few writes what a service of Hudi leaves on storage.

A kind is a function of a table that does not exist yet. Those of PENDING hold work that is planned or was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.audit_kind import (
    ALL,
    ARCHIVES,
    CLEANS,
    CLUSTERS,
    COMPACTS,
    DIRECT,
    EVERY_WRITE_A_FILE,
    KINDS,
    LAYOUT_1,
    LAZY,
    MOR,
    NO_METADATA,
    PLAIN,
    VERSION_6,
    VERSION_8,
    kind,
)
from benchmarks.audit_spark import HudiTable, Row, rows

__all__ = ["KINDS"]


def _upserts(table: HudiTable, count: int, first: int = 1, partitions: tuple[str | None, ...] = ("p0", "p1")) -> None:
    """Writes of six rows each, half of which are updates; all of them in a MERGE_ON_READ table after the first write,
    for a write with new rows makes base files there.
    """
    for number in range(first, first + count):
        begin = 0 if table.merge_on_read else 3 * number
        table.write(rows(begin, begin + 6, f"w{number}", number, partitions))


@kind("cow-upserts")
@kind("cow-plain-direct", DIRECT, PLAIN)
@kind("mor-logs", MOR)
@kind("mor-plain-direct", MOR, DIRECT, PLAIN)
@kind("mor-compacted", NO_METADATA, MOR, COMPACTS)
@kind("cow-clustered", NO_METADATA, CLUSTERS, EVERY_WRITE_A_FILE)
@kind("cow-record-index", {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"})
@kind(
    "cow-column-stats",
    {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true"},
)
@kind("cow-cdc", {"hoodie.table.cdc.enabled": "true"})
@kind("mor-cdc-compacted", MOR, COMPACTS, {"hoodie.table.cdc.enabled": "true"})
@kind("cow-version-6", VERSION_6, versions=LAYOUT_1)
@kind("mor-version-6", MOR, COMPACTS, VERSION_6, versions=LAYOUT_1)
@kind("mor-version-8", MOR, VERSION_8, versions=ALL[2:])
@kind("cow-no-meta-fields", NO_METADATA, {"hoodie.populate.meta.fields": "false"})
@kind("mor-bucket", NO_METADATA, MOR, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
@kind(
    "mor-log-compacted",
    NO_METADATA,
    MOR,
    {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"},
)
def _three(table: HudiTable) -> None:
    _upserts(table, 3)


@kind("cow-odd-names", NO_METADATA, {"hoodie.datasource.write.partitionpath.urlencode": "true"})
@kind("mor-odd-names", MOR, {"hoodie.datasource.write.hive_style_partitioning": "true"})
def _odd(table: HudiTable) -> None:
    names = ("a b", "50+1", "ü", "x=y", "a.b_1-0-1", "p%20q", None, "日本")
    slash = ("a/b",) if table.options.get("hoodie.datasource.write.partitionpath.urlencode") else ("t:1",)
    _upserts(table, 2, partitions=(*names[:6], *slash))
    table.write(rows(50, 70, "odd", 9, names))


@kind("mor-nested", MOR, COMPACTS, CLEANS)
def _nested(table: HudiTable) -> None:
    _upserts(table, 3, partitions=("2024/01/01", "2024/01/02", "2025/02/03"))


@kind(
    "cow-hive-two-fields",
    {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.field": "part,value",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    },
)
def _hive(table: HudiTable) -> None:
    for number in range(3):
        table.write(rows(0, 6, f"w{number % 2}", number))


@kind("mor-many-versions", MOR, COMPACTS, CLEANS, CLUSTERS)
def _eight(table: HudiTable) -> None:
    _upserts(table, 6)


@kind(
    "cow-cleaned-by-versions",
    CLEANS,
    {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"},
)
def _cleaned(table: HudiTable) -> None:
    _upserts(table, 4)


@kind("cow-archived", NO_METADATA, ARCHIVES)
@kind("cow-archived-metadata", ARCHIVES)
@kind("mor-archived", NO_METADATA, MOR, COMPACTS, ARCHIVES)
@kind("cow-archived-clustered", NO_METADATA, ARCHIVES, CLUSTERS, EVERY_WRITE_A_FILE)
@kind("mor-archived-version-6", NO_METADATA, MOR, COMPACTS, ARCHIVES, VERSION_6, versions=LAYOUT_1)
def _archived(table: HudiTable) -> None:
    """The file of partition p9 stays the newest of its group when its commit is archived."""
    table.write(rows(90, 93, "once", 1, ("p9",)))
    _upserts(table, 6)


@kind("cow-archived-not-cleaned", NO_METADATA, ARCHIVES, {"hoodie.clean.automatic": "false"})
def _archived_alone(table: HudiTable) -> None:
    """Files of archived commits stay; what they name is said by the archive alone."""
    _upserts(table, 5)


@kind("mor-compaction-inline-scheduled", NO_METADATA, MOR, pending=True)
def _inline_scheduled(table: HudiTable) -> None:
    _upserts(table, 2)
    table.write(
        rows(3, 9, "s", 3), hoodie__compact__schedule__inline="true", hoodie__compact__inline__max__delta__commits=1
    )
    _upserts(table, 2, 5)


@kind("mor-compaction-run", MOR)
def _compaction_run(table: HudiTable) -> None:
    _upserts(table, 3)
    table.call("run_compaction", op="schedule", table=table.register())
    _upserts(table, 1, 5)
    table.call("run_compaction", op="run", table=table.register())
    _upserts(table, 1, 6)


@kind("cow-clustering-scheduled", NO_METADATA, EVERY_WRITE_A_FILE, pending=True)
def _clustering_scheduled(table: HudiTable) -> None:
    _upserts(table, 3)
    table.call("run_clustering", table=table.register(), op="schedule")
    table.write(rows(90, 96, "new", 9), "insert")


@kind("cow-clustering-run", NO_METADATA, EVERY_WRITE_A_FILE, CLEANS)
def _clustering_run(table: HudiTable) -> None:
    _upserts(table, 3)
    table.call("run_clustering", table=table.register())
    _upserts(table, 3, 5)


@kind("mor-overwritten", NO_METADATA, MOR)
@kind("cow-overwritten-cleaned", CLEANS)
def _overwritten(table: HudiTable) -> None:
    _upserts(table, 2)
    table.write(rows(0, 4, "over", 5, ("p0",)), "insert_overwrite")
    _upserts(table, 1, 3)
    table.write(rows(0, 9, "all", 6), "insert_overwrite_table")
    _upserts(table, 2, 4)


@kind("cow-partition-deleted-cleaned", CLEANS)
@kind("mor-partition-deleted", NO_METADATA, MOR)
def _partition_deleted(table: HudiTable) -> None:
    _upserts(table, 2, partitions=("p0", "p1", "p2"))
    table.write([], "delete_partition", hoodie__datasource__write__partitions__to__delete="p1")
    for number in (4, 5):
        table.write(rows(3 * number, 3 * number + 6, "later", number, ("p0", "p2")))


@kind("mor-deletes", NO_METADATA, MOR)
def _deletes(table: HudiTable) -> None:
    _upserts(table, 2)
    table.write(rows(3, 7, "gone", 5), "delete")
    table.write(rows(0, 12, "gone", 6), "delete")
    _upserts(table, 1, 7)


@kind("cow-empty-commits", NO_METADATA, CLEANS)
def _empty_commits(table: HudiTable) -> None:
    _upserts(table, 1)
    table.write([])
    table.write(rows(0, 0, "", 1), "insert")
    table.write(rows(300, 303, "nobody", 1), "delete")
    _upserts(table, 1, 2)


@kind("cow-savepoint-archived", ARCHIVES)
def _savepoint_archived(table: HudiTable) -> None:
    _upserts(table, 2)
    table.call("create_savepoint", table=table.register(), commit_time=table.completed()[-1])
    _upserts(table, 5, 3)


@kind("cow-restored")
@kind("mor-restored-compacted", MOR, COMPACTS)
def _restored(table: HudiTable) -> None:
    _upserts(table, 2)
    table.call("create_savepoint", table=table.register(), commit_time=table.completed()[-1])
    _upserts(table, 2, 3)
    table.call("rollback_to_savepoint", table=table.register(), instant_time=table.completed("savepoint")[-1])
    _upserts(table, 1, 9)


@kind("mor-rolled-back-by-hand", MOR)
def _by_hand(table: HudiTable) -> None:
    _upserts(table, 3)
    table.call("rollback_to_instant", table=table.register(), instant_time=table.completed()[-1])
    _upserts(table, 1, 4)


@kind("cow-write-failed")
@kind("mor-write-failed", MOR)
@kind("mor-write-failed-direct", MOR, DIRECT, PLAIN)
@kind("mor-write-failed-version-6", MOR, VERSION_6, versions=LAYOUT_1)
def _failed(table: HudiTable) -> None:
    _upserts(table, 2)
    table.fail(rows(0, 6 if table.merge_on_read else 12, "failed", 5))
    _upserts(table, 1, 4)


@kind("cow-write-failed-archived", NO_METADATA, ARCHIVES)
def _failed_archived(table: HudiTable) -> None:
    _upserts(table, 2)
    table.fail(rows(0, 6 if table.merge_on_read else 12, "failed", 5))
    _upserts(table, 5, 4)


@kind("cow-write-pending", pending=True)
@kind("mor-write-pending", MOR, pending=True)
def _failed_last(table: HudiTable) -> None:
    _upserts(table, 2)
    table.fail(rows(0, 6 if table.merge_on_read else 12, "failed", 5))


@kind("cow-lazy", LAZY, {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "2"})
def _lazy(table: HudiTable) -> None:
    _upserts(table, 2)
    table.fail(rows(0, 6 if table.merge_on_read else 12, "failed", 5))
    _upserts(table, 1, 4)


@kind("cow-killed")
@kind("mor-killed", MOR)
def _killed(table: HudiTable) -> None:
    _upserts(table, 2)
    table.kill(rows(0, 40, "killed", 5, tuple(f"p{number}" for number in range(20))), _half_written(table))
    _upserts(table, 2, 4)


@kind("cow-killed-pending", pending=True)
def _killed_last(table: HudiTable) -> None:
    _upserts(table, 2)
    table.kill(rows(0, 40, "killed", 5, tuple(f"p{number}" for number in range(20))), _half_written(table))


def _half_written(table: HudiTable) -> Callable[[Path], object]:
    """Says when a write has made a few data files more than there are."""
    before = len(list(table.path.glob("p*/*.parquet")))
    return lambda path: len(list(path.glob("p*/*.parquet"))) > before + 5


@kind("cow-bulk-insert", EVERY_WRITE_A_FILE)
@kind("mor-bulk-insert", MOR)
def _bulk(table: HudiTable) -> None:
    table.write(rows(0, 12, "bulk", 1), "bulk_insert")
    table.write(rows(12, 24, "bulk", 2), "bulk_insert", hoodie__datasource__write__row__writer__enable="false")
    table.write(rows(24, 36, "in", 3), "insert")
    _upserts(table, 2)


@kind("mor-metadata-late", MOR, DIRECT)
def _metadata_late(table: HudiTable) -> None:
    """The metadata table is switched on, off (which removes it) and on again."""
    _upserts(table, 2)
    for number, on in enumerate(("true", "false", "true")):
        table.write(rows(0, 6, f"m{number}", 9 + number), hoodie__metadata__enable=on)


@kind("cow-created-empty")
def _created(table: HudiTable) -> None:
    table.spark.sql(
        f"CREATE TABLE {table.name} (key STRING, part STRING, value STRING, ts BIGINT) USING hudi PARTITIONED BY (part)"
        f" TBLPROPERTIES (primaryKey = 'key', preCombineField = 'ts') LOCATION '{table.path}'"
    )


@kind("mor-sql", NO_METADATA, MOR)
def _sql(table: HudiTable) -> None:
    """MERGE INTO (partial updates in the log files of 1.x), UPDATE, DELETE, and a partition that is dropped."""
    shape = "mor" if table.merge_on_read else "cow"
    table.spark.sql(
        f"CREATE TABLE {table.name} (key STRING, value STRING, ts BIGINT, part STRING) USING hudi PARTITIONED BY (part)"
        f" TBLPROPERTIES (primaryKey = 'key', preCombineField = 'ts', type = '{shape}') LOCATION '{table.path}'"
    )
    table.sql("INSERT INTO {t} VALUES ('k1', 'a', 1, 'p0'), ('k2', 'b', 1, 'p1'), ('k3', 'c', 1, 'p2')")
    table.sql(
        "MERGE INTO {t} t USING (SELECT 'k1' AS key, 'z' AS value, 5 AS ts, 'p0' AS part) s"
        " ON t.key = s.key WHEN MATCHED THEN UPDATE SET t.value = s.value, t.ts = s.ts"
    )
    table.sql("UPDATE {t} SET value = 'u' WHERE key = 'k2'")
    table.sql("DELETE FROM {t} WHERE key = 'k3'")
    table.sql("ALTER TABLE {t} DROP PARTITION (part = 'p2')")
    table.sql("INSERT INTO {t} VALUES ('k4', 'd', 9, 'p0')")


@kind("mor-consistent-bucket", NO_METADATA, MOR)
def _consistent(table: HudiTable) -> None:
    table.options |= {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
    }
    _upserts(table, 3)


@kind("cow-bootstrapped-metadata", {"hoodie.bootstrap.mode.selector": "METADATA_ONLY"})
@kind("cow-bootstrapped-full", {"hoodie.bootstrap.mode.selector": "FULL_RECORD"})
@kind("mor-bootstrapped-metadata", MOR, {"hoodie.bootstrap.mode.selector": "METADATA_ONLY"})
def _bootstrapped(table: HudiTable) -> None:
    """A table over Parquet files that were there before, then upserts."""
    selector = table.options.pop("hoodie.bootstrap.mode.selector")
    source = table.path.parent / f".source-{table.path.name}"
    frame = table.spark.frame(rows(0, 12, "old", 0))
    frame.write.mode("overwrite").partitionBy("part").parquet(str(source))
    table.save(
        frame.where("false"), "bootstrap", "overwrite", hoodie__bootstrap__base__path=source,
        hoodie__bootstrap__mode__selector=f"org.apache.hudi.client.bootstrap.selector."
        f"{'MetadataOnly' if selector == 'METADATA_ONLY' else 'FullRecord'}BootstrapModeSelector",
        hoodie__bootstrap__full__input__provider="org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
        hoodie__datasource__write__hive_style_partitioning="true",
    )  # fmt: skip
    table.options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    found: list[Row] = rows(4, 10, "new", 5)
    table.write(found)
    table.write(rows(20, 23, "newer", 6))


@kind("cow-upgraded-archived", ARCHIVES, on="cow-archived", versions=LAYOUT_1)
@kind("mor-upgraded-archived", MOR, COMPACTS, ARCHIVES, on="mor-archived", versions=LAYOUT_1)
@kind("cow-upgraded-pending", on="cow-write-pending", versions=LAYOUT_1)
@kind("cow-upgraded-restored", on="cow-restored", versions=LAYOUT_1)
@kind("cow-not-upgraded", VERSION_6, on="cow-upserts", versions=LAYOUT_1)
def _upgraded(table: HudiTable) -> None:
    table.options["hoodie.table.name"] = KINDS[table.path.name].on.replace("-", "_")
    table.options["hoodie.embed.timeline.server.reuse.enabled"] = "false"  # The upgrade of 1.2.0 stops the one in use.
    _upserts(table, 4 if "archived" in table.path.name else 2, 20)


@kind("mor-downgraded", MOR, versions=LAYOUT_1)
@kind("cow-downgraded-archived", NO_METADATA, ARCHIVES, versions=LAYOUT_1)
def _downgraded(table: HudiTable) -> None:
    _upserts(table, 5)
    table.call("downgrade_table", table=table.register(), to_version="SIX")
    table.options |= VERSION_6
    _upserts(table, 2, 20)


@kind("cow-downgraded-to-5", versions=ALL[:1])
def _five(table: HudiTable) -> None:
    _upserts(table, 3)
    table.call("downgrade_table", table=table.register(), to_version="FIVE")

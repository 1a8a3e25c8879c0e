"""What Hudi and Spark are told: the shape of a table, drawn from a seed, and settings that start quickly.

Table services are off, so that every file belongs to a write or to a rollback: cleaning, archiving, compaction and
clustering of the data table never run. Bloom filters are small, so that files are.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

from marker_sim.errors import UsageError
from marker_sim.plan import Partitions, Plan, Sharing, TableShape
from marker_sim.tables.entries import WRITE_KEY
from marker_sim.worlds.s3_front import REGION, SECRET
from marker_sim.worlds.spark.session import SETTINGS
from marker_sim.worlds.spark.standalone import spark_environment

MARKERS_TYPES = {"direct": "DIRECT", "timeline": "TIMELINE_SERVER_BASED"}
TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
KEYS = 24
PARTITIONS: dict[Partitions, tuple[str, ...]] = {
    "plain": ("p0", "p1", "p2", "p3"),
    "nested": ("2024/01/01", "2024/01/02", "2024/02/01", "2025/01/01"),
    "hive": ("p0", "p1", "p2", "p3"),
    "odd": ("a b", "50+1", "ü", "x=y"),
    "none": ("",),
    "eight": tuple(f"p{number}" for number in range(8)),
    "many": tuple(f"p{number:02}" for number in range(64)),
}
HEARTBEAT_MS, HEARTBEATS_MISSED = 1_000, 2  # Of a writer whose failed writes are rolled back lazily; Hudi's shortest.
HEARTBEAT_S = HEARTBEAT_MS * (HEARTBEATS_MISSED + 0.5) / 1000  # After which no heartbeat of a dead one counts.
_TRANSACTION = "org.apache.hudi.client.transaction"
_RESENDS = "hoodie.filesystem.view.remote.retry"
_EARLY = "hoodie.write.concurrency.early.conflict.detection"
GATE_LOCK = "HudiJavaWriter$GateLock"
FILE_LOCK = "HudiJavaWriter$FileLock"
SHARING: dict[Sharing, dict[str, str]] = {
    "default": {},
    "prefer-writer": {
        "hoodie.write.lock.conflict.resolution.strategy": f"{_TRANSACTION}.PreferWriterConflictResolutionStrategy"
    },
    "one-plan": {"hoodie.rollback.avoid.duplicate.plan": "true"},
    # The strategy is of timeline markers; with direct ones Hudi takes its simple one instead.
    "early-detection": {f"{_EARLY}.enable": "true", f"{_EARLY}.strategy": "HudiJavaWriter$SteppedDetector"},
    "early-transaction": {
        f"{_EARLY}.enable": "true",
        f"{_EARLY}.strategy": "org.apache.hudi.table.marker.SimpleTransactionDirectMarkerBasedDetectionStrategy",
        "hoodie.write.lock.provider": f"{_TRANSACTION}.lock.ZookeeperBasedLockProvider",
    },
    "file-lock": {
        "hoodie.write.lock.provider": FILE_LOCK,
        "hoodie.write.lock.wait_time_ms_between_retry": "5",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "5",
    },
}
TASKS = 2  # At a time, each of which waits for its marker: more are in no batch.
# Batch threads and partitions of writes with so many batches that marker files are written again; the last has Hudi's
# default of threads.
REWRITING: tuple[tuple[int, Partitions], ...] = ((1, "plain"), (1, "nested"), (2, "eight"), (20, "many"))
_PARALLEL = (
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.simple.index.parallelism",
    "hoodie.bloom.index.parallelism",
    "hoodie.finalize.write.parallelism",
    "hoodie.rollback.parallelism",
    "hoodie.markers.delete.parallelism",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What every driver of a campaign has in common.

    mark: in the environment of every process of a driver, so that none outlives the campaign.
    deadline: when all must be over (time.monotonic).
    """

    home: Path
    java: str
    jars: tuple[Path, ...]
    mark: str
    logs: Path
    deadline: float

    def environment(self) -> dict[str, str]:
        """The environment variables of a driver's processes."""
        return spark_environment(self.java, self.home, self.mark)

    def left_s(self) -> float:
        """The seconds left until the deadline; negative after it."""
        return self.deadline - time.monotonic()


def log_of(program: Program, here: Path, name: str) -> Path:
    """The log of a driver of the table whose files are below `here`."""
    return program.logs / f"{here.name}-{name}.txt"


def partition_names(plan: Plan) -> tuple[str, ...]:
    """The partition values in the rows of a plan's table."""
    return PARTITIONS[shape_of(plan).partitions]


def key_count(plan: Plan) -> int:
    """The number of different keys in the rows of a plan's table."""
    return max(KEYS, len(partition_names(plan)))


def has_rewrites(plan: Plan) -> bool:
    """Whether each write has more batches of markers than there are files for them."""
    return len(partition_names(plan)) > TASKS * plan.num_threads


def shape_of(plan: Plan) -> TableShape:
    """The shape of a plan's table; UsageError for a plan of another world."""
    if plan.shape is None:
        raise UsageError("the plan has no shape, so it is not one of a table that Hudi writes; give one that is")
    return plan.shape


def describe(plan: Plan) -> dict[str, str]:
    """The shape of its table, for the header of a history."""
    shape = shape_of(plan)
    early = {"early-detection": "simple", "early-transaction": "transaction"}.get(shape.sharing, "")
    return {
        "table_type": table_type(plan),
        "metadata": str(shape.metadata).lower(),
        "partitions": shape.partitions,
        "deletes": str(shape.deletes).lower(),
        "lazy": str(shape.lazy).lower(),
        "grows": str(shape.grows).lower(),
        "writers": str(shape.writers),
        "sharing": shape.sharing,
        "harmless_futures": str(shape.harmless),
        "early": "asynchronous" if early and plan.mode == "timeline" else early,
        "small_files": str(shape.small_files).lower(),
        "index": shape.index,
        "batch_threads": str(plan.num_threads),
        "master": "standalone" if shape.cluster else "local",
    }


def table_type(plan: Plan) -> str:
    """Hudi's name for the type of a plan's table."""
    return TABLE_TYPES[plan.merge_on_read]


def traits(plan: Plan) -> list[str]:
    """What is not usual in a plan's table, in words."""
    shape = shape_of(plan)
    words = {
        "metadata table": shape.metadata,
        "table version 6": shape.version6,
        "then upgraded": shape.upgrades,
        "lazy rollback": shape.lazy,
        "requests sent again": shape.resends,
    }
    sharing = [shape.sharing] if shape.writers and shape.sharing != "default" else []
    return [word for word, has in words.items() if has] + sharing


def draw_table(rng: random.Random, number: int, version: str, *, rewrites: bool = False) -> Plan:
    """A plan of a campaign's n-th table without writes: types alternate, the rest is drawn; rewrites: for writes that
    do.
    """
    usual: tuple[Partitions, ...] = ("plain", "plain", "nested", "hive", "odd", "none")
    threads, partitions = rng.choice((2, 20)), rng.choice(usual)
    if rewrites:
        threads, partitions = rng.choice(REWRITING)
    shape = TableShape(
        metadata=rng.random() < 0.4,
        version6=not version.startswith("0.") and rng.random() < 0.25,
        partitions=partitions,
        small_files=rng.random() < 0.6,
        index=rng.choice(("SIMPLE", "BLOOM")),
    )
    return Plan(num_threads=threads, merge_on_read=bool(number % 2), shape=shape)


def hudi_options(plan: Plan, version: str) -> dict[str, str]:
    """The options of every write of a plan's table."""
    shape = shape_of(plan)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type(plan),
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "key",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.commitmeta.key.prefix": WRITE_KEY,
        "hoodie.write.markers.type": MARKERS_TYPES[plan.mode],
        "hoodie.markers.timeline_server_based.batch.num_threads": str(plan.num_threads),
        "hoodie.metadata.enable": str(shape.metadata).lower(),
        "hoodie.index.type": shape.index,
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.bloom.index.filter.type": "SIMPLE",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clustering.inline": "false",
        **dict.fromkeys(_PARALLEL, str(TASKS)),
    }
    if not shape.small_files:
        options["hoodie.parquet.small.file.limit"] = "0"
    if shape.partitions == "none":
        options["hoodie.datasource.write.partitionpath.field"] = ""
        options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    if shape.partitions == "hive":
        options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    if shape.version6 and not version.startswith("0."):
        options |= {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    if shape.resends:
        options |= {f"{_RESENDS}.enable": "true", f"{_RESENDS}.max_numbers": "1"}  # Each waits as long as the first.
    if shape.lazy:  # Cleaning begins with what a lazy rollback does; it has no file to clean so early.
        options |= {
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.clean.automatic": "true",
            "hoodie.client.heartbeat.interval_in_ms": str(HEARTBEAT_MS),
            "hoodie.client.heartbeat.tolerable.misses": str(HEARTBEATS_MISSED),
        }
    return options | _writers_options(shape)


def _writers_options(shape: TableShape) -> dict[str, str]:
    """The options by which several writers share a table; {} for one of one writer."""
    if not shape.writers:
        return {}
    return {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": GATE_LOCK,
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.clean.automatic": "true",
        "hoodie.client.heartbeat.interval_in_ms": "60000",
        "hoodie.client.heartbeat.tolerable.misses": str(HEARTBEATS_MISSED),
        "hoodie.time.generator.max_expected_clock_skew_ms": "1",
        **SHARING[shape.sharing],
    }


def spark_conf(master: str, jars: tuple[Path, ...], scratch: Path) -> dict[str, str]:
    """The settings of every session. scratch: for Spark's own files."""
    path = ":".join(map(str, jars))
    return {
        **SETTINGS,
        "spark.master": master,
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": path,
        "spark.executor.extraClassPath": path,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.default.parallelism": str(TASKS),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spark"),
    }


def s3a_conf(endpoint: str, process: str) -> dict[str, str]:
    """Settings of S3A for the kit's front: it signs with the process's name, and repeats requests seldom and soon."""
    settings = {
        "endpoint": endpoint,
        "endpoint.region": REGION,
        "access.key": process,
        "secret.key": SECRET,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "attempts.maximum": "1",
        "retry.limit": "3",
        "retry.interval": "100ms",
        "retry.throttle.limit": "8",
        "retry.throttle.interval": "50ms",
        "connection.establish.timeout": "3000",
        "connection.timeout": "10000",
    }
    return {f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()}

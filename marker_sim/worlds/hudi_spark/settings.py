"""What Hudi and Spark are told: the shape of a table, drawn from a seed, and settings that start quickly.

Table services are off, so that every file belongs to a write or to a rollback: cleaning, archiving, compaction and
clustering of the data table never run. Bloom filters are small, so that files are.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from marker_sim.tables import WRITE_KEY

MARKERS_TYPES = {"direct": "DIRECT", "timeline": "TIMELINE_SERVER_BASED"}
TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
KEYS = 24
PARTITIONS = {
    "plain": ("p0", "p1", "p2", "p3"),
    "nested": ("2024/01/01", "2024/01/02", "2024/02/01", "2025/01/01"),
    "hive": ("p0", "p1", "p2", "p3"),
    "odd": ("a b", "50+1", "ü", "x=y"),
    "none": ("",),
    "eight": tuple(f"p{number}" for number in range(8)),
    "many": tuple(f"p{number:02}" for number in range(64)),
}
TASKS = 2  # At a time, each of which waits for its marker: more are in no batch.
# Batch threads and partitions of writes with so many batches that marker files are written again; the last has Hudi's
# default of threads.
REWRITING = ((1, "plain"), (1, "nested"), (2, "eight"), (20, "many"))
_PARALLEL = (
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.simple.index.parallelism",
    "hoodie.bloom.index.parallelism",
    "hoodie.finalize.write.parallelism",
    "hoodie.rollback.parallelism",
    "hoodie.markers.delete.parallelism",
)
# Hudi measures objects by attaching an agent to its own process, which takes two seconds and changes nothing.
_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    " -Djol.skipDynamicAttach=true -Djol.skipHotspotSAAttach=true"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one table is written.

    version6: whether a 1.x writer keeps the table at version 6.
    partitions: a key of PARTITIONS.
    small_files: whether new rows go into small files that are there, so that a write makes one file for each partition;
        else they make file groups of their own.
    threads: MARKERS<n> at most.
    """

    table_type: str
    metadata: bool
    version6: bool
    partitions: str
    small_files: bool
    index: str
    threads: int

    @property
    def names(self) -> tuple[str, ...]:
        """Its partitions as rows carry them."""
        return PARTITIONS[self.partitions]

    @property
    def keys(self) -> int:
        """How many keys its rows have."""
        return max(KEYS, len(self.names))

    @property
    def rewrites(self) -> bool:
        """Whether each write has more batches of markers than there are files for them."""
        return len(self.names) > TASKS * self.threads

    def describe(self) -> dict[str, str]:
        """For the header of a history."""
        return {
            "table_type": self.table_type,
            "metadata": str(self.metadata).lower(),
            "partitions": self.partitions,
            "small_files": str(self.small_files).lower(),
            "index": self.index,
            "batch_threads": str(self.threads),
        }


def draw_shape(rng: random.Random, number: int, version: str, *, rewrites: bool = False) -> Shape:
    """The shape of a campaign's n-th table: types alternate, the rest is drawn; rewrites: with writes that do."""
    threads, partitions = rng.choice((2, 20)), rng.choice(("plain", "plain", "nested", "hive", "odd", "none"))
    if rewrites:
        threads, partitions = rng.choice(REWRITING)
    return Shape(
        table_type=TABLE_TYPES[number % 2],
        metadata=rng.random() < 0.4,
        version6=not version.startswith("0.") and rng.random() < 0.25,
        partitions=partitions,
        small_files=rng.random() < 0.6,
        index=rng.choice(("SIMPLE", "BLOOM")),
        threads=threads,
    )


def hudi_options(shape: Shape, mode: str, version: str) -> dict[str, str]:
    """The options of every write of a table."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": shape.table_type,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "key",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.commitmeta.key.prefix": WRITE_KEY,
        "hoodie.write.markers.type": MARKERS_TYPES[mode],
        "hoodie.markers.timeline_server_based.batch.num_threads": str(shape.threads),
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
    if shape.version6:
        options |= {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    return options


def spark_conf(master: str, jars: tuple[Path, ...], scratch: Path) -> dict[str, str]:
    """The settings of every session. scratch: for Spark's own files."""
    path = ":".join(map(str, jars))
    return {
        "spark.master": master,
        "spark.app.name": "marker-sim",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.driver.extraClassPath": path,
        "spark.executor.extraClassPath": path,
        "spark.driver.extraJavaOptions": _JVM,
        "spark.executor.extraJavaOptions": _JVM,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.default.parallelism": str(TASKS),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spark"),
    }


def s3a_conf(endpoint: str, process: str, secret: str) -> dict[str, str]:
    """S3A before the kit's front, signing with the name of the process; few repetitions, close together."""
    settings = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "access.key": process,
        "secret.key": secret,
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

"""Where the table of a run is stored, and how the kit sees what happens to its storage.

    local   a fresh directory behind the door (worlds/door): drivers and the workers of a cluster start there
    s3      a bucket of the kit's S3 (worlds/s3_front)

On both each call passes one interceptor, a fault strikes before it or after it and before its answer, and the effects
are in the history in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from marker_sim.plan import Plan
from marker_sim.tables.sources import DirectorySource, Files, ObjectFiles
from marker_sim.worlds.door.front import DirectoryFront
from marker_sim.worlds.interceptor import Interceptor, StorageCall
from marker_sim.worlds.s3_front import BUCKET, READER, REGION, SECRET, S3Front
from marker_sim.worlds.spark.hudi.settings import s3a_conf
from marker_sim.worlds.spark.plans import EXECUTOR


@dataclass(slots=True, kw_only=True)
class TableStorage:
    """The storage of one run's table.

    files: its files at rest, by storage path.
    uri: of the table, for Spark; reader: the same for hudi-rs.
    door: of a local file system; bucket: of S3. The other one is None.
    """

    files: Files
    uri: str
    reader: tuple[str, dict[str, str]]
    interceptor: Interceptor
    door: DirectoryFront | None = None
    bucket: S3Front | None = None

    def conf(self, process: str) -> dict[str, str]:
        """The Spark settings with which a process reaches the storage; {} for local files."""
        if self.bucket is None:
            return {}
        self.bucket.roles[process] = "driver"
        return s3a_conf(self.bucket.endpoint, process)

    @property
    def calls(self) -> list[StorageCall]:
        """The calls of drivers on S3 since faults were armed, in order; local ones are told by drivers alone."""
        return [] if self.bucket is None else self.interceptor.calls

    def caller(self, target: str, driver: str) -> str:
        """How the names begin of processes whose calls a fault of a target counts: executors sign as their driver."""
        if self.bucket is not None:
            return driver
        return target if target == EXECUTOR else ""

    def disarm(self) -> None:
        """Disarm all faults and end throttling."""
        self.interceptor.disarm()
        if self.bucket is not None:
            self.bucket.healed()

    def unseen(self) -> tuple[str, ...]:
        """Sentences about storage calls that are known to have escaped."""
        return () if self.door is None else self.door.unseen

    def check(self) -> None:
        """Raise HarnessError when the door or the front failed, so that Hudi is not blamed for it."""
        if self.door is not None:
            self.door.check()
        if self.bucket is not None:
            self.bucket.check()


def table_storage(
    plan: Plan, interceptor: Interceptor, root: Path, table: str, *, door: bool
) -> AbstractContextManager[TableStorage]:
    """The storage of a plan's table. root, door: of a local one."""
    if plan.storage == "s3":
        return bucket_storage(interceptor, table)
    return local_storage(interceptor, root, table, door=door)


@contextmanager
def local_storage(interceptor: Interceptor, root: Path, table: str, *, door: bool = True) -> Iterator[TableStorage]:
    """A new directory, which is kept. door: whether processes start behind one; else they tell their calls."""
    (root / table).mkdir(parents=True)
    uri = str(root / table)
    with ExitStack() as opened:
        front = opened.enter_context(closing(DirectoryFront(root, interceptor))) if door else None
        files = opened.enter_context(closing(DirectorySource(root, 1)))
        yield TableStorage(files=files, uri=uri, reader=(uri, {}), interceptor=interceptor, door=front)


@contextmanager
def bucket_storage(interceptor: Interceptor, table: str) -> Iterator[TableStorage]:
    """A new bucket, deleted after the block."""
    with S3Front(interceptor) as bucket:
        access = {
            "aws_endpoint": bucket.endpoint,
            "aws_access_key_id": READER,
            "aws_secret_access_key": SECRET,
            "aws_region": REGION,
            "aws_allow_http": "true",
        }
        yield TableStorage(
            files=ObjectFiles(bucket.objects),
            uri=f"s3a://{BUCKET}/{table}",
            interceptor=interceptor,
            bucket=bucket,
            reader=(f"s3://{BUCKET}/{table}", access),
        )

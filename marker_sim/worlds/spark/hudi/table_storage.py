"""Where the table of a run is stored, and how the kit learns what happens to its storage.

    local   a fresh directory that is watched (worlds/file_watch.py): faults strike as soon as the kernel told of an
            effect, and exactly in it when a file is cut and the kernel grants permission events
    s3      a bucket of the kit's S3 (worlds/s3_front): they come before a request is applied, or after it and before
            the reply

A fault is recorded in one go with the effect that it was aimed at, from the moment it is armed until it is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.tables.sources import DirectorySource, Files, ObjectFiles
from marker_sim.worlds.file_watch import WHOLE, Moment, Watch
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.hudi.settings import s3a_conf
from marker_sim.worlds.spark.hudi.steps import At

if TYPE_CHECKING:
    from marker_sim.worlds.s3_front import S3Front

BUCKET = "lake"
READER = "reader"
SECRET = "marker-sim-secret"
_REGION = "us-east-1"
_MOMENTS: Mapping[At, tuple[Moment, ...]] = {"whole": WHOLE, "made": ("create",), "cut": ("cut",)}
Inject = Callable[[ArmedFault, StorageCall], None]


@dataclass(slots=True, kw_only=True)
class TableStorage:
    """The storage of one run's table.

    files: its files at rest, by storage path.
    uri: of the table, for Spark; reader: the same for hudi-rs.
    interceptors: by the moment of a file on a local file system; on S3 they are one.
    front: the S3, None on a local file system; watches: of that.
    """

    files: Files
    uri: str
    reader: tuple[str, dict[str, str]]
    interceptors: Mapping[At, Interceptor]
    watches: Mapping[At, Watch] = field(default_factory=dict)
    front: S3Front | None = None

    def conf(self, process: str) -> dict[str, str]:
        """The Spark settings with which a process reaches the storage; {} for local files."""
        if self.front is None:
            return {}
        self.front.roles[process] = "driver"
        return s3a_conf(self.front.endpoint, process, SECRET)

    def arm(self, fault: ArmedFault, at: At) -> None:
        """Arm a fault; `at`: the moment of a file on a local file system."""
        self.interceptors[at].arm(fault)

    def disarm(self) -> None:
        """Disarm all faults and end throttling."""
        for interceptor in self.interceptors.values():
            interceptor.disarm()
        if self.front is not None:
            self.front.healed()

    def stayed_short(self, path: str) -> bool:
        """Whether a local file that was cut is shorter now than before the cut, or gone; False on S3."""
        return "cut" in self.watches and self.watches["cut"].stayed_short(path)

    def describe(self) -> dict[str, Any]:
        """The fields of a history's header that say what the storage is and how it is seen."""
        local = self.front is None
        return {"storage": "local" if local else "s3", "witness": "reads" if local else "effects"}

    def check(self) -> None:
        """Raise HarnessError when the watches or the front failed, so that Hudi is not blamed for it."""
        for watch in self.watches.values():
            watch.check()
        if self.front is not None:
            self.front.check()


@contextmanager
def local_storage(
    recorder: Recorder, inject: Inject, process: Callable[[], str], root: Path, table: str
) -> Iterator[TableStorage]:
    """A new directory, whose calls are ascribed to `process`; it is kept after the block."""
    (root / table).mkdir(parents=True)
    interceptors = {at: Interceptor(recorder, inject) for at in _MOMENTS}
    watches = {
        at: Watch(root, interceptors[at], process=process, role="driver", moments=moments)
        for at, moments in _MOMENTS.items()
    }
    uri = str(root / table)
    with ExitStack() as stack:
        for watch in watches.values():
            stack.enter_context(watch)
        files = DirectorySource(root, 1)
        stack.callback(files.close)
        yield TableStorage(files=files, uri=uri, reader=(uri, {}), interceptors=interceptors, watches=watches)


@contextmanager
def bucket_storage(recorder: Recorder, inject: Inject, table: str) -> Iterator[TableStorage]:
    """A new bucket, deleted after the block. The import is here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.worlds.s3_front import S3Front

    interceptor = Interceptor(recorder, inject)
    with S3Front(interceptor, bucket=BUCKET) as front:
        access = {
            "aws_endpoint": front.endpoint,
            "aws_access_key_id": READER,
            "aws_secret_access_key": SECRET,
            "aws_region": _REGION,
            "aws_allow_http": "true",
        }
        yield TableStorage(
            files=ObjectFiles(front.objects), uri=f"s3a://{BUCKET}/{table}", reader=(f"s3://{BUCKET}/{table}", access),
            interceptors=dict.fromkeys(_MOMENTS, interceptor), front=front,
        )  # fmt: skip

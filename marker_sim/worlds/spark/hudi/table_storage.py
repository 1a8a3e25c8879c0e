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
    """One run's storage.

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
        """What the Spark of a process must be told to reach it."""
        if self.front is None:
            return {}
        self.front.roles[process] = "driver"
        return s3a_conf(self.front.endpoint, process, SECRET)

    def arm(self, fault: ArmedFault, at: At) -> None:
        """Aim a fault; `at`: the moment of a file on a local file system."""
        self.interceptors[at].arm(fault)

    def disarm(self) -> None:
        """No fault strikes any more."""
        for interceptor in self.interceptors.values():
            interceptor.disarm()
        if self.front is not None:
            self.front.healed()

    def stayed_short(self, path: str) -> bool:
        """Whether a file that was cut is shorter now than before it, or gone; an object is replaced whole."""
        return "cut" in self.watches and self.watches["cut"].stayed_short(path)

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""
        local = self.front is None
        return {"storage": "local" if local else "s3", "witness": "reads" if local else "effects"}

    def check(self) -> None:
        """HarnessError when the storage itself failed, so that nobody else is blamed for it."""
        for watch in self.watches.values():
            watch.check()
        if self.front is not None:
            self.front.check()


@contextmanager
def local_storage(
    recorder: Recorder, inject: Inject, process: Callable[[], str], root: Path, table: str
) -> Iterator[TableStorage]:
    """A fresh directory, whose calls are those of `process`; it is there after the block."""
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
    """A fresh bucket, gone after the block. Imported here, so that local storage needs neither boto3 nor moto."""
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

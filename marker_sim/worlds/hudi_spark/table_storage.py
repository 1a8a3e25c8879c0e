"""Where the table of a run lies, and who tells the kit what happens to its storage.

    local   a fresh directory that is watched (worlds/file_watch.py): faults strike as soon as the kernel told of an
            effect, and exactly in it when a file is cut and the kernel grants permission events
    s3      a bucket of the kit's S3 (worlds/s3_front): they come before a request is applied, or after it and before
            the reply

What strikes is recorded in one go with the effect that it was aimed at, from the moment it is armed until it is taken
away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from marker_sim.tables.sources import DirectorySource, Files, ObjectFiles
from marker_sim.worlds.file_watch import WHOLE, Moment, Watch
from marker_sim.worlds.hudi_spark.settings import s3a_conf
from marker_sim.worlds.hudi_spark.steps import At
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder

BUCKET = "lake"
READER = "reader"
SECRET = "marker-sim-secret"
_REGION = "us-east-1"


class TableStorage(Protocol):
    """One run's storage.

    files: its files at rest, by storage path.
    uri: of the table, for Spark; reader: the same for hudi-rs.
    """

    files: Files
    uri: str
    reader: tuple[str, dict[str, str]]

    def conf(self, process: str) -> dict[str, str]:
        """What the Spark of a process must be told to reach it."""

    def arm(self, *faults: ArmedFault, at: At = "whole") -> None:
        """Aim faults; `at`: the moment of a file on a local file system."""

    def disarm(self) -> None:
        """No fault strikes any more."""

    def stayed_short(self, path: str) -> bool:
        """Whether a file that was cut is shorter now than before it, or gone."""

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""

    def check(self) -> None:
        """HarnessError when the storage itself failed, so that nobody else is blamed for it."""


@dataclass(slots=True, kw_only=True)
class TriggerActions:
    """Who makes the calls of the moment, and what each fault that is armed does when it strikes."""

    process: str = ""
    acts: dict[ArmedFault, Callable[[StorageCall], None]] = field(default_factory=dict)

    def inject(self, armed: ArmedFault, call: StorageCall) -> None:
        """What an interceptor does to a process; the recorder's lock is held."""
        self.acts[armed](call)


@contextlib.contextmanager
def local_place(recorder: Recorder, target: TriggerActions, root: Path, table: str) -> Iterator[TableStorage]:
    """A fresh directory; it is there after the block."""
    (root / table).mkdir(parents=True)
    moments: dict[At, tuple[Moment, ...]] = {"whole": WHOLE, "made": ("create",), "cut": ("cut",)}
    interceptors = {at: Interceptor(recorder, target.inject) for at in moments}

    def process() -> str:
        return target.process

    watches = {
        at: Watch(root, interceptors[at], process=process, role="driver", moments=those)
        for at, those in moments.items()
    }
    with contextlib.ExitStack() as stack:
        for watch in watches.values():
            stack.enter_context(watch)
        files = DirectorySource(root, 1)
        stack.callback(files.close)
        uri = str(root / table)
        yield _Local(files=files, uri=uri, reader=(uri, {}), interceptors=interceptors, watches=watches)


@contextlib.contextmanager
def bucket_place(recorder: Recorder, target: TriggerActions, table: str) -> Iterator[TableStorage]:
    """A fresh bucket, gone after the block. Imported here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.worlds.s3_front import S3Front

    interceptor = Interceptor(recorder, target.inject)
    with S3Front(interceptor, bucket=BUCKET) as front:
        yield _Bucket(front, interceptor, table)


@dataclass(slots=True, kw_only=True)
class _Local:
    files: Files
    uri: str
    reader: tuple[str, dict[str, str]]
    interceptors: dict[At, Interceptor]
    watches: dict[At, Watch]

    def conf(self, process: str) -> dict[str, str]:
        return {}

    def arm(self, *faults: ArmedFault, at: At = "whole") -> None:
        self.interceptors[at].arm(*faults)

    def disarm(self) -> None:
        for interceptor in self.interceptors.values():
            interceptor.disarm()

    def describe(self) -> dict[str, Any]:
        return {"storage": "local", "witness": "reads"}

    def check(self) -> None:
        for watch in self.watches.values():
            watch.check()

    def stayed_short(self, path: str) -> bool:
        return self.watches["cut"].stayed_short(path)


class _Bucket:
    def __init__(self, front: Any, interceptor: Interceptor, table: str) -> None:
        self.front = front
        self.files: Files = ObjectFiles(front.objects)
        self.uri = f"s3a://{BUCKET}/{table}"
        self.reader = (
            f"s3://{BUCKET}/{table}",
            {
                "aws_endpoint": front.endpoint,
                "aws_access_key_id": READER,
                "aws_secret_access_key": SECRET,
                "aws_region": _REGION,
                "aws_allow_http": "true",
            },
        )
        self._interceptor = interceptor

    def conf(self, process: str) -> dict[str, str]:
        self.front.roles[process] = "driver"
        return s3a_conf(self.front.endpoint, process, SECRET)

    def arm(self, *faults: ArmedFault, at: At = "whole") -> None:
        self._interceptor.arm(*faults)

    def disarm(self) -> None:
        self._interceptor.disarm()
        self.front.healed()

    def describe(self) -> dict[str, Any]:
        return {"storage": "s3", "witness": "effects"}

    def check(self) -> None:
        self.front.check()

    def stayed_short(self, path: str) -> bool:
        return False  # An object is replaced whole.

"""Where the table of a round lies, and who tells the kit what happens to its storage.

    local   a fresh directory that is watched (real/watch.py): blows fall as soon as the kernel told of an effect
    s3      a bucket of the kit's S3 (real/front): they fall before a request is applied, or after it and before the
            reply

What strikes is recorded in one go with the effect that it was aimed at. Aims strike from the moment they are armed, and
not at all once they are taken away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from marker_sim.real.gate import Aim, Call, Gate
from marker_sim.real.recorder import Recorder
from marker_sim.real.watch import Watch
from marker_sim.sut.hudi_spark.settings import s3a_conf
from marker_sim.sut.hudi_spark.steps import At
from marker_sim.tables import LocalTree, S3Tree, Tree

BUCKET = "lake"
READER = "reader"
SECRET = "marker-sim-secret"
_REGION = "us-east-1"


class Place(Protocol):
    """One round's storage. tree: its files at rest. uri: of the table, for Spark; reader: the same for hudi-rs."""

    tree: Tree
    uri: str
    reader: tuple[str, dict[str, str]]

    def conf(self, process: str) -> dict[str, str]:
        """What the Spark of a process must be told to reach it."""

    def arm(self, *aims: Aim, at: At = "whole") -> None:
        """Aim faults; `at`: the moment of a file on a local file system."""

    def disarm(self) -> None:
        """No aim strikes any more."""

    def describe(self) -> dict[str, Any]:
        """The storage in a header."""

    def check(self) -> None:
        """HarnessError when the storage itself failed, so that nobody else is blamed for it."""


@dataclass(slots=True, kw_only=True)
class Target:
    """Who makes the calls of the moment, and what each aim that is armed does when it strikes."""

    process: str = ""
    acts: dict[Aim, Callable[[Call], None]] = field(default_factory=dict)

    def hurt(self, aim: Aim, call: Call) -> None:
        """What a gate does at an aim; the recorder's lock is held."""
        self.acts[aim](call)


@contextlib.contextmanager
def local_place(recorder: Recorder, target: Target, root: Path, table: str) -> Iterator[Place]:
    """A fresh directory; it is there after the block."""
    (root / table).mkdir(parents=True)
    whole, made = Gate(recorder, target.hurt), Gate(recorder, target.hurt)

    def process() -> str:
        return target.process

    watches = (
        Watch(root, whole, process=process, role="driver"),
        Watch(root, made, process=process, role="driver", moments=("create",)),
    )
    with watches[0], watches[1]:
        uri = str(root / table)
        yield _Local(
            tree=LocalTree(root), uri=uri, reader=(uri, {}), gates={"whole": whole, "made": made}, watches=watches
        )


@contextlib.contextmanager
def bucket_place(recorder: Recorder, target: Target, table: str) -> Iterator[Place]:
    """A fresh bucket, gone after the block. Imported here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.real.front import S3Front

    gate = Gate(recorder, target.hurt)
    with S3Front(gate, bucket=BUCKET) as front:
        yield _Bucket(front, gate, table)


@dataclass(slots=True, kw_only=True)
class _Local:
    tree: Tree
    uri: str
    reader: tuple[str, dict[str, str]]
    gates: dict[At, Gate]
    watches: tuple[Watch, ...]

    def conf(self, process: str) -> dict[str, str]:
        return {}

    def arm(self, *aims: Aim, at: At = "whole") -> None:
        self.gates[at].arm(*aims)

    def disarm(self) -> None:
        for gate in self.gates.values():
            gate.disarm()

    def describe(self) -> dict[str, Any]:
        return {"storage": "local", "witness": "reads"}

    def check(self) -> None:
        for watch in self.watches:
            watch.check()


class _Bucket:
    def __init__(self, front: Any, gate: Gate, table: str) -> None:
        self.front = front
        self.tree: Tree = S3Tree(front)
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
        self._gate = gate

    def conf(self, process: str) -> dict[str, str]:
        self.front.roles[process] = "driver"
        return s3a_conf(self.front.endpoint, process, SECRET)

    def arm(self, *aims: Aim, at: At = "whole") -> None:
        self._gate.arm(*aims)

    def disarm(self) -> None:
        self._gate.disarm()
        self.front.healed()

    def describe(self) -> dict[str, Any]:
        return {"storage": "s3", "witness": "effects"}

    def check(self) -> None:
        self.front.check()

"""Drivers that write a table by Hudi's Java client, without Spark (targets/jvm/HudiJavaWriter.java), in two ways:

    warm       one JVM has one life after another; a life that dies makes no storage call any more
    process    each life is a JVM behind the door, and dies by SIGKILL at the same call

What a warm life shows is no finding: it leaves threads behind. So a fault that breaks a promise there is played again
by processes (targets/hudi_java_runs.py). In both an error is raised by the file system of the Java program, as that of
an object store or of HDFS does: a local one reports a folder that cannot be read as an empty one (java.io.File.list).

The calls have the names that the door gives them; a warm life tells all of them, with the content of marker files, from
which the same effects are recorded that the door records.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.faults import Fault, FaultKind
from marker_sim.history.index.presence import directory_of
from marker_sim.plan import Plan
from marker_sim.worlds.door.front import keeps
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.spark.application import Application, Gone, Hangs, OutOfTime
from marker_sim.worlds.spark.fault_injector import TableFaultInjector
from marker_sim.worlds.spark.hudi.settings import Program, hudi_options, log_of, partition_names, shape_of
from marker_sim.worlds.spark.hudi.steps import call_of
from marker_sim.worlds.spark.hudi.table_storage import TableStorage, table_storage
from marker_sim.worlds.spark.plans import DRIVER
from marker_sim.worlds.spark.session import JVM

START_S = 60.0
ANSWER_S = 10.0  # For an answer of a JVM whose write has reached its limit.
REMOTE_S = 20  # Of a client that waits for a timeline server that does not answer.
HEARTBEAT_OVER_MS = 200_000  # A pause of so long outlasts the heartbeats of one of several writers.
WARM_REMOTE_S = 5  # The same in a warm JVM, whose classes are loaded; what breaks there is played by processes.
_QUIET = ("-Xlog:disable", "-Xlog:all=warning:stderr", "-XX:+DisplayVMOutputToStderr")  # Answers are on its output.
# Of Java itself, as Spark opens them: Hudi measures records field by field, and in a closed package each look throws.
_OPENED = ("java.lang", "java.lang.reflect", "java.util", "java.util.concurrent")
_OPENS = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED)
_OPTIONS = (*_QUIET, *JVM.split(), *_OPENS, "-Xmx1g", "-Dfile.encoding=UTF-8")
MAIN, GATE = "HudiJavaWriter", "ZookeeperBasedLockProvider"  # The second stands before Hudi's of its name.
_NEED_ROOM = ("open", "write", "mkdir")  # Calls that a full disk refuses, as the door has it.
# S3A repeats nothing, so that Hudi meets each error, as it does at the end of S3A's patience.
_ONCE = {f"fs.s3a.{each}": "0" for each in ("attempts.maximum", "retry.limit", "retry.throttle.limit")}


def java_words(java: str, jars: tuple[Path, ...], home: Path) -> list[str]:
    """The command of the program. jars: with its own; home: of PySpark, whose jars it needs."""
    return [java, *_OPTIONS, "-cp", ":".join((*map(str, jars), str(home / "jars" / "*"))), MAIN]


@contextmanager
def asked_once(plan: Plan, version: str, folder: Path) -> Iterator[str]:
    """The lines of a life that writes a plan's table and reads it, which loads the classes of all lives; the table is
    there within the block. folder: of a local one.
    """
    part, write = partition_names(plan)[0], {"do": "write", "extra": {}, "faults": [], "limit_ms": int(START_S * 1000)}
    writes = [{**write, "rows": [["k00", part, f"w{number}", number]]} for number in (1, 2)]
    interceptor = Interceptor(Recorder(), lambda due, call: None)
    with table_storage(plan, interceptor, folder, "t", door=False) as place:
        begins = opened(place, "archive", java_options(plan, version))
        yield "".join(f"{json.dumps(each)}\n" for each in (begins, *writes, {"do": "read"}))


def opened(place: TableStorage, name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The question that begins a life with a name, which is its access key on S3."""
    conf = {key.removeprefix("spark.hadoop."): value for key, value in place.conf(name).items()}
    if conf:
        conf |= _ONCE
    return {"do": "open", "table": place.uri, "options": dict(options), "conf": conf}


def java_options(plan: Plan, version: str, remote_s: int = REMOTE_S) -> dict[str, str]:
    """The options of every write of a plan's table: those of Spark's, and an embedded server in timeline mode alone,
    for whose answers the client waits `remote_s` at most.
    """
    return {
        **hudi_options(plan, version),
        "hoodie.embed.timeline.server": str(plan.mode == "timeline").lower(),
        "hoodie.filesystem.view.remote.timeout.secs": str(remote_s),
    }


@dataclass(slots=True)
class JavaDriver:
    """A life that writes the table at a path.

    place: where that is.
    injector: of faults that the Java program does, None where all are done at the storage.
    own: whether its JVM ends with it; else the next life begins in the same.
    """

    name: str
    jvm: Application
    place: TableStorage
    options: Mapping[str, str]
    injector: JavaFaultInjector | None
    own: bool
    _dead: bool = field(default=False)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._dead and self.jvm.alive

    def wait_ready(self) -> None:
        """Begin the life; HarnessError when its JVM does not start."""
        if self.own:
            self.jvm.wait_ready()
        try:
            self.jvm.ask(opened(self.place, self.name, self.options), START_S)
        except Gone as gone:
            raise HarnessError(f"the JVM of {self.name} ended: {self.jvm.last_lines()}") from gone

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """An answer. Gone when the life is over, Hangs when it does not answer in time; OutOfTime."""
        if message["do"] not in ("write", "service"):
            return self.jvm.ask(message, timeout_s)
        told = {
            **message,
            "extra": message["options"],
            "faults": self.injector.told() if self.injector else [],
            "limit_ms": int(timeout_s * 1000),
        }
        try:
            answer = self.jvm.ask(told, timeout_s + ANSWER_S)
        except Hangs:
            self.jvm.kill()  # It would answer no later life either.
            raise
        if self.injector:
            self.injector.took(answer)
        if self._dead or "died" in answer:
            self._dead = True
            raise Gone(self.name)
        if "hangs" in answer:
            raise Hangs(f"{self.name} did not end its {message['do']} in {timeout_s:.0f} s")
        return answer

    def kill_now(self) -> None:
        """Kill the process; a warm life makes no call any more once the next one begins, and on S3 none from now on."""
        dead, self._dead = self._dead, True
        if self.own:
            self.jvm.kill_now()
        elif self.place.bucket is not None and not dead:
            self.place.bucket.refused.add(self.name)
            with suppress(Gone):
                self.jvm.tell({"do": "end"})

    def kill(self) -> None:
        """The same, and wait until nothing is left of the process."""
        self.kill_now()
        if self.own:
            self.jvm.kill()

    def last_lines(self) -> str:
        """The end of the log of its JVM, for messages."""
        return self.jvm.last_lines()


class JavaFaultInjector(TableFaultInjector):
    """Injects faults into writes by Hudi's Java client, and records what they met.

    warm: lives of one JVM, which do all faults to themselves; else deaths are the door's.
    """

    def __init__(self, recorder: Recorder, table: str, *, warm: bool) -> None:
        super().__init__(recorder, table)
        self._warm = warm
        self._held: dict[str, bytes] = {}
        self._before: dict[str, bytes] = {}  # What marker files held that are written again.

    def at_storage(self, fault: Fault) -> bool:
        """Whether the door does a fault: the deaths of processes."""
        return fault.kind.row.kills and not self._warm

    def end(self) -> None:
        """The same; a file that was torn when it was renamed loses its content, or a half of it."""
        super().end()
        assert self._place is not None
        root = Path(self._place.uri).parent
        for aimed in self._armed:
            if aimed.fired and loses(aimed.fault):
                named = {str(path.relative_to(root)): path for path in root.rglob("*.requested")}
                last = named[max(filter(re.compile(aimed.call.pattern).search, named))]  # Others are of earlier ones.
                os.truncate(last, 0 if aimed.fault.settings.empty else last.stat().st_size // 2)

    def told(self) -> list[dict[str, Any]]:
        """The armed faults that the Java program does, as it reads them."""
        return [told_of(aimed) for aimed in self._armed if not self.at_storage(aimed.fault)]

    def took(self, answer: Mapping[str, Any]) -> None:
        """Take in the answer to a write: its calls, and what its faults met."""
        own = [aimed for aimed in self._armed if not self.at_storage(aimed.fault)]
        kinds = {effect_of(aimed.fault): aimed.kind for aimed in own}
        for aimed, fired in zip(own, answer["struck"], strict=True):
            aimed.fired = fired
        if self._warm:
            self.calls = [
                StorageCall(
                    self.process,
                    DRIVER,
                    call["op"],
                    call["path"],
                    ("cut",) if "cut" in call else (),
                    needs_room=call["op"] in _NEED_ROOM and "cut" not in call,
                )
                for call in answer["calls"]
            ]
        for call in answer["calls"]:
            self.follow(call, kinds, self.process)
        self._before.clear()

    def follow(self, call: Mapping[str, Any], kinds: Mapping[str, FaultKind], process: str) -> None:
        """Record a call of a process: its effects, and the fault that it met. kinds: by `effect_of`."""
        kind = kinds.get(call["result"])
        if kind is not None and not kind.row.kills:
            self.recorder.record(process, "nemesis", "fault", kind.value, path=call["path"], error=call["op"])
        if self._warm and "gone" in call:
            self._effects(call, process)
        if kind is not None and kind.row.kills:
            self.recorder.fault(process, "kill", path=call["path"], error=self._word)

    def _effects(self, call: Mapping[str, Any], process: str) -> None:
        for path in call["gone"]:
            self._record(process, "delete", path, None)
        if "puts" not in call:
            return
        path, data = call["path"], call["puts"].encode("latin-1")
        held, operation = self._held.get(path, b""), "put"
        if directory_of(path) is not None:
            whole = self._before.setdefault(path, held)
            if not keeps(path, whole, data):
                operation = "overwrite-begin" if whole == held else "overwrite-piece"
            else:
                operation = "put" if whole == held else "overwrite-end"
                del self._before[path]
        self._record(process, operation, path, data)

    def _record(self, process: str, operation: str, path: str, data: bytes | None) -> None:
        if data is None:
            self._held.pop(path, None)
        else:
            self._held[path] = data
        self.recorder.record(process, DRIVER, "effect", operation, path=path, value=data)


def told_of(aimed: ArmedFault) -> dict[str, Any]:
    """An armed fault as the Java program reads it."""
    return {
        "pattern": aimed.call.pattern,
        "operations": list(aimed.call.operations),
        "n": aimed.call.n,
        "calls": aimed.fault.settings.calls,
        "effect": effect_of(aimed.fault),
    }


def loses(fault: Fault) -> bool:
    """Whether the file of its call keeps its name and not its content."""
    return fault.kind is FaultKind.TORN_WRITE and "rename" in call_of(fault).operations


def effect_of(fault: Fault) -> str:
    """What the Java program does at the call of a fault; AssertionError for a kind that no plan of it has."""
    match fault.kind:
        case FaultKind.KILL:
            return f"die-{call_of(fault).when}"
        case FaultKind.TORN_WRITE:
            return "die-after" if loses(fault) else "torn"
        case FaultKind.PAUSE:
            return "pause-long" if fault.settings.for_ms >= HEARTBEAT_OVER_MS else "pause"
        case FaultKind.DISK_FULL:
            return "full-within" if fault.settings.calls > 1 else "full"
        case FaultKind.IO_ERROR | FaultKind.REQUEST_LOST | FaultKind.REPLY_LOST:
            applied = fault.settings.applied or fault.kind is FaultKind.REPLY_LOST
            return "applied" if applied else "error"
        case FaultKind.FALSE_ANSWER:
            return "false"
    raise AssertionError(f"{fault.kind} is not done by the Java program")


@dataclass(frozen=True, slots=True)
class JavaDrivers:
    """How the drivers of a table begin.

    words: the command of a JVM. warm: the JVM in which all lives are, None for a process each. over: whether no further
    one begins.
    """

    version: str
    words: list[str]
    warm: Callable[[], Application] | None = None
    over: Callable[[], bool] = bool

    def injector(self, recorder: Recorder, table: str, storage: str) -> TableFaultInjector:
        """The injector for one table; on S3 all faults are done where the calls arrive."""
        if storage == "s3":
            return TableFaultInjector(recorder, table)
        return JavaFaultInjector(recorder, table, warm=self.warm is not None)

    def begin(
        self, plan: Plan, program: Program, here: Path, place: TableStorage, injector: TableFaultInjector, name: str
    ) -> JavaDriver:
        """A new driver with a name; OutOfTime when none begins any more."""
        if self.over():
            raise OutOfTime
        if self.warm is None:
            log = log_of(program, here, name)
            jvm = Application(name, self.words, program.environment(), log, program.deadline, place.door)
        else:
            jvm = self.warm()
        shape = shape_of(plan)
        if shape.upgrades and injector.driver is not None:  # Hudi does it by itself where it is not told to keep 6.
            plan = replace(plan, shape=replace(shape, version6=False))
        options = java_options(plan, self.version, REMOTE_S if self.warm is None else WARM_REMOTE_S)
        own = injector if isinstance(injector, JavaFaultInjector) else None
        return JavaDriver(name, jvm, place, options, own, own=self.warm is None)

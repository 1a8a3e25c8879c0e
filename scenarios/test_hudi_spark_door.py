"""A driver on local storage dies exactly where a plan says, with a small program in the place of Spark and Hudi."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.worlds.spark.hudi.steps import PHASES
from properties.faces.worlds import (
    DATA,
    HOSTS,
    KILLED_AT,
    UNSEEN,
    Application,
    Interceptor,
    Pace,
    Program,
    Recorder,
    Standalone,
    StorageCall,
    TableFaultInjector,
    TableStep,
    aimed_at,
    draw_table,
    local_storage,
    play_table,
    put_call,
    refused,
)
from scenarios.test_hudi_spark_runs import FILE_ID, I1, Driver


@contextmanager
def driver_behind_a_door(root: Path, program: str, faults: tuple[Fault, ...]) -> Iterator[TableFaultInjector]:
    """A program in the place of a driver has written a table as far as it lived, under the faults of a step."""
    if why := refused():
        pytest.skip(f"storage calls do not stop at the kit here: {why}")
    injector = TableFaultInjector(Recorder(), "t0")
    with local_storage(Interceptor(injector.recorder, injector.inject), root, "t0") as place:
        assert place.door is not None
        for folder in (f".hoodie/.temp/{I1}", "p1"):
            (root / "t0" / folder).mkdir(parents=True)
        with injector.recorder.lock:  # No call of it is answered before the injector knows it.
            command = place.door.start(
                [sys.executable, "-I", "-S", "-c", program], {}, process="driver-1", role="driver", folder=root / "t0"
            )  # fmt: skip
            injector.driver = cast(Application, SimpleNamespace(name="driver-1", kill_now=command.end))
            injector.arm(TableStep(name=f"{KILLED_AT}here", stage="write", faults=faults), place)
        assert command.popen.wait(20.0) == -9
        injector.end()
        place.check()
        yield injector


DATA_FILE, MARKERS = f"p1/{FILE_ID}_1-14-24_{I1}.parquet", f".hoodie/.temp/{I1}/MARKERS0"
# Hadoop starts a chmod while it has the file open, and a child closes what it does not need.
WRITES = f"""
import os
for path, data in (({DATA_FILE!r}, b"PAR1" * 4), ({MARKERS!r}, b"name-1\\n"), ({MARKERS!r}, b"name-1\\nname-2\\n")):
    with open(path, "wb", buffering=0) as out:
        if (child := os.fork()) == 0:
            os.close(out.fileno())
            os._exit(0)
        os.waitpid(child, 0)
        out.write(data)
os.unlink({DATA_FILE!r})
"""
PARTS: dict[str, tuple[Fault, bytes | None]] = {
    "before": (Fault.of(FaultKind.KILL, "driver", put_call(DATA, 1, "before", "local")), None),
    "made": (Fault.of(FaultKind.KILL, "driver", put_call(DATA, 1, "within", "local")), b""),
    "torn": (Fault.of(FaultKind.TORN_WRITE, "driver", Call(DATA, ("write",), 1, "after")), b"PAR1PAR1"),
    "after": (Fault.of(FaultKind.KILL, "driver", put_call(DATA, 1, "after", "local")), b"PAR1" * 4),
    "before it is deleted": (Fault.of(FaultKind.KILL, "driver", Call(DATA, ("delete",), 1, "before")), b"PAR1" * 4),
    "after it was deleted": (Fault.of(FaultKind.KILL, "driver", Call(DATA, ("delete",), 1, "after")), None),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_driver_dies_exactly_at_a_part_of_a_put_and_the_effects_are_in_their_order(tmp_path: Path, part: str) -> None:
    fault, left = PARTS[part]
    with driver_behind_a_door(tmp_path, WRITES, (fault,)) as injector:
        file = tmp_path / "t0" / DATA_FILE
        assert injector.met and injector.deadly
        assert (file.read_bytes() if file.exists() else None) == left
        seen = [(e.kind, e.operation, e.value) for e in injector.recorder.events if e.path == f"t0/{DATA_FILE}"]
        killed, empty = ("fault", "kill", None), ("effect", "put", b"")
        whole, gone = ("effect", "put", b"PAR1" * 4), ("effect", "delete", None)
        expected = {
            "before": [killed], "made": [empty, killed], "torn": [empty, killed], "after": [empty, whole, killed],
            "before it is deleted": [empty, whole, killed], "after it was deleted": [empty, whole, gone, killed],
        }  # fmt: skip
        assert seen == expected[part]
        assert (tmp_path / "t0" / MARKERS).exists() == ("deleted" in part)


def test_a_driver_dies_in_a_rewrite_when_the_file_is_cut_and_nothing_is_written_yet(tmp_path: Path) -> None:
    rewriting = next(phase for phase in PHASES if phase.rewrites)
    with driver_behind_a_door(tmp_path, WRITES, rewriting.step(random.Random(0), 1, "local").faults) as injector:
        assert injector.met and injector.deadly
        assert (tmp_path / "t0" / MARKERS).read_bytes() == b""
        operations = [event.operation for event in injector.recorder.events if event.path == f"t0/{MARKERS}"]
        assert operations == ["put", "put", "overwrite-begin", "kill"]


def test_behind_a_door_it_is_the_executor_that_made_the_call_which_dies(tmp_path: Path) -> None:
    injector = TableFaultInjector(Recorder(), "t0")
    injector.driver = cast(Application, SimpleNamespace(name="driver-1"))
    started = {host: subprocess.Popen(["sleep", "600"]) for host in HOSTS}
    try:
        there = {host: [psutil.Process(process.pid)] for host, process in started.items()}
        injector.cluster = cast(Standalone, SimpleNamespace(executors=lambda: there))
        killed = Fault.of(FaultKind.KILL, "executor", put_call(DATA, 1, "after", "local"))
        call = StorageCall(f"executor-{HOSTS[1]}", "executor", "close", f"t0/{DATA_FILE}")
        assert aimed_at(killed, "t0", "executor").fits(call)
        assert not aimed_at(killed, "t0", "executor").fits(call._replace(process="driver-1"))
        assert injector.strike(0, killed, call)
        assert started[HOSTS[1]].wait(20.0) == -9
        assert started[HOSTS[0]].poll() is None
        (event,) = injector.recorder.events
        assert (event.process, event.operation) == (call.process, "kill-executor")
    finally:
        for process in started.values():
            process.kill()
            process.wait(20.0)


def test_markers_that_a_run_leaves_are_no_calls_that_were_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := refused():
        pytest.skip(f"storage calls do not stop at the kit here: {why}")
    leaves = (
        f"import os; os.makedirs('.hoodie/.temp/{I1}'); open('.hoodie/.temp/{I1}/MARKERS.type', 'w').write('DIRECT')"
    )

    def started(name: str, words: list[str], *rest: Any) -> Application:
        table = pickle.loads(Path(words[-1]).read_bytes())["table"]
        command = rest[-1].start([sys.executable, "-I", "-c", leaves], {}, process=name, role="driver", folder=table)
        assert command.popen.wait(20.0) == 0
        return cast(Application, Driver(name, ["out of time"]))

    monkeypatch.setattr("marker_sim.worlds.spark.hudi.table_run.Application", started)
    program = Program(
        home=tmp_path, java="java", jars=(), mark="none", logs=tmp_path, deadline=time.monotonic() + 1_000
    )
    plan = replace(draw_table(random.Random(3), 0, "1.0.2"), mode="direct", storage="local")
    run = play_table(
        plan, number=0, version="1.0.2", program=program, scratch=tmp_path, pace=Pace(), sut="hudi-spark:1.0.2",
        profile="hudi-spark",
    )  # fmt: skip
    stored = [event.value for event in run.history.events if (event.path or "").endswith("MARKERS.type")]
    assert stored[-1] == b"DIRECT" and run.cut
    assert not [name for name in run.counts if name.startswith(UNSEEN)]

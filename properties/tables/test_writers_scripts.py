"""Failures of several writers of a table as Python scripts; scenarios/test_hudi_writers.py plays one with Hudi."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan, Task, Write
from properties.faces.campaign import StoredPlan
from properties.faces.cli import BY_PROCESSES, NOT_BY_PROCESSES, NOT_PLAYED, confirm_by_script
from properties.faces.report import issue_text, script_of, told_of
from properties.faces.targets import HEARTBEAT_OVER_MS, ROLLS, WRITERS_SHAPE, ServerOptions

GROUP = Write(tasks=(Task(partition="p0", group="a"),))
FILE = "p0/f-0_0-1-0_20260101000000001.parquet"
ENTRY = ".hoodie/timeline/20260101000000001"
JUDGED = ("G15", "G24", "G25", "G26", "G28", "G29")


def paused(for_ms: int, writer: int = 1) -> Fault:
    return Fault.of(FaultKind.PAUSE, f"writer-{writer}", Call(r"p0/.*\.parquet$", ("close",), 2), for_ms=for_ms)


def race(*faults: Fault) -> Plan:
    writes = (GROUP, Write(tasks=(Task(partition="p0", group="b"),)), Write(name=ROLLS))
    return Plan(mode="direct", storage="local", num_threads=1, shape=WRITERS_SHAPE, writes=writes, faults=faults)


def told(guarantee: str = "G24", *faults: Fault, also: tuple[str, ...] = ("G29",), message: str = "") -> StoredPlan:
    return StoredPlan(
        guarantee=guarantee, plan=race(*faults), sut="hudi-java:1.2.0", server=ServerOptions(), also=also,
        message=message, version="1.2.0",
    )  # fmt: skip


def module(folder: Path, failure: StoredPlan) -> Any:
    """What a script defines, without running it."""
    (folder / "show.py").write_text(script_of(failure)[0], encoding="utf-8")
    return SimpleNamespace(**runpy.run_path(str(folder / "show.py")))


def run_of(folder: Path, *told_done: str, guarantee: str = "G24", also: tuple[str, ...] = JUDGED) -> Any:
    """A run after its race, in which writer-1 wrote a group, and of which nothing was lost."""
    folder.mkdir(exist_ok=True)
    script = module(folder, told(guarantee, also=also))
    run = script.Run(folder, folder)
    (run.root / ".hoodie" / "timeline").mkdir(parents=True)
    (run.root / "p0").mkdir()
    for suffix in (".commit.requested", ".inflight", "_20260101000000009.commit"):
        put(run, ENTRY + suffix)
    put(run, FILE)
    run.writers = [SimpleNamespace(name="writer-1", instant="20260101000000001")]
    run.told = {**dict.fromkeys(("writer-1", "writer-2", "writer-3"), "failed"), **dict.fromkeys(told_done, "done")}
    run.told["later"] = "done"
    rows = {key: ["by-first"] for group in script.FIRST for key, _ in group} | {"a.p0.writer-1": ["by-writer-1"]}
    run.after, run.last = rows, rows | {"healed.healed.later": ["by-later"]}
    return run


def put(run: Any, name: str, content: bytes = b"{}", by: str = "writer-1") -> None:
    (run.root / name).write_bytes(content)
    run.did.append((by, "rename" if name.startswith(".hoodie") else "open", name))


def delete(run: Any, name: str, by: str = "writer-3") -> None:
    (run.root / name).unlink(missing_ok=True)
    run.did.append((by, "delete", name))


def rolled_back(run: Any, number: int = 50, by: str = "writer-3") -> None:
    own = f".hoodie/timeline/202601010000000{number}"
    put(run, f"{own}.rollback.requested", b"Obj\x01\x04 schema \x22" + b"20260101000000001" + b"\x0ccommit", by)
    put(run, f"{own}_20260101000000090.rollback", b"{}", by)


def broken(run: Any) -> set[str]:
    run.judge("done")
    return set(run.broken)


def test_the_stops_of_a_plan_its_writers_and_its_groups_are_in_the_script(tmp_path: Path) -> None:
    death = Fault.of(FaultKind.KILL, "writer-2", Call(r"\.hoodie/timeline/\d+\.inflight$", ("rename",)))
    script = module(tmp_path, told("G24", paused(HEARTBEAT_OVER_MS), paused(1_000, 2), death))
    assert [stop["does"] for stop in script.STOPS] == ["pause-long", "pause", "die-before"]
    assert script.STOPS[0]["n"] == 2 and script.STOPS[1]["writer"] == "writer-2"
    assert [keys for _, keys in script.WRITERS] == [[("a.p0.writer-1", "p0")], [("b.p0.writer-2", "p0")], []]
    assert [{key.partition(".")[0] for key, _ in group} for group in script.FIRST] == [{"a"}, {"b"}, {"healed"}]
    assert all(len(group) == 4 for group in script.FIRST), "each owner has a key in each group"
    assert script.OPTIONS["hoodie.write.lock.provider"] == "Writer$FileLock"
    assert script.CLAIMS == ["G24", "G29"]


def test_the_lock_of_a_plan_with_hudis_own_is_hudis_own(tmp_path: Path) -> None:
    plan = race()
    assert plan.shape is not None
    shared = replace(plan, shape=replace(plan.shape, sharing="file-lock"))
    own = replace(told(), plan=shared)
    assert module(tmp_path, own).OPTIONS["hoodie.write.lock.provider"] == "Writer$HudiLock"
    assert "class HudiLock extends FileSystemBasedLockProvider" in script_of(own)[0]


def test_a_plan_with_early_detection_has_no_script() -> None:
    plan = race()
    assert plan.shape is not None
    early = replace(plan, shape=replace(plan.shape, sharing="early-transaction"))
    with pytest.raises(UsageError, match="early detection"):
        script_of(replace(told(), plan=early))


def test_a_script_of_an_older_version_asks_for_the_schema_as_that_calls_it() -> None:
    assert "getTableAvroSchema()" in script_of(replace(told(), sut="hudi-java:1.1.1", version="1.1.1"))[0]
    assert "getTableSchema()" in script_of(told())[0]


def test_what_a_script_of_writers_cannot_judge_is_refused_in_a_sentence_and_its_text_is_written() -> None:
    with pytest.raises(UsageError, match="cannot be shown by a script: it judges G15, G24"):
        script_of(told("G27"))
    assert "it judges G15, G24" in issue_text(told("G27"))


def test_a_race_that_lost_nothing_breaks_nothing(tmp_path: Path) -> None:
    assert not broken(run_of(tmp_path, "writer-1", "writer-3"))


def test_rows_that_a_told_writer_wrote_and_a_reader_does_not_see_are_lost(tmp_path: Path) -> None:
    run = run_of(tmp_path, "writer-1")
    run.last = run.last | {"a.p0.writer-1": ["by-first"]}
    assert broken(run) == {"G24"} and "was told that its write is done" in run.broken["G24"][0]
    run = run_of(tmp_path / "untold")
    run.last = run.last | {"a.p0.writer-1": ["by-first"]}
    assert not broken(run), "nobody was told"


def test_files_of_a_completed_write_that_another_one_deletes_are_a_lost_commit(tmp_path: Path) -> None:
    run = run_of(tmp_path, "writer-1")
    delete(run, FILE)
    assert broken(run) == {"G26"}
    run = run_of(tmp_path / "own", "writer-1")
    delete(run, FILE, by="writer-1")
    delete(run, f"{ENTRY}.inflight")
    assert not broken(run), "its own files, and the entry that a completed one does not need"


def test_a_rollback_that_goes_on_after_the_commit_and_a_second_one_break_one_rollback(tmp_path: Path) -> None:
    run = run_of(tmp_path, "writer-1")
    rolled_back(run)
    assert broken(run) == {"G29"} and "which is completed" in run.broken["G29"][0]
    run = run_of(tmp_path / "once")
    run.did = []  # It never completed.
    rolled_back(run, 50)
    assert not broken(run)
    rolled_back(run, 60, by="writer-2")
    assert broken(run) == {"G29"} and "was rolled back 2 times" in run.broken["G29"][0]


def test_a_file_of_an_instant_that_is_gone_is_left_behind_a_rollback(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.did = []
    for suffix in (".commit.requested", ".inflight", "_20260101000000009.commit"):
        (run.root / f"{ENTRY}{suffix}").unlink()
    assert broken(run) == {"G15"}


def test_a_refusal_is_real_only_when_another_writer_wants_the_same_group(tmp_path: Path) -> None:
    run = run_of(tmp_path, "writer-1")
    run.told["writer-2"] = "x.HoodieWriteConflictException: y"
    assert broken(run) == {"G28"}


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        *((each, "") for each in JUDGED),
        ("G26", "they wrote the file group g at the same time"),
        ("G29", "goes on, and it was completed at event 3"),
        ("G29", "failed in a rollback"),
        ("G29", "two rollbacks of x"),
    ],
)  # fmt: skip
def test_a_text_for_a_tracker_begins_with_the_impact_under_a_short_title(guarantee: str, message: str) -> None:
    failure = told(guarantee, paused(HEARTBEAT_OVER_MS), also=(), message=message)
    said, text = told_of(failure), issue_text(failure)
    assert len(said["title"]) <= 80 and not re.search(r"G\d\d|marker-sim|kit|hudi-java", said["title"])
    assert text.startswith(f"# {said['title']}\n\n**Impact:** {said['impact']}\n") and "```python" in text
    assert ("loses the rows" in said["impact"]) == (guarantee == "G24"), "only where rows were lost"
    assert guarantee != "G24" or "a.p0.writer-1" in said["impact"]
    assert "loses the rows" in told_of(replace(failure, also=("G24",)))["impact"]


def test_rows_that_are_lost_without_a_late_writer_are_of_either_one_and_of_no_rollback() -> None:
    said = told_of(told("G24", paused(1_000)))
    assert len(said["title"]) <= 80 and "rollback" not in said["title"]
    assert "a.p0.writer-1, b.p0.writer-2 below" in said["impact"] and "writer-3" not in said["impact"]


# In the place of Java: the first process writes and reads, each other one says that it has come to its stop.
JAVA = """import os, sys
with open({pids!r}, "a") as pids:
    print(os.getpid(), file=pids)
first = len(open({pids!r}).readlines()) == 1
for line in sys.stdin:
    if line.split()[0] in ("write", "read", "roll"):
        print("OVER\\tdone" if first else "STOP\\t0\\tclose\\tp0/x.parquet", flush=True)
"""


def java_of(folder: Path, program: str) -> dict[str, str]:
    """The environment in which a program stands in the place of Java."""
    (folder / "bin").mkdir()
    (folder / "bin" / "java.py").write_text(program)
    started = f'#!/bin/sh\nexec "{sys.executable}" "$0.py"\n'  # A path with a space is none behind `#!`.
    for name, text in (("java", started), ("javac", f"#!{shutil.which('true')}\n")):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(stat.S_IRWXU)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "CLASSPATH": "x"}


# In the place of Java: every write is told that it is done, and no row is ever there.
EMPTY = """import sys
for line in sys.stdin:
    if line.split()[0] in ("write", "read", "roll"):
        print("OVER\\tdone", flush=True)
"""


def test_verify_says_whether_the_script_of_a_story_showed_it(tmp_path: Path) -> None:
    settings = java_of(tmp_path, EMPTY)
    assert confirm_by_script(told("G24"), settings) == BY_PROCESSES
    assert confirm_by_script(told("G15", also=()), settings) == NOT_BY_PROCESSES
    unmet = confirm_by_script(told("G15", paused(1_000), also=()), settings)
    assert unmet.startswith(NOT_PLAYED) and "a step could not be done" in unmet
    assert "it judges G15" in confirm_by_script(told("G27"), settings)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_when_a_script_ends_while_a_writer_is_stopped(tmp_path: Path, number: int) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "show.py").write_text(script_of(told("G24", paused(HEARTBEAT_OVER_MS)))[0], encoding="utf-8")
    environment = os.environ | java_of(tmp_path, JAVA.format(pids=str(pids)))
    with (tmp_path / "said").open("w") as said:
        script = subprocess.Popen([sys.executable, "-u", str(tmp_path / "show.py")], env=environment, stdout=said)
    until = time.monotonic() + 300
    while len(stopped := re.findall(r"kill -STOP (\d+)", (tmp_path / "said").read_text())) < 3:
        assert time.monotonic() < until, "all writers of the race are stopped one after the other"
        time.sleep(0.02)
    script.send_signal(number)
    script.wait(10)
    started = pids.read_text().split()
    assert {*stopped} < {*started} and len(started) == 4
    until = time.monotonic() + 10
    while any(map(alive, started)) and time.monotonic() < until:
        time.sleep(0.02)
    left = [pid for pid in started if alive(pid)]
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert not left


def alive(pid: str) -> bool:
    """Whether a process is there and not only its exit code."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False

"""Failures of tables as Python scripts: what they refuse, and that they see with a small Hudi what it does wrong."""

from __future__ import annotations

import os
import random
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Plan
from marker_sim.report.scripts.table_script import _kill
from marker_sim.worlds.spark.hudi.steps import PHASES
from properties.faces.campaign import StoredPlan
from properties.faces.report import issue_text, script_of
from properties.faces.targets import ServerOptions
from properties.faces.worlds import Choices, draw_table, executor_troubles, refused, shape_of, with_steps

LITTLE_HUDI = Path(__file__).with_name("little_hudi.py")


def plan(word: str = "data-file") -> Plan:
    drawn = draw_table(random.Random(3), 0, "1.0.2")
    table = replace(drawn, storage="local", shape=replace(shape_of(drawn), partitions="plain", metadata=False))
    place = next(phase for phase in PHASES if phase.word == word)
    return with_steps(table, [place.step(random.Random(1), 4, "local")])


def told(made: Plan, guarantee: str = "G15") -> StoredPlan:
    return StoredPlan(
        guarantee=guarantee, plan=made, sut="hudi-spark:1.0.2", server=ServerOptions(), also=("G24", "G13"),
        message='a """quoted""" \\N name', often="breaks in 3 of 4 runs",
    )  # fmt: skip


def run(tmp_path: Path, failure: StoredPlan, broken: str, **words: str) -> subprocess.CompletedProcess[str]:
    """The script with the little Hudi in place of PySpark."""
    package = tmp_path / "packages" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copyfile(LITTLE_HUDI, package / "sql.py")
    script = tmp_path / "show.py"
    script.write_text(script_of(failure)[0], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "BUNDLE": __file__, "TRIES": "2", **words}
    return subprocess.run(
        [sys.executable, str(script)], env=environment | {"LITTLE_HUDI": broken}, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "guarantee", "says"),
    [
        ("leaves", "G15", "is stored, and its instant"),
        ("forgets", "G24", "reads as nothing, last written as"),
        ("refuses", "G19", "no write succeeds any more: "),
    ],
)
def test_a_script_sees_what_a_broken_hudi_does_after_a_kill(
    tmp_path: Path, broken: str, guarantee: str, says: str
) -> None:
    done = run(tmp_path, told(plan(), guarantee), broken)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "$ kill -9 driver 2   # p" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"VIOLATED in 1 of 1 tries: {guarantee} ")
    assert says in done.stdout.splitlines()[-1]


def test_a_script_says_that_a_hudi_that_rolls_back_held_and_kills_it_in_its_rollback_too(tmp_path: Path) -> None:
    made = plan("rollback-deletion")
    assert made.writes[0].abandon
    done = run(tmp_path, told(made), "")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "held in 2 tries"), done.stdout + done.stderr
    assert done.stdout.count(" its unlink") == done.stdout.count(" after its close") == 2


FILE = "p1/f_1-2-3_20260101000000000.parquet"
WRITES = f"""
import os
os.makedirs("p1")
for data in (b"PAR1" * 4, b"PAR1" * 2):
    with open({FILE!r}, "wb", buffering=0) as out:
        if (child := os.fork()) == 0:
            os.close(out.fileno())
            os._exit(0)
        os.waitpid(child, 0)
        out.write(data)
os.rename({FILE!r}, {FILE!r} + ".old")
os.unlink({FILE!r} + ".old")
"""
PARTS: dict[str, tuple[Call, bool, bytes | None]] = {
    "before the open": (Call(FILE + "$", ("open",), 1, "before"), False, None),
    "after the open": (Call(FILE + "$", ("open", "rename"), 1, "after"), False, b""),
    "within the write": (Call(FILE + "$", ("write",), 1, "after"), True, b"PAR1PAR1"),
    "after the close": (Call(FILE + "$", ("close", "rename"), 1, "after"), False, b"PAR1" * 4),
    "before the cut": (Call(FILE + "$", ("cut",), 1, "before"), False, b"PAR1" * 4),
    "after the cut": (Call(FILE + "$", ("cut",), 1, "after"), False, b""),
    "after the second close": (Call(FILE + "$", ("close",), 2, "after"), False, b"PAR1" * 2),
    "before the deletion": (Call(FILE + ".*", ("delete",), 1, "before"), False, b"PAR1" * 2),
    "after the deletion": (Call(FILE + ".*", ("delete",), 1, "after"), False, None),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_driver_dies_exactly_in_the_call_that_is_named(tmp_path: Path, part: str) -> None:
    if why := refused():
        pytest.skip(f"storage calls cannot be stopped here: {why}")
    call, torn, left = PARTS[part]
    fault = Fault.of(FaultKind.TORN_WRITE if torn else FaultKind.KILL, "driver", call)
    script = SimpleNamespace(**runpy.run_path(str(_written(tmp_path))))
    door = script.Door(tmp_path, [_kill(fault)])
    program = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WRITES], cwd=tmp_path, start_new_session=True,
        preexec_fn=door.enter,  # noqa: PLW1509
    )  # fmt: skip
    assert program.wait(20.0) == -9
    door.close()
    there = [path for path in (tmp_path / FILE, tmp_path / f"{FILE}.old") if path.exists()]
    assert [path.read_bytes() for path in there] == ([] if left is None else [left])
    assert door.seen


def _written(folder: Path) -> Path:
    (folder / "show.py").write_text(script_of(told(plan()))[0], encoding="utf-8")
    return folder / "show.py"


def test_a_place_that_is_not_met_and_a_missing_bundle_are_steps_that_could_not_be_done(tmp_path: Path) -> None:
    done = run(tmp_path, told(plan("metadata")), "", TRIES="1")
    assert done.returncode == 3 and "a step could not be done in 1 of 1 tries" in done.stdout, done.stdout + done.stderr
    again = subprocess.run(
        [sys.executable, str(tmp_path / "show.py")], env={**os.environ, "BUNDLE": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (again.returncode, again.stdout) == (3, "set BUNDLE to Hudi's Spark bundle, a jar\n")


def test_what_needs_more_than_a_directory_and_a_kill_is_refused_in_a_sentence() -> None:
    executors = with_steps(plan(), executor_troubles(random.Random(0), 4, "local"))
    for failure, says in (
        (told(replace(plan(), storage="s3")), "it was found on S3"),
        (told(executors), "it needs executors that are processes of their own"),
        (told(plan(), "G13"), "it judges G14, G15"),
    ):
        with pytest.raises(UsageError, match=f"cannot be shown by a script: {says}"):
            script_of(failure)
        assert says in issue_text(failure), "its text is written all the same"


def test_every_plan_on_a_directory_that_kills_drivers_alone_gives_a_script_that_compiles() -> None:
    choices = Choices("1.0.2", ("direct", "timeline"), "local", 9, 240.0)
    for _ in range(8):
        drawn = choices.next(1e6)
        assert drawn is not None
        if not shape_of(drawn.plan).cluster:
            text, language = script_of(told(drawn.plan))
            compile(text, "show.py", "exec")
            assert language == "python" and "```python" in issue_text(told(drawn.plan))

"""Each extra, installed alone in an environment, plays the rows of README's table that it promises.

The wheel is built once. A row that an environment cannot play is one sentence that names what to install, and code 4;
rows that need no extra are played without one.

    pytest -m extras -n 0
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from properties import tools
from properties.audit.hand_table import HandTable
from properties.test_pytest_plugin import HASTY
from scenarios.test_http import START

pytestmark = pytest.mark.extras

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BOUND_S = 300
# Of each environment, what is in it: an extra brings others.
EXTRAS = {
    "": set[str](),
    "serve": {"serve"},
    "s3": {"s3", "foreign"},  # boto3 brings urllib3.
    "audit": {"audit", "foreign"},
    "foreign": {"foreign"},
    "hudi": {"hudi", "foreign"},
    "serve,s3": {"serve", "s3", "foreign"},
    "foreign,s3": {"foreign", "s3"},
    "spark": {"spark", "hudi", "foreign", "s3", "serve", "audit"},
}


KIT = ("-m", "marker_sim")
# Ends a server after the line that says that it listens.
SERVED = """
import signal, subprocess, sys
kit = subprocess.Popen([sys.executable, "-m", "marker_sim", *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
assert "http://127.0.0.1:" in kit.stdout.readline()
kit.send_signal(signal.SIGTERM)
sys.exit(kit.wait(60))
"""


class Row(NamedTuple):
    """How a row of README is played here.

    words: with {table}, {start}, {program}. needs: extras. codes: when it can be played. by: Python's own arguments.
    """

    words: str
    needs: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    by: tuple[str, ...] = KIT


QUICK = "--runs 30 --seed 1 --report r"
# By the beginning of the command in README. Without codes it is played by other stages of CI: it takes minutes or a
# cluster; here only what it says where something is missing. The failure is of the simulated world, and has no script.
ROWS = {
    "marker-sim verify --sut package.module:factory": Row(f"verify --sut mine:Hasty --mode direct {QUICK}", (), (1,)),
    "pytest --marker-sut": Row("pytest --marker-sut mine:Hasty -k direct-hdfs", (), (1,), ("-m",)),
    "marker_sim.verify(": Row("'import mine, marker_sim; marker_sim.verify(mine.Hasty, runs=20)'", by=("-c",)),
    "marker-sim verify --sut http": Row(
        "verify --sut http --start {start} --storage local --budget 2s --report s", ("foreign",), (0, 3)
    ),
    "marker-sim verify --sut command": Row(f"verify --sut command --start {{program}} {QUICK}", (), (0, 3)),
    "marker-sim verify --sut hudi:1.0.2": Row(
        f"verify --sut hudi:{tools.HUDI} --storage s3 --budget 1s --report h", ("hudi", "s3"), (0, 1, 3)
    ),
    "marker-sim verify --sut hudi-spark": Row("verify --sut hudi-spark:1.0.2 --storage local", ("spark",), ()),
    "marker-sim verify --sut hudi-java": Row("verify --sut hudi-java:1.2.0 --mode direct", ("spark",), ()),
    "marker-sim verify --sut hudi:./hudi-spark3.5-bundle": Row("verify --sut hudi:none.jar", (), (2,)),
    "marker-sim verify --sut hudi:1.2.0 --against": Row("verify --sut hudi:1.2.0 --against hudi:1.1.1", ("hudi",), ()),
    "marker-sim replay marker-sim-report/plan.json curve.html": Row(
        "replay marker-sim-report/plan.json curve.html --curve", (), (1,)
    ),
    "marker-sim replay marker-sim-report/plan.json --script": Row(
        "replay marker-sim-report/plan.json --markdown issue.md", (), (2,)
    ),
    "marker-sim replay": Row("replay marker-sim-report", (), (1,)),
    "marker-sim shrink": Row("shrink marker-sim-report --budget 5s", (), (1,)),
    "marker-sim judge marker-sim-report": Row("judge marker-sim-report", (), (1,)),
    "marker-sim judge HISTORY": Row("judge marker-sim-report/history.parquet --sets", (), (0, 1, 3)),
    "marker-sim audit": Row("audit {table}"),
    "marker-sim chaos --budget 8h --spark-master": Row("chaos --budget 5s --spark-master spark://h:1", ("hudi",), ()),
    "marker-sim chaos": Row("chaos --budget 3s --dir chaos --jobs 1", (), (0, 3)),
    "marker-sim verify --junit": Row(f"verify --junit verdict.xml {QUICK}", (), (0, 3)),
    "marker-sim mutants": Row("mutants --only ack-before-flush --runs 20 --seeds 1 --jobs 1"),
    "marker-sim serve": Row("serve --base {table} --port 0", ("serve",), by=("-c", SERVED)),
    "marker-sim doctor": Row("doctor"),
}
FIRST = "verify --sut mutant:exists-from-memory --mode timeline --storage s3 --runs 120 --seed 2"


def rows() -> list[Row]:
    """How each row of README's table that has a command is played; the test has to know every one."""
    table = README.read_text(encoding="utf-8").partition("| I want to … |")[2].partition("\n\n")[0]
    commands = [cell for line in table.splitlines()[2:] for cell in re.findall("`([^`]+)`", line.split("|")[2])[:1]]
    played = [command for command in commands if not command.startswith("--")]
    assert len(played) >= len(ROWS) - 1
    return [ROWS[max((begin for begin in ROWS if command.startswith(begin)), key=len)] for command in played]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(out), str(ROOT)]
    subprocess.run(words, check=True, timeout=BOUND_S)
    return next(out.glob("*.whl"))


def install(python: Path, what: str) -> None:
    """By uv where it is, which is quicker, else by pip."""
    quickly = ["uv", "pip", "install", "--python", str(python)]
    words = quickly if shutil.which("uv") else [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*words, "--quiet", what], check=True, timeout=BOUND_S)


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra or "alone")
def test_what_an_extra_promises_is_played_and_the_rest_names_what_it_needs(
    extra: str, wheel: Path, tmp_path: Path
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=BOUND_S)
    install(python, f"{wheel}{f'[{extra}]' if extra else ''}")
    (tmp_path / "mine.py").write_text(HASTY, encoding="utf-8")
    fill = {
        "table": HandTable(tmp_path / "table").root,
        "start": shlex.quote(START.replace(sys.executable, str(python))),
        "program": shlex.quote(shlex.join(["node", str(ROOT / "scenarios" / "command" / "partitions.mjs")])),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CI": "", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [str(python), *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=BOUND_S,
            check=False,
        )  # fmt: skip

    if not extra:
        install(python, "pytest>=8.2")  # Of one's own.
    assert run(*KIT, *shlex.split(FIRST)).returncode == 1
    for row in rows():
        words = shlex.split(row.words.format(**fill))
        lacks = ("{program}" in row.words and tools.program("node")) or ("hudi" in row.needs and tools.jars())
        if {*row.needs} - EXTRAS[extra]:
            played = run(*KIT, *words)
            assert played.returncode == 4 and played.stderr.count("\n") == 1, (words, played)
            assert "needs the Python package" in played.stderr and "pip install '.[" in played.stderr, (words, played)
        elif row.codes and not lacks and (row.needs or not extra):
            played = run(*row.by, *words)
            assert played.returncode in row.codes, (words, played)
            assert "Traceback" not in played.stderr and "unexpected" not in played.stderr, (words, played)

"""What `pip install .` alone can do: the reference is judged, and whatever needs an extra says which one."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from properties.volume import CI_ONLY

FIRST_FAILURE = "verify --sut mutant:exists-from-memory --mode timeline --storage s3 --runs 120 --seed 2"
GLUED = shlex.quote(str(Path(__file__).parents[2] / "docs" / "tutorial" / "code" / "glued.json"))
# Finds no module of a distribution that `pip install .` would not bring.
ALONE = """
import sys
from importlib.machinery import PathFinder

class Installed:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {missing!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
from marker_sim.cli import main
sys.exit(main())
"""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _brought() -> set[str]:
    """The distributions that come with marker-sim without its extras."""
    found: set[str] = set()
    installed = {_plain(each) for names in packages_distributions().values() for each in names}
    waiting = ["marker-sim"]
    while waiting:
        name = _plain(waiting.pop())
        if name not in found:
            found.add(name)
            needed = [line for line in requires(name) or () if "extra ==" not in line]
            names = (re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed)
            # Requirements for other systems and older Pythons are not installed at all.
            waiting += [name for name in names if _plain(name) in installed]
    return found


@pytest.fixture(scope="module")
def alone() -> str:
    brought = _brought()
    of_extras = {
        module
        for module, names in packages_distributions().items()
        if not brought & {_plain(name) for name in names} and module != "marker_sim"
    }
    assert of_extras >= {"urllib3", "boto3", "pytest", "pyspark", "uvicorn"}
    return ALONE.format(missing=of_extras)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(
            f"{FIRST_FAILURE}; replay marker-sim-report/plan.json curve.html --curve", 1, "curve.html", marks=CI_ONLY
        ),
        (f"replay {GLUED} --script show.py", 0, "show.py"),
        ("--help", 0, "verify"),
        ("verify --help", 0, "--sut"),
        ("replay --help", 0, "--times"),
        ("verify --sut hudi:1.0.2 --budget 20s", 4, "pip install '.[hudi]' in a clone"),
        ("verify --sut hudi-spark:1.0.2 --budget 20s", 4, "pip install '.[spark]' in a clone"),
        ("verify --sut http --start true:{port} --budget 20s", 4, "pip install '.[foreign]' in a clone"),
        ("chaos --sut hudi:1.0.2 --budget 5s", 4, "pip install '.[hudi]' in a clone"),
        ("audit s3a://lake/table", 4, "pip install '.[audit]' in a clone"),
        ("serve --base /t", 4, "pip install '.[serve]' in a clone"),
    ],
)
def test_what_needs_an_extra_says_which_and_the_rest_needs_none(
    alone: str, words: str, code: int, said: str, tmp_path: Path
) -> None:
    for command in words.split(";"):
        asked = [sys.executable, "-c", alone, *shlex.split(command)]
        done = subprocess.run(asked, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    told = done.stdout + done.stderr
    assert (done.returncode, said in told) == (code, True), told
    assert code != 4 or len(done.stderr.splitlines()) == 1

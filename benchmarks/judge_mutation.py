"""Mutation testing of the judges: which changes of a judge does no judge test notice?

    pip install mutmut==3.8.1
    python benchmarks/judge_mutation.py WORKDIR [--mutants 600] [--seed 7] [--modules view,reading]
    python benchmarks/judge_mutation.py WORKDIR --survivors   # those of the last call once more, after tests were added
    python benchmarks/judge_mutation.py WORKDIR --report

mutmut changes one expression at a time of every function in marker_sim/judges and runs the quick judge tests that
enter the function, each mutant in a fork. Of all mutants a sample with a fixed seed is drawn, module by module in
proportion and at least `FLOOR` of each. Mutants that change only a message are not drawn: no verdict depends on one.

WORKDIR must be outside the repository; it gets a copy, and a second call goes on where the first one ended.
--report runs nothing and prints what WORKDIR knows: a row a module, then every survivor as a change of source.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOOR = 20
# Tables of words and what reads files, tested by properties/cli, which start commands; what counts and judges nothing.
LEFT_OUT = ("expect", "profiles", "guarantees", "violations", "activity", "sights")
TESTS = (
    "properties/judges",
    *(f"properties/tables/test_{name}.py" for name in ("profile", "tables_files", "tables_refusals")),
    *(f"properties/tables/test_tables_{name}.py" for name in ("rollbacks", "rows", "windows")),
)
_DEAD = ("killed", "timeout")
ENDS = {0: "survived", 1: "killed", 3: "killed", 5: "no tests", 33: "no tests", 36: "timeout", 24: "timeout"}


def main() -> None:
    """Parse the command line, run what it asks for, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workdir", type=Path)
    parser.add_argument("--mutants", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--modules", default="", help="comma-separated, by default all")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    if given.workdir.resolve().is_relative_to(ROOT):
        parser.error(f"{given.workdir} lies in the repository; give a directory outside of it")
    if not given.report:
        prepare(given.workdir)
        modules = given.modules.split(",") if given.modules else []
        drawn = survivors(given.workdir) if given.survivors else draw(given.workdir, given.mutants, given.seed, modules)
        print(f"{len(drawn)} mutants drawn with seed {given.seed}", flush=True)
        _mutmut(given.workdir, drawn)
    report(given.workdir)


def prepare(workdir: Path) -> None:
    """Copy what is mutated and what tests it, and have mutmut write every mutant down."""
    for name in ("marker_sim", "properties", "docs"):
        shutil.copytree(ROOT / name, workdir / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, workdir / name)
    settings = {
        "source_paths": ("marker_sim",),
        "only_mutate": ("marker_sim/judges/*.py",),
        "do_not_mutate": tuple(f"marker_sim/judges/{name}.py" for name in LEFT_OUT),
        "also_copy": ("properties", "docs", "conftest.py"),
        "pytest_add_cli_args": ("-p", "no:cacheprovider", "-n0"),
        "pytest_add_cli_args_test_selection": TESTS,
    }
    lines = ["[mutmut]", *(f"{key} =\n  " + "\n  ".join(values) for key, values in settings.items())]
    (workdir / "setup.cfg").write_text("\n".join(lines) + "\n")
    _mutmut(workdir, ["marker_sim.history.index.calls.*surrounds__mutmut_1"])


def draw(workdir: Path, count: int, seed: int, modules: list[str]) -> list[str]:
    """Names of mutants, sorted; the same for the same sources, count and seed."""
    rng = random.Random(f"judge-mutation/{seed}")
    names = {module: _judged(workdir, module) for module in _modules(workdir) if not modules or module in modules}
    total = sum(map(len, names.values()))
    drawn: list[str] = []
    for module in sorted(names):
        share = max(FLOOR, round(count * len(names[module]) / total))
        drawn += rng.sample(sorted(names[module]), min(share, len(names[module])))
    return sorted(drawn)


def survivors(workdir: Path) -> list[str]:
    """The mutants that no test has killed so far, sorted."""
    return sorted(name for ends in _ends(workdir).values() for name, end in ends.items() if end not in _DEAD)


def report(workdir: Path) -> None:
    """Print the score of every module and the survivors."""
    total: Counter[str] = Counter()
    print(f"{'module':18} {'mutants':>8} {'killed':>7} {'timeout':>8} {'survived':>9} {'no tests':>9} {'score':>7}")
    for module, ends in _ends(workdir).items():
        count = Counter(ends.values())
        total += count
        _row(module, count)
    _row("all", total)
    bodies = {module: _bodies(workdir, module) for module in _modules(workdir)}
    for name in survivors(workdir):
        print(f"\n{name}\n" + "\n".join(_change(bodies[name.split(".")[2]], name)))


def _ends(workdir: Path) -> dict[str, dict[str, str]]:
    """How each mutant that was tried ended, by module."""
    ends = {}
    for module in _modules(workdir):
        tried = {name: code for name, code in _meta(workdir, module).items() if code is not None}
        bodies = _bodies(workdir, module) if tried else {}
        ends[module] = {n: ENDS.get(code, f"exit {code}") for n, code in tried.items() if _differs(bodies, n)}
    return ends


def _row(module: str, count: Counter[str]) -> None:
    tried = count.total()
    score = f"{(count['killed'] + count['timeout']) / tried:7.1%}" if tried else "      -"
    print(
        f"{module:18} {tried:8} {count['killed']:7} {count['timeout']:8} {count['survived']:9}"
        f" {count['no tests']:9} {score}"
    )


def _modules(workdir: Path) -> list[str]:
    return sorted(path.name.removesuffix(".py.meta") for path in (workdir / "mutants/marker_sim/judges").glob("*.meta"))


def _meta(workdir: Path, module: str) -> dict[str, int | None]:
    path = workdir / f"mutants/marker_sim/judges/{module}.py.meta"
    found: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"]
    return found


def _judged(workdir: Path, module: str) -> list[str]:
    """The mutants of a module that change more than a message."""
    bodies = _bodies(workdir, module)
    return [name for name in _meta(workdir, module) if _differs(bodies, name)]


def _differs(bodies: dict[str, ast.FunctionDef], name: str) -> bool:
    mutant, before = _pair(bodies, name)
    return _without_prose(mutant) != _without_prose(before)


def _pair(bodies: dict[str, ast.FunctionDef], name: str) -> tuple[ast.FunctionDef, ast.FunctionDef]:
    own = name.rpartition(".")[2]
    return bodies[own], bodies[own.rpartition("__mutmut_")[0] + "__mutmut_orig"]


def _bodies(workdir: Path, module: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((workdir / f"mutants/marker_sim/judges/{module}.py").read_text())
    return {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
    }


class _Prose(ast.NodeTransformer):
    """Replaces sentences, and whatever is given for a message, by one word."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("prose")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("prose") if isinstance(node.value, str) and " " in node.value else node


def _without_prose(function: ast.FunctionDef) -> str:
    copy = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    copy.name = "function"
    return ast.dump(_Prose().visit(copy))


def _change(bodies: dict[str, ast.FunctionDef], name: str) -> list[str]:
    mutant, before = (ast.unparse(function).splitlines()[1:] for function in _pair(bodies, name))
    gone = [line.strip() for line in before if line not in mutant]
    new = [line.strip() for line in mutant if line not in before]
    return [f"  - {line}" for line in gone] + [f"  + {line}" for line in new]


def _mutmut(workdir: Path, names: list[str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names], cwd=workdir, check=False, text=True
    )


if __name__ == "__main__":
    main()

"""A correct class and twenty with one mistake (scenarios/strangers), and what the command line says of them.

    python -m benchmarks.strangers --out DIR                  in the simulated world, 60 s each
    python -m benchmarks.strangers --out DIR --what pytest    the same by `pytest --marker-sut`

One line a run: exit code, seconds, what was violated and what stayed inconclusive, stories told, when the first cause
was found, entries of the smallest plan. Reports stay in DIR, and a run whose report is there is not made again. Ends
with 1 when the correct one was accused or a faulty one was not. Servers: benchmarks/faulty_servers.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STRANGERS = ROOT / "scenarios" / "strangers"
CORRECT = "ledger:Ledger"


class Run(NamedTuple):
    """A command line and the folder of its report."""

    name: str
    correct: bool
    command: list[str]
    report: Path


def main() -> int:
    """Run what was asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--what", choices=["verify", "pytest"], default="verify")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", default="60s")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, given.only.split(",")))
    wrong = 0
    for run in _runs(given.what, given.out.resolve(), range(1, given.seeds + 1), given.budget):
        if only and run.name not in only:
            continue
        code, seconds = _do(run)
        wrong += code not in ((0, 3) if run.correct else (1,))
        said = _pytest(run.report) if given.what == "pytest" else _verdict(run.report)
        print(f"{run.report.name:30} exit {code}  {seconds:4.0f} s  {said}", flush=True)
    print(f"{wrong} not as they should be")
    return int(wrong > 0)


def _runs(what: str, out: Path, seeds: range, budget: str) -> Iterator[Run]:
    verify = [sys.executable, "-m", "marker_sim", "verify", "--budget", budget]
    for name, started in _classes():
        for seed in seeds:
            report = out / f"{what}-{name.replace(':', '.')}-{seed}"
            if what == "pytest":
                words = ["-q", "-p", "no:cacheprovider", "--marker-sut", started, "--chaos-seed", str(seed)]
                command = [sys.executable, "-m", "pytest", *words]
            else:
                command = [*verify, "--sut", started, "--seed", str(seed), "--report", str(report)]
            yield Run(name, name == CORRECT, command, report)


def _classes() -> Iterator[tuple[str, str]]:
    for module in ("ledger", "faulty_writing", "faulty_memory"):
        for name in re.findall(r"^class (\w+)(?:\(Ledger\))?:", (STRANGERS / f"{module}.py").read_text(), re.MULTILINE):
            yield f"{module}:{name}", f"scenarios.strangers.{module}:{name}"


def _do(run: Run) -> tuple[int, float]:
    """Exit code and seconds; those of an earlier run where its result is there."""
    ended = run.report.with_name(f"{run.report.name}.json")
    if not ended.exists():
        begun = time.monotonic()
        with run.report.with_name(f"{run.report.name}.log").open("w", encoding="utf-8") as log:
            work = run.report.with_name(f"{run.report.name}.work")
            work.mkdir(exist_ok=True)
            path = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(run.command, check=False, cwd=work, stdout=log, stderr=subprocess.STDOUT, env=path)
        ended.write_text(json.dumps([done.returncode, time.monotonic() - begun]))
    code, seconds = json.loads(ended.read_text())
    return code, seconds


def _verdict(report: Path) -> str:
    """What a verdict says was violated, in how many stories, and what stayed inconclusive."""
    if not (report / "verdict.json").exists():
        return "no verdict"
    verdict = json.loads((report / "verdict.json").read_text(encoding="utf-8"))
    rows: dict[str, dict[str, list[str]]] = {"violated": {}, "inconclusive": {}}
    for row in verdict["guarantees"]:
        if row["verdict"] in rows:
            rows[row["verdict"]].setdefault(f"{row['mode']}/{row['storage']}", []).append(row["id"])
    said = [f"{verdict['runs']} runs"]
    said += [f"{word} {place}: {' '.join(ids)}" for word, places in rows.items() for place, ids in places.items()]
    failures = verdict["failures"]
    said += [f"{len({failure['story'] for failure in failures})} stories"] if failures else []
    log = report.with_name(f"{report.name}.log").read_text(encoding="utf-8")
    found = re.search(r"^(\d+) s: .*causes? so far", log, re.MULTILINE)
    said += [f"first after {found[1]} s"] if found else []
    entries = [int(number) for number in re.findall(r"(\d+) entr(?:y|ies)", log)]
    return "; ".join([*said, f"smallest plan {min(entries)}"] if entries else said)


def _pytest(report: Path) -> str:
    failed = re.findall(
        r"^FAILED marker-sim::(\S+)", report.with_name(f"{report.name}.log").read_text(encoding="utf-8"), re.MULTILINE
    )
    return " ".join(failed) or "nothing failed"


if __name__ == "__main__":
    sys.exit(main())

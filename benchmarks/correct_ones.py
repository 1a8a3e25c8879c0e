"""Every correct system of odd shape, and the class of docs/third-party.md, in every search: none may be accused.

    python benchmarks/correct_ones.py --out DIR                                       20 seeds of 8 s each, wide
    python benchmarks/correct_ones.py --out DIR --seeds 3 --budget 40s --only hex     the default budget
    python benchmarks/correct_ones.py --out DIR --seeds 3 --runs 400                  the same on a busy machine
    python benchmarks/correct_ones.py --out DIR --seeds 3 --runs 20000                every goal is due
    python benchmarks/correct_ones.py --out DIR --what chaos --budget 5m
    python benchmarks/correct_ones.py --out DIR --what pytest,http,command --budget 60s

One line a run: exit code, runs, what was violated, what stayed inconclusive, what was not reached. Reports stay in DIR,
and a run whose report is there is not made again. Ends with 1 when anything was accused or a run could not end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from properties.correct.shape import SYSTEMS
from scenarios.command.programs import NEEDS, command_of, lacks
from scenarios.correct_servers.starts import SERVERS, missing, words

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "third-party.md"
DOCUMENTED = "markers_of_mine:Markers"
CLI = [sys.executable, "-m", "marker_sim"]
WHAT = ("verify", "http", "command", "pytest", "chaos")


class Line(NamedTuple):
    """What became of one run. bad: accused, or could not end."""

    name: str
    code: int
    said: str
    bad: bool


def main() -> int:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--what", default="verify")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--budget", default="8s")
    parser.add_argument("--runs", default="", help="of verify, instead of a budget")
    parser.add_argument("--stages", default="", help="of chaos, for example exhaustive:100")
    parser.add_argument("--only", default="", help="names that contain this")
    given = parser.parse_args()
    out: Path = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    unknown = set(given.what.split(",")) - set(WHAT)
    if unknown:
        parser.error(f"--what takes {', '.join(WHAT)}, not {', '.join(sorted(unknown))}")
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    lines = [line for what in given.what.split(",") for line in _run(what, given, out, seeds)]
    bad = sum(line.bad for line in lines)
    print(f"{len(lines)} runs, {bad} accused or broken, {sum(line.code == 3 for line in lines)} inconclusive")
    return int(bad > 0)


def _run(what: str, given: argparse.Namespace, out: Path, seeds: range) -> Iterator[Line]:
    kinds = {"http": (sorted(SERVERS), missing), "command": (sorted(NEEDS), lacks)}
    names, needed = kinds.get(what, ([DOCUMENTED, *SYSTEMS], lambda name: ""))
    for name in names:
        if given.only not in name:
            continue
        if absent := needed(name):
            print(f"{name:45} left out: {absent} is not here", flush=True)
            continue
        for line in _of_one(what, name, given, out, seeds):
            print(f"{line.name:45} {what} exit {line.code}  {line.said}", flush=True)
            yield line


def _of_one(what: str, name: str, given: argparse.Namespace, out: Path, seeds: range) -> Iterator[Line]:
    label = name.removeprefix("properties.correct.").replace(":", ".")
    work = _work(out)
    if what == "pytest":
        for seed in seeds:
            words_of = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--marker-sut", name, "--chaos-seed", str(seed)]
            done = _do([sys.executable, *words_of], work, out / f"pytest-{label}-{seed}.log")
            yield Line(f"{label} seed {seed}", done, "", done != 0)
    elif what == "chaos":
        directory = out / f"chaos-{label}-{given.stages.replace(':', '')}-{given.budget}"
        stages = ["--stages", given.stages] if given.stages else []
        command = [*CLI, "chaos", "--sut", name, "--budget", given.budget, "--dir", str(directory), *stages]
        code = _do([*command, "--seed", str(seeds.start)], work, out / f"{directory.name}.log")
        yield Line(label, code, _chaos(directory), code not in (0, 3))
    else:
        for seed in seeds:
            effort = ["--runs", given.runs] if given.runs else ["--budget", given.budget]
            report = out / f"{what}-{label}-{effort[1]}-{seed}"
            sut = words(name, out) if what == "http" else ["--sut", _sut(what, name, out)]
            command = [*CLI, "verify", *sut, "--seed", str(seed), *effort, "--report", str(report)]
            code = _do(command, work, out / f"{report.name}.log", report / "verdict.json")
            yield Line(f"{label} seed {seed}", code, _verdict(report / "verdict.json"), code not in (0, 3))


def _sut(what: str, name: str, out: Path) -> str:
    return f"command:{command_of(name, out)}" if what == "command" else name


def _work(out: Path) -> Path:
    """A folder that has the class of the guide, and from which everything else can be imported."""
    text = GUIDE.read_text(encoding="utf-8")
    for name, module in re.findall(r"```python\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (out / name).write_text(module, encoding="utf-8")
    return out


def _do(command: list[str], work: Path, log: Path, made: Path | None = None) -> int:
    """The exit code; that of an earlier run when its result is there."""
    code = log.with_suffix(".code")
    if made is not None and made.exists() and code.exists():
        return int(code.read_text())
    with log.open("w", encoding="utf-8") as output:
        output.write(shlex.join(command) + "\n")
        output.flush()
        path = os.pathsep.join([str(ROOT), str(work)])
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, check=False, cwd=work, stdout=output, stderr=subprocess.STDOUT, env=environment)
    code.write_text(str(done.returncode))
    return done.returncode


def _verdict(path: Path) -> str:
    if not path.exists():
        return "no verdict"
    verdict = json.loads(path.read_text(encoding="utf-8"))
    rows: dict[str, dict[str, list[str]]] = {"violated": {}, "inconclusive": {}}
    for row in verdict["guarantees"]:
        if row["verdict"] in rows:
            place = f"{row['mode']}/{row['storage']}"
            rows[row["verdict"]].setdefault(place, []).append(row["id"])
    unreached = [line for line in verdict["not_reached"] if not line.startswith("left out")]
    said = [f"{verdict['runs']} runs"]
    for word, places in rows.items():
        said += [f"{word} {place}: {' '.join(found)}" for place, found in places.items()]
    said += [f"not reached: {line}" for line in unreached]
    said += [f"could not finish: {line}" for line in verdict.get("trouble", "").splitlines()[:1]]
    return "; ".join(said)


def _chaos(directory: Path) -> str:
    path = directory / "summary.json"
    if not path.exists():
        return "no summary"
    summary = json.loads(path.read_text(encoding="utf-8"))
    return json.dumps({key: summary[key] for key in ("verdict", "runs", "failures", "doubts") if key in summary})[:600]


if __name__ == "__main__":
    sys.exit(main())

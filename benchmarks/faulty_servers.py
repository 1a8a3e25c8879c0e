"""What `verify` says of servers with one defect each, and of the correct ones that they are made from.

    PYTHONPATH=. python benchmarks/faulty_servers.py --out DIR                        seeds 1, 2 and 3, 40 s each
    PYTHONPATH=. python benchmarks/faulty_servers.py --out DIR --seeds 1 --only cut-line,correct
    PYTHONPATH=. python benchmarks/faulty_servers.py --out DIR --what servers,conditions --seeds 1

faulty      of scenarios/faulty_servers, in Python and Go
servers     scenarios/servers/marker_server.py, with its defects
conditions  scenarios/servers/rarely_wrong_server.py, whose defects show under one condition each

One row a server: for each seed the exit code, the guarantees that are violated, the seconds in which the first cause
was found (of the line of progress that says so first, which comes every few seconds, or of the end), and the runs.
Needs Go. Reports stay in DIR, and a run whose report is there is not made again: take a DIR for each state of the kit
that is compared.
Ends with 1 when a correct server was accused. A faulty one that was not is what is measured.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from scenarios.faulty_servers import starts
from scenarios.servers.marker_server import BROKEN
from scenarios.servers.rarely_wrong_server import MISTAKES, ON_S3

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"
WHAT = ("faulty", "servers", "conditions")
POWER_LOSS = {"unsynced-adopted"}  # Shown by the profile `http-power-loss` alone.


class Server(NamedTuple):
    """A command line; correct: it may not be accused."""

    name: str
    program: str
    correct: bool
    start: str
    storage: str = "local"
    profile: str = "http"


class Outcome(NamedTuple):
    """What became of one run; first_s: "" where nothing was violated or no line said when."""

    code: int
    violated: list[str]
    inconclusive: list[str]
    first_s: str
    runs: int


def main() -> int:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--what", default="faulty", help=f"some of {','.join(WHAT)}")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--budget", default="40s")
    parser.add_argument("--only", default="", help="names that contain one of these")
    parser.add_argument("--at-a-time", type=int, default=1)
    parser.add_argument("--below", default="", help="a command that each campaign is run by, for example nice")
    given = parser.parse_args()
    unknown = set(given.what.split(",")) - set(WHAT)
    if unknown:
        parser.error(f"--what takes {', '.join(WHAT)}, not {', '.join(sorted(unknown))}")
    out: Path = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    named = [server for what in given.what.split(",") for server in servers(what, out)]
    chosen = [server for server in named if any(part in server.name for part in given.only.split(","))]
    print(f"| server | program |{''.join(f' seed {seed} |' for seed in seeds)} found |")
    print("|---|---|" + "---|" * (len(seeds) + 1))
    accused = 0
    with ThreadPoolExecutor(given.at_a_time) as pool:
        made = {
            (server.name, seed): pool.submit(run, server, seed, given.budget, given.below, out)
            for seed in seeds
            for server in chosen
        }
        for server in chosen:
            outcomes = [made[server.name, seed].result() for seed in seeds]
            found = sum(outcome.code == 1 for outcome in outcomes)
            accused += server.correct and found > 0
            cells = "".join(f" {cell(outcome)} |" for outcome in outcomes)
            print(f"| {server.name} | {server.program} |{cells} {found} of {len(seeds)} |", flush=True)
    return int(accused > 0)


def servers(what: str, out: Path) -> Iterator[Server]:
    """Those of one kind, with their correct ones."""
    options = "--port {port} --storage {storage} --threads {threads} --interval-ms {interval_ms}"
    folder = SCENARIOS / "servers"
    match what:
        case "faulty":
            go = starts.build(out)
            for name, (program, defect) in starts.SERVERS.items():
                profile = "http-power-loss" if name in POWER_LOSS else "http"
                yield Server(name, program, not defect, starts.command(name, go), profile=profile)
        case "servers":
            start = f"{_python(folder / 'marker_server.py')} {options}"
            for name in ["", *sorted(BROKEN)]:
                broken = f" --broken {name}" if name else ""
                yield Server(f"servers:{name or 'correct'}", "marker_server", not name, start + broken)
        case "conditions":
            for name in MISTAKES:
                storage = "s3" if name in ON_S3 else "local"
                start = f"{_python(folder / 'rarely_wrong_server.py')} --mistake {name} {options}"
                start += " --endpoint {endpoint}" if storage == "s3" else ""
                yield Server(f"conditions:{name}", "rarely_wrong_server", False, start, storage)


def _python(script: Path) -> str:
    return shlex.join([sys.executable, "-S", str(script)])


def run(server: Server, seed: int, budget: str, below: str, out: Path) -> Outcome:
    """One campaign, or what is left of an earlier one."""
    report = out / f"{server.name.replace(':', '.')}-{budget}-{seed}"
    log, code = (report.with_name(f"{report.name}{ending}") for ending in (".log", ".code"))
    if not code.exists():
        verify = [*shlex.split(below), sys.executable, "-m", "marker_sim", "verify", "--sut", "http"]
        settings = {
            "profile": server.profile,
            "storage": server.storage,
            "seed": seed,
            "budget": budget,
            "report": report,
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        command = [*verify, "--start", server.start, *words]
        with log.open("w", encoding="utf-8") as output:
            output.write(shlex.join(command) + "\n")
            output.flush()
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                command, check=False, cwd=out, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        code.write_text(str(done.returncode))
    verdict = report / "verdict.json"
    content: dict[str, Any] = {"guarantees": [], "runs": 0}
    if verdict.exists():
        content = json.loads(verdict.read_text(encoding="utf-8"))
    rows = [(row["verdict"], row["id"]) for row in content["guarantees"]]
    lines = r"^(\d+) s: (?:.*stor(?:y|ies) so far|shrinking)|^violated: .* runs in (\d+)"
    first = re.search(lines, log.read_text(encoding="utf-8"), re.MULTILINE)
    violated, inconclusive = ([name for said, name in rows if said == word] for word in ("violated", "inconclusive"))
    first_s = first[first.lastindex or 0] if first else ""
    return Outcome(int(code.read_text()), violated, inconclusive, first_s, content["runs"])


def cell(outcome: Outcome) -> str:
    """A cell of the table."""
    said = [f"exit {outcome.code}: {' '.join(outcome.violated) or 'none'}"]
    if outcome.violated:
        said.append(f"within {outcome.first_s or '?'} s")
    elif outcome.inconclusive:
        said.append(f"inconclusive {' '.join(outcome.inconclusive)}")
    return "; ".join([*said, f"{outcome.runs} runs"])


if __name__ == "__main__":
    sys.exit(main())

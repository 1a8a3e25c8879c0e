"""Nights of `marker-sim chaos` that are killed by SIGKILL again and again and resumed: nothing lost, repeated or left.

    PYTHONPATH=. python benchmarks/chaos_kill.py [--budget 80s] [--kills 5] [--sut reference mutant:no-type-file]

Each system has a night that is left alone and one of the same seed that is killed at drawn moments, in three ways in
turn: one worker alone, the command alone, and the command with every process below it at once. What the killed night is
compared with comes from outside it: the bytes of its ledger at each kill, the processes that lived at the kill, numbers
counted up from the first one, the units of the night that was left alone, and `--check` simulated units that are done
once more in this process. Prints a row a kill and a line a check; ends with 1 when one check fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from marker_sim.campaign.nightly.ledger import NAME, read_lines
from marker_sim.campaign.nightly.units import NightlyTask, do
from marker_sim.cli.request import parse_duration
from marker_sim.errors import EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED
from marker_sim.surroundings import supervisor
from marker_sim.surroundings.worker_pool import VARIABLE

Line = dict[str, Any]
WAYS = ("worker", "command", "everything")
STAGES = "swarm:35,exhaustive:30,real:35"
# What a unit of these streams counts is a function of its numbers.
SIMULATED = ("swarm", "exhaustive", "canary")
COMPARED = ("runs", "steps", "judged", "violations", "unpromised", "faults", "reached", "differences")
CANARY = ("mutant", "caught", "plans")
KEPT = {NAME, "lock", "logs", "failures", "summary.html", "summary.json", "summary.md"}
GONE_S = 20.0
LATE_S = 120.0  # Of a session, above what is left of its budget.


@dataclass(slots=True)
class Night:
    """A night that was played. sessions: the seconds of each; wrong: what was not as it should be while it ran."""

    sut: str
    directory: Path
    code: int = 0
    sessions: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """The lines of its ledger, [] before there is one."""
        return list(read_lines(self.directory))

    @property
    def units(self) -> list[Line]:
        """Its finished units."""
        return [line for line in self.lines if line["kind"] == "unit"]

    @property
    def row(self) -> Line:
        """The row of the night in its summary."""
        row: Line = json.loads((self.directory / "summary.json").read_text(encoding="utf-8"))["nights"][-1]
        return row


def main() -> int:
    """Play the nights of every system and compare them; 1 when a check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="80s")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--sut", nargs="+", default=["reference", "mutant:no-type-file"])
    parser.add_argument("--stages", default=STAGES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", type=int, default=6)
    parser.add_argument("--dir", type=Path, default=None, help="keeps the nights here; left out, they are removed")
    given = parser.parse_args()
    if given.dir is not None and given.dir.exists() and any(given.dir.iterdir()):
        parser.error(f"{given.dir} is not empty; give a new --dir")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="chaos-kill-") as temporary:
        for number, sut in enumerate(given.sut):
            place = (given.dir or Path(temporary)).resolve() / str(number)
            wrong += _compare(given, sut, place)
    print("nothing was lost, repeated or left" if not wrong else f"{wrong} things are wrong")
    return 1 if wrong else 0


def _compare(given: argparse.Namespace, sut: str, place: Path) -> int:
    """Play a system's two nights and print every check; the number of things that are wrong."""
    budget_s = parse_duration(given.budget, "--budget")
    alone, killed = Night(sut, place / "alone"), Night(sut, place / "killed")
    print(f"== {sut}: a night of {budget_s:.0f} s left alone, and one with {given.kills} kills")
    _play(alone, given, budget_s, ())
    ways = [way for _ in range(-(-given.kills // len(WAYS))) for way in WAYS][: given.kills]
    rng = random.Random(f"{given.seed} {sut}")
    rng.shuffle(ways)
    _play(killed, given, budget_s, [(way, rng.uniform(number, number + 1)) for number, way in enumerate(ways)])
    for night in (alone, killed):
        row, codes = night.row, (EXIT_HOLDS, EXIT_VIOLATED, EXIT_INCONCLUSIVE)
        print(
            f"{night.directory.name}: {row['verdict']}, {row['runs']:,} runs, {row['steps']:,} steps,"
            f" {sum(row['judged'].values()):,} judged in {len(night.units)} units, {row['seconds']} s used"
        )
        night.wrong += [] if night.code in codes else [f"it ended with {night.code}: {row['trouble']}"]
        night.wrong += [f"trouble of the kit: {trouble}" for trouble in row["trouble"]]
        night.wrong += [] if row["seconds"] <= budget_s + 10 else ["the budget was not kept"]
        night.wrong += [*_ranges(night), *_summed(night), *_left_on_disk(night)]
    killed.wrong += [*_as_alone(alone, killed), *_recounted(killed, given.check)]
    wrong = [f"{night.directory.name}: {sentence}" for night in (alone, killed) for sentence in night.wrong]
    for sentence in wrong:
        print(f"WRONG: {sentence}")
    return len(wrong)


def _play(night: Night, given: argparse.Namespace, budget_s: float, kills: Any) -> None:
    """Play a night to its end. kills: way and moment of each, in parts of which the budget has one more than kills."""
    words = [sys.executable, "-m", "marker_sim", "chaos", "--budget", given.budget, "--dir", str(night.directory)]
    words += ["--sut", night.sut, "--stages", given.stages, "--seed", str(given.seed)]
    scratch = night.directory.with_name(f"{night.directory.name}-tmp")
    scratch.mkdir(parents=True)
    environment, left, part_s = os.environ | {"TMPDIR": str(scratch)}, list(kills), budget_s / (len(kills) + 1)
    if left:
        print(f"{'killed':12}{'at s':>8}{'units':>7}{'torn bytes':>12}{'processes':>11}{'gone after':>12}")
    while True:
        began, clock_s = time.monotonic(), max((line.get("clock_s", 0.0) for line in night.lines), default=0.0)
        with (night.directory.with_name(f"{night.directory.name}.log")).open("ab") as log:
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
        while left and process.poll() is None:
            way, at = left.pop(0)
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, at * part_s - clock_s - (time.monotonic() - began)))
                night.wrong.append(f"it ended before the kill of the {way}")
                break
            _kill(night, process, way, at * part_s)
        if process.poll() is None:
            try:
                process.wait(budget_s + LATE_S)
            except subprocess.TimeoutExpired:
                night.wrong.append("its last session did not end")
                _end(_below(process))
        night.sessions.append(time.monotonic() - began)
        if process.wait() != -signal.SIGKILL:
            night.code = process.returncode
            return


def _kill(night: Night, process: subprocess.Popen[bytes], way: str, at_s: float) -> None:
    """Kill in a way and look: what lived at the kill is gone soon, and the ledger keeps what it held."""
    before, doomed = _ledger(night), _below(process)
    if way == "worker":
        workers = [each for each in _workers(process) if each.is_running()]
        doomed = _family(random.Random(at_s).choice(workers)) if workers else []
        _end(doomed[:1])
    else:
        _end(doomed if way == "everything" else doomed[:1])
        process.wait()
    began = time.monotonic()
    while left := [each for each in [*doomed, *(() if way == "worker" else _marked(night))] if _lives(each)]:
        if time.monotonic() > began + GONE_S:
            night.wrong.append(f"{len(left)} processes live {GONE_S:.0f} s after the kill of the {way}: {left}")
            _end(left)
            break
        time.sleep(0.01)
    gone_s, after = time.monotonic() - began, _ledger(night)
    whole = after[: after.rfind(b"\n") + 1]
    if not after.startswith(before[: before.rfind(b"\n") + 1]):
        night.wrong.append("the ledger does not begin with what it held at the kill")
    print(
        f"{way:12}{at_s:8.1f}{len(night.units):7}{len(after) - len(whole):12}{len(doomed):11}{gone_s:10.2f} s",
        flush=True,
    )


def _ledger(night: Night) -> bytes:
    path = night.directory / NAME
    return path.read_bytes() if path.exists() else b""


def _below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The command and every process below it."""
    return _family(psutil.Process(process.pid)) if process.poll() is None else []


def _family(parent: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [parent, *parent.children(recursive=True)]
    return []


def _workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Its workers, as soon as it has one."""
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(psutil.Error):
            if found := psutil.Process(process.pid).children():
                return found
        time.sleep(0.02)
    return []


def _marked(night: Night) -> Iterator[psutil.Process]:
    return supervisor.marked(VARIABLE, str(night.directory.resolve()))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _ranges(night: Night) -> list[str]:
    """Every number of every stream once, counted one by one; holes only for what was in hand when the night ended."""
    wrong, seen, largest = [], dict[tuple[str, str], Counter[int]](), Counter[tuple[str, str]]()
    for line in night.units:
        stream = (line["stream"], line.get("space", ""))
        seen.setdefault(stream, Counter()).update(range(line["first"], line["first"] + line["count"]))
        largest[stream] = max(largest[stream], line["count"])
    for stream, numbers in sorted(seen.items()):
        twice = [number for number, times in numbers.items() if times > 1]
        first, name = {"canary": 1}.get(stream[0], 0), stream[0]
        missing = set(range(first, max(numbers) + 1)) - set(numbers)
        print(f"  {name}: {len(numbers)} numbers up to {max(numbers)}, {len(twice)} twice, {len(missing)} open")
        wrong += [f"{name} {number} was done twice" for number in twice]
        wrong += [f"{name} began at {min(numbers)}"] if min(numbers) < first else []
        if len(missing) > (os.cpu_count() or 1) * largest[stream]:
            wrong.append(f"{name}: {len(missing)} numbers were left out")
    return wrong


def _summed(night: Night) -> list[str]:
    """The summary, its page and the files of failures against a sum over the lines."""
    row, units, directory = night.row, night.units, night.directory
    runs, steps = (sum(line.get(name, 0) for line in units) for name in ("runs", "steps"))
    judged = sum((Counter(line.get("judged", {})) for line in units), Counter[str]())
    files = [*(directory / "failures").glob("*.json"), *(directory / "failures" / "fixed").glob("*.json")]
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    found = sum(len(line.get("sightings", ())) for line in units)
    counted = sum(failure["seen"] + failure["alike"] for failure in stored)
    print(f"  {found} violations in the ledger, {counted} in {len(files)} files of failures")
    wrong = [] if found == counted else ["the files of failures do not add up to the ledger"]
    if (row["runs"], row["steps"], row["judged"]) != (runs, steps, dict(sorted(judged.items()))):
        wrong.append("the summary does not add up to the ledger")
    nights = [line for line in night.lines if line["kind"] == "night"]
    if len(nights) != 1 or (row["night"], row["state"]) != (1, "ended"):
        wrong.append(f"{len(nights)} nights began, and the last one is {row['state']}")
    if not all(
        row["verdict"] in (directory / f"summary.{form}").read_text(encoding="utf-8") for form in ("html", "md")
    ):
        wrong.append("the page has no verdict")
    return wrong


def _left_on_disk(night: Night) -> list[str]:
    """Files that a night leaves besides its own, there and among temporary ones."""
    scratch = night.directory.with_name(f"{night.directory.name}-tmp")
    left = [*scratch.iterdir(), *(path for path in night.directory.iterdir() if path.name not in KEPT)]
    left += [path for path in (night.directory / "failures").iterdir() if path.suffix != ".json" and path.is_file()]
    return [f"{path} is left" for path in left]


def _as_alone(alone: Night, killed: Night) -> list[str]:
    """The simulated units of both nights: the same counts and failures; and the same kinds of verdict."""
    units, others = _simulated(killed), _simulated(alone)
    both = sorted(units.keys() & others.keys())
    wrong = [] if both else ["the two nights have no unit in common"]
    for key in both:
        one, other = units[key], others[key]
        for name in (*CANARY, *COMPARED) if key[0] == "canary" else COMPARED:
            if one.get(name) != other.get(name):
                wrong.append(f"{key}: {name} is {one.get(name)}, and {other.get(name)} in the night left alone")
        if _failures(one) != _failures(other):
            wrong.append(f"{key}: its failures are {_failures(one)}, and {_failures(other)} in the night left alone")
    failures = sum((_failures(units[key]) for key in both), Counter[tuple[Any, ...]]())
    print(f"{len(both)} simulated units in both nights, with {failures.total()} failures")
    violated = [night.row["verdict"] == "violated" for night in (alone, killed)]
    return wrong if violated[0] == violated[1] else [*wrong, "the verdicts of the two nights differ"]


def _simulated(night: Night) -> dict[tuple[Any, ...], Line]:
    units = [unit for unit in night.units if unit["stream"] in SIMULATED]
    return {(unit["stream"], unit.get("space", ""), unit["first"], unit["count"]): unit for unit in units}


def _failures(unit: Line) -> Counter[tuple[Any, ...]]:
    """A unit's failures without what depends on time: whether there was some to make a plan small."""
    names = ("guarantee", "mode", "storage", "world", "seed")
    return Counter(tuple(sighting[name] for name in names) for sighting in unit.get("sightings", ()))


def _recounted(night: Night, number: int) -> list[str]:
    """Units of the simulated world done again, beginning with those beside a resumption."""
    wrong, lines = list[str](), night.lines
    units = [line for line in lines if line["kind"] == "unit" and line["stream"] in ("swarm", "exhaustive")]
    resumed = [place for place, line in enumerate(lines) if line["kind"] == "resume"]
    near = [line for place in resumed for line in lines[max(0, place - 1) : place + 2]]
    rng, beside = random.Random(0), [unit for unit in units if unit in near]
    others = [unit for unit in units if unit not in beside]
    chosen = rng.sample(beside, min(len(beside), number))
    chosen += rng.sample(others, min(len(others), number - len(chosen)))
    for unit in chosen:
        asked = {name: unit[name] for name in ("stream", "first", "count")} | {"space": unit.get("space", "")}
        begun = {name: lines[0][name] for name in ("sut", "profile", "seed")}
        again = json.loads(json.dumps(do(NightlyTask(**asked, **begun, until=0.0))))
        wrong += [
            f"{unit['stream']} {unit['first']}: {name} is {unit.get(name)}, and {again[name]} when it is done again"
            for name in COMPARED
            if again[name] != unit.get(name)
        ]
    print(f"{len(chosen)} units done again ({sum(unit in beside for unit in chosen)} beside a kill)")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

"""How many hostile inputs were tried, how each kind was answered, and whether a property broke.

Half of the inputs are connections of a hostile client to `marker-sim serve`, half are damages to files that readers,
writers and the server meet; on an object store there are no files to damage, and all of them are connections. Exit
code 1 when a property broke: the smallest input that broke it is printed with the command that finds it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from scenarios.fuzz import bucket, places
from scenarios.fuzz.file_fuzz import FileFuzzer
from scenarios.fuzz.http_fuzz import HttpFuzzer
from scenarios.fuzz.ledger import Broken
from scenarios.fuzz.subject import Subject, serve_command


def table(title: str, rows: Counter[str], columns: Counter[tuple[str, str]]) -> None:
    """Print how often each row ended in each column."""
    heads = sorted({column for _, column in columns})
    print(f"\n| {title} | inputs | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
    for row in sorted(rows):
        print(f"| {row} | {rows[row]} | {' | '.join(str(columns[row, head] or '') for head in heads)} |")


def requests(inputs: int, seed: int, storage: str, root: Path) -> str:
    """Fuzz the server by its socket; what broke, "" for nothing."""
    began = time.monotonic()
    place = places.local(root) if storage == "local" else bucket.s3(root)
    with HttpFuzzer(place) as fuzzer:
        broken = broke(fuzzer.run_known, partial(fuzzer.run, inputs, seed))
        statistics = fuzzer.statistics
    table(f"connections, {storage}", statistics.inputs, statistics.outcomes)
    print(
        f"\n{statistics.inputs.total()} connections in {statistics.trials} trials, {time.monotonic() - began:.0f} s,"
        f" unanswered {statistics.unanswered}, outside touched {statistics.touched},"
        f" server processes {statistics.servers}, memory grew by at most {statistics.rss_growth_bytes / 2**20:.1f} MiB"
    )
    owed: Counter[str] = Counter()
    for (_, due), count in statistics.owed.items():
        owed[due] += count
    print(f"requests that must be accepted {owed['accept']}, refused {owed['refuse']}, either {owed['either']}")
    return broken


def files(inputs: int, seed: int, root: Path) -> str:
    """Damage files, with a server and without; what broke, "" for nothing."""
    began = time.monotonic()
    (root / "base").mkdir(parents=True)
    subject = Subject(serve_command(str(root / "base")), root / "server.log")
    broken = ""
    try:
        for port, share in ((None, inputs - inputs // 4), (subject.port, inputs // 4)):
            fuzzer = FileFuzzer(root, port)
            broken = broken or broke(fuzzer.run_known, partial(fuzzer.run, share, seed))
            table("damages", fuzzer.statistics.inputs, Counter())
            calls: Counter[str] = Counter()
            for (call, _), count in fuzzer.statistics.calls.items():
                calls[call] += count
            table("calls on what was damaged", calls, fuzzer.statistics.calls)
            where = "in this process" if port is None else "and by the server"
            print(
                f"\n{fuzzer.statistics.inputs.total()} damages read {where},"
                f" outside touched {fuzzer.statistics.touched}"
            )
        if not subject.alive() or subject.alarms():
            broken = broken or f"the server died or complained: {subject.log.read_text(errors='replace')[-2000:]}"
    finally:
        subject.end()
    print(f"files took {time.monotonic() - began:.0f} s")
    return broken


def broke(*runs: Callable[[], object]) -> str:
    """The message of a broken property, "" when all held."""
    try:
        for run in runs:
            run()
    except Broken as broken:
        return str(broken)
    return ""


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storage", choices=("local", "s3"), default="local")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # Hypothesis warns that huge inputs are huge.
    with tempfile.TemporaryDirectory(prefix="marker-sim-hostile-") as folder:
        root = Path(folder)
        count = asked.inputs // 2 if asked.storage == "local" else asked.inputs
        broken = requests(count, asked.seed, asked.storage, root)
        if asked.storage == "local":
            broken = broken or files(asked.inputs - count, asked.seed, root / "files")
    if broken:
        print(f"\nBROKEN: {broken}")
        print(f"again: python benchmarks/hostile_inputs.py --inputs {asked.inputs} --seed {asked.seed}"
              f" --storage {asked.storage}")  # fmt: skip
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

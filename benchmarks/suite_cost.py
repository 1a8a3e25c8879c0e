"""Where the time of the tests goes: seconds of processor and of the clock of each test, by folder and by file.

    SUITE_COST=/tmp/cost PYTHONPATH=. pytest -n auto -p benchmarks.suite_cost
    python -m benchmarks.suite_cost /tmp/cost [--top 40] [--against /tmp/cost-before]

As a plugin it writes a line a test to SUITE_COST.<process>, one file a worker: seconds of processor, seconds of the
clock, when the test began, its name. The last line, without a name, is of the whole worker, with what it imported.

Where control groups of version 1 can be made (root on Linux) each worker is in one of its own, and seconds of processor
are all that ran in it during a test. Elsewhere they are of processes that somebody waited for: those that were killed
without are left out, and those of a module's fixtures count for the test that ends them. Other work on the machine
hardly disturbs them, as it does seconds of the clock.
"""

from __future__ import annotations

import argparse
import glob
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

BEGAN = time.monotonic()
GROUP = Path(f"/sys/fs/cgroup/cpuacct/suite-cost-{os.getpid()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one test took. began_s: of the machine's monotonic clock. name: "" for a worker as a whole."""

    cpu_s: float
    wall_s: float
    began_s: float
    name: str
    worker: str


def _cpu_s() -> float:
    """Of this process and of all that it started."""
    if GROUP.exists():
        return int((GROUP / "cpuacct.usage").read_text(encoding="ascii")) / 1e9
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in uses)


def _write(cpu_s: float, began: float, name: str) -> None:
    with open(f"{os.environ['SUITE_COST']}.{os.getpid()}", "a", encoding="utf-8") as file:
        file.write(f"{cpu_s:.3f}\t{time.monotonic() - began:.3f}\t{began:.3f}\t{name}\n")


def pytest_configure() -> None:
    """Put the worker into a group of its own, with all that it will start."""
    with suppress(OSError):
        GROUP.mkdir()
        (GROUP / "tasks").write_text(str(os.getpid()), encoding="ascii")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with its fixtures."""
    cpu_s, began = _cpu_s(), time.monotonic()
    try:
        return (yield)
    finally:
        _write(_cpu_s() - cpu_s, began, item.nodeid)


def pytest_unconfigure() -> None:
    """Measure the worker; one that ran nothing, as the process that only deals tests out, counts as well."""
    _write(_cpu_s(), BEGAN, "")
    if GROUP.exists():
        with suppress(OSError):  # What a test left behind keeps its group.
            (GROUP.parent / "tasks").write_text(str(os.getpid()), encoding="ascii")
            GROUP.rmdir()


def costs_of(prefix: str) -> list[Cost]:
    """The lines of every worker. Raises SystemExit when there are none."""
    costs = []
    for path in sorted(glob.glob(f"{glob.escape(prefix)}.*")):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            cpu, wall, began, name = line.split("\t", 3)
            worker = path.rpartition(".")[2]
            costs.append(Cost(cpu_s=float(cpu), wall_s=float(wall), began_s=float(began), name=name, worker=worker))
    if not costs:
        raise SystemExit(
            f"no file {prefix}.<process>; run pytest with -p benchmarks.suite_cost and SUITE_COST={prefix}"
        )
    return costs


def folder_of(name: str) -> str:
    """The folder of a test's file."""
    return name.partition("::")[0].rpartition("/")[0]


def file_of(name: str) -> str:
    """A test's file."""
    return name.partition("::")[0]


def show_sums(costs: Sequence[Cost], before: Sequence[Cost], key: Callable[[str], str], top: int) -> None:
    """Print sums by `key` of a name, those with most processor first; beside them those of `before`."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0, 0.0, 0.0])
    for first, given in ((0, costs), (3, before)):
        for cost in given:
            if cost.name:
                row = sums[key(cost.name)]
                row[first] += 1
                row[first + 1] += cost.cpu_s
                row[first + 2] += cost.wall_s
    head = "tests cpu_s wall_s" + (" (before: tests cpu_s wall_s)" if before else "")
    print(f"\n{head}")
    for name, row in sorted(sums.items(), key=lambda pair: -max(pair[1][1], pair[1][4]))[:top]:
        old = f" ({row[3]:5.0f} {row[4]:7.1f} {row[5]:7.1f})" if before else ""
        print(f"{row[0]:5.0f} {row[1]:7.1f} {row[2]:7.1f}{old} {name}")


def show_workers(costs: Sequence[Cost]) -> None:
    """Print when each worker began its first test and ended its last one, and what it took: who ends late is a tail."""
    began = min(cost.began_s for cost in costs if cost.name)
    print("\nworkers: tests, cpu_s of tests, cpu_s of all, first test at, last test ended at, last file")
    for worker in sorted({cost.worker for cost in costs}):
        tests = sorted((c for c in costs if c.worker == worker and c.name), key=lambda cost: cost.began_s)
        whole = sum(cost.cpu_s for cost in costs if cost.worker == worker and not cost.name)
        if tests:
            last = tests[-1]
            print(
                f"{worker:>8} {len(tests):5} {sum(cost.cpu_s for cost in tests):7.1f} {whole:7.1f}"
                f" {tests[0].began_s - began:7.1f} {last.began_s + last.wall_s - began:7.1f} {file_of(last.name)}"
            )
    tests = [cost for cost in costs if cost.name]
    print(f"all: {len(tests)} tests, {sum(cost.cpu_s for cost in tests):.0f} s of processor,", end=" ")
    print(f"{max(cost.began_s + cost.wall_s for cost in tests) - began:.0f} s from the first to the end of the last")


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", help="what SUITE_COST was")
    parser.add_argument("--against", default="", metavar="PREFIX", help="print the sums of an earlier session beside")
    parser.add_argument("--top", type=int, default=40)
    given = parser.parse_args()
    costs, before = costs_of(given.prefix), costs_of(given.against) if given.against else []
    for key in (folder_of, file_of, str):
        show_sums(costs, before, key, given.top)
    show_workers(costs)


if __name__ == "__main__":
    main()

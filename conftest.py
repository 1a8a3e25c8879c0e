"""What every test session of this repository shares: set-up, profiles, order, no skips in CI, no stale installation.

MARKER_SIM_PROFILE   quick (default), ci (default where CI is set) or nightly; properties/volume.py reads it
CI                   when true, a skipped test is an error
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import marker_sim
from properties import tools
from properties.volume import IN_CI, NIGHTLY, PROFILE, is_larger

pytest_plugins = ("marker_sim.pytest_plugin",)

# Tests start hundreds of processes, and each would compile the package: here bytecode is kept, whatever the shell says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("GITHUB_ACTIONS", None)  # There `verify` says more on standard error.
# A job in the background ignores them, and so would every process that a test starts and wants to end by them.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())

EXAMPLES = {"quick": 25, "ci": 100, "nightly": 2000}
NIGHTLY_S = 12 * 3600.0
# Files whose tests take longest, each a unit of work for pytest-xdist: who begins with them does not end with them.
LONGEST = (
    "scenarios/test_java_in_brief.py",
    "scenarios/test_scripts.py",
    "properties/real/test_foreign_formats.py",
    "scenarios/test_walks.py",
    "scenarios/test_plans_on_servers.py",
    "properties/campaign/test_chaos.py",
    "properties/real/test_two_arms.py",
    "scenarios/test_chaos_foreign.py",
    "scenarios/test_walks_of_starts.py",
    "scenarios/test_http.py",
    "properties/campaign/test_jobs.py",
    "properties/interface/test_pytest_plugin.py",
    "properties/real/test_crash_walk.py",
    "scenarios/test_power_loss.py",
    "properties/cli/test_replay.py",
    "scenarios/test_command.py",
    "properties/cli/test_commands.py",
    "properties/mutants/test_mutants.py",
    "scenarios/test_conditions.py",
    "properties/audit/test_real_tables.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the Hypothesis profile, and refuse to test an installed copy that differs from this work tree."""
    for name, examples in EXAMPLES.items():
        settings.register_profile(
            name,
            max_examples=examples,
            derandomize=False,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
    if PROFILE not in EXAMPLES:
        raise pytest.UsageError(f"MARKER_SIM_PROFILE is {PROFILE!r}; set it to one of {', '.join(EXAMPLES)}")
    settings.load_profile(PROFILE)
    if NIGHTLY and config.option.timeout is None:
        config.option.timeout = NIGHTLY_S
    stale = _differs(Path(marker_sim.__file__).parent, Path(__file__).parent / "marker_sim")
    if stale:
        raise pytest.UsageError(
            f"the installed marker_sim differs from this work tree in {stale}; install it again with"
            " `pip install -e '.[test]'`, so that the tests see what is here"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Fetch what a session of all tests lacks, before a worker looks for it; once for the machine."""
    config = session.config
    if not hasattr(config, "workerinput") and _is_of_all_tests(config):
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        tools.fetch(reporter.write_line)


def pytest_report_header(config: pytest.Config) -> tuple[str, ...]:
    """What a session of all tests leaves out on this machine, and how to have it."""
    return tools.left_out() if _is_of_all_tests(config) else ()


def _is_of_all_tests(config: pytest.Config) -> bool:
    """Whether no file is named: who names some waits for no programs and jars."""
    return config.args_source is not pytest.Config.ArgsSource.ARGS


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting tests makes next to no garbage, and what it makes stays: no collection of garbage walks it again."""
    gc.disable()
    try:
        with _turn_to_collect():
            return (yield)
    finally:
        gc.enable()
        gc.freeze()


@contextmanager
def _turn_to_collect() -> Iterator[None]:
    """One worker a core collects at a time: the next ones read what the first compiled, in a clone that has nothing.

    All at once take as long as the processors do, and each of them compiles every test for itself. A lock is on a file
    that is there anyway, and ends with its process.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    lock = LONGEST[int(worker.removeprefix("gw")) % min(_cores(), len(LONGEST))] if worker else "conftest.py"
    with open(Path(__file__).parent / lock, "rb") as file:
        if worker:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: three workers a core, for most of the time of tests is waiting for processes that they started."""
    return 3 * _cores()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what CI alone plays, mark what it plays with more volume, and begin with the longest files."""
    if PROFILE == "quick":
        left_out = {item for item in items if item.get_closest_marker("ci") is not None}
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.get_closest_marker("ci") or is_larger(item):
            item.add_marker("volume")
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def _differs(used: Path, here: Path) -> str:
    """The first file of the package that is not the same in both places, "" when none is."""
    if used.resolve() == here.resolve():
        return ""
    names = {path.relative_to(root) for root in (used, here) for path in root.rglob("*") if path.is_file()}
    for name in sorted(names):
        if "__pycache__" in name.parts:
            continue
        copies = [root / name for root in (used, here)]
        if not all(copy.is_file() for copy in copies) or copies[0].read_bytes() != copies[1].read_bytes():
            return str(name)
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips fails: what it needs is the project's own job to install."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI forbids: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips as a whole."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, which CI forbids: {_reason(report.longrepr)}"
    return report


def _reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)

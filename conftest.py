"""What every test session of this repository shares: profiles, workers, no skips in CI, and no stale installation.

MARKER_SIM_PROFILE   quick (default), ci (default where CI is set) or nightly; properties/volume.py reads it
CI                   when true, a skipped test is an error
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

import marker_sim
from properties.volume import IN_CI, NIGHTLY, PROFILE

pytest_plugins = ("marker_sim.pytest_plugin",)

# Tests start hundreds of processes, and each would compile the package: here bytecode is kept, whatever the shell says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

EXAMPLES = {"quick": 25, "ci": 100, "nightly": 2000}
NIGHTLY_S = 12 * 3600.0


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
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and _computes(worker):
        os.nice(10)  # What is tested in real time goes first.
    stale = _differs(Path(marker_sim.__file__).parent, Path(__file__).parent / "marker_sim")
    if stale:
        raise pytest.UsageError(
            f"the installed marker_sim differs from this work tree in {stale}; install it again with"
            " `pip install -e '.[test]'`, so that the tests see what is here"
        )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting tests makes next to no garbage, and what it makes stays: no collection of garbage walks it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


CORES = len(os.sched_getaffinity(0))
# Tests that mostly wait for processes that they started; all others compute.
WAIT = ("scenarios/", "properties/real/", "properties/test_chaos.py", "properties/test_recipes.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: as many workers as there are cores for tests that compute, and two for others.

    With four more the tests of real servers met their bounds of time on two cores: they compute as well.
    """
    return CORES + 2


def _computes(worker: str) -> bool:
    """Whether a worker ("gw3") takes tests that compute first."""
    return int(worker.removeprefix("gw")) < CORES


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait come first."""
    items.sort(key=lambda item: not item.nodeid.startswith(WAIT))


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session: pytest.Session) -> Generator[None, object, object]:
    """Names of tests as xdist's scheduler reads them, with their group, while a worker sends them.

    pytest-xdist 3.8 puts the group into an attribute that pytest 9.2 does not read: each test was a unit of its own.
    """
    named = {item: item.id for item in session.items} if hasattr(pytest.Item, "id") else {}
    for item, name in named.items():
        if (group := item.get_closest_marker("xdist_group")) is not None:
            item._id = name.parse(f"{name}@{group.args[0]}")
    try:
        return (yield)
    finally:
        for item, name in named.items():
            item._id = name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Another one than xdist's for groups, which waits for ever once a test has ended its worker."""
    return _GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


class _GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Tests that wait are given out from the first one on, and to workers that compute from the last one back.

    A test that ended its worker is not run again, and the worker in its place gets work that it can begin. pytest-xdist
    3.8 gives it the same test again, and alone: a worker begins a test when it knows the one after it.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if _computes(node.gateway.id):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work[node].values()
        left = [(unit, test) for unit in units for test, over in unit.items() if not over]
        if left:
            unit, test = left[0]
            unit[test] = True
        super().remove_node(node)
        return left[0][1].removesuffix(f"@{self._split_scope(left[0][1])}") if left else None

    def _reschedule(self, node: WorkerController) -> None:
        while node in self.registered_collections and not node.shutting_down:
            super()._reschedule(node)
            if self._pending_of(self.assigned_work[node]) > 1:
                break


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

"""The pytest plugin: which system under test, and the one chaos seed that all workers of a session share.

    --marker-sut module:factory   the system that conformance tests judge, by default the reference
    --chaos-seed N                the number that randomised tests start from; drawn when it is not given

pytest-xdist stops when its workers collect different tests, so the controller draws the seed and hands it to each.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest

SEED_MAX = 2**31 - 1
_CHAOS_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("marker-sim", "judging implementations of Hudi markers")
    group.addoption(
        "--marker-sut",
        default="reference",
        metavar="SUT",
        help="system under test of conformance tests: reference (default) or package.module:factory",
    )
    group.addoption(
        "--chaos-seed",
        default=None,
        metavar="N",
        help=f"seed of randomised tests, 0 to {SEED_MAX}; drawn and printed when left out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settle the seed: the controller's in a worker, else the one given, else one drawn now."""
    handed: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[_CHAOS_SEED] = (
        int(handed["chaos_seed"]) if handed is not None else _parse_seed(config.getoption("--chaos-seed"))
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the controller's seed to a pytest-xdist worker."""
    node.workerinput["chaos_seed"] = node.config.stash[_CHAOS_SEED]


def pytest_report_header(config: pytest.Config) -> str:
    """Say both, so that a failing session can be run again."""
    return f"marker-sim: --marker-sut={config.getoption('--marker-sut')} --chaos-seed={config.stash[_CHAOS_SEED]}"


@pytest.fixture(scope="session")
def marker_sut(pytestconfig: pytest.Config) -> str:
    """The system under test that was asked for, as `marker_sim.sut` names it."""
    return str(pytestconfig.getoption("--marker-sut"))


@pytest.fixture(scope="session")
def chaos_seed(pytestconfig: pytest.Config) -> int:
    """The session's seed, the same in every worker; derive from it and a test's own name."""
    return pytestconfig.stash[_CHAOS_SEED]


def _parse_seed(given: str | None) -> int:
    if given is None:
        return secrets.randbelow(SEED_MAX + 1)
    if not given.isascii() or not given.isdigit() or int(given) > SEED_MAX:
        raise pytest.UsageError(f"--chaos-seed was given {given!r}; write a whole number from 0 to {SEED_MAX}")
    return int(given)

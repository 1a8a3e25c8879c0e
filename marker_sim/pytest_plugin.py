"""The pytest plugin: which system under test, and the one chaos seed that all workers of a session share.

    --marker-sut module:factory   the system that conformance tests judge, by default the reference
    --chaos-seed N                the number that randomised tests start from; drawn when it is not given

pytest-xdist stops when its workers collect different tests, so the controller draws the seed and hands it to each.

Conformance tests are those that use the fixture `marker_sut`. A session that names a system and no files, and has no
such test, gets the kit's own (campaign/conformance.py): third parties need `pytest --marker-sut module:factory` alone.
A session that names no system gets nothing, so whoever has the plugin installed for other reasons never sees it.
"""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SEED_MAX = 2**31 - 1
CONFORMANCE = "marker_sim.campaign.conformance"
REFERENCE = "reference"
_CHAOS_SEED = pytest.StashKey[int]()
_ADD_CONFORMANCE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("marker-sim", "judging implementations of Hudi markers")
    group.addoption(
        "--marker-sut",
        default=None,
        metavar="SUT",
        help="system under test of conformance tests: reference (default) or package.module:factory; without tests of"
        " your own that use the fixture marker_sut, the kit's are run",
    )
    group.addoption(
        "--chaos-seed",
        default=None,
        metavar="N",
        help=f"seed of randomised tests, 0 to {SEED_MAX}; drawn and printed when left out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settle the seed and whether tests may be added: as the controller did in a worker, else by what was given."""
    handed: dict[str, Any] | None = getattr(config, "workerinput", None)
    if handed is not None:
        config.stash[_CHAOS_SEED] = int(handed["chaos_seed"])
        config.stash[_ADD_CONFORMANCE] = bool(handed["add_conformance"])
        return
    config.stash[_CHAOS_SEED] = _parse_seed(config.getoption("--chaos-seed"))
    no_files_named = config.args_source is not pytest.Config.ArgsSource.ARGS
    config.stash[_ADD_CONFORMANCE] = no_files_named and config.getoption("--marker-sut") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the controller's seed and decision to a pytest-xdist worker."""
    node.workerinput["chaos_seed"] = node.config.stash[_CHAOS_SEED]
    node.workerinput["add_conformance"] = node.config.stash[_ADD_CONFORMANCE]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the kit's conformance tests where a system is named and no test would look at it; -k and -m apply to them."""
    used = any("marker_sut" in getattr(item, "fixturenames", ()) for item in items)
    if used or not config.stash[_ADD_CONFORMANCE]:
        return
    spec = find_spec(CONFORMANCE)
    assert spec is not None and spec.origin is not None
    nodeid = CONFORMANCE.replace(".", "/") + ".py"
    items += session.genitems(pytest.Module.from_parent(session, path=Path(spec.origin), nodeid=nodeid))


def pytest_report_header(config: pytest.Config) -> str:
    """Say both, so that a failing session can be run again."""
    return f"marker-sim: --marker-sut={_sut(config)} --chaos-seed={config.stash[_CHAOS_SEED]}"


@pytest.fixture(scope="session")
def marker_sut(pytestconfig: pytest.Config) -> str:
    """The system under test that was asked for, as `marker_sim.targets` names it."""
    return _sut(pytestconfig)


@pytest.fixture(scope="session")
def chaos_seed(pytestconfig: pytest.Config) -> int:
    """The session's seed, the same in every worker; derive from it and a test's own name."""
    return pytestconfig.stash[_CHAOS_SEED]


def _sut(config: pytest.Config) -> str:
    return str(config.getoption("--marker-sut") or REFERENCE)


def _parse_seed(given: str | None) -> int:
    if given is None:
        return secrets.randbelow(SEED_MAX + 1)
    if not given.isascii() or not given.isdigit() or int(given) > SEED_MAX:
        raise pytest.UsageError(f"--chaos-seed was given {given!r}; write a whole number from 0 to {SEED_MAX}")
    return int(given)

"""The pytest plugin: which system under test, and the one chaos seed that all workers of a session share.

    --marker-sut module:factory   the system that conformance tests judge, by default the reference
    --expect BASELINE             its known violations, as `marker-sim verify --expect` takes them
    --chaos-seed N                the number that randomised tests start from; drawn when it is not given

pytest-xdist stops when its workers collect different tests, so the controller draws the seed and hands it to each. The
controller also first checks that the system exists, so that a misspelt name is a single error and not one for each
test.

Conformance tests are those that use the fixture `marker_sut`. A session that names a system and no files, and has no
such test, gets the kit's own items (conformance.py): third parties need `pytest --marker-sut module:factory` alone.
A session without `--marker-sut` is not affected, also if the plugin is installed for other reasons.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

from marker_sim.errors import UsageError

if TYPE_CHECKING:
    from marker_sim.interface.conformance import Judging

SEED_MAX = 2**31 - 1
REFERENCE = "reference"
_CHAOS_SEED = pytest.StashKey[int]()
_ADD_CONFORMANCE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("marker-sim", "judging implementations of Hudi markers")
    group.addoption(
        "--marker-sut",
        default=None,
        metavar="SUT",
        help="system under test of conformance tests: reference (default) or package.module:factory; without tests of"
        " your own that use the fixture marker_sut, the kit's are run",
    )
    group.addoption(
        "--expect",
        default=None,
        metavar="BASELINE",
        help="with --marker-sut: its known violations, which are expected failures; a file, or a shipped one by name",
    )
    group.addoption(
        "--chaos-seed",
        default=None,
        metavar="N",
        help=f"seed of randomised tests, 0 to {SEED_MAX}; drawn and printed when left out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the seed and whether items may be added: by the controller in a worker, else by the options."""
    handed: dict[str, Any] | None = getattr(config, "workerinput", None)
    if handed is not None:
        config.stash[_CHAOS_SEED] = int(handed["chaos_seed"])
        config.stash[_ADD_CONFORMANCE] = bool(handed["add_conformance"])
        return
    config.stash[_CHAOS_SEED] = _parse_seed(config.getoption("--chaos-seed"))
    no_files_named = config.args_source is not pytest.Config.ArgsSource.ARGS
    config.stash[_ADD_CONFORMANCE] = no_files_named and config.getoption("--marker-sut") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check in the controller, before collection, that what the options name exists."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    if config.getoption("--marker-sut") is not None:
        _judging(config)
    elif config.getoption("--expect") is not None:
        raise pytest.UsageError("--expect was given without --marker-sut; name the system whose violations are known")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the controller's seed and decision to a pytest-xdist worker."""
    node.workerinput["chaos_seed"] = node.config.stash[_CHAOS_SEED]
    node.workerinput["add_conformance"] = node.config.stash[_ADD_CONFORMANCE]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the kit's items where a system is named and no test uses it; -k and -m apply to them."""
    used = any("marker_sut" in getattr(item, "fixturenames", ()) for item in items)
    if used or not config.stash[_ADD_CONFORMANCE]:
        return
    from marker_sim.interface.conformance import items_of

    items += items_of(session, _judging(config))


def pytest_report_header(config: pytest.Config) -> str:
    """The seed and the system, so that a failing session can be repeated."""
    return f"marker-sim: --marker-sut={_sut(config)} --chaos-seed={config.stash[_CHAOS_SEED]}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what the kit's items ran, and what they cannot run."""
    reports = [each for group in terminalreporter.stats.values() for each in group if hasattr(each, "user_properties")]
    played = sorted({said for each in reports for name, said in each.user_properties if name == "marker-sim"})
    if not played:
        return
    from marker_sim.interface.conformance import not_played

    terminalreporter.section("marker-sim")
    for line in (*played, not_played(_judging(config))):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def marker_sut(pytestconfig: pytest.Config) -> str:
    """The system under test that was asked for, as `marker_sim.targets` names it."""
    return _sut(pytestconfig)


@pytest.fixture(scope="session")
def chaos_seed(pytestconfig: pytest.Config) -> int:
    """The session's seed, the same in every worker; derive from it and a test's own name."""
    return pytestconfig.stash[_CHAOS_SEED]


def _judging(config: pytest.Config) -> Judging:
    from marker_sim.interface.conformance import parse_judging

    try:
        return parse_judging(_sut(config), config.getoption("--expect"), config.stash[_CHAOS_SEED])
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


def _sut(config: pytest.Config) -> str:
    return str(config.getoption("--marker-sut") or REFERENCE)


def _parse_seed(given: str | None) -> int:
    if given is None:
        return secrets.randbelow(SEED_MAX + 1)
    if not given.isascii() or not given.isdigit() or int(given) > SEED_MAX:
        raise pytest.UsageError(f"--chaos-seed was given {given!r}; write a whole number from 0 to {SEED_MAX}")
    return int(given)

"""What tests of the door share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marker_sim.faults import Fault
from properties.faces.worlds import refused
from properties.real.door.fronted import Run


@pytest.fixture(scope="session", autouse=True)
def door_here() -> None:
    """Skips where there is no door, with the reason."""
    if why := refused():
        pytest.skip(f"needs a door: {why}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The watched directory."""
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    opened: list[Run] = []

    def run(*faults: Fault, reads: bool = False) -> Run:
        opened.append(Run(tmp_path / "root", *faults, reads=reads))
        return opened[-1]

    yield run
    for each in opened:
        each.front.close()

"""What tests of the door share."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.worlds.door.available import refused


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

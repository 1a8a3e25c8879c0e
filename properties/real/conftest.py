"""What tests of real processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from properties.faces.worlds import ForkServer


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """One template for the processes of all runs of a worker."""
    with ForkServer() as running:
        yield running

"""How long the clients of a plan may take."""

from __future__ import annotations

import time
from typing import Any

import pytest

from marker_sim.plan import Plan
from marker_sim.worlds.http.plan_faults import PlanFaults


class Injector:
    """One server that lives, on which nothing is done."""

    servers = (object(),)

    def check(self) -> None:
        """It goes on."""


@pytest.mark.parametrize(("deadline_s", "expected_s"), [(10.0, 0.3), (0.15, 0.2)])
def test_clients_have_their_time_beside_that_of_a_server_that_starts(deadline_s: float, expected_s: float) -> None:
    injector: Any = Injector()
    faults = PlanFaults(Plan(), injector, ())
    faults._later(0, lambda: time.sleep(0.2))
    began = time.monotonic()
    faults.drive(lambda: False, 0.1, began + deadline_s)
    assert expected_s <= time.monotonic() - began < expected_s + 1

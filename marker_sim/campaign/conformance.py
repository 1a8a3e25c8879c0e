"""Tests that a project collects to attack its own implementation of markers.

    pytest --marker-sut package.module:factory                                          in a project without tests of it
    pytest --marker-sut package.module:factory --pyargs marker_sim.campaign.conformance   these tests and no others

The state machine of the write path (machine.py) in each mode the system has a factory for, on each storage. The
Hypothesis profile of the project sets the number of examples; failures shrink, are kept in its example database and
leave a plan in `.hypothesis/marker-sim` of its root directory. A storage without an operation that the class needs is
skipped, with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.campaign.machine import PLANS, attack, machine_for
from marker_sim.loading import load_system

STORAGES = ("s3", "local", "hdfs")
MODES = ("direct", "timeline")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("mode", MODES)
def test_the_write_path_survives_the_state_machine(
    marker_sut: str, chaos_seed: int, pytestconfig: pytest.Config, mode: str, storage: str
) -> None:
    """No promised guarantee breaks, and there was something to judge."""
    system = load_system(marker_sut)
    if system.factory(mode) is None:
        pytest.skip(f"{marker_sut} has no factory for {mode} mode")
    plans: Path = pytestconfig.rootpath / PLANS
    seen = attack(machine_for(system, mode, storage, plans=plans, chaos_seed=chaos_seed))
    if seen.unsupported and not seen.judged:
        pytest.skip(f"{marker_sut} needs what {storage} storage does not offer; storage.capabilities says what it does")
    assert seen.judged.total(), "nothing was judged, so nothing is known"

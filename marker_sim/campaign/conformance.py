"""Tests that a project collects to attack its own implementation of markers.

    pytest --marker-sut package.module:factory                                          in a project without tests of it
    pytest --marker-sut package.module:factory --pyargs marker_sim.campaign.conformance   these tests and no others

The state machines of the marker store and of the write path (machine.py) in each mode the system has a factory for, on
each storage. The Hypothesis profile of the project sets the number of examples; failures shrink, are kept in its
example database and leave a plan in `.hypothesis/marker-sim` of its root directory. A storage without an operation that
the class needs is skipped, with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.campaign.machine import PLANS, attack, machine_for
from marker_sim.campaign.machine_judging import JudgedExample
from marker_sim.campaign.machine_operations import MarkerMachine
from marker_sim.campaign.machine_rules import WritePathMachine
from marker_sim.loading import load_system

STORAGES = ("s3", "local", "hdfs")
MODES = ("direct", "timeline")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("mode", MODES)
def test_the_marker_store_survives_the_state_machine(
    marker_sut: str, chaos_seed: int, pytestconfig: pytest.Config, mode: str, storage: str
) -> None:
    """No promised guarantee breaks when clients create, resend, list and delete, and there was something to judge."""
    _attack(MarkerMachine, marker_sut, mode, storage, pytestconfig, chaos_seed)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("mode", MODES)
def test_the_write_path_survives_the_state_machine(
    marker_sut: str, chaos_seed: int, pytestconfig: pytest.Config, mode: str, storage: str
) -> None:
    """No promised guarantee breaks when tables are written on top of the markers, and there was something to judge."""
    _attack(WritePathMachine, marker_sut, mode, storage, pytestconfig, chaos_seed)


def _attack(
    kind: type[JudgedExample], sut: str, mode: str, storage: str, config: pytest.Config, chaos_seed: int
) -> None:
    system = load_system(sut)
    if system.factory(mode) is None:
        pytest.skip(f"{sut} has no factory for {mode} mode")
    plans: Path = config.rootpath / PLANS
    seen = attack(machine_for(kind, system, mode, storage, plans=plans, chaos_seed=chaos_seed))
    if seen.unsupported and not seen.judged:
        pytest.skip(f"{sut} needs what {storage} storage does not offer; storage.capabilities says what it does")
    assert seen.judged.total(), "nothing was judged, so nothing is known"

"""The implementation named by --marker-sut, by default the reference, keeps what its profile promises."""

from __future__ import annotations

import pytest

from marker_sim.judges import judge
from marker_sim.loading import load_system
from properties.breaking import raise_first
from properties.faces.campaign import execute, lacking, promised_breach
from properties.faces.judges import load_profile
from properties.faces.search import make_plan, make_write_plan, plan_seed
from properties.volume import volume

RUNS = volume(60)


@pytest.mark.draws(runs=RUNS, one_in=RUNS // 3)
@pytest.mark.parametrize("storage", ["s3", "local"])
@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_the_system_under_test_is_not_accused(marker_sut: str, chaos_seed: int, mode: str, storage: str) -> None:
    system = load_system(marker_sut)
    profile = load_profile(system.profile)
    judged = 0
    for seed in (plan_seed(chaos_seed, number) for number in range(RUNS)):
        plan = make_plan(seed, mode, storage)
        history, _ = execute(plan, system)
        findings = judge(history)
        judged += sum(finding.judged for finding in findings)
        accused = tuple(f for f in findings if promised_breach(f, plan, profile) is not None)
        if accused:
            raise_first(history, accused)
    assert judged, "nothing was judged, so nothing is known"


@pytest.mark.draws(runs=RUNS, one_in=RUNS // 3)
@pytest.mark.parametrize("storage", ["s3", "local", "hdfs"])
@pytest.mark.parametrize("mode", ["direct", "timeline"])
def test_writes_on_top_of_the_system_under_test_keep_their_promises(
    marker_sut: str, chaos_seed: int, mode: str, storage: str
) -> None:
    """The kit's write client on the system's markers, under every fault of the write path."""
    system = load_system(marker_sut)
    profile = load_profile(system.profile)
    judged = left_out = 0
    for seed in (plan_seed(chaos_seed, number) for number in range(RUNS)):
        plan = make_write_plan(seed, mode, storage)
        history, _ = execute(plan, system)
        if lacking(system, history):
            left_out += 1
            continue
        findings = judge(history)
        judged += sum(finding.judged for finding in findings)
        accused = tuple(f for f in findings if promised_breach(f, plan, profile) is not None)
        if accused:
            raise_first(history, accused)
    if left_out == RUNS:
        pytest.skip(f"{marker_sut} needs what {storage} storage does not offer; storage.capabilities says what it does")
    assert judged, "nothing was judged, so nothing is known"

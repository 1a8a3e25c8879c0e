"""A class that cannot list what is stored: refused with its line without any fault, and judged after one."""

from __future__ import annotations

import json

import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import Fault, FaultKind, Step
from marker_sim.judges import judge
from marker_sim.options import MarkerOptions
from marker_sim.plan import Op, Plan
from marker_sim.seams import NotFound
from marker_sim.system import System
from marker_sim.worlds.simulated.fresh_reader import FreshReader
from marker_sim.worlds.simulated.storage import SimStorage
from properties.faces.campaign import execute, run_campaign
from properties.faces.judges import load_profile
from properties.faces.markers import Created, Factory
from properties.faces.targets import CampaignRequest, LoadedTarget, try_every_call
from properties.interface.stored_markers import StoredMarkers


class _Unreadable(StoredMarkers):
    def list_all(self) -> tuple[str, ...]:
        raise ValueError("line 3 of the journal is torn")


class _Torn(StoredMarkers):
    def list_all(self) -> tuple[str, ...]:
        return tuple(json.loads('["torn'))


class _Missing(StoredMarkers):
    def list_all(self) -> tuple[str, ...]:
        return tuple(self._storage.get(f"{self._prefix}none").data.decode().splitlines())


@pytest.mark.parametrize(
    ("store", "error"), [(_Unreadable, "ValueError"), (_Torn, "JSONDecodeError"), (_Missing, "NotFound")]
)
def test_a_class_whose_fresh_instance_fails_to_list_is_shown_its_line(store: Factory, error: str) -> None:
    system = System(name="unreadable", direct=store, layout="names", profile="python")
    place = r"test_unreadable\.py, line \d+, in list_all, when a fresh instance listed "
    with pytest.raises(UsageError, match=rf"^unreadable raised {error}\(.* at {place}") as caught:
        try_every_call(system, "direct", "s3")
    assert "\n" not in str(caught.value)


class _TornByDeath(StoredMarkers):
    """Writes in place, so that a death leaves half of its file, which it cannot read afterwards."""

    after: str = "raise"

    def create(self, name: str) -> Created:
        with self._runtime.lock(self._path):
            names = {*self.list_all(), name}
            self._storage.overwrite(self._path, json.dumps(sorted(names)).encode())
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        try:
            return tuple(json.loads(self._storage.get(self._path).data))
        except NotFound:
            return ()
        except ValueError:
            if self.after == "exit":
                raise SystemExit(3) from None
            while self.after == "wait":
                self._runtime.sleep(1_000)
            raise


@pytest.mark.parametrize(
    ("after", "said"), [("raise", "raised JSONDecodeError"), ("exit", "SystemExit(3)"), ("wait", "did not answer in")]
)
def test_a_class_that_cannot_list_what_a_death_left_is_judged_and_not_refused(after: str, said: str) -> None:
    store = type("Torn", (_TornByDeath,), {"after": after})
    system = System(name="torn", direct=store, layout="names", profile="python")
    try_every_call(system, "direct", "local")
    create = Op(actor="executor-0", kind="create", name="f0_0-0-0_001.parquet.marker.CREATE")
    dies = Fault.of(FaultKind.TORN_WRITE, "executor-0", Step(1), restart_ms=0)
    for plan, broken in ((Plan(mode="direct", storage="local", ops=(create,)), False),
                         (Plan(mode="direct", storage="local", ops=(create,), faults=(dies,)), True)):  # fmt: skip
        history, _ = execute(plan, system)
        (found,) = judge(history, frozenset({"G11"}))
        last = [event for event in history.events if event.process == "reader"][-1:]
        assert [said in str(event.error) for event in last] == [True] * broken
        assert any(set(breach.evidence) & {event.index for event in last} for breach in found.breaches) is broken


@pytest.mark.parametrize("after", ["raise", "wait"])
def test_a_campaign_against_a_class_that_a_death_makes_unreadable_ends_with_a_plan(after: str) -> None:
    store = type("Torn", (_TornByDeath,), {"after": after})
    system = System(name="torn", direct=store, layout="names", profile="python")
    target = LoadedTarget(sut="torn", system=system)
    request = CampaignRequest(
        target=target, modes=("direct",), storages=("local",), runs=40, seed=1, profile=load_profile("python"),
        canaries=False, guarantees=frozenset({"G11"}), stop_at_first=True,
    )  # fmt: skip
    campaign = run_campaign(request, lambda line: None)
    assert not campaign.trouble and [failure.guarantee for failure in campaign.failures] == ["G11"]
    assert campaign.failures[0].plan is not None


def test_a_fresh_instance_that_fails_by_a_defect_of_the_kit_is_no_mistake_of_the_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = System(name="journal", direct=StoredMarkers, layout="names", profile="python")
    monkeypatch.setattr(SimStorage, "_call", None)
    with pytest.raises(HarnessError, match="a fresh instance of journal did not list d: TypeError"):
        FreshReader(system, "direct", "s3", MarkerOptions(), {}, 0).names("d")

"""Faults of Hudi's Java client that are no failures of a system call, without Java: what is told and done of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import TableShape
from properties.faces.targets import table_of
from properties.faces.worlds import DRIVER, STORAGE, Interceptor, JavaDrivers, TableStep, local_storage
from properties.hudi.test_hudi_java import Named, Place, answer, injector
from properties.hudi.test_hudi_java_walk import INSTANT


def test_what_is_done_to_requests_is_told_to_the_java_program_in_both_ways() -> None:
    call = Call(r"\.hoodie/\.temp/[0-9]+/p0/.*\.marker\.CREATE$", ("request",))
    kinds = (FaultKind.REQUEST_LOST, FaultKind.REPLY_LOST, FaultKind.FALSE_ANSWER)
    for warm in (True, False):
        made = injector(*(Fault.of(kind, STORAGE, call) for kind in kinds), warm=warm)
        assert [fault["effect"] for fault in made.told()] == ["error", "applied", "false"]
        asked = {"op": "request", "path": f"t0/.hoodie/.temp/{INSTANT}/p0/a.marker.CREATE", "result": "false"}
        made.took(answer(asked, struck=(0, 0, 1)))
        (event,) = made.recorder.events
        assert (event.kind, event.operation, event.error) == ("fault", "answered-false", "request")


@pytest.mark.parametrize(("empty", "left"), [(True, b""), (False, b"plan")])
def test_the_last_plan_of_a_rollback_loses_its_content_when_its_driver_dies(
    tmp_path: Path, empty: bool, left: bytes
) -> None:
    timeline = tmp_path / "t0/.hoodie/timeline"
    timeline.mkdir(parents=True)
    for instant in ("1", "2"):
        (timeline / f"{instant}.rollback.requested").write_bytes(b"plan of ")
    pattern = r"\.hoodie/timeline/[0-9]+\.rollback\.requested$"
    fault = Fault.of(FaultKind.TORN_WRITE, DRIVER, Call(pattern, ("rename",), when="after"), empty=empty)
    made = injector()
    with local_storage(Interceptor(made.recorder, made.inject), tmp_path, "t1", door=False) as place:
        place.uri = str(tmp_path / "t0")
        made.arm(TableStep(name="", stage="rollback", faults=(fault,)), place)
        assert made.told()[0]["effect"] == "die-after"
        made.end()
        assert {path.stat().st_size for path in timeline.iterdir()} == {8}, "it did not happen"
        made.arm(TableStep(name="", stage="rollback", faults=(fault,)), place)
        made.took({"died": True, "calls": [], "struck": [1]})
        made.end()
    assert (timeline / "2.rollback.requested").read_bytes() == left
    assert (timeline / "1.rollback.requested").read_bytes() == b"plan of "


def test_all_drivers_but_the_first_upgrade_a_table() -> None:
    plan = table_of("direct", 1, shape=TableShape(version6=True, upgrades=True))
    drivers = JavaDrivers("1.2.0", [], Named)  # type: ignore[arg-type]
    made, versions = injector(), []
    for made.driver in (None, Named()):  # type: ignore[assignment]
        driver = drivers.begin(plan, None, Path(), Place(), made, "")  # type: ignore[arg-type]
        versions.append(driver.options.get("hoodie.write.table.version"))
    assert versions == ["6", None]

"""The profile of Hudi's write path: what is promised, and what has no surface there."""

from __future__ import annotations

import pytest

from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges import judge
from properties.faces.judges import ALL, JUDGES, OF_FUTURES, load_profile
from properties.faces.outcome import Statistics, failures_in, overall
from properties.tables.frozen import TABLE, TABLES, Writes, at_rest, frozen


def test_every_guarantee_is_spoken_of_and_those_of_tables_are_applicable() -> None:
    profile = load_profile("hudi-spark")
    for guarantee in sorted(ALL):
        promise = profile.promise(guarantee, "timeline", "s3", "client")
        assert promise.source, guarantee
        assert promise.applicable == (guarantee in JUDGES | OF_FUTURES), guarantee
    promised = {under for under in FAULT_CLASSES if profile.promise("G18", "direct", "local", under).promised}
    assert promised == set(FAULT_CLASSES) - {"client", "storage", "wire", "power-loss"}


def test_a_table_that_holds_is_inconclusive_only_where_nothing_happened() -> None:
    """A run without a kill in a rollback says nothing of G16; a stray makes it violated."""
    for name in TABLES:
        tree = frozen(name)
        for bend, verdict in ((False, "inconclusive"), (True, "violated")):
            if bend:
                tree.sizes["a/f-0_0-9-9_20200101000000000.parquet"] = 7
            story = at_rest(tree, profile="hudi-spark")
            story.read("k=2")
            history, statistics = story.history(), Statistics()
            statistics.add(history, judge(history))
            rows = statistics.rows(load_profile("hudi-spark"))
            assert overall(rows) == verdict
            assert {row.id for row in rows if row.verdict == "inconclusive"} - {"G15"} == {"G16"}


@pytest.mark.parametrize(("fault", "broken"), [("io-error", False), ("", True)])
def test_markers_that_are_left_count_where_no_storage_call_failed(fault: str, broken: bool) -> None:
    """Those of a commit that was done and reported as failed are the archiver's; a client may not forget its own."""
    tree = frozen("1.0.2-cow")
    first = min(path.rpartition("/")[2][:17] for path in tree.files if path.endswith(".requested"))
    tree.files[f".hoodie/.temp/{first}/a/f.parquet.marker.CREATE"] = b""
    story = Writes(profile="hudi-spark")
    if fault:
        story.recorder.record("driver-1", "nemesis", "fault", fault, path=f"{TABLE}/.hoodie/{first}.commit")
    story.audit(tree, story.write())
    history = story.history()
    findings = judge(history, frozenset({"G18"}))
    assert any(finding.breaches for finding in findings), "it is judged and counted in both cases"
    assert bool(failures_in(history, findings, load_profile("hudi-spark"))) == broken

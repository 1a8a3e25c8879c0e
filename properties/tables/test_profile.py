"""The profile of Hudi's write path: what is promised, and what has no surface there."""

from __future__ import annotations

from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges import judge
from marker_sim.judges.guarantees import ALL, BY_ID
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.statistics import Statistics, overall
from properties.tables.frozen import TABLES, at_rest, frozen


def test_every_guarantee_is_spoken_of_and_those_of_tables_are_applicable() -> None:
    profile = load_profile("hudi-spark")
    for guarantee in sorted(ALL):
        promise = profile.promise(guarantee, "timeline", "s3", "client")
        assert promise.source, guarantee
        assert promise.applicable == (BY_ID[guarantee].black_box is not None), guarantee
    promised = {under for under in FAULT_CLASSES if profile.promise("G18", "direct", "local", under).promised}
    assert promised == set(FAULT_CLASSES) - {"client", "power-loss"}


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

"""The set rules by PySpark: the same answer as on one machine, from files of facts and from a recorded history.

pytest -m spark -n 0 scenarios/test_scale_spark.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marker_sim.errors import HarnessError
from marker_sim.report.columns import write_parquet
from marker_sim.scale.set_judging import TEXTS, find_facts, judge_facts, judge_history_by_sets, remote_facts
from marker_sim.surroundings.requirements import find_java
from properties.judges.build import Story, marker
from properties.scale.planted import as_columns, as_ids, planted, write
from scenarios.quick_spark import use_quick_settings

pytestmark = pytest.mark.spark
MASTER = "local[1]"


@pytest.fixture(autouse=True)
def quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start Spark so that it is soon there; skip where there is no Java."""
    use_quick_settings(tmp_path / "conf", monkeypatch)
    try:
        find_java()
    except HarnessError as error:
        pytest.skip(str(error))


def test_spark_finds_what_was_planted_and_what_is_found_in_memory(tmp_path: Path) -> None:
    rows, expected = planted(5_000, 100)
    ids, texts = as_ids(as_columns(rows))
    pq.write_table(ids, tmp_path / "facts.parquet")
    pq.write_table(texts, tmp_path / TEXTS)
    facts = find_facts(tmp_path)
    assert facts is not None
    here, there = judge_facts(facts, None), judge_facts(facts, MASTER)
    assert {rule: there.differences[rule] for rule in expected} == expected
    assert here == there
    remote = remote_facts(Path(f"file://{tmp_path}/facts.parquet"))
    assert remote is not None
    (tmp_path / TEXTS).unlink()
    assert judge_facts(remote, MASTER).differences == judge_facts(facts, None).differences


@pytest.mark.parametrize("form", ["csv", "json"])
def test_spark_and_columns_read_the_same_texts_in_other_forms(form: str, tmp_path: Path) -> None:
    rows, expected = planted(2_000, 100)
    (tmp_path / form).mkdir()
    write(as_columns(rows), tmp_path / form, 0)
    facts = find_facts(tmp_path / form)
    assert facts is not None
    here = judge_facts(facts, None)
    assert here.differences == expected
    assert judge_facts(facts, MASTER) == here


def test_a_recorded_history_goes_to_spark_as_facts(tmp_path: Path) -> None:
    story = Story()
    story.start()
    story.end(story.ask(marker("größe")), "ok", "created")
    write_parquet(story.history(), tmp_path / "history.parquet")
    here = judge_history_by_sets(tmp_path / "history.parquet", None)
    assert here.differences["answered-not-stored"].breaches == 1
    assert judge_history_by_sets(tmp_path / "history.parquet", MASTER) == here

"""What sets of a recorded history say, beside what the judges say of its events.

Every name that a set rule accuses is named by a breach of the same guarantee. The other way, sets see every answered
marker that is missing in the end, and every stranger that is stored then, unless a deletion of unknown outcome excuses
it; of a write path they see only what is left in the end.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.sets.rules import NOTHING, RULES, Difference
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.names import legible
from marker_sim.report.columns import as_table, write_parquet
from marker_sim.scale.engines import ArrowFacts
from marker_sim.scale.recorded import RecordedFacts
from marker_sim.scale.set_judging import judge_history_by_sets
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.system import System, reference
from marker_sim.worlds.simulated.cluster import Cluster
from properties.judges.build import DIRECTORY, Story, marker
from properties.volume import CI_ONLY

COMBINATIONS = (("timeline", "s3"), ("direct", "s3"), ("timeline", "local"), ("direct", "local"))
SEEDS = 12
OF_OPERATIONS = ("ack-before-flush", "leading-slash", "only-the-new-names")
OF_WRITES = ("read-error-is-empty", "no-reconcile")


def by_sets(history: History, rows: int = 1_000_000) -> dict[str, Difference]:
    table, facts = as_table(history), RecordedFacts()
    for start in range(0, len(table), rows):
        facts.add(table.slice(start, rows))
    return ArrowFacts(facts.table()).differences() if len(table) else {}


def accused(history: History, counted: Counter[str]) -> None:
    """Assert that the judges accuse whatever sets accuse, and count what both find."""
    findings = {finding.guarantee: finding for finding in judge(history)}
    differences = by_sets(history)
    for rule in RULES:
        found = differences.get(rule.id, NOTHING)
        counted[f"{rule.id} judged"] += found.judged
        counted[f"{rule.id} broken"] += found.breaches
        for directory, name in found.shown:
            messages = [breach.message for breach in findings[rule.guarantee].breaches]
            assert any(legible(repr(name)) in message for message in messages), (rule.id, directory, name, messages)
    counted["missing in the end"] += sum("in the end" in breach.message for breach in findings["G4"].breaches)


def runs_of(system: System, writes: bool, seeds: range) -> list[History]:
    make = make_write_plan if writes else make_plan
    return [Cluster(make(seed, mode, storage), system).run() for seed in seeds for mode, storage in COMBINATIONS]


@CI_ONLY
def test_whom_sets_accuse_the_judges_accuse_as_well() -> None:
    counted: Counter[str] = Counter()
    systems = [(reference(), False), (reference(), True)]
    systems += [(load_mutant(find_mutant(name)), False) for name in OF_OPERATIONS]
    systems += [(load_mutant(find_mutant(name)), True) for name in OF_WRITES]
    for system, writes in systems:
        for history in runs_of(system, writes, range(SEEDS)):
            accused(history, counted)
    for rule in RULES:
        if rule.id != "committed-and-undone" and "rolled" not in rule.id:
            assert counted[f"{rule.id} judged"] > 20 * SEEDS, counted
    assert counted["answered-not-stored broken"] > 4 * SEEDS and counted["stored-not-requested broken"] > 0, counted
    assert counted["answered-not-stored broken"] >= 0.9 * counted["missing in the end"], counted


def test_a_history_read_in_parts_has_the_same_facts(tmp_path: Path) -> None:
    for history in runs_of(load_mutant(find_mutant("leading-slash")), False, range(2)):
        whole = by_sets(history)
        assert by_sets(history, 7) == whole
        write_parquet(history, tmp_path / "history.parquet")
        assert judge_history_by_sets(tmp_path / "history.parquet", None).differences == whole


def test_a_lost_marker_a_strange_one_and_a_deletion_that_excuses() -> None:
    story = Story()
    story.start()
    for stem in ("a", "b", "c"):
        story.end(story.ask(marker(stem)), "ok", "created")
    story.put(f"{DIRECTORY}/MARKERS0", f"{marker('a')}\n{marker('z')}\ntorn".encode())
    found = by_sets(story.history())
    lost = ((DIRECTORY, marker("b")), (DIRECTORY, marker("c")))
    assert found["answered-not-stored"] == Difference(3, 0, 2, lost)
    assert found["stored-not-requested"] == Difference(2, 0, 1, ((DIRECTORY, marker("z")),))
    story.put(f"{DIRECTORY}.aside/MARKERS0", f"{marker('y')}\n".encode())  # Which no request named.
    assert by_sets(story.history())["stored-not-requested"] == found["stored-not-requested"]
    story.end(story.invoke("delete"), "info")
    story.end(story.ask(marker("d")), "ok", "created")
    assert by_sets(story.history())["answered-not-stored"] == Difference(1, 3, 0, ())
    assert isinstance(as_table(story.history()), pa.Table)

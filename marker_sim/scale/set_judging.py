"""Judges a stored history, or facts, by set differences: the findings, and the counts of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import Header, read_jsonl
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.sets.rules import RULES, Difference, findings_of
from marker_sim.report.columns import as_table, open_parquet
from marker_sim.scale.engines import ArrowFacts, counted_by_spark
from marker_sim.scale.fact_files import FactFiles, lacking_facts
from marker_sim.scale.recorded import READ, RecordedFacts

_BATCH_ROWS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSets:
    """The results of the set rules. lacking: by rule, why it was not judged; classes: of the faults in the history."""

    header: Header
    differences: dict[str, Difference]
    lacking: dict[str, str]
    classes: frozenset[str]

    def findings(self, profile: Profile) -> tuple[Finding, ...]:
        """One finding for each guarantee. Columns do not show under which fault a name was lost, so a promised breach
        under some of those that happened, and not under others, leaves the guarantee undecided.
        """
        own = [name for name in FAULT_CLASSES if name in self.classes and name != "none"]
        mode, storage = self.header.mode, self.header.storage
        found = []
        for finding in findings_of(self.differences, self.lacking, own[0] if own else "none"):
            promised = {profile.promise(finding.guarantee, mode, storage, under).promised for under in (*own, "none")}
            if finding.breaches and len(promised) > 1:
                why = f"{finding.breaches[0].message}; whether that is promised under {', '.join(own)} needs the others"
                found.append(replace(finding, breaches=(), undecided=why))
            else:
                found.append(finding)
        return tuple(found)

    def to_dict(self) -> dict[str, dict[str, int | str]]:
        """By rule: the numbers of names judged, excused and broken, and why it was not judged."""
        counts = {rule: each._asdict() for rule, each in self.differences.items()}
        for each in counts.values():
            del each["shown"]
        return {rule: each | ({"lacking": self.lacking[rule]} if rule in self.lacking else {})
                for rule, each in counts.items()}  # fmt: skip


def judge_facts(facts: FactFiles, spark_master: str | None) -> JudgedSets:
    """The results for facts recorded by other programs."""
    kinds, differences = facts.counted(spark_master)
    lacking = lacking_facts(kinds)
    found = {rule: each for rule, each in differences.items() if rule not in lacking}
    return JudgedSets(header=facts.header(), differences=found, lacking=lacking, classes=frozenset())


def judge_history_by_sets(path: Path, spark_master: str | None) -> JudgedSets:
    """The results for a history file (.parquet or .jsonl) from its columns, read in parts."""
    header, facts, classes = _facts_of(path)
    if header.witness != "effects" or header.layout != "hudi":
        why = "storage was read now and then, and sets need every effect on it"
        return JudgedSets(header=header, differences={}, lacking={rule.id: why for rule in RULES}, classes=frozenset())
    return JudgedSets(header=header, differences=_differences(facts, spark_master), lacking={}, classes=classes)


def _facts_of(path: Path) -> tuple[Header, pa.Table, frozenset[str]]:
    """The header of a history file, its facts, and the classes of the faults in it; no facts where sets need more."""
    collected = RecordedFacts()
    if path.suffix == ".jsonl":
        history = read_jsonl(path)
        header, batches = history.header, iter([as_table(history)])
    else:
        file, header = open_parquet(path)
        batches = (pa.Table.from_batches([batch]) for batch in file.iter_batches(_BATCH_ROWS, columns=list(READ)))
    if header.witness != "effects" or header.layout != "hudi":
        return header, pa.table({}), frozenset()
    for batch in batches:
        collected.add(batch)
    return header, collected.table(), frozenset(collected.classes)


def _differences(facts: pa.Table, spark_master: str | None) -> dict[str, Difference]:
    if spark_master is None:
        return ArrowFacts(facts).differences()
    with TemporaryDirectory(prefix="marker-sim-facts-") as scratch:
        pq.write_table(facts, Path(scratch) / "facts.parquet")
        return counted_by_spark([scratch], "parquet", str, spark_master)[1]

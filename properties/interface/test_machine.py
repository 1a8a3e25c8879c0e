"""The state machines: the system under test survives them, planted faults do not, failures come back."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis.database import DirectoryBasedExampleDatabase

from marker_sim.cli import main
from marker_sim.faults import FaultKind, FaultSettings
from marker_sim.loading import load_system
from marker_sim.plan import PLACES, Plan, read_plan
from marker_sim.system import reference
from properties.faces.campaign import MarkerMachine, WritePathMachine, attack, execute, findings_of, machine_for
from properties.faces.judges import VIOLATIONS, GuaranteeViolation
from properties.faces.markers import Context, Created, DirectMarkers
from properties.faces.mutants import find_mutant, load_mutant
from properties.rules import declared
from properties.volume import CI_ONLY, volume

# Within how many examples a planted fault is found: this many, from each of two seeds.
FOUND_WITHIN = 120
ROUNDS_MAX, ROUND = 24, 20
# Where the reference is attacked until every rule and fault has been met, 20 examples at least.
ATTACKED = (
    ("timeline", "s3"),
    *(pytest.param(*place, marks=CI_ONLY) for place in (("timeline", "local"), ("direct", "hdfs"))),
)
# Of the store and of the write path; benchmarks/state_machine.py --mutants hunts all there are.
PLANTED = (
    ("ack-before-flush", "timeline", "s3", "G1"),
    ("direct-fire-and-forget", "direct", "s3", "G1"),
    ("file-before-marker", "direct", "hdfs", "G13"),
    ("no-reconcile", "timeline", "local", "G14"),
    ("rolled-back-before-deleting", "direct", "s3", "G15"),
    ("rollback-not-retried", "timeline", "s3", "G16"),
    ("markers-deleted-first", "direct", "local", "G17"),
    ("nothing-swept", "timeline", "s3", "G18"),
    ("rollback-later", "direct", "hdfs", "G19"),
)


def planted(name: str, mode: str, storage: str, plans: Path, **settled: object) -> type[WritePathMachine]:
    return machine_for(WritePathMachine, load_mutant(find_mutant(name)), mode, storage, plans=plans, **settled)  # type: ignore[arg-type]


@pytest.mark.parametrize("chaos", range(1, 1 + volume(2)))
@pytest.mark.parametrize(("name", "mode", "storage", "guarantee"), PLANTED, ids=[entry[0] for entry in PLANTED])
def test_a_planted_fault_is_found_by_its_guarantee_alone(
    name: str, mode: str, storage: str, guarantee: str, chaos: int, tmp_path: Path
) -> None:
    machine = planted(name, mode, storage, tmp_path, guarantees=frozenset({guarantee}), chaos_seed=chaos)
    with pytest.raises(VIOLATIONS[guarantee]):
        attack(machine, max_examples=FOUND_WITHIN, database=None, phases=[Phase.generate])
    assert {kind.guarantee for kind in machine.seen.judged.found} == {guarantee}


@pytest.mark.parametrize(
    ("system", "mode"), [("mutant:ack-before-flush", "timeline"), ("mutant:direct-fire-and-forget", "direct"),
                         ("properties.interface.test_machine:Remembering", "direct")],
)  # fmt: skip
def test_a_marker_store_that_lies_is_found_without_a_write(system: str, mode: str, tmp_path: Path) -> None:
    machine = machine_for(MarkerMachine, load_system(system), mode, "s3", plans=tmp_path / "plans", chaos_seed=1)
    with pytest.raises(GuaranteeViolation):
        attack(machine, max_examples=FOUND_WITHIN, database=None, phases=[Phase.generate])
    plan = only_plan(tmp_path / "plans")
    assert plan.ops and not plan.writes
    _, findings = findings_of(plan, load_system(system), None)
    assert any(finding.breaches for finding in findings), "the stored plan is the example"


def test_every_rule_of_the_marker_store_fires(tmp_path: Path) -> None:
    rules: Counter[str] = Counter()
    for chaos_seed in range(7, 7 + ROUNDS_MAX):
        machine = machine_for(MarkerMachine, reference(), "timeline", "s3", plans=tmp_path, chaos_seed=chaos_seed)
        seen = attack(machine, max_examples=ROUND, database=None, phases=[Phase.generate])
        rules += seen.rules
        silent = [name for name in declared(machine) if not rules[name]]
        if not silent:
            break
    assert silent == [] and len(rules) >= 9
    judged = sum(row.judged for row in seen.judged.statistics.rows(machine.profile))
    assert judged > 100, "what was asked is judged"


@pytest.mark.parametrize(("mode", "storage"), ATTACKED)
def test_every_rule_fires_and_every_fault_of_the_place_happens(mode: str, storage: str, tmp_path: Path) -> None:
    rules: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    deaths: Counter[str] = Counter()
    compared = 0
    parts = ("begin", "stage", "finalize", "commit", "marker deletion", "rollback")
    # Hypothesis leaves rules out of whole examples, so how many examples it takes to see them all is left open.
    for chaos_seed in range(7, 7 + ROUNDS_MAX):
        machine = machine_for(WritePathMachine, reference(), mode, storage, plans=tmp_path, chaos_seed=chaos_seed)
        seen = attack(machine, max_examples=ROUND, database=None, phases=[Phase.generate])
        counts, rules = seen.judged.statistics, rules + seen.rules
        faults.update(counts.faults)
        deaths.update(counts.phases_of("kill"))
        compared += seen.compared
        rules_of, kinds = declared(machine), [kind for kind in FaultKind if machine.can(kind)]
        silent = [name for name in rules_of if not rules[name]] + [
            kind.value for kind in kinds if not faults[kind.value]
        ]
        silent += [part for part in parts if not any(doing.startswith(f"driver: {part}") for doing in deaths)]
        if not silent and compared >= 10:
            break
    assert silent == [], f"not in {ROUNDS_MAX} rounds of {ROUND} examples; drivers were killed in {sorted(deaths)}"
    assert len(rules_of) >= 14 and len(kinds) >= 8 and [name for name in rules if name not in rules_of] == []
    assert compared >= 10, "plans run at once are compared with what was played"


def test_every_fault_belongs_to_a_rule() -> None:
    made: set[FaultKind] = set()
    for mode, storage in PLACES:
        machine = machine_for(WritePathMachine, reference(), mode, storage)
        rules = [entry.function for entry in machine.setup_state().rules]
        made |= {kind for each in rules if hasattr(each, "possible") for kind in each.possible(machine)}
    assert made == {kind for kind in FaultKind if kind.row.drawn}


def test_a_failure_shrinks_and_its_plan_replays_to_the_same_violation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = planted("ack-before-flush", "timeline", "s3", tmp_path / "plans", chaos_seed=5)
    with pytest.raises(GuaranteeViolation) as found:
        attack(machine, max_examples=100, database=None)
    plan = only_plan(tmp_path / "plans")
    assert plan.entries <= 4, plan
    assert "state.teardown()" in "\n".join(found.value.__notes__), "Hypothesis prints the steps"
    _, findings = findings_of(plan, load_system("mutant:ack-before-flush"), None)
    assert found.value.guarantee in [finding.guarantee for finding in findings if finding.breaches]
    said = str(found.value).rpartition("replay: marker-sim ")[2]
    replay = shlex.split(said)
    assert replay[0] == "replay" and main(replay) == 1
    assert "STILL VIOLATED" in capsys.readouterr().out
    assert main(replay[:2]) == 0, "the reference keeps what the mutant broke"


def only_plan(folder: Path) -> Plan:
    files = sorted(folder.glob("*.json"))
    assert len(files) == 1 and (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    return read_plan(files[0])


BACK_SOON = FaultSettings(restart_ms=20)


def test_a_plan_played_piece_by_piece_is_the_plan_run_at_once(tmp_path: Path) -> None:
    """The machine checks a share of its examples; here one is taken apart by hand."""
    machine = machine_for(WritePathMachine, reference(), "timeline", "s3", plans=tmp_path)()
    machine.the_cluster_is(3, tables=("t", "t2"), merge_on_read=True, jitter=11)
    for number in range(4):
        machine.add_task(("dt=2020-01-01", f"f{number % 2}"), kind="APPEND", copies=1 + number % 2)
        machine.add_fault(FaultKind.KILL, "driver" if number % 2 else "server", 3 + 4 * number, BACK_SOON)
        machine.change_write(table=number % 2)
        machine.play(abandon=number == 1)
    played = machine._running
    machine.teardown()
    history, _ = execute(played.plan, reference())
    assert history == played.history()
    assert sum(event.operation == "kill" and event.kind == "fault" for event in history.events) >= 3


def test_the_example_database_replays_a_failure_at_once(tmp_path: Path) -> None:
    database = DirectoryBasedExampleDatabase(tmp_path / "examples")
    first = planted("ack-before-flush", "timeline", "s3", tmp_path / "plans", chaos_seed=1)
    with pytest.raises(GuaranteeViolation) as found:
        attack(first, max_examples=FOUND_WITHIN, database=database)
    again = planted("ack-before-flush", "timeline", "s3", tmp_path / "plans", chaos_seed=2)
    with pytest.raises(type(found.value)):
        attack(again, max_examples=FOUND_WITHIN, database=database)
    assert again.seen.examples <= 4 < first.seen.examples
    elsewhere = machine_for(WritePathMachine, reference(), "timeline", "s3", plans=tmp_path / "plans")
    attack(elsewhere, database=database, phases=[Phase.reuse, Phase.shrink])
    assert elsewhere.seen.examples == 0, "another system has a memory of its own"


class Remembering(DirectMarkers):
    """Answers "exists" from memory, also after a deletion."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._known: set[tuple[str, str]] = context.process.setdefault("known", set())
        self._here = context.directory

    def create(self, name: str, request: str = "") -> Created:
        if (self._here, name) in self._known:
            return Created.EXISTS
        made = super().create(name, request)
        self._known.add((self._here, name))
        return made

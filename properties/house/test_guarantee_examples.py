"""The examples of docs/guarantees.md: each plan breaks in its mutant what the page says, and none in the reference."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from marker_sim.judges import judge
from marker_sim.plan import Plan, read_plan
from marker_sim.system import System, reference
from properties.faces.campaign import MODES_AGREE, comparable, execute, findings_of, promised_breach
from properties.faces.cli import Wanted, run_again
from properties.faces.judges import BY_ID, GUARANTEES, Finding, load_profile
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.report import plan_sentences

HERE = Path(__file__).parents[1]
PAGE = (HERE.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
PROFILE = load_profile("reference")
# docs/late-writes.md tells G20, and properties/markers/test_write_path.py runs that; the simulation has no several
# writers of a table, and no table services.
TOLD = {"G20", *(f"G{n}" for n in range(26, 33))}
SECTIONS = {
    found[1]: found[2]
    for found in re.finditer(r"^### (G\d+) [a-z][a-z-]+\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)
    if " of a table" not in found[0].partition("\n")[0]
}
EXAMPLE = re.compile(
    r"Example, `mutant:(?P<mutant>[\w-]+)`(?: \(breaks (?P<also>[G\d, ]+) as well\))?:\n\n```text\n(?P<block>.*?)\n```",
    re.S,
)


def _findings(plan: Plan, system: System) -> tuple[Finding, ...]:
    """Of all judges, and of the comparison of both modes where there are two."""
    history, _ = execute(plan, system)
    agree = findings_of(plan, system, MODES_AGREE)[1] if comparable(plan, system) else ()
    return (*judge(history), *agree)


@pytest.mark.parametrize("guarantee", [each.id for each in GUARANTEES if each.id not in TOLD])
def test_an_example_breaks_its_guarantee_as_the_page_says_and_the_reference_keeps_it(guarantee: str) -> None:
    example = EXAMPLE.search(SECTIONS[guarantee])
    assert example, f"{guarantee} has no example"
    plan = read_plan(HERE / "examples" / f"{guarantee}.json")
    mutant = find_mutant(example["mutant"])
    broken = {
        finding.guarantee: breach.message
        for finding in _findings(plan, load_mutant(mutant))
        if (breach := promised_breach(finding, plan, PROFILE)) is not None
    }
    also = broken.keys() - {guarantee}
    assert example["block"].splitlines() == [*plan_sentences(plan), "", f"{guarantee}: {broken.get(guarantee)}"]
    assert ", ".join(sorted(also, key=lambda each: int(each[1:]))) == (example["also"] or "")
    assert mutant.kills == guarantee
    assert not [each for each in _findings(plan, reference()) if promised_breach(each, plan, PROFILE)]


def test_each_guarantee_has_its_sentence_and_every_stored_plan_is_an_example() -> None:
    assert SECTIONS.keys() == BY_ID.keys()
    for name, text in SECTIONS.items():
        quoted = " ".join(line.removeprefix("> ") for line in text.splitlines() if line.startswith("> "))
        assert quoted == BY_ID[name].sentence
    assert {path.stem for path in (HERE / "examples").glob("*.json")} == BY_ID.keys() - TOLD


def test_a_replayed_plan_says_what_else_it_breaks() -> None:
    said = io.StringIO()
    path = HERE / "examples" / "G3.json"
    assert run_again(path, Wanted(sut="mutant:only-the-new-names"), Console(file=said, width=200)) == 1
    assert said.getvalue().startswith("STILL VIOLATED: G3.json") and said.getvalue().endswith(
        "also breaks G4, G5, G11, G23\n"
    )

"""Changes of the syntax tree: each is one change, has a name that outlives edits elsewhere, and is hunted."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from properties.faces.mutants import MODULES, source_of
from properties.volume import CI_ONLY
from tools.generated_mutants import generated, served
from tools.generated_mutants.__main__ import main
from tools.generated_mutants.generated import KILLED, NO_MUTANT, REASONS, drawn, hunt, never_mutated, possible, reviews
from tools.generated_mutants.syntax import Change, changes_of

TEXT = '''"""A module."""
LIMIT = 3

def answer(names, deep=False):
    """Of a function."""
    if names and LIMIT < len(names):
        return ask("é", retry=True, wait=LIMIT)
    log(names)
    close(names)
    return [name for name in names if name != ""]
'''


def test_each_kind_of_change_is_made_where_it_can_be() -> None:
    made = {(change.kind, change.before, change.after) for change in changes_of("module", TEXT)}
    assert {
        ("negated", "names and LIMIT < len(names)", "(not (names and LIMIT < len(names)))"),
        ("swapped", "LIMIT < len(names)", "(LIMIT) <= (len(names))"),
        ("dropped", "names and LIMIT < len(names)", "(LIMIT < len(names))"),
        ("dropped", 'ask("é", retry=True, wait=LIMIT)', 'ask("é", wait=LIMIT)'),
        ("dropped", 'ask("é", retry=True, wait=LIMIT)', 'ask("é", retry=True)'),
        ("deleted", "log(names)", "pass"),
        ("exchanged", "log(names)\n    close(names)", "close(names)\n    log(names)"),
        ("constant", "3", "4"),
        ("constant", "True", "False"),
        ("constant", '"é"', '""'),
        ("negated", 'name != ""', '(not (name != ""))'),
    } <= made
    assert not any("Of a function" in before for _, before, _ in made)


@pytest.fixture(scope="module")
def every() -> list[Change]:
    return possible()


@CI_ONLY
def test_every_change_of_the_reference_is_python_again_and_has_a_name_of_its_own(every: list[Change]) -> None:
    texts = {module.removeprefix("marker_sim."): source_of(module)[1] for module in MODULES}
    for change in every:
        text = texts[change.module]
        assert change.applied(text) != text and text[change.begin : change.end] == change.before
        ast.parse(change.applied(text))
    assert len({change.key for change in every}) == len(every) > 1_000
    assert {change.module for change in every} == {*texts} - {"marker_sim"}


def test_the_reference_never_calls_the_functions_that_are_never_mutated() -> None:
    left_out = {name for module in MODULES for name in never_mutated(module)}
    functions = {name for name in left_out if name.islower()}
    assert functions
    for module in MODULES:
        kept = [node for node in ast.parse(source_of(module)[1]).body if getattr(node, "name", "") not in left_out]
        names = {node.id for each in kept for node in ast.walk(each) if isinstance(node, ast.Name)}
        assert names.isdisjoint(functions), module


def test_a_name_outlives_edits_elsewhere() -> None:
    module, text = "markers.server", source_of("marker_sim.markers.server")[1]
    moved = f"# A line.\n\n{text}\n\ndef more() -> int:\n    return 3 if 2 < 3 else 4\n"
    before, after = changes_of(module, text), changes_of(module, moved)
    assert {change.key for change in before} < {change.key for change in after}


def test_a_smaller_draw_is_the_beginning_of_a_larger_one() -> None:
    assert drawn(40, 5)[:10] == drawn(10, 5) != drawn(10, 6)


def test_what_breaks_a_promise_and_what_cannot_be_imported_are_told_apart(every: list[Change]) -> None:
    def of(function: str, kind: str, before: str) -> Change:
        return next(c for c in every if (c.function, c.kind, c.before) == (function, kind, before))

    forgotten = hunt(of("TimelineServer._accept", "deleted", "answer.put(result)"), 20, 1)
    assert forgotten.how == KILLED and forgotten.plan is not None and forgotten.message
    broken = replace(every[0], begin=0, end=0, after="import nothing_such\n")
    assert hunt(broken, 1, 1).how == NO_MUTANT


def test_every_review_is_of_a_change_that_there_is_and_says_what_it_is(every: list[Change]) -> None:
    told = {change.key: change for change in (*every, *possible(served.MODULES))}
    for key, review in reviews().items():
        assert key in told, f"{key} is reviewed and no longer possible: {review}"
        assert review["is"] in REASONS and review["why"], key


def test_the_command_counts_and_names_survivors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "generated.json"
    code = main(["6", "--seed", "3", "--runs", "24", "--jobs", "2", "--out", str(file)])
    shown = capsys.readouterr().out
    content = json.loads(file.read_text(encoding="utf-8"))
    assert code == (1 if content["unreviewed"] else 0)
    assert sum(content["ways"].values()) == content["drawn"] == 6 == len(content["mutants"])
    assert all(key in shown for key in content["unreviewed"])


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match="999999 mutants were asked for"):
        drawn(999_999, 1)


def test_the_kinds_are_those_that_the_module_says() -> None:
    kinds = {change.kind for change in possible()}
    assert kinds == {"negated", "swapped", "dropped", "deleted", "exchanged", "constant"}
    assert set(generated.SEEN).isdisjoint({NO_MUTANT, generated.SURVIVED})

"""G16 of rollbacks whose record is damaged, and what such a record hides from the other judges."""

from __future__ import annotations

import pytest

from properties.tables.frozen import TABLE, Frozen, Writes, at_rest, frozen
from properties.tables.test_tables_files import LATER, STRAY, kind, target


def emptied(name: str, plan: bool = True) -> Frozen:
    """A table whose only completed rollback has an empty record; without its plan its instant is unknown."""
    tree = frozen(name)
    path, instant = kind(tree, "rollback")
    tree.files[path] = b""
    if not plan:
        del tree.files[tree.entry(instant, ".rollback.requested")]
    return tree


@pytest.mark.parametrize("name", ("0.15.0-mor", *LATER))
def test_a_completed_rollback_that_cannot_be_read_is_seen(name: str) -> None:
    """Empty or torn, with its plan and without; a rollback that can be read is none."""
    assert not at_rest(frozen(name)).judged("G16").breaches
    path = kind(frozen(name), "rollback")[0]
    for content in (b"", frozen(name).files[path][:40]):
        for plan in (True, False):
            tree = emptied(name, plan)
            tree.files[path] = content
            story = at_rest(tree)
            story.audit(tree, story.write("ok", "k=3"))
            found = story.judged("G16")
            assert found.judged == 1 and len(found.breaches) == 1
            assert path in found.breaches[0].message and "cannot be read" in found.breaches[0].message
            assert (target(frozen(name)) in found.breaches[0].message) == plan
            assert not story.judged("G14").breaches


@pytest.mark.parametrize("name", LATER)
def test_an_empty_rollback_record_does_not_hide_what_is_lost_or_left(name: str) -> None:
    instant = target(frozen(name))
    stray = f"a/f-0_{STRAY}_{instant}.parquet"
    for plan in (True, False):
        tree = emptied(name, plan)
        gone = tree.data(kind(tree, "deltacommit")[1])
        del tree.sizes[gone]
        tree.sizes[stray] = 7
        story = at_rest(tree)
        lost = story.judged("G14")
        assert [gone in breach.message for breach in lost.breaches] == [True]
        left = story.judged("G15")
        assert [stray in breach.message for breach in left.breaches] == [True] * plan
        assert not at_rest(emptied(name, plan)).judged("G15").breaches


@pytest.mark.parametrize("action", ("clean", "replacecommit"))
def test_any_completed_entry_that_is_empty_is_seen(action: str) -> None:
    tree = frozen("1.0.2-cow")
    path = kind(tree, action)[0]
    tree.files[path] = b""
    found = at_rest(tree).judged("G14")
    assert [path in breach.message and "it is empty" in breach.message for breach in found.breaches] == [True]


def test_an_unreadable_clean_is_known_by_its_plan() -> None:
    """Only files that the plan names may be missing; without a plan this is undecided."""
    tree = frozen("1.0.2-cow")
    lost = tree.data(kind(tree, "replacecommit")[1])
    cleans = [path for path in tree.files if path.endswith(".clean")]
    for path in cleans:
        tree.files[path] = b""
    assert len(at_rest(tree).judged("G14").breaches) == len(cleans)
    del tree.sizes[lost]
    assert len(at_rest(tree).judged("G14").breaches) == len(cleans) + 1
    for path in cleans:
        del tree.files[tree.entry(path.rpartition("/")[2][:17], ".clean.requested")]
    assert len(at_rest(tree).judged("G14").breaches) == len(cleans)


def test_a_kill_in_a_rollback_with_an_empty_record_is_judged() -> None:
    story = Writes()
    story.write("info", "k=1")
    story.killed(f"{TABLE}/.hoodie/timeline/x.rollback", "rollback-before-completion", "driver-2")
    story.audit(emptied("1.0.2-mor"), story.write("ok", "k=3", process="driver-3"))
    found = story.judged("G16")
    assert found.judged == 2 and len(found.breaches) == 1

"""G16 and G19 of tables that take no write any more, and of rollbacks that are never completed."""

from __future__ import annotations

from typing import Any

import pytest

from properties.tables.frozen import TABLE, Frozen, Writes, frozen
from properties.tables.test_tables_files import kind, target

SAID = "HoodieRollbackException: cannot roll back"


def refuse(story: Writes, number: int, said: str | None = SAID, **fault: Any) -> int:
    """A write in a fresh driver that ends `info`; fault: what happens while it runs."""
    driver = f"driver-{number}"
    rows = (f"k={number}",)
    asked = story.recorder.record(driver, "driver", "invoke", "write", *story.place, value=rows)
    if fault:
        story.recorder.fault(driver, fault.pop("kind"), fault.pop("value", None), **fault)
    return story.recorder.record(driver, "driver", "info", "write", *story.place, error=said, caused_by=asked)


def bricked(phase: str, tree: Frozen | None = None) -> Writes:
    """A table that was fine, and then a kill."""
    story = Writes()
    story.audit(tree or frozen("1.0.2-cow"), story.write("ok", "k=1"))
    refuse(story, 1, "the driver died", kind="kill", path=f"{TABLE}/a/x", error=phase)
    return story


@pytest.mark.parametrize(("phase", "guarantee"), (("rollback-deletion", "G16"), ("after-commit", "G19")))
def test_a_table_that_takes_no_write_any_more_after_a_kill_is_seen(phase: str, guarantee: str) -> None:
    story = bricked(phase)
    for number in (2, 3):
        refuse(story, number)
    story.audit(frozen("1.0.2-cow"), refuse(story, 4))
    for judged, count in ((guarantee, 1), ("G16" if guarantee == "G19" else "G19", 0)):
        found = story.judged(judged)
        assert len(found.breaches) == count and found.judged == count, judged
    (breach,) = story.judged(guarantee).breaches
    assert SAID in breach.message and phase in breach.message and breach.under == "client"
    assert len(breach.evidence) == 7


def test_a_service_that_is_never_done_is_told_by_its_name() -> None:
    story = Writes()
    story.audit(frozen("1.0.2-cow"), story.write("ok", "k=1"))
    story.serve("compact", "info", "the driver died")
    story.killed(phase="compact")
    story.audit(frozen("1.0.2-cow"), story.write("ok", "k=2", process="driver-2"))
    for number in (2, 3):
        story.serve("compact", "info", SAID, f"driver-{number}")
    (breach,) = story.judged("G19").breaches
    assert "no compact completes any more after kill of driver-1 (compact)" in breach.message
    assert not story.judged("G25").breaches, "a fault was before"
    story = Writes()
    story.write("ok", "k=1")
    story.serve("compact", "info", SAID)
    (breach,) = story.judged("G25").breaches
    assert "a compact of driver-1 failed without a fault" in breach.message


def test_a_rollback_that_is_open_at_the_last_audit_makes_it_a_matter_of_rollbacks() -> None:
    tree = frozen("1.0.2-mor")
    del tree.files[kind(tree, "rollback")[0]]
    story = bricked("data-file", tree)
    refuse(story, 2)
    story.audit(tree, refuse(story, 3))
    assert [SAID in breach.message for breach in story.judged("G16").breaches if "no write" in breach.message] == [True]


@pytest.mark.parametrize(
    "tail",
    (
        ("refused",),
        ("refused", "ok"),
        ("refused", "refused", "ok"),
        ("refused", "silent", "silent"),
        ("refused", "full", "full"),
        ("refused", "struck", "struck"),
        ("refused", "over"),
    ),
)
def test_one_refusal_a_write_that_completes_or_a_driver_that_said_nothing_proves_nothing(tail: tuple[str, ...]) -> None:
    story = bricked("rollback-deletion")
    for number, end in enumerate(tail, start=2):
        if end == "ok":
            story.audit(frozen("1.0.2-cow"), story.write("ok", f"k={number}", process=f"driver-{number}"))
        elif end == "silent":
            refuse(story, number, "the driver did not answer")
        elif end == "full":
            refuse(story, number, "SparkException: java.io.IOException: No space left on device")
        elif end == "over":
            refuse(story, number, "the run was over", kind="kill", value="end-of-run")
        else:
            refuse(story, number, **({"kind": "kill", "path": f"{TABLE}/a/x"} if end == "struck" else {}))
    found = story.judged("G16")
    assert not found.breaches and (not found.judged or "ok" in tail)
    assert bool(found.undecided) == ("ok" not in tail)


def test_writes_that_no_fault_came_before_or_that_never_succeeded_accuse_nobody() -> None:
    story = Writes()
    story.audit(frozen("1.0.2-cow"), story.write("ok", "k=1"))
    never = Writes()
    never.killed()
    for told in (story, never):
        for number in (2, 3):
            refuse(told, number)
        for guarantee in ("G16", "G19"):
            assert not told.judged(guarantee).breaches


def test_an_audit_after_a_write_that_failed_does_not_ask_for_its_rollback() -> None:
    """What is pending there may still be rolled back by the next write; what is lost there is lost."""
    tree = frozen("1.0.2-cow")
    pending = ".hoodie/timeline/20200101000000000.commit.requested"
    tree.files[pending] = b""
    lost = tree.data(kind(tree, "commit")[1])
    del tree.sizes[lost]
    for completed in (False, True):
        story = bricked("data-file")
        story.audit(tree, refuse(story, 2))
        if completed:
            story.audit(tree, story.write("ok", "k=3", process="driver-3"))
        assert len(story.judged("G19").breaches) == completed and not story.judged("G16").breaches
        assert [lost in breach.message for breach in story.judged("G14").breaches] == [True]


@pytest.mark.parametrize("name", ("0.15.0-mor", "1.0.2-mor", "1.2.0-mor"))
def test_a_rollback_that_later_writes_never_end_is_seen(name: str) -> None:
    tree = frozen(name)
    done, instant = kind(tree, "rollback")
    del tree.files[done]
    for outcome, count in (("ok", 1), ("info", 0)):
        story = Writes()
        story.audit(tree, story.write(outcome, "k=1"))
        found = story.judged("G16")
        assert [instant in breach.message for breach in found.breaches] == [True] * count
    young = frozen(name)
    plan = young.files[young.entry(instant, ".rollback.requested")]
    young.files[young.entry(instant, ".rollback.requested").replace(instant, "29990101000000000")] = plan
    story = Writes()
    story.audit(young, story.write("ok", "k=1"))
    assert not story.judged("G16").breaches, "no commit is younger"


def test_the_rollback_of_a_compaction_waits_for_it() -> None:
    """The compaction that was rolled back runs again under its instant, and so does its rollback if it must."""
    tree = frozen("1.0.2-mor")
    del tree.files[kind(tree, "rollback")[0]]
    instant = target(frozen("1.0.2-mor"))
    tree.files[f".hoodie/timeline/{instant}.compaction.requested"] = b""
    story = Writes()
    story.audit(tree, story.write("ok", "k=1"))
    assert not story.judged("G16").breaches


def test_a_write_that_fails_although_nothing_went_wrong_breaks_the_promise_to_go_on() -> None:
    story = Writes()
    story.audit(frozen("1.0.2-cow"), story.write("ok", "k=1"))
    refuse(story, 2)
    found = story.judged("G25")
    (breach,) = found.breaches
    assert found.judged == 2 and SAID in breach.message and breach.under == "none"


@pytest.mark.parametrize(
    "said", ("the driver died", "the driver did not answer", "java.lang.OutOfMemoryError: Java heap space")
)
def test_a_driver_that_said_nothing_or_had_no_room_shows_nothing_and_silence_shows_it_the_second_time(
    said: str,
) -> None:
    for number in (1, 2):
        story = Writes()
        story.write("ok", "k=1")
        for driver in range(number):
            refuse(story, driver + 2, said)
        found = story.judged("G25")
        seen = said == "the driver did not answer" and number == 2
        assert len(found.breaches) == seen and found.judged == 1 + seen


def test_what_a_fault_left_is_not_judged_as_a_write_without_a_reason_until_one_completed() -> None:
    for completed in (False, True):
        story = bricked("data-file")
        if completed:
            story.write("ok", "k=3", process="driver-3")
        refuse(story, 4)
        assert len(story.judged("G25").breaches) == completed
    never = Writes()
    refuse(never, 1)
    assert not never.judged("G25").breaches, "the kit's surroundings may be what is wrong"

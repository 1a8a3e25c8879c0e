"""G1, G2, G3 and G23 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.names import encode_names
from properties.judges.build import DIRECTORY, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
MARKERS0 = f"{DIRECTORY}/MARKERS0"


def test_an_empty_history_says_nothing_about_durability() -> None:
    for guarantee in ("G1", "G2", "G3", "G23"):
        Story().says_nothing(guarantee)


@pytest.mark.parametrize("mode", ["timeline", "direct"])
def test_flush_before_the_answer_holds(mode: str) -> None:
    story = Story(mode=mode)
    story.create(A)
    story.create(A, "exists")
    for guarantee in ("G1", "G2", "G3", "G23"):
        story.holds(guarantee)


@pytest.mark.parametrize(("answer", "guarantee"), [("created", "G1"), ("exists", "G2")])
def test_an_answer_before_the_flush_breaks_it_even_when_the_flush_follows(answer: str, guarantee: str) -> None:
    story = Story()
    story.start()
    invoke = story.ask(A)
    done = story.end(invoke, "ok", answer)
    late = story.flush(A)
    breach = story.breaks(guarantee)
    assert breach.evidence == (invoke, done, late)
    story.says_nothing("G2" if guarantee == "G1" else "G1")
    assert not story.finding("G3").breaches


def test_an_answer_while_a_deletion_runs_is_not_judged() -> None:
    story = Story()
    delete = story.invoke("delete")
    invoke = story.ask(A)
    story.flush(A)
    story.remove()
    story.end(invoke, "ok", "created")
    story.end(delete, "ok", True)
    story.says_nothing("G1")
    story.says_nothing("G3")


def test_a_marker_that_was_not_stored_at_its_answer_is_not_lost_as_well() -> None:
    story = Story()
    story.start()
    story.end(story.ask(A), "ok", "created")
    story.kill()
    story.breaks("G1")
    story.says_nothing("G3")


@pytest.mark.parametrize("shown", [True, False])
def test_a_kill_between_an_answer_and_the_first_look_leaves_only_whether_it_is_there(shown: bool) -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.end(story.ask(A), "ok", "created")
    story.kill()
    story.look(*[A][:shown])
    story.says_nothing("G1")
    if shown:
        story.holds("G3")
    else:
        story.breaks("G3", under="restart")


def test_the_kill_that_ends_a_run_loses_nothing_by_itself() -> None:
    story = Story()
    story.start()
    story.create(A)
    story.fault("kill", value="end-of-run")
    story.holds("G3")
    story.holds("G1")


def test_a_marker_that_vanishes_is_lost_once_however_often_it_was_answered() -> None:
    story = Story()
    story.start()
    story.create(A)
    story.create(A, "exists")
    story.fault("pause", value="begin")
    story.fault("pause", value="end")
    story.put(MARKERS0, encode_names([B]))
    breach = story.breaks("G3", under="pause")
    assert breach.evidence[-1] == story.last
    story.breaks("G23", under="pause")


@pytest.mark.parametrize("outcome", ["ok", "info", "open"])
def test_a_deletion_that_may_have_had_an_effect_ends_the_protection(outcome: str) -> None:
    story = Story()
    story.create(A)
    delete = story.invoke("delete")
    story.remove()
    if outcome != "open":
        story.end(delete, outcome, True if outcome == "ok" else None, "no answer")
    assert not story.finding("G3").breaches
    story.holds("G3")


def test_a_refused_deletion_excuses_nothing() -> None:
    story = Story()
    story.create(A)
    story.delete("fail")
    story.put(MARKERS0, None)
    story.breaks("G3")


def test_a_copy_of_a_deletion_may_act_after_its_answer() -> None:
    story = Story()
    story.start()
    delete = story.invoke("delete")
    story.arrive(delete)
    story.fault("duplicated", "client", caused_by=delete)
    story.end(delete, "ok", True)
    story.create(A)
    story.arrive(delete)
    story.remove()
    for guarantee in ("G3", "G4", "G11", "G23"):
        assert not story.finding(guarantee).breaches


@pytest.mark.parametrize("waited_ms", [5_000, 13_000])
def test_a_deletion_that_no_live_server_answered_in_time_may_act_until_the_end(waited_ms: int) -> None:
    """Then G6 is broken. Of one whose client gave up sooner the bound is known."""
    story = Story()
    story.start()
    delete = story.invoke("delete")
    story.arrive(delete)
    story.wait(waited_ms)
    story.end(delete, "info", error="no answer")
    story.create(A)
    story.wait(40_000)
    story.create(B)
    story.put(MARKERS0, encode_names([B]))
    patient = waited_ms > 10_000
    assert bool(story.finding("G3").breaches) != patient
    assert bool(story.finding("G6").breaches) == patient


def test_a_marker_moved_to_another_file_was_never_gone() -> None:
    story = Story()
    story.create(A)
    story.flush(A, file=1)
    story.put(MARKERS0, None)
    story.holds("G3")


def test_damage_done_by_the_kit_is_not_held_against_anybody() -> None:
    story = Story()
    story.create(A)
    story.fault("damage", "nemesis", path=MARKERS0)
    story.put(MARKERS0, None, "nemesis")
    for guarantee in ("G3", "G4", "G23"):
        assert not story.finding(guarantee).breaches


def rewrite(story: Story, *, finish: bool = True) -> None:
    story.put(MARKERS0, b"", how="overwrite-begin")
    story.put(MARKERS0, encode_names([A])[:5], how="overwrite-piece")
    if finish:
        story.put(MARKERS0, encode_names([A, B]), how="overwrite-end")


def test_writing_in_place_loses_nothing_at_rest_but_a_reader_sees_less() -> None:
    story = Story(storage="local")
    story.start()
    story.create(A)
    rewrite(story)
    story.create(C, file=1)
    story.holds("G3")
    story.holds("G1")
    story.breaks("G23")


def test_an_answer_in_the_middle_of_a_rewrite_is_seen_by_nobody() -> None:
    story = Story(storage="local")
    story.start()
    story.create(A)
    rewrite(story, finish=False)
    story.create(A, "exists")
    story.holds("G2")
    assert len(story.finding("G23").breaches) == 1


@pytest.mark.parametrize("drops", [False, True])
def test_a_failed_append_that_is_taken_back_is_over_when_a_later_name_is_answered(drops: bool) -> None:
    story = Story(storage="local")
    story.start()
    story.create(A)
    kept = [] if drops else [A]
    story.put(MARKERS0, encode_names([A, B]))
    story.end(story.ask(B), "fail", error="500")
    story.put(MARKERS0, encode_names(kept), how="overwrite-begin")
    asked = story.ask(C)
    story.put(MARKERS0, encode_names([*kept, C]), how="overwrite-piece")
    story.end(asked, "ok", "created")
    story.holds("G1")
    if drops:
        story.breaks("G3")
    else:
        story.holds("G3")


@pytest.mark.parametrize("fault", ["kill", "torn-write"])
def test_a_writer_killed_in_place_leaves_what_it_tore(fault: str) -> None:
    story = Story(storage="local")
    story.start()
    story.create(A)
    rewrite(story, finish=False)
    story.fault(fault)
    story.breaks("G3", under="restart")


def test_a_replace_in_the_middle_of_a_rewrite_counts_at_once() -> None:
    story = Story(storage="local")
    story.start()
    story.create(A)
    rewrite(story, finish=False)
    story.put(MARKERS0, encode_names([A, C]))
    story.create(C, "exists")
    story.fault("kill")
    story.holds("G2")
    story.holds("G3")


class TestReads:
    """Storage was read now and then."""

    def story(self) -> Story:
        story = Story(witness="reads", storage="local")
        story.start()
        return story

    def test_an_answer_is_judged_at_the_first_read_that_began_after_it(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.look(A)
        story.holds("G1")
        assert story.finding("G1").eligible == 1

    def test_a_read_that_began_before_the_answer_proves_nothing(self) -> None:
        story = self.story()
        invoke = story.ask(A)
        story.end(invoke, "ok", "created")
        story.look(began=invoke)
        assert story.says_nothing("G1").eligible == 1
        story.look(A)
        story.holds("G1")
        story.holds("G3")

    def test_an_undecided_read_proves_nothing(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.look(error="the file never came to rest")
        story.says_nothing("G1")
        story.says_nothing("G3")

    def test_missing_without_a_kill_is_not_flushed(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.look(B)
        story.breaks("G1")
        assert not story.finding("G3").breaches

    def test_missing_after_a_kill_is_lost(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.kill()
        story.look(B)
        story.says_nothing("G1")
        story.breaks("G3", under="restart")

    def test_seen_once_and_then_missing_is_lost(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.look(A)
        story.look(B)
        story.breaks("G3")

    def test_a_deletion_between_answer_and_read_excuses(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.end(story.invoke("delete"), "ok", True)
        story.look()
        story.says_nothing("G1")
        story.says_nothing("G3")

    def test_names_of_a_foreign_format_are_taken_from_the_snapshot(self) -> None:
        story = Story(layout="names")
        story.start()
        story.end(story.ask(A), "ok", "created")
        story.add("observe", "snapshot", path=DIRECTORY, value=(A,), caused_by=story.last)
        story.holds("G1")
        assert not story.finding("G23").applicable and not story.finding("G8").applicable

    def test_a_single_read_that_shows_less_than_before_breaks_atomic_rewrites(self) -> None:
        story = self.story()
        story.end(story.ask(A), "ok", "created")
        story.look(A)
        story.observe("raw-file", path=MARKERS0, value=encode_names([A, B]), caused_by=story.last)
        story.holds("G23")
        story.observe("raw-file", path=MARKERS0, value=b"", caused_by=story.last)
        story.breaks("G23")

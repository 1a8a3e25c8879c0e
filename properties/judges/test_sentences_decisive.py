"""What decides a breach is in its sentence: who was silent, what came before, what was tried again."""

from __future__ import annotations

import pytest

from marker_sim.timeline import COMMIT, ROLLBACK, State, WriteStat, encode_commit, encode_rollback
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.jobs import DRIVER, Job, base
from properties.judges.test_sentences import said

BOUND_MS = 10_000
A = base("a")


@pytest.mark.parametrize("other", ["answered", "silent", "nobody", "died"])
def test_a_request_without_an_answer_says_whom_its_server_answered(other: str) -> None:
    made = Story()
    made.start()
    before = None if other == "nobody" else made.create(marker("b"))
    asked = made.ask(marker("a"))
    died = made.add("observe", "actor-died", "server#1", error="KeyError('a')") if other == "died" else None
    since = made.create(marker("c")) if other == "answered" else None
    made.wait(3 * BOUND_MS)
    made.end(asked, "info", error="no answer before the deadline")
    what = {
        "answered": f"answered others meanwhile, the last one at event {since}",
        "silent": f"server#1 answered nothing after event {before}",
        "nobody": "server#1 answered nothing since its start",
        "died": f"a part of server#1 ended at event {died}: KeyError('a')",
    }
    assert said(made, "G6").endswith(what[other])


def test_exists_says_what_became_of_the_create_before_it() -> None:
    for ended in ("info", None):
        made = Story()
        made.start()
        first = made.ask(marker("a"))
        done = made.end(first, "info", error="503 storage throttles") if ended else None
        made.end(made.ask(marker("a")), "ok", "exists")
        what = f"ended info at event {done}" if ended else "had no answer yet"
        assert said(made, "G2").endswith(f"; the create of event {first} {what}")


def test_exists_for_a_name_never_stored_names_the_longer_one_that_contains_it() -> None:
    made = Story()
    made.start()
    longer = made.ask("p=1/" + marker("a"))
    made.end(made.ask(marker("a")), "ok", "exists")
    assert said(made, "G2").endswith(f"; event {longer} had requested {'p=1/' + marker('a')!r}, which contains it")


@pytest.mark.parametrize("process", ["server#1", "server#2"])
def test_who_was_not_asked_to_delete_is_not_said_to_have_removed_it_in_a_deletion(process: str) -> None:
    made = Story()
    made.start()
    made.create(marker("a"))
    made.start("server#2")
    made.arrive(made.invoke("delete", instant="002"))
    made.put(f"{DIRECTORY}/MARKERS0", None, process, how="delete")
    assert ("during the deletion of another directory, t/.hoodie/.temp/002 (event" in said(made, "G3")) is (
        process == "server#2"
    )


def test_a_name_that_comes_back_says_after_which_deletion() -> None:
    made = Story()
    made.start()
    made.delete()
    for _ in range(2):
        made.end(made.ask(f" {marker('a')}"), "ok", "created")
        made.flush(marker("a"))
        last = made.delete()
    back = made.flush(marker("a"))
    told = [breach.message for breach in made.finding("G10").breaches if f"at event {back} " in breach.message]
    assert len(told) == 1 and f"is stored again at event {back} after {DIRECTORY} was deleted" in told[0]
    assert f"was deleted, the last time at event {last}, with no create since" in told[0]


def test_a_name_that_an_accepted_hostile_request_asked_for_was_asked_for() -> None:
    made = Story()
    made.start()
    made.delete()
    asked = made.invoke("hostile", DIRECTORY, value=repr("x.marker.CREATE"))
    made.flush("x.marker.CREATE")
    made.end(asked, "ok", "created")
    assert not made.finding("G10").breaches


def test_a_line_without_its_end_that_was_written_again_is_said_to_have_been_there() -> None:
    made = Story()
    made.start()
    made.type_file()
    asked = made.ask(marker("a"))
    put = made.put(f"{DIRECTORY}/MARKERS0", marker("a").encode())
    made.end(asked, "ok", "created")
    again = made.put(f"{DIRECTORY}/MARKERS0", b"")
    made.list()
    was = f"; from event {put} until event {again} it was in a last line that has no end, which is no marker"
    for guarantee in ("G4", "G11"):
        assert was in said(made, guarantee), guarantee


def test_an_empty_name_is_said_to_be_an_empty_line() -> None:
    made = Story()
    made.start()
    asked = made.invoke("hostile", DIRECTORY, value="''")
    put = made.flush("")
    made.flush("", marker("b"))
    made.end(asked, "ok", "created")
    told = [breach.message for breach in made.finding("G4").breaches]
    assert any(f"; event {put} leaves an empty line, which is no marker; server#1 wrote" in each for each in told)


def test_an_attempt_that_ends_with_the_error_of_its_create_says_so() -> None:
    job = Job()
    job.begin()
    attempt = job.step("attempt", "001", "0-0-0", path=A, process="executor#1")
    create = job.step("create", "001", path=f"{A}.marker.CREATE", process="executor#1")
    raised = job.end(create, "info", error="raised ValueError('no')")
    job.done(attempt, "info", error="raised ValueError('no')")
    assert said(job, "G14").endswith(f"; its create of '{A}.marker.CREATE' had ended with it at event {raised}")


@pytest.mark.parametrize("again", ["completed", "begun", "never"])
def test_an_interrupted_rollback_says_whether_it_was_done_again(again: str) -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    job.step("begin", None)
    job.step("rollback", "001")
    job.kill("driver#2")
    job.begin("002", driver="driver#3")
    begun = job.step("rollback", "001") if again == "begun" else None
    if again == "completed":
        job.roll_back("001", A)
    job.complete("002")
    job.done(job.step("commit", "002"))
    completed = [e.index for e in job.events if (e.path or "").endswith("0019.rollback")]
    what = {
        "completed": f"; a rollback of it is completed at event {(*completed, -1)[0]}",
        "begun": f"; the last other rollback of it began at event {begun}",
        "never": "; no other rollback of it was begun",
    }
    assert all(what[again] in breach.message for breach in job.finding("G16").breaches)
    assert job.finding("G16").breaches


def test_deleted_markers_name_a_file_and_show_since_when_they_were_stored() -> None:
    job = Job()
    job.begin()
    job.attempt(A)
    stored = next(e.index for e in job.events if (e.path or "").endswith(f"{A}.marker.CREATE") and e.kind == "effect")
    job.delete_markers("001")
    (breach,) = job.finding("G17").breaches
    assert f"the file {A!r}, which one of them names, is stored" in breach.message and stored in breach.evidence


def test_a_file_of_others_in_a_marker_directory_is_no_marker_and_says_who_put_it() -> None:
    job = Job()
    job.begin()
    put = job.put(f"{job.home('001')}/MARKERS0.tmp", b"", "kit")
    job.commit("001", job.attempt(A))
    job.write("002", "b")
    assert f"'{job.home('001')}/MARKERS0.tmp', put at event {put}, is left in its marker directory" in said(job, "G18")


def test_an_unfinished_write_shows_how_its_driver_ended() -> None:
    job = Job()
    job.failed("001", "a")
    killed = job.last
    for _ in range(2):
        job.fault("speculative", "driver#2")
    job.begin("002", driver="driver#2")
    job.fault("speculative", "driver#2")
    job.attempt(base("b", "002"), "002")
    (breach,) = job.finding("G19").breaches
    assert killed in breach.evidence and job.events[killed].process == DRIVER


@pytest.mark.parametrize("ended", ["", "info", "ok"])
def test_only_a_listing_that_was_answered_has_listed(ended: str) -> None:
    job = Job()
    job.begin()
    job.step("finalize", "001", ())
    listed = job.step("list", "001")
    done = job.end(listed, ended, () if ended == "ok" else None) if ended else 0
    job.data(A)
    if ended == "ok":
        how = f"a listing of its markers was invoked at event {listed}, which ended at event {done}"
        assert f"after {how}; executor#1 wrote" in said(job, "G20")
    else:
        assert not job.finding("G20").breaches


def test_a_row_behind_a_later_instant_says_which() -> None:
    job = Job(plan={"writes": [{"tasks": [{"partition": "p", "group": "a"}]}]})
    committed: dict[str, int] = {}
    for instant, write in (("003", {}), ("004", {}), ("002", {"write": "1"})):
        job.begin(instant)
        step = job.step("commit", instant, (A,))
        at = job.entry(instant, State.COMPLETED, encode_commit([WriteStat("p", "a", A, 1, "")], write))
        committed[instant] = at
        job.done(step)
    job.add("observe", "rows", table="t", value=())
    told = [breach.message for breach in job.finding("G24").breaches]
    what = f"is not found; its group has the later instant 004, committed before it at event {committed['004']}"
    assert told and all(each.endswith(what) for each in told)


def test_a_rollback_whose_listing_never_ended_is_not_said_to_have_listed() -> None:
    job = Job()
    job.failed("001", "a")
    job.begin("002", driver="driver#2")
    job.step("rollback", "001")
    over = job.entry("0019", State.COMPLETED, encode_rollback("001", COMMIT), ROLLBACK)
    listed = job.step("list", "001")
    job.kill("driver#2")
    what = f"was stored before a listing of its markers was invoked at event {listed} and is left when its rollback is"
    assert f"{what} over at event {over}" in said(job, "G15")

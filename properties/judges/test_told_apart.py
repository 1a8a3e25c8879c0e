"""Two histories that differ in one thing, of which a judge accuses one, or tells another cause."""

from __future__ import annotations

import pytest

from marker_sim.names import encode_names
from properties.judges.build import DIRECTORY, Story, marker
from properties.judges.jobs import DRIVER, EXECUTOR, Job, base
from properties.judges.test_answers import BOUND_MS, OTHER, hit, over, probing
from properties.judges.test_causes import FILE, causes, story
from properties.judges.test_progress import GIVEN_UP, exits
from properties.tables.frozen import Writes, frozen

A, B, C = marker("a"), marker("b"), marker("c")
SECOND = f"{DIRECTORY}/MARKERS1"


def excused(made: Story, guarantee: str) -> dict[str, int]:
    return dict(made.finding(guarantee).excused)


# Causes.


def test_a_marker_that_came_too_late_was_not_stored_and_then_lost() -> None:
    made = story()
    made.end(made.ask(A), "ok", "created")
    made.flush(A)
    assert causes(made, "G1") == {"never-stored"}


def test_a_request_that_came_later_is_no_reason_to_say_exists() -> None:
    made = story()
    made.create(B)
    made.end(made.ask(A), "ok", "exists")
    made.ask(A)
    assert causes(made, "G2") == {"never-stored"}


@pytest.mark.parametrize(
    ("asked", "stored", "cause"),
    [
        ("q\nr", "r", "split-at-line-break"),
        ("q\rr", "q", "split-at-carriage-return"),
        ("q\nr", "zz", "unasked"),
        ("q\nr\rs", "r\rs", "split-at-line-break"),
        ("longer", "nger", "mixed"),
        ("longer", "long", "file-cut"),
        ("longer", "very-longer-one", "glued"),
        ("ü", "?", "garbled"),
        ("ü", "\ufffd", "unasked"),
    ],
)
def test_a_stored_name_that_nobody_requested_is_told_by_how_it_is_like_one(asked: str, stored: str, cause: str) -> None:
    made = story()
    made.end(made.ask(asked), "info", error="500 no")
    made.put(FILE, stored.encode() + b"\n")
    assert {b.cause for b in made.finding("G4").breaches if repr(stored) in b.message} == {cause}


def test_a_name_that_is_empty_has_a_cause_of_its_own() -> None:
    made = story()
    made.end(made.ask(""), "ok", "created")
    assert causes(made, "G1") == {"empty-name"}


@pytest.mark.parametrize("own", [True, False])
def test_only_the_file_that_held_a_name_can_have_lost_it_by_being_cut(own: bool) -> None:
    made = story()
    made.create(A)
    made.create(B, file=1)
    made.kill()
    made.put(FILE if own else SECOND, b"")
    if not own:
        made.put(FILE, encode_names([C]))
    assert {b.cause for b in made.finding("G3").breaches if repr(A) in b.message} == {
        "file-cut" if own else "rewritten-without"
    }


def test_a_deletion_after_a_loss_is_not_its_cause_and_one_before_it_is() -> None:
    for before in (False, True):
        made = story()
        if before:
            made.create(B)
            made.delete()
        made.end(made.ask(A), "ok", "created")
        if not before:
            made.wait(5_000)
            made.delete()
        assert causes(made, "G1") == {"after-deletion" if before else "never-stored"}


def test_a_direct_marker_that_is_removed_is_gone_with_its_file() -> None:
    made = Story(mode="direct")
    made.create(A)
    made.put(f"{DIRECTORY}/{A}", None, "client", how="delete")
    assert causes(made, "G3") == {"file-gone"}


@pytest.mark.parametrize("kind", ["slow-storage", "damage", "io-error"])
def test_a_fault_that_fails_no_call_explains_no_loss(kind: str) -> None:
    made = story()
    made.create(B)
    asked = made.ask(A)
    made.fault(kind, path=f"{DIRECTORY}/MARKERS.type")
    made.end(asked, "ok", "created")
    assert causes(made, "G1") == {"put-failed" if kind == "io-error" else "never-stored"}


def test_a_stray_name_shows_the_request_that_it_is_like_and_else_the_next_answer() -> None:
    made = story()
    made.create(A)
    like = made.end(made.ask(B), "info", error="500 no")
    at = made.put(FILE, encode_names([A, f"x{B}"]))
    later = made.create(C)
    shown = {b.message.partition(" is stored")[0]: b.evidence for b in made.finding("G4").breaches}
    assert at in shown[repr(f"x{B}")] and like not in shown[repr(f"x{B}")]
    assert later in shown[repr(f"x{B}")]


# Reads of storage (G23, G12, G18).


def raw(made: Story, *names: str, began: int | None = None) -> int:
    return made.add("observe", "raw-file", path=FILE, value=encode_names(names), caused_by=began)


@pytest.mark.parametrize("deleted", ["", "open", "after"])
def test_a_name_that_a_single_read_of_its_file_misses_was_seen_before(deleted: str) -> None:
    made = story(witness="reads")
    if deleted == "open":
        made.invoke("delete")
    made.create(A)
    made.look(A)
    if deleted == "after":
        made.invoke("delete")
    raw(made)
    finding = made.finding("G23")
    assert finding.judged == 1
    assert [breach.cause for breach in finding.breaches] == ([] if deleted else ["not-atomic"])
    assert dict(finding.excused) == ({"deletion-open": 1} if deleted == "open" else {})


def test_a_read_that_began_before_the_answer_owes_it_nothing() -> None:
    made = story(witness="reads")
    asked = made.ask(A)
    raw(made, A)
    began = made.last
    made.flush(A)
    made.end(asked, "ok", "created")
    raw(made, began=began)
    assert not made.finding("G23").breaches
    raw(made, began=made.last)
    assert len(made.finding("G23").breaches) == 1, "a raw read without the name forgets nothing"


def test_a_name_that_another_file_shows_is_not_missed() -> None:
    made = story(witness="reads")
    made.create(A)
    made.look(A)
    made.add("observe", "raw-file", path=SECOND, value=encode_names([A]))
    raw(made)
    assert not made.finding("G23").breaches and made.finding("G23").judged == 1


@pytest.mark.parametrize(
    ("operation", "path", "seen"), [("file", FILE, True), ("raw-file", FILE, False), ("file", "t/x", False)]
)
def test_a_refused_request_changed_what_two_whole_reads_below_its_target_show(
    operation: str, path: str, seen: bool
) -> None:
    made = story(witness="reads")
    made.add("observe", operation, path=path, value=b"1")
    made.end(made.invoke("hostile", DIRECTORY, value="x"), "fail", error="400")
    made.add("observe", operation, path=path, value=b"2")
    assert len(made.finding("G12").breaches) == seen


@pytest.mark.parametrize("other", ["fail", "info", "ok"])
def test_another_hostile_request_explains_a_change_unless_it_was_refused(other: str) -> None:
    made = story()
    made.create(A)
    made.end(made.invoke("hostile", DIRECTORY, value="y"), other, error="400" if other == "fail" else None)
    refused = made.invoke("hostile", DIRECTORY, value="x")
    made.put(FILE, b"")
    made.end(refused, "fail", error="400")
    blamed = [breach for breach in made.finding("G12").breaches if "request 'x'" in breach.message]
    assert len(blamed) == (other == "fail")
    assert excused(made, "G12") == ({} if other == "fail" else {"other-request": 1})


# Answers (G6, G7).


def test_a_request_that_never_arrived_and_one_that_was_cut_are_counted_apart() -> None:
    for cut in (False, True):
        made = story()
        made.create(A)
        invoke = made.invoke("create", B)
        if cut:
            made.fault("reply-lost", "client", caused_by=invoke)
        made.wait(2 * BOUND_MS)
        finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
        assert dict(finding.excused) == {"wire-fault" if cut else "never-arrived": 1} and not finding.breaches


def test_a_history_of_writes_without_its_plan_needs_probes_as_any_other() -> None:
    job = Job(mode="timeline")
    job.start()
    job.write("001", "a")
    job.observe("phase", value="probe")
    job.observe("phase", value="end")
    assert "3 are needed" in job.finding("G6").undecided
    planned = Job(mode="timeline", plan={"directories": []})
    planned.start()
    planned.write("001", "a")
    planned.observe("phase", value="probe")
    planned.observe("phase", value="end")
    assert not planned.finding("G6").undecided


@pytest.mark.parametrize("path", [OTHER, DIRECTORY])
def test_trouble_of_a_directory_itself_is_trouble_in_it(path: str) -> None:
    made = story()
    made.ask(B, instant="002")
    made.fault("throttled", path=path)
    made.end(made.ask(A), "info", error="500 no")
    assert len(made.finding("G7").breaches) == (path == OTHER)
    both = story()
    hit(both)
    both.fault("throttled", path=path)
    both.end(both.ask(A), "info", error="500 no")
    assert len(both.finding("G7").breaches) == (path == OTHER)


def test_a_server_that_is_busy_anyway_is_no_reason_for_a_late_answer() -> None:
    for wait_ms in (0, 2 * BOUND_MS):
        made = story()
        made.ask(B, instant="002")
        made.end(made.ask(C), "info", error="503 Busy")
        made.wait(BOUND_MS)
        made.fault("throttled", path=f"{OTHER}/MARKERS0")
        invoke = made.ask(A)
        made.wait(wait_ms)
        made.end(invoke, "info", error="503 Busy")
        assert len(made.finding("G7").breaches) == bool(wait_ms)
        assert wait_ms or excused(made, "G7") == {"busy-anyway": 1}


@pytest.mark.parametrize("when", ["meanwhile", "later", "before"])
def test_only_a_request_at_the_same_time_can_outrun_another(when: str) -> None:
    made = story()
    made.create(B)
    if when == "before":
        made.create(C)
    hit(made)
    invoke = made.ask(A)
    other = made.ask(C) if when == "meanwhile" else -1
    made.flush(A)
    made.end(invoke, "info", error="500 Conflicted, ask again")
    if when == "meanwhile":
        made.end(other, "ok", "created")
    if when == "later":
        made.create(C)
    blamed = [breach for breach in made.finding("G7").breaches if invoke in breach.evidence]
    assert len(blamed) == (when != "meanwhile")
    assert excused(made, "G7") == ({"outrun-by-another": 1} if when == "meanwhile" else {})


# Writes.


def test_a_write_that_recovers_well_needs_no_excuse() -> None:
    job = Job()
    job.failed("001", "a")
    job.begin("002", "001", driver="driver#2")
    path = job.attempt(base("a", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    for guarantee in ("G13", "G14", "G15", "G17", "G18", "G19"):
        finding = job.finding(guarantee)
        assert finding.judged and not finding.breaches, guarantee
        assert not {"driver-alive", "late-write", "fault-in-write"} & dict(finding.excused).keys(), guarantee


@pytest.mark.parametrize(
    ("kind", "process", "when", "disturbed"),
    [
        ("kill", DRIVER, "in it", True),
        ("kill", "driver#2", "in it", True),
        ("kill", EXECUTOR, "in it", False),
        ("throttled", EXECUTOR, "in it", True),
        ("throttled", EXECUTOR, "just before", True),
        ("throttled", EXECUTOR, "long before", False),
        ("pause", EXECUTOR, "just before", False),
        ("throttled", EXECUTOR, "after", False),
    ],
)
def test_markers_that_a_write_leaves_are_excused_by_what_may_have_met_it(
    kind: str, process: str, when: str, disturbed: bool
) -> None:
    job = Job(late_effect_ms=500)
    job.begin("001")
    path = job.attempt(base("a"))
    job.finalize("001", path)
    job.commit("001", path, tidy=False)
    fault = (lambda: job.fault(kind, process, path="t/x")) if kind != "pause" else (lambda: job.fault(kind, process))
    if when == "long before":
        fault()
        job.wait(1_600)
    if when == "just before":
        fault()
        job.wait(1_000)
    job.begin("002", driver="driver#2" if process == "driver#2" else DRIVER)
    if when == "in it":
        fault()
    path = job.attempt(base("b", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    if when == "after":
        fault()
    finding = job.finding("G18")
    assert bool(finding.breaches) is not disturbed
    assert ("fault-in-write" in dict(finding.excused)) is disturbed


def test_a_server_that_starts_after_a_write_was_given_up_is_not_why() -> None:
    for started in ("before", "after"):
        job = Job(mode="timeline")
        if started == "before":
            job.start()
            job.kill()
            job.wait(60_000)
        job.begin("001")
        attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
        job.done(attempt, "info", "t/x")
        job.observe("job-failed", process=job.driver, error=GIVEN_UP)
        if started == "after":
            job.start()
        assert excused(job, "G25") == ({"server-gone": 1} if started == "before" else {})


@pytest.mark.parametrize("kind", ["slow-task", "speculative", "stage-retried"])
def test_tasks_that_ran_again_in_this_write_are_why_it_was_given_up(kind: str) -> None:
    for earlier in (False, True):
        job = Job()
        if earlier:
            job.begin("001")
            job.fault(kind, job.driver)
            job.observe("job-failed", process=job.driver, value="abandoned", error="x")
            job.wait(60_000)
        job.begin("002")
        job.attempt(base("a", "002"), "002")
        if not earlier:
            job.wait(1).fault(kind, job.driver)
        job.wait(60_000)
        job.observe("job-failed", process=job.driver, error=GIVEN_UP)
        held = kind != "slow-task" and not earlier
        assert ("executor-fault" in excused(job, "G25")) is held, earlier


def test_an_application_may_end_while_another_driver_goes_on() -> None:
    job = Job()
    job.write("001", "a")
    exits(job, "its application ended")
    job.write("002", "b", driver="driver#2")
    job.holds("G25")


def test_a_create_that_was_open_when_its_directory_was_deleted_needs_no_excuse() -> None:
    made = story()
    made.create(B)
    invoke = made.ask(A)
    made.delete()
    made.flush(A)
    made.end(invoke, "ok", "created")
    made.list(A)
    made.holds("G10")
    assert excused(made, "G10") == {}


def test_what_a_black_box_was_never_asked_to_write_is_not_judged_as_a_write() -> None:
    told = Writes()
    told.audit(frozen("1.0.2-cow"), -1)
    for guarantee in ("G13", "G24", "G25"):
        finding = told.judged(guarantee)
        assert not finding.applicable and finding.guarantee == guarantee


def test_a_create_that_is_answered_while_another_one_is_open_was_never_stored() -> None:
    made = story()
    made.create(B)
    made.ask(A)
    made.end(made.ask(A), "ok", "created")
    assert causes(made, "G1") == {"never-stored"}


def test_a_listing_that_glues_what_is_stored_rightly_says_so() -> None:
    for shown, cause in ((f"{A}x", "glued"), ("x", "stored-and-not-listed")):
        made = story()
        made.create(A)
        made.list(shown)
        assert causes(made, "G11") == {cause}


def test_a_file_that_a_killed_server_had_written_as_a_whole_was_not_cut() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.put(FILE, encode_names([B]))
    assert causes(made, "G3") == {"rewritten-without"}


@pytest.mark.parametrize(
    ("kind", "path", "excuse"),
    [
        ("disk-full", None, ""),
        ("kill", f"{DIRECTORY}/x", ""),
        ("throttled", f"{OTHER}/x", ""),
        ("throttled", FILE, "x"),
    ],
)
def test_only_a_storage_fault_below_a_deleted_directory_may_keep_it(kind: str, path: str | None, excuse: str) -> None:
    made = story()
    made.create(A)
    made.delete()
    made.put(f"{OTHER}/MARKERS0", b"")
    made.fault(kind, "client" if kind == "kill" else "server#1", path=path)
    made.end(made.invoke("exists", process="client#2"), "ok", True)
    assert excused(made, "G10") == ({"storage-fault": 1} if excuse else {})
    assert len(made.finding("G10").breaches) == (not excuse)


def test_a_resend_of_a_name_that_was_stored_before_the_request_may_be_told_that_it_exists() -> None:
    for before in (False, True):
        made = story()
        if before:
            made.flush(A)
        made.ask(A, "r1")
        resend = made.ask(A, "r1")
        made.flush(A)
        made.end(resend, "ok", "exists")
        assert len(made.finding("G5").breaches) == (not before)


def test_a_listing_is_accused_once_however_often_its_directory_was_deleted() -> None:
    made = story()
    made.create(A)
    made.delete()
    made.delete()
    made.list(A)
    assert causes(made, "G10") == {"listed-after-deletion"}
    made.breaks("G10")


@pytest.mark.parametrize(("error", "judged"), [("no answer", False), ("500 no", True)])
def test_a_client_that_gave_up_sooner_than_the_bound_is_counted(error: str, judged: bool) -> None:
    made = story()
    made.end(made.ask(B), "info", error=error)
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert dict(finding.excused) == ({} if judged else {"waited-too-short": 1}) and finding.judged == 6 + judged


def test_a_request_that_was_sent_before_its_server_began_is_not_owed_an_answer() -> None:
    made = story()
    made.kill()
    invoke = made.invoke("create", B)
    made.start("server#2")
    made.arrive(invoke)
    made.wait(2 * BOUND_MS)
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert dict(finding.excused) == {"server-unwell": 1} and not finding.breaches


@pytest.mark.parametrize("lost_ms", [0, 2 * BOUND_MS])
def test_a_neighbour_whose_server_had_no_processor_was_not_harmed(lost_ms: int) -> None:
    made = story()
    hit(made)
    invoke = made.ask(A)
    made.wait(2 * BOUND_MS)
    made.flush(A)
    if lost_ms:
        made.observe("starved", process="server#1", value=lost_ms)
    made.end(invoke, "ok", "created")
    finding = made.finding("G7")
    assert finding.judged == 1 and bool(finding.breaches) is not bool(lost_ms)
    assert dict(finding.excused) == ({"no-processor": 1} if lost_ms else {})


def test_files_that_came_back_after_the_listing_are_counted_when_their_markers_go() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    step = job.step("rollback", "001")
    job.listing("001")
    job.data(base("a"), None, "driver#2")
    job.data(base("a"))
    job.delete_markers("001")
    job.done(step)
    assert excused(job, "G17") == {"late-write": 1} and not job.finding("G17").breaches


def test_a_file_that_came_after_the_last_listing_is_counted_where_a_rollback_is_made_again() -> None:
    job = Job()
    job.failed("001", "a")
    job.driver = "driver#2"
    job.step("rollback", "001")
    job.kill("driver#2")
    job.begin("002", "001", driver="driver#3")
    job.data(base("a"))
    path = job.attempt(base("a", "002"), "002")
    job.finalize("002", path)
    job.commit("002", path)
    finding = job.finding("G16")
    assert finding.judged == 1 and not finding.breaches and dict(finding.excused)["late-write"] == 1
    assert job.finding("G19").judged == 1


def test_servers_that_are_gone_are_no_reason_for_a_write_with_direct_markers() -> None:
    job = Job()
    job.start()
    job.kill()
    job.wait(60_000)
    job.begin("001")
    attempt = job.step("attempt", "001", path=base("a"), process=EXECUTOR)
    job.done(attempt, "info", "t/x")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    assert excused(job, "G25") == {} and len(job.finding("G25").breaches) == 1


def test_storage_that_failed_for_an_executor_whose_attempts_went_well_is_no_reason_to_give_up() -> None:
    job = Job()
    job.begin("001")
    job.attempt(base("a"))
    job.fault("throttled", EXECUTOR, path="t/x")
    job.observe("job-failed", process=job.driver, error=GIVEN_UP)
    assert excused(job, "G25") == {} and len(job.finding("G25").breaches) == 1


def test_a_step_that_fails_although_the_one_inside_it_went_well_breaks_it() -> None:
    job = Job()
    job.write("001", "a")
    job.observe("phase", value="probe")
    outer = job.step("finalize", "001")
    job.done(job.step("sweep", "001"))
    job.done(outer, "info", "503")
    job.observe("phase", value="end")
    assert len(job.finding("G14").breaches) == 1

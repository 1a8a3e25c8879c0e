"""G6 and G7 to the millisecond: when an answer is late, whose wait it is, and what a report says of it."""

from __future__ import annotations

from typing import Any

import pytest

from properties.judges.build import DIRECTORY, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
OTHER = "t/.hoodie/.temp/002"
BOUND_MS, STORAGE_MS = 10_000, 1_000


def story(**header: Any) -> Story:
    made = Story(**header)
    made.start()
    return made


def at(made: Story, time_ms: int) -> Story:
    """The next event happens at this time."""
    made.now_ms = time_ms - made.step_ms
    return made


def asked_at(made: Story, invoke: int) -> int:
    return made.events[invoke].time_ns // 1_000_000


def probing(made: Story, *outcomes: str) -> Story:
    """The probe phase: creates that end so, one after the other; "late" ones are never answered."""
    made.observe("phase", value="probe")
    for number, outcome in enumerate(outcomes):
        invoke = made.ask(marker(f"probe{number}"))
        if outcome == "ok":
            made.flush(marker(f"probe{number}"))
            made.end(invoke, "ok", "created")
        elif outcome != "open":
            made.end(invoke, outcome, error="500 no")
    return made


def over(made: Story) -> Story:
    made.observe("phase", value="end")
    made.fault("kill", value="end-of-run")
    return made


# G6, requests.


@pytest.mark.parametrize("late_ms", [0, 1])
def test_an_answer_is_late_one_millisecond_after_the_bound(late_ms: int) -> None:
    made = story()
    invoke = made.ask(B)
    made.flush(B)
    at(made, asked_at(made, invoke) + BOUND_MS + late_ms).end(invoke, "ok", "created")
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert len(finding.breaches) == late_ms and finding.judged == 7 - late_ms  # Probes count twice.
    for breach in finding.breaches:
        assert "answered ('created') 10.0 s" in breach.message and "the bound is 10.0 s" in breach.message
        assert breach.message.endswith("so it came 0.001 s late") and breach.cause == "late"
        assert "server#1" in breach.message and set(breach.evidence) >= {invoke}


@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_request_that_a_fault_outlasted_has_the_whole_bound_from_its_end(late_ms: int) -> None:
    made = story()
    invoke = made.ask(B)
    made.wait(2 * BOUND_MS)
    fault = made.fault("throttled", path=f"{DIRECTORY}/MARKERS0")
    made.flush(B)
    at(made, asked_at(made, fault) + BOUND_MS + late_ms).end(invoke, "ok", "created")
    assert len(over(probing(made, "ok", "ok", "ok")).finding("G6").breaches) == late_ms


def test_only_good_answers_and_those_in_time_count_as_answered() -> None:
    made = story()
    made.create(A)
    made.end(made.ask(B), "fail", error="409 no")
    made.end(made.ask(C), "info", error="500 no")
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert not finding.breaches and finding.judged == 2 + 2 * 3


def test_a_wait_counts_from_the_last_arrival_of_a_request_that_the_wire_copied() -> None:
    for again in (False, True):
        made = story()
        invoke = made.ask(B)
        made.fault("duplicated", "client", caused_by=invoke)
        made.wait(BOUND_MS)
        if again:
            made.arrive(invoke)
        made.wait(BOUND_MS // 2)
        made.flush(B)
        made.end(invoke, "ok", "created")
        finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
        assert len(finding.breaches) == (not again), again


@pytest.mark.parametrize(
    ("every_ms", "overtaken", "answered", "held"),
    [
        (900, False, True, True),
        (1_100, False, True, False),  # The server rests in between.
        (900, True, True, False),  # Others that came much later were served before.
        (900, False, False, False),  # It is left out for good.
    ],
)
def test_an_answer_may_come_late_in_a_line_that_moves(
    every_ms: int, overtaken: bool, answered: bool, held: bool
) -> None:
    made = story()
    late = made.ask(A)
    asked = [made.ask(f"p/f{number}_0-0-0_001.parquet.marker.CREATE") for number in range(13)]
    for number, other in enumerate(asked):
        made.wait(every_ms)
        if overtaken and number == 7:
            newest = made.ask(C)
            made.flush(C)
            made.end(newest, "ok", "created")
        made.flush(str(made.events[other].path))
        made.end(other, "ok", "created")
    if answered:
        made.flush(A)
        made.end(late, "ok", "created")
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert any(late in breach.evidence for breach in finding.breaches) is not held
    if answered:
        assert ("in-line" in dict(finding.excused)) is held


@pytest.mark.parametrize("changes", [True, False])
def test_readings_are_in_no_line_of_changes(changes: bool) -> None:
    """A server whose changes try again and again answers them late in turn, and readings at once."""
    made = story()
    late = made.ask(A)
    asked = [made.ask(f"p/f{number}_0-0-0_001.parquet.marker.CREATE") for number in range(13 * changes)]
    for number in range(13):
        made.wait(900)
        made.list(*(str(made.events[other].path) for other in asked[:number]))
        if changes:
            made.flush(str(made.events[asked[number]].path))
            made.end(asked[number], "ok", "created")
    made.flush(A)
    made.end(late, "ok", "created")
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert any(late in breach.evidence for breach in finding.breaches) is not changes
    assert ("in-line" in dict(finding.excused)) is changes


@pytest.mark.parametrize(("pauses_ms", "late"), [((9_000, 9_000), False), ((18_000,), True)])
def test_a_deletion_may_take_long_as_long_as_it_removes_a_file_within_every_bound(
    pauses_ms: tuple[int, ...], late: bool
) -> None:
    made = story()
    made.create(A)
    made.create(C, file=1)
    deletion = made.invoke("delete")
    made.arrive(deletion)
    for number, pause_ms in enumerate(pauses_ms):
        made.wait(pause_ms)
        made.put(f"{DIRECTORY}/MARKERS{number}", None, how="delete")
    made.end(deletion, "ok", True)
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert len(finding.breaches) == late
    assert dict(finding.excused).get("still-deleting", 0) == (not late)


@pytest.mark.parametrize("ended", ["before it was asked", "while it waited", "after its answer"])
def test_a_client_that_is_gone_waits_for_no_answer(ended: str) -> None:
    made = story()
    if ended == "before it was asked":  # Another one of that name: it says nothing about this request.
        made.add("observe", "exited", "client")
    invoke = made.ask(B)
    if ended == "while it waited":
        made.add("observe", "exited", "client")
    made.wait(2 * BOUND_MS)
    if ended == "after its answer":
        made.end(invoke, "info", error="no answer before the deadline")
        made.add("observe", "exited", "client")
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert len(finding.breaches) == (ended != "while it waited")
    assert ("client-died" in dict(finding.excused)) == (ended == "while it waited")


@pytest.mark.parametrize("process", ["client", "somebody-else"])
def test_only_its_own_client_excuses_a_request(process: str) -> None:
    made = story()
    made.ask(B)
    made.fault("kill", process)
    made.wait(2 * BOUND_MS)
    finding = over(probing(made, "ok", "ok", "ok")).finding("G6")
    assert ("client-died" in dict(finding.excused)) == (process == "client")


# G6, probes.


def test_a_fault_during_the_probes_leaves_them_undecided() -> None:
    made = probing(story(), "ok", "ok", "ok")
    made.fault("throttled", path=f"{DIRECTORY}/MARKERS0")
    finding = over(made).says_nothing("G6")
    assert "during the probes" in finding.undecided and dict(finding.excused)["run-undecided"] == 1


def test_a_request_without_an_answer_breaks_it_in_a_run_whose_probes_decide_nothing() -> None:
    made = story()
    made.ask(B)
    made.wait(2 * BOUND_MS)
    made.observe("phase", value="end")
    finding = made.finding("G6")
    assert len(finding.breaches) == 1 and finding.undecided


@pytest.mark.parametrize("wait_ms", [BOUND_MS // 2, 2 * BOUND_MS])
def test_a_probe_that_the_end_of_the_run_cut_short_is_not_judged(wait_ms: int) -> None:
    made = probing(story(), "ok", "ok", "ok", "open")
    made.wait(wait_ms)
    finding = over(made).finding("G6")
    if wait_ms < BOUND_MS:
        assert not finding.breaches and dict(finding.excused)["run-ended"] == 1
    else:
        assert "was never answered" in " ".join(breach.message for breach in finding.breaches)


@pytest.mark.parametrize("lost_ms", [0, 2 * BOUND_MS])
def test_a_probe_whose_server_had_no_processor_is_not_judged(lost_ms: int) -> None:
    made = probing(story(), "ok", "ok", "ok")
    invoke = made.ask(B)
    made.wait(2 * BOUND_MS)
    if lost_ms:
        made.observe("starved", process="server#1", value=lost_ms)
    made.end(invoke, "info", error="no answer before the deadline")
    finding = over(made).finding("G6")
    assert bool(finding.breaches) is not bool(lost_ms)
    assert ("no-processor" in dict(finding.excused)) is bool(lost_ms)


def test_a_failed_probe_says_how_it_ended_and_what_may_be_the_cause() -> None:
    breach = over(probing(story(), "ok", "ok", "info")).breaks("G6")
    assert (
        breach.message
        == "the create of 'p/probe2.parquet.marker.CREATE' that was sent after the last fault ended info (500 no)"
    )
    assert breach.cause == "refused" and len(breach.evidence) == 2


# G7.


def hit(made: Story, **columns: Any) -> int:
    """A storage fault in another directory."""
    made.ask(B, instant="002")
    return made.fault("throttled", path=f"{OTHER}/MARKERS0", **columns)


@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_neighbour_is_late_after_the_storage_time_out_and_the_bound(late_ms: int) -> None:
    made = story()
    invoke = made.ask(A)
    hit(made)
    made.flush(A)
    at(made, asked_at(made, invoke) + STORAGE_MS + BOUND_MS + late_ms).end(invoke, "ok", "created")
    finding = made.finding("G7")
    assert finding.judged == 1 and [breach.cause for breach in finding.breaches] == ["held-up"] * late_ms


@pytest.mark.parametrize("late_effect_ms", [0, 500])
@pytest.mark.parametrize("after_ms", [0, 1])
def test_trouble_next_door_lasts_for_the_storage_time_out_and_late_effects(after_ms: int, late_effect_ms: int) -> None:
    made = story(late_effect_ms=late_effect_ms)
    fault = hit(made)
    at(made, asked_at(made, fault) + STORAGE_MS + late_effect_ms + after_ms)
    made.end(made.ask(A), "info", error="500 no")
    assert len(made.finding("G7").breaches) == (not after_ms)


def test_a_request_that_was_over_before_the_trouble_next_door_is_not_judged() -> None:
    made = story()
    made.create(A)
    hit(made)
    assert made.finding("G7").judged == 0
    made.create(C)
    assert made.finding("G7").judged == 1


def test_each_harm_next_door_has_its_cause_and_shows_fault_request_and_answer() -> None:
    made = story()
    fault = hit(made)
    failed = made.ask(A)
    end = made.end(failed, "info", error="500 no")
    breach = made.breaks("G7", under="storage")
    assert breach.cause == "failed-along" and {fault, failed, end} <= set(breach.evidence)
    assert breach.message.partition(" (fault")[0].endswith(
        f"ended info (500 no) while storage failed only in another directory ({OTHER}/MARKERS0)"
    )
    made = story()
    hit(made)
    made.ask(A)
    made.wait(2 * BOUND_MS)
    breach = over(made).breaks("G7", under="storage")
    late = f"was not answered in 20.0 s (its bound is {(STORAGE_MS + BOUND_MS) / 1e3:.1f} s)"
    assert breach.message.startswith(f"the create of {A!r} in {DIRECTORY} {late}") and breach.cause == "never-answered"


@pytest.mark.parametrize(
    ("why", "excuse"),
    [
        ("echo", "echo-late"),
        ("wire", "wire-fault"),
        ("second-server", "second-server"),
        ("server-dead", "server-unwell"),
        ("deletion", "deletion-open"),
        ("exited", "client-died"),
        ("killed", "client-died"),
        ("own-storage", "storage-fault"),
        ("full", "storage-fault"),
    ],
)
def test_whatever_else_may_have_failed_a_request_is_counted_by_name(why: str, excuse: str) -> None:
    made = story()
    hit(made)
    invoke = made.ask(A)
    match why:
        case "echo":
            made.observe("echo-late")
        case "wire":
            made.fault("delayed", "client", caused_by=invoke)
        case "second-server":
            made.add("observe", "started", "server#2")
        case "server-dead":
            made.kill()
        case "deletion":
            made.end(made.invoke("delete"), "ok", True)
        case "exited":
            made.add("observe", "exited", "client")
        case "killed":
            made.fault("kill", "client")
        case "own-storage":
            made.fault("throttled", path=f"{DIRECTORY}/MARKERS1")
        case _:
            made.fault("disk-full", path=f"{OTHER}/MARKERS1")
    made.end(invoke, "info", error="500 no")
    finding = made.finding("G7")
    assert not finding.breaches and excuse in dict(finding.excused), finding


@pytest.mark.parametrize("what", ["deletion", "killed", "exited", "own-storage", "pause", "wire"])
def test_what_was_over_or_happened_to_others_excuses_no_harm_next_door(what: str) -> None:
    made = story()
    match what:
        case "deletion":
            made.create(A)
            made.delete()
        case "pause":
            made.fault("pause", value="begin")
            made.fault("pause", value="end")
        case "own-storage":
            made.fault("throttled", path=f"{DIRECTORY}/MARKERS1")
        case "wire":
            made.fault("delayed", "client", caused_by=made.ask(C))
    made.wait(STORAGE_MS)
    hit(made)
    if what in ("killed", "exited"):
        made.add("fault" if what == "killed" else "observe", "kill" if what == "killed" else "exited", "somebody-else")
    made.end(made.ask(A), "info", error="500 no")
    assert [breach.cause for breach in made.finding("G7").breaches] == ["failed-along"]

"""G6 and G7 on histories written by hand."""

from __future__ import annotations

import pytest

from properties.judges.build import DIRECTORY, Story, marker

A, B, C = marker("a"), marker("b"), marker("c")
OTHER = "t/.hoodie/.temp/002"
BOUND_MS = 10_000


def probed(story: Story, count: int = 3, outcome: str = "ok") -> Story:
    story.observe("phase", value="probe")
    for number in range(count):
        invoke = story.ask(marker(f"probe{number}"))
        story.flush(marker(f"probe{number}"))
        story.end(invoke, outcome, "created" if outcome == "ok" else None, error=None if outcome == "ok" else "500 no")
    story.observe("phase", value="end")
    story.fault("kill", value="end-of-run")
    return story


def begun() -> Story:
    story = Story()
    story.start()
    story.create(A)
    return story


def test_answers_and_probes_hold() -> None:
    probed(begun()).holds("G6")


def test_a_run_without_a_probe_is_undecided() -> None:
    assert "probe" in begun().says_nothing("G6").undecided


def test_too_few_probes_or_a_dead_or_paused_server_are_undecided() -> None:
    assert "needed" in probed(begun(), 2).says_nothing("G6").undecided
    story = begun()
    story.kill()
    assert "live" in probed(story).says_nothing("G6").undecided
    story = begun()
    story.fault("pause", value="begin")
    assert "paused" in probed(story).says_nothing("G6").undecided


def test_a_kit_that_is_slow_itself_decides_nothing() -> None:
    story = begun()
    story.ask(B)
    story.observe("echo-late")
    story.wait(5 * BOUND_MS)
    assert "echo" in probed(story).says_nothing("G6").undecided


@pytest.mark.parametrize(
    ("lost", "broken"), [((8_000,), True), ((12_000,), False), ((6_000, 6_500), False), ((5_000,) * 9, True)]
)
def test_time_in_which_a_server_waited_for_a_processor_is_not_its_own(lost: tuple[int, ...], broken: bool) -> None:
    story = begun()
    invoke = story.ask(B)
    for number, lost_ms in enumerate(lost):  # The last ones overlap: nine waits of five seconds in nine seconds.
        story.wait(2 * BOUND_MS // len(lost) if len(lost) < 9 else 500 if number else 16_000)
        story.observe("starved", process="server#1", value=lost_ms)
    story.flush(B)
    story.end(invoke, "ok", "created")
    assert bool(probed(story).finding("G6").breaches) == broken


def test_a_short_wait_hides_no_longer_one_that_was_measured_with_it() -> None:
    story = begun()
    invoke = story.ask(B)
    story.wait(2 * BOUND_MS)
    for lost_ms in (60, 12_000):
        story.observe("starved", process="server#1", value=lost_ms)
    story.flush(B)
    story.end(invoke, "ok", "created")
    probed(story).holds("G6")


def test_a_failing_probe_breaks_it() -> None:
    probed(begun(), outcome="info").breaks("G6", count=3)
    probed(begun(), outcome="fail").breaks("G6", count=3)


@pytest.mark.parametrize("again", ["ok", "info", "never"])
def test_a_probe_that_was_told_to_ask_again_and_is_served_then_had_its_answer(again: str) -> None:
    story = begun()
    story.observe("phase", value="probe")
    story.end(story.ask(B), "info", error="500 Conflicted, ask again")
    if again != "never":
        story.end(story.ask(B), again, "created" if again == "ok" else None, error=None if again == "ok" else "500 no")
    probed(story)
    if again == "ok":
        story.holds("G6")
    else:
        story.breaks("G6", count=2 if again == "info" else 1)


def test_a_server_that_exits_by_itself_breaks_it() -> None:
    story = begun()
    story.add("observe", "exited", "server#1")
    story.breaks("G6")


@pytest.mark.parametrize("outcome", ["open", "info"])
def test_a_request_without_an_answer_breaks_it(outcome: str) -> None:
    story = begun()
    invoke = story.ask(B)
    story.wait(2 * BOUND_MS)
    if outcome == "info":
        story.end(invoke, "info", error="no answer before the deadline")
    probed(story).breaks("G6")


def test_an_error_is_an_answer_and_a_late_answer_is_not() -> None:
    story = begun()
    invoke = story.ask(B)
    story.wait(BOUND_MS // 2)
    story.end(invoke, "info", error="500 broken")
    probed(story).holds("G6")
    story = begun()
    invoke = story.ask(B)
    story.wait(2 * BOUND_MS)
    story.flush(B)
    story.end(invoke, "ok", "created")
    probed(story).breaks("G6")


def test_the_bound_counts_from_the_end_of_the_last_fault() -> None:
    story = begun()
    invoke = story.ask(B)
    story.wait(2 * BOUND_MS)
    story.fault("throttled", path=f"{DIRECTORY}/MARKERS0")
    story.flush(B)
    story.end(invoke, "ok", "created")
    probed(story).holds("G6")


def test_a_request_is_not_owed_an_answer_by_the_dead_the_paused_and_cut_wires() -> None:
    for spoil in ("kill", "pause", "wire", "not-arrived", "client", "impatient"):
        story = begun()
        invoke = story.invoke("create", B) if spoil == "not-arrived" else story.ask(B)
        if spoil == "kill":
            story.kill()
            story.start("server#2")
        elif spoil == "pause":
            story.fault("pause", value="begin")
        elif spoil == "wire":
            story.fault("reply-lost", "client", caused_by=invoke)
        elif spoil == "client":
            story.fault("kill", "client")
        if spoil == "impatient":
            story.end(invoke, "info", error="no answer")
        story.wait(3 * BOUND_MS)
        if spoil == "pause":
            story.fault("pause", value="end")
        probed(story).holds("G6")


@pytest.mark.parametrize("brief", ["pause", "client-pause", "duplicated", "delayed"])
def test_a_brief_pause_or_a_wire_that_cuts_nothing_excuses_no_request_that_is_never_answered(brief: str) -> None:
    story = begun()
    invoke = story.ask(B)
    if "pause" in brief:
        process = "client" if brief == "client-pause" else "server#1"
        story.fault("pause", process, value="begin")
        story.fault("pause", process, value="end")
    else:
        story.fault(brief, "client", caused_by=invoke)
    story.wait(3 * BOUND_MS)
    finding = probed(story).finding("G6")
    assert [breach.evidence[0] for breach in finding.breaches] == [invoke] and not finding.excused


def test_direct_mode_has_no_server_to_answer() -> None:
    assert not Story(mode="direct").finding("G6").applicable


def hit(kind: str = "throttled", outcome: str = "ok", wait_ms: int = 10, path: str = f"{OTHER}/MARKERS0") -> Story:
    """A storage fault in one directory, and a request for another."""
    story = Story()
    story.start()
    story.ask(B, instant="002")
    story.fault(kind, path=path)
    invoke = story.ask(A)
    story.wait(wait_ms)
    story.flush(A)
    story.end(invoke, outcome, "created" if outcome == "ok" else None, error=None if outcome == "ok" else "500 no")
    return story


def test_trouble_next_door_is_not_felt() -> None:
    hit().holds("G7")
    hit().says_nothing("G12")


def test_trouble_next_door_that_fails_or_delays_breaks_it() -> None:
    hit(outcome="info").breaks("G7", under="storage")
    hit(wait_ms=30_000).breaks("G7", under="storage")


def hanging(story: Story, wait_ms: int) -> Story:
    """A request that is never answered while another directory fails, and the kit's own kill at the end."""
    story.start()
    story.ask(B, instant="002")
    story.fault("server-error", path=f"{OTHER}/MARKERS0")
    story.ask(A)
    story.wait(wait_ms)
    story.observe("phase", value="end")
    story.fault("kill", value="end-of-run")
    return story.wait(BOUND_MS)


def test_a_request_that_is_never_answered_is_not_excused_by_the_end_of_the_run() -> None:
    hanging(Story(), BOUND_MS + 2_000).breaks("G7", under="storage")


def test_a_request_that_the_end_of_the_run_cut_short_is_not_late() -> None:
    assert not hanging(Story(), BOUND_MS).finding("G7").breaches
    story = begun()
    story.observe("phase", value="probe")
    story.ask(B)
    story.wait(BOUND_MS // 2)
    story.observe("phase", value="end")
    story.wait(BOUND_MS)
    story.fault("kill", value="end-of-run")
    assert not story.finding("G6").breaches


@pytest.mark.parametrize("cause", ["disk-full", "kill", "pause", "own"])
def test_a_brief_cause_excuses_what_was_late_when_it_came_no_more(cause: str) -> None:
    for wait_ms in (BOUND_MS // 2, BOUND_MS + 2_000):
        story = Story()
        story.start()
        story.ask(B, instant="002")
        story.fault("server-error", path=f"{OTHER}/MARKERS0")
        story.ask(A)
        story.wait(wait_ms)
        if cause == "own":
            story.fault("throttled", path=f"{DIRECTORY}/MARKERS1")
        else:
            story.fault(cause)
        story.wait(3 * BOUND_MS)
        story.observe("phase", value="end")
        assert len(story.finding("G7").breaches) == (wait_ms > BOUND_MS)


def test_a_kit_that_is_slow_itself_proves_no_harm_next_door() -> None:
    story = Story()
    story.start()
    story.ask(B, instant="002")
    story.fault("throttled", path=f"{OTHER}/MARKERS0")
    invoke = story.ask(A)
    story.wait(3 * BOUND_MS)
    story.observe("echo-late")
    story.flush(A)
    story.end(invoke, "ok", "created")
    assert not story.finding("G7").breaches


def test_own_trouble_and_a_full_disk_are_no_trouble_next_door() -> None:
    hit(outcome="info", path=f"{DIRECTORY}/MARKERS0").says_nothing("G7")
    hit("disk-full", outcome="info").says_nothing("G7")


def test_isolation_does_not_apply_where_nothing_is_stored_below_marker_directories() -> None:
    for path, applies in (("journal.log", False), (f"{DIRECTORY}/names", True)):
        story = Story(world="foreign", layout="names")
        story.start()
        story.ask(A)
        story.put(path, b"x")
        assert story.finding("G7").applicable == applies


def test_trouble_where_a_server_moves_what_it_deletes_is_no_trouble_next_door() -> None:
    story = Story(world="foreign")
    story.start()
    story.ask(B, instant="002")
    story.fault("io-error", path=f"{OTHER}.deleting/MARKERS0")
    story.end(story.ask(A), "info", error="500 no")
    assert not story.finding("G7").breaches


def test_other_faults_excuse() -> None:
    for fault, columns in (
        ("kill", {}),
        ("pause", {}),
        ("throttled", {"path": f"{DIRECTORY}/MARKERS1"}),
        ("disk-full", {"path": f"{OTHER}/MARKERS1"}),
    ):
        story = Story()
        story.start()
        story.ask(B, instant="002")
        story.fault("throttled", path=f"{OTHER}/MARKERS0")
        invoke = story.ask(A)
        story.fault(fault, **columns)
        story.end(invoke, "info", error="500 no")
        assert not story.finding("G7").breaches


def test_one_directory_alone_says_nothing_about_isolation() -> None:
    begun().says_nothing("G7")


def test_a_refusal_is_an_answer_whatever_happens_next_door() -> None:
    hit(outcome="fail").says_nothing("G7")
    hit(outcome="fail", wait_ms=30_000).breaks("G7", under="storage")


@pytest.mark.parametrize("world", ["simulated", "foreign"])
@pytest.mark.parametrize("outrun", [True, False])
def test_an_error_to_whoever_was_outrun_is_no_harm_done_by_neighbours(outrun: bool, world: str) -> None:
    story = Story(world=world)
    story.start()
    story.ask(B, instant="002")
    story.fault("throttled", path=f"{OTHER}/MARKERS0")
    invoke, other = story.ask(A), story.ask(C)
    if outrun:
        story.flush(C)
    story.end(invoke, "info", error="500 Conflicted, ask again")
    if not outrun:
        story.flush(C)
    story.end(other, "ok", "created")
    assert len(story.finding("G7").breaches) == (not outrun or world == "foreign")


@pytest.mark.parametrize("before", ["503 Busy", "500 no", ""])
def test_a_server_that_says_503_without_any_fault_too_is_not_harmed_by_neighbours_when_it_does(before: str) -> None:
    story = Story()
    story.start()
    story.ask(B, instant="002")
    if before:
        story.end(story.ask(C), "info", error=before)
    story.wait(10_000)
    story.fault("throttled", path=f"{OTHER}/MARKERS0")
    story.end(story.ask(A), "info", error="503 Busy")
    assert bool(story.finding("G7").breaches) is not before.startswith("503")


@pytest.mark.parametrize("whose", ["its own directory", "another directory"])
def test_a_request_that_met_a_deletion_of_its_own_directory_may_fail(whose: str) -> None:
    story = Story()
    story.start()
    story.ask(B, instant="002")
    story.ask(C, instant="003")
    story.fault("throttled", path=f"{OTHER}/MARKERS0")
    invoke = story.ask(A)
    delete = story.invoke("delete", instant="001" if whose == "its own directory" else "003")
    story.end(delete, "ok", True)
    story.end(invoke, "info", error="500 NotFound")
    assert len(story.finding("G7").breaches) == (whose == "another directory")


@pytest.mark.parametrize("when", ["before", "itself"])
def test_a_deletion_excuses_neither_itself_nor_what_is_asked_after_it(when: str) -> None:
    story = Story()
    story.start()
    story.ask(B, instant="002")
    story.create(A)
    if when == "before":
        story.delete()
    story.fault("throttled", path=f"{OTHER}/MARKERS0")
    invoke = story.ask(A) if when == "before" else story.invoke("delete")
    story.end(invoke, "info", error="500 no")
    story.breaks("G7", under="storage")

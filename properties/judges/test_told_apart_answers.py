"""Two histories that differ in one thing, of which a judge accuses one: answers in time and trouble next door."""

from __future__ import annotations

import pytest

from properties.judges.build import DIRECTORY, excused, marker
from properties.judges.test_answers import BOUND_MS, OTHER, hit, over, probing
from properties.judges.test_causes import story

A, B, C = marker("a"), marker("b"), marker("c")


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


def test_a_probe_whose_client_is_gone_is_counted() -> None:
    for process in ("client#9", "client"):
        made = probing(story(), "ok", "ok", "ok")
        made.ask(B, process="client#9")
        made.add("observe", "exited", process)
        made.wait(2 * BOUND_MS)
        finding = over(made).finding("G6")
        assert dict(finding.excused).get("client-died", 0) == 2 * (process == "client#9")
        assert bool(finding.breaches) == (process == "client")


@pytest.mark.parametrize("process", ["client", "somebody-else"])
@pytest.mark.parametrize("kind", ["fault", "observe"])
def test_only_the_end_of_its_own_client_excuses_a_request_next_to_trouble(kind: str, process: str) -> None:
    made = story()
    hit(made)
    invoke = made.ask(A)
    made.add(kind, "kill" if kind == "fault" else "exited", process)
    made.end(invoke, "info", error="500 no")
    assert len(made.finding("G7").breaches) == (process != "client")


def test_a_plan_without_directories_needs_probes_where_nothing_was_written() -> None:
    made = story(plan={"directories": []})
    assert "are needed" in over(probing(made, "ok")).finding("G6").undecided


def test_a_probe_that_was_told_to_ask_again_is_counted() -> None:
    made = story()
    made.observe("phase", value="probe")
    made.end(made.ask(marker("probe0")), "info", error="500 ask again")
    assert excused(over(probing(made, "ok", "ok", "ok")), "G6") == {"asked-again": 1}


def test_a_deletion_in_time_needs_no_excuse() -> None:
    made = story()
    made.create(A)
    made.delete()
    assert excused(over(probing(made, "ok", "ok", "ok")), "G6") == {}


def test_a_probe_that_fails_after_a_file_was_cut_has_that_cause() -> None:
    made = story()
    made.create(A)
    made.kill()
    made.put(f"{DIRECTORY}/MARKERS0", b"")
    made.start("server#2")
    finding = over(probing(made, "info", "info", "info")).finding("G6")
    assert {breach.cause for breach in finding.breaches} == {"unreadable-file"}

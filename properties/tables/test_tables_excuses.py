"""What judges of tables let pass, by name, and what their breaches show."""

from __future__ import annotations

from typing import Any

import pytest

from properties.faces.judges import Breach
from properties.tables.frozen import TABLE, Frozen, Writes, at_rest, frozen
from properties.tables.test_tables_files import MARKED, MARKER, STRAY, kind, target
from properties.tables.test_tables_refusals import SAID, bricked, refuse

FOREIGN: dict[str, Any] = {"options": {"master": "spark://there"}}


def excused(story: Writes, guarantee: str) -> dict[str, int]:
    return dict(story.judged(guarantee).excused)


def only(story: Writes, guarantee: str) -> Breach:
    (breach,) = story.judged(guarantee).breaches
    return breach


def events(story: Writes, *operations: str) -> list[int]:
    return [event.index for event in story.history().events if event.operation in operations]


# G13.


def test_a_log_file_that_may_hold_a_command_block_is_counted_as_of_no_known_owner() -> None:
    story = Writes(witness="effects", storage="s3")
    done = story.write("ok", "k=1")
    story.effect(f"a/.f-0_20200101000000000.log.2_{STRAY}")
    story.audit(frozen("0.15.0-mor"), done)
    assert excused(story, "G13") == {"owner-unknown": 1} and not story.judged("G13").judged


def test_a_marker_that_somebody_deleted_is_counted_where_tasks_may_outlive_their_driver() -> None:
    for header, count in ((FOREIGN, 1), ({}, 0)):
        story = Writes(witness="effects", storage="s3", **header)
        story.write("ok", "k=1")
        for path, content in ((MARKER, b""), (MARKER, None), (MARKED, b"x")):
            story.effect(path, content)
        assert excused(story, "G13") == ({"tasks-outlive-driver": 1} if count else {})
        assert len(story.judged("G13").breaches) == 1 - count


def test_a_file_without_a_marker_shows_the_write_that_it_came_in_and_no_other() -> None:
    story = Writes(witness="effects", storage="s3")
    first = story.write("ok", "k=1")
    second = story.write("info", "k=2")
    put = len(story.recorder.events)
    story.effect(MARKED)
    story.write("ok", "k=3")
    evidence = only(story, "G13").evidence
    assert {second - 1, second, put} <= set(evidence) and not {first - 1, first} & set(evidence)
    assert max(evidence) == put


@pytest.mark.parametrize("witness", ["reads", "effects"])
def test_markers_before_data_are_judged_where_effects_are_known_and_something_was_written(witness: Any) -> None:
    assert not Writes(witness=witness, storage="s3").judged("G13").applicable
    story = Writes(witness=witness, storage="s3")
    story.write("ok", "k=1")
    story.effect(f"a/_SUCCESS-{MARKED[2:]}.crc")
    story.effect(MARKED)
    found = story.judged("G13")
    assert found.applicable == (witness == "effects") and found.judged == (witness == "effects")


# G14 and G15.


def test_a_missing_file_is_counted_where_a_clean_took_it_and_where_the_timeline_was_archived() -> None:
    tree = frozen("0.15.0-cow")
    assert excused(at_rest(tree), "G14") == {"clean-took-it": 7}
    for path in [path for path in tree.files if ".clean" in path]:
        del tree.files[path]
    tree.files[".hoodie/archived/.commits_.archive.1_1-0-1"] = b"x"
    found = at_rest(tree).judged("G14")
    assert dict(found.excused) == {"timeline-hidden": 7} and not found.breaches
    assert found.judged < at_rest(frozen("0.15.0-cow")).judged("G14").judged, "commits with a doubt are not counted"


def test_a_history_that_can_decide_nothing_says_why() -> None:
    tree = frozen("1.0.2-cow")
    instant = kind(tree, "commit")[1]
    tree.files = {path: content for path, content in tree.files.items() if instant in path}
    tree.sizes = {path: size for path, size in tree.sizes.items() if instant in path}
    tree.sizes[f"a/f-0_{STRAY}_{instant}.parquet"] = 7
    found = at_rest(tree, **FOREIGN).judged("G14")
    assert not found.judged and found.undecided == "the writes of 1 files or instants are unknown"
    tree.files[".hoodie/timeline/history/001_002_0.parquet"] = b"x"
    assert "archived" in at_rest(tree, **FOREIGN).judged("G14").undecided
    del tree.sizes[f"a/f-0_{STRAY}_{instant}.parquet"]
    assert not at_rest(tree, **FOREIGN).judged("G14").undecided


def test_an_attempt_that_may_have_come_late_is_counted_and_its_commit_is_not() -> None:
    tree = frozen("1.0.2-cow")
    count = at_rest(tree, **FOREIGN).judged("G14").judged
    tree.sizes[f"a/f-0_{STRAY}_{kind(tree, 'commit')[1]}.parquet"] = 7
    found = at_rest(tree, **FOREIGN).judged("G14")
    assert dict(found.excused)["late-write"] == 1 and found.judged == count - 1


@pytest.mark.parametrize("instant", ["20200101000000000", ""])
def test_files_of_instants_that_nobody_can_know_are_counted(instant: str) -> None:
    tree = frozen("1.0.2-cow" if instant else "0.15.0-mor")
    name = f"f-0_{STRAY}_{instant}.parquet" if instant else f".f-0_20200101000000000.log.1_{STRAY}"
    tree.sizes[f"a/{name}"] = 7
    if instant:
        tree.files[".hoodie/timeline/history/001_002_0.parquet"] = b"x"
    found = at_rest(tree).judged("G15")
    assert dict(found.excused)["timeline-hidden" if instant else "owner-unknown"] == 1 and not found.breaches


def test_a_rolled_back_compaction_that_waits_for_its_turn_is_counted_and_not_judged() -> None:
    tree = frozen("1.0.2-mor")
    judged = at_rest(tree).judged("G15").judged
    tree.files[f".hoodie/timeline/{target(tree)}.compaction.requested"] = b""
    found = at_rest(tree).judged("G15")
    assert dict(found.excused) == {"waits-its-turn": 1} and found.judged == judged - 1


def test_a_rollback_is_not_judged_where_tasks_outlive_their_driver_or_the_driver_went_on() -> None:
    for header, goes_on in ((FOREIGN, False), ({}, True), ({}, False)):
        story = Writes(**header)
        story.write("info", "k=1")
        story.audit(frozen("1.0.2-mor"), story.write("ok", "k=2", process="driver-1" if goes_on else "driver-2"))
        sure = not header and not goes_on
        found = story.judged("G15")
        assert (
            dict(found.excused) == ({} if sure else {"tasks-outlive-driver": found.judged or 1})
            and bool(found.judged) == sure
        )
        tree = frozen("1.0.2-mor")
        tree.sizes[f"a/f-0_{STRAY}_{target(tree)}.parquet"] = 7
        story = Writes(**header)
        story.write("info", "k=1")
        story.audit(tree, story.write("ok", "k=2", process="driver-1" if goes_on else "driver-2"))
        assert len(story.judged("G15").breaches) == sure
        assert sure or excused(story, "G15") == {"late-write": 1}


def test_a_file_that_is_left_shows_where_it_was_seen_and_what_should_have_taken_it() -> None:
    tree = frozen("1.0.2-mor")
    stray = f"a/f-0_{STRAY}_{target(tree)}.parquet"
    tree.sizes[stray] = 7
    story = at_rest(tree)
    seen = {event.index: event for event in story.history().events}
    shown = [seen[index] for index in only(story, "G15").evidence]
    assert {"write", "audit", "data-file", "entry", "kill"} <= {event.operation for event in shown}
    assert [event.path for event in shown if event.operation == "data-file"] == [stray]
    assert only(story, "G15").message.startswith(f"{TABLE}/{target(tree)}: ")


# G16 and G19.


@pytest.mark.parametrize(
    ("said", "fault", "excuse"),
    [
        (None, {}, "driver-said-nothing"),
        ("the driver died", {}, "driver-said-nothing"),
        ("the run was over", {}, "driver-said-nothing"),
        ("java.io.IOException: Too many open files", {}, "machine-lacked-room"),
        ("Cannot allocate memory (errno=12)", {}, "machine-lacked-room"),
        (SAID, {"kind": "kill", "path": f"{TABLE}/a/x"}, "fault-in-driver"),
    ],
)
def test_a_refusal_that_does_not_count_is_counted_by_its_reason(said: str, fault: dict[str, Any], excuse: str) -> None:
    for more in (0, 1):
        story = bricked("rollback-deletion")
        refuse(story, 2)
        refuse(story, 3, said, **fault)
        for number in range(more):
            refuse(story, 4 + number)
        found = story.judged("G16")
        assert len(found.breaches) == more and dict(found.excused)[excuse] >= 1
        assert dict(found.excused).get("too-few-refusals", 0) == 1 - more
        assert not more or "2 of them failed" in found.breaches[0].message


def test_a_driver_counts_as_struck_from_its_first_write_on_and_by_what_lasts() -> None:
    story = bricked("rollback-deletion")
    refuse(story, 2)
    refuse(story, 2, kind="server-error", path=f"{TABLE}/a/x")
    refuse(story, 2)
    assert not story.judged("G16").breaches and excused(story, "G16")["fault-in-driver"] == 2
    for ends in (False, True):
        story = bricked("rollback-deletion")
        story.recorder.fault("driver-9", "pause", "begin")
        refuse(story, 2)
        refuse(story, 3)
        if ends:
            story.recorder.fault("driver-9", "pause", "end")
            refuse(story, 4)
            refuse(story, 5)
        assert len(story.judged("G16").breaches) == ends


@pytest.mark.parametrize("whose", ["driver", "path", "nobody"])
def test_a_table_is_refused_for_good_only_after_a_fault_of_its_own(whose: str) -> None:
    story = Writes()
    story.audit(frozen("1.0.2-cow"), story.write("ok", "k=1"))
    process, path = ("driver-1", "u/a") if whose == "driver" else ("other", f"{TABLE}/a" if whose == "path" else "u/a")
    story.recorder.fault(process, "kill", path=path, error="data-file")
    for number in (2, 3):
        refuse(story, number)
    assert len(story.judged("G19").breaches) == (whose != "nobody")


# G25.


def test_each_write_that_is_not_judged_is_counted_by_its_reason() -> None:
    never = Writes()
    refuse(never, 1)
    assert excused(never, "G25") == {"none-completed-yet": 1}
    after = bricked("data-file")
    refuse(after, 4)
    assert excused(after, "G25") == {"after-a-fault": 2}
    open_ = Writes()
    open_.write("ok", "k=1")
    open_.recorder.record("driver-2", "driver", "invoke", "write", *open_.place, value=("k=2",))
    assert excused(open_, "G25") == {"run-ended": 1} and open_.judged("G25").judged == 1
    silent = Writes()
    silent.write("ok", "k=1")
    refuse(silent, 2, "the driver did not answer")
    assert excused(silent, "G25") == {"driver-said-nothing": 1}
    assert not Writes().judged("G25").applicable


def test_a_write_that_fails_without_a_reason_shows_the_one_that_completed_before_it() -> None:
    story = Writes()
    done = story.write("ok", "k=1")
    failed = refuse(story, 2)
    assert {done, failed - 1, failed} <= set(only(story, "G25").evidence)
    assert only(story, "G25").message == f"{TABLE}: a write of driver-2 failed without a fault: {SAID}"


# G18.


def test_residue_is_counted_where_it_may_be_of_a_late_task_or_of_an_archived_instant() -> None:
    def left(instant: str, **header: Any) -> Writes:
        tree = frozen("1.0.2-cow")
        tree.files[f".hoodie/.temp/{instant}/MARKERS0"] = b""
        if instant.startswith("2020"):
            tree.files[".hoodie/timeline/history/001_002_0.parquet"] = b"x"
        return at_rest(tree, **header)

    first = min(path.rpartition("/")[2][:17] for path in frozen("1.0.2-cow").files if path.endswith(".requested"))
    assert excused(left(first, **FOREIGN), "G18") == {"tasks-outlive-driver": 1}
    assert excused(left("20200101000000000"), "G18") == {"timeline-hidden": 1}
    assert "completed and the commit" in only(left(first), "G18").message


@pytest.mark.parametrize("how", ["rolled back", "not on the timeline"])
def test_residue_says_how_its_instant_ended(how: str) -> None:
    tree = frozen("1.0.2-mor")
    instant = target(tree) if how == "rolled back" else "20200101000000000"
    for name in ("MARKERS0", "MARKERS.type"):
        tree.files[f".hoodie/.temp/{instant}/{name}"] = b""
    message = only(at_rest(tree), "G18").message
    assert f"although it is {how}" in message and "(2 files in all)" in message


# G24.


def test_a_reading_that_is_not_judged_is_counted_and_a_reader_that_cannot_says_so() -> None:
    early = Writes()
    early.write("info", "k=1")
    early.read(error="no such table")
    assert excused(early, "G24") == {"no-write-completed": 1} and not early.judged("G24").judged
    for able in (False, True):
        told = Writes()
        told.write("ok", "k=1")
        told.read(error="unsupported: log files")
        if able:
            told.read("k=1")
        found = told.judged("G24")
        assert dict(found.excused) == {"reader-unsupported": 1} and found.judged == able
        assert found.undecided == ("" if able else "unsupported: log files")


def test_a_reading_shows_the_write_before_it_and_is_of_its_own_table() -> None:
    story = Writes()
    first = story.write("ok", "k=1")
    second = story.write("ok", "k=2")
    story.read(error="corrupt")
    breach = only(story, "G24")
    assert {second - 1, second} <= set(breach.evidence) and first not in breach.evidence
    assert breach.message == f"{TABLE} cannot be read by hudi: corrupt"
    nothing = Writes()
    nothing.read("k=1")
    assert not nothing.judged("G24").applicable
    assert not at_rest(Frozen({}, {})).judged("G24").applicable


# Rollbacks that were cut short (G16), and audits without a write.


@pytest.mark.parametrize("late", ["", "attempt", "compaction"])
def test_a_rollback_that_was_cut_short_is_counted_where_what_is_left_may_be_later(late: str) -> None:
    tree = frozen("1.0.2-mor")
    instant = target(tree)
    if late == "compaction":
        tree.files[f".hoodie/timeline/{instant}.compaction.requested"] = b""
    tree.sizes[f"a/f-0_{STRAY}_{instant}.parquet"] = 7
    story = Writes(**(FOREIGN if late == "attempt" else {}))
    story.write("info", "k=1")
    story.killed(f"{TABLE}/.hoodie/timeline/x.rollback.inflight", "rollback-inflight", "driver-2")
    story.audit(tree, story.write("ok", "k=3", process="driver-3"))
    found = story.judged("G16")
    assert len(found.breaches) == (not late) and found.judged == 1
    names = {"": {}, "attempt": {"late-write": 1}, "compaction": {"waits-its-turn": 1}}
    assert dict(found.excused) == names[late]


def test_an_audit_that_no_write_asked_for_judges_the_writes_before_it() -> None:
    story = Writes()
    story.write("ok", "k=1")
    for number in (2, 3):
        refuse(story, number)
    story.audit(frozen("1.0.2-cow"), -1)
    assert story.judged("G19").judged == 2


def test_a_clean_that_cannot_be_read_is_no_matter_of_rollbacks() -> None:
    tree = frozen("1.0.2-cow")
    tree.files[kind(tree, "clean")[0]] = b""
    assert not at_rest(tree).judged("G16").breaches


def test_an_instant_that_left_markers_is_judged_though_the_timeline_does_not_know_it() -> None:
    tree = frozen("1.0.2-mor")
    judged = at_rest(tree).judged("G18").judged
    tree.files[".hoodie/.temp/20200101000000000/MARKERS0"] = b""
    assert at_rest(tree).judged("G18").judged == judged + 1


def test_a_write_in_whose_driver_somebody_elses_fault_fell_is_counted() -> None:
    story = Writes()
    story.write("ok", "k=1")
    asked = story.recorder.record("driver-2", "driver", "invoke", "write", *story.place, value=("k=2",))
    story.recorder.fault("stranger", "kill", path="u/x")
    story.recorder.record("driver-2", "driver", "info", "write", *story.place, error=SAID, caused_by=asked)
    assert excused(story, "G25") == {"fault-in-driver": 1}


def test_a_row_of_another_world_ends_its_key_at_the_first_sign() -> None:
    for world, wrong in (("spark", True), ("real", False)):
        story = Writes(world=world)
        story.write("ok", "k=a=1", "l=b=1")
        story.read("k=c=2", "l=b=1")
        said = [breach.message for breach in story.judged("G24").breaches]
        assert any("'k=c=2' is of no write of its key" in each for each in said) is not wrong


@pytest.mark.parametrize("marker", ["later", "never"])
def test_a_file_without_a_marker_says_whether_one_came_later(marker: str) -> None:
    story = Writes(witness="effects", storage="s3")
    story.write("ok", "k=1")
    story.effect(MARKED)
    if marker == "later":
        story.effect(MARKER, b"")
    said = only(story, "G13").message
    assert ("none named it later" in said) == (marker == "never") == ("the first was stored" not in said)

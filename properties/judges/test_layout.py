"""G8, G9 and G22 on histories written by hand."""

from __future__ import annotations

import pytest

from marker_sim.history import NO_SERVER
from marker_sim.names import TYPE_BATCHED, encode_names
from properties.judges.build import DIRECTORY, Story, begun, excused, marker

A, B, C = marker("a"), marker("b"), marker("c")


def test_an_empty_history_says_nothing_about_files() -> None:
    for guarantee in ("G8", "G9"):
        Story().says_nothing(guarantee)


def test_as_many_files_as_threads_hold() -> None:
    story = Story()
    story.create(A, file=0)
    story.create(B, file=1)
    story.put(f"{DIRECTORY}/.MARKERS0.crc", b"x")
    story.put(f"{DIRECTORY}/MARKERS0.17.tmp", b"x")
    story.delete()
    story.create(C, file=1)
    story.holds("G8")
    story.holds("G9")


def test_one_file_too_many_breaks_it() -> None:
    story = Story()
    for number in range(3):
        story.create(marker(str(number)), file=number)
    story.breaks("G8")


@pytest.mark.parametrize("path", [A, "sub/MARKERS.type"])
def test_files_of_another_kind_break_the_timeline_layout(path: str) -> None:
    story = Story()
    story.create(B)
    story.put(f"{DIRECTORY}/{path}", b"")
    story.breaks("G8")


def test_direct_markers_are_empty_and_alone() -> None:
    story = Story(mode="direct")
    story.create(A)
    story.put(f"{DIRECTORY}/p/.a.crc", b"x")
    story.holds("G8")
    story.put(f"{DIRECTORY}/{B}", b"content")
    story.breaks("G8")
    story.put(f"{DIRECTORY}/MARKERS0", b"")
    story.breaks("G8", count=2)


def test_after_a_fallback_the_direct_layout_counts() -> None:
    story = Story(storage="hdfs")
    story.observe("mode", value="direct", error="HDFS")
    story.create(A)
    story.breaks("G8")


def test_a_marker_file_before_the_type_file_breaks_it() -> None:
    story = Story()
    story.ask(A)
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([A]))
    story.type_file()
    story.breaks("G9")


@pytest.mark.parametrize("content", [None, b"", b"DIRECT", TYPE_BATCHED + b"\n"])
def test_a_type_file_that_is_lost_or_says_something_else_breaks_it(content: bytes | None) -> None:
    story = Story()
    story.create(A)
    story.type_file(content)
    story.breaks("G9")


def test_a_type_file_is_there_once_it_is_written_to_its_end() -> None:
    for ends in (True, False):
        story = Story(storage="local")
        story.start()
        path = f"{DIRECTORY}/MARKERS.type"
        story.ask(A)
        story.put(path, b"", how="overwrite-begin")
        story.put(path, TYPE_BATCHED, how="overwrite-end" if ends else "overwrite-piece")
        story.put(f"{DIRECTORY}/MARKERS0", encode_names([A]))
        assert len(story.finding("G9").breaches) == (not ends)


def test_a_deletion_may_take_the_type_file_first_and_a_later_batch_needs_it_again() -> None:
    story = Story()
    story.create(A)
    delete = story.invoke("delete")
    story.type_file(None)
    story.put(f"{DIRECTORY}/MARKERS0", None)
    story.end(delete, "ok", True)
    story.holds("G9")
    story.wait(60_000)
    story.observe("phase", value="healed")
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([A]))
    story.breaks("G9")


def test_type_files_that_were_read_are_judged_at_snapshots() -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.end(story.ask(A), "ok", "created")
    story.look(A)
    story.holds("G9")
    story.observe("file", path=f"{DIRECTORY}/MARKERS.type", value=None)
    story.holds("G9")
    story.observe("snapshot", path=DIRECTORY, caused_by=story.last)
    story.breaks("G9")


@pytest.mark.parametrize("repaired", [True, False])
def test_a_type_file_that_a_kill_left_empty_breaks_it_unless_it_is_written_again(repaired: bool) -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.ask(A)
    story.kill()
    story.observe("file", path=f"{DIRECTORY}/MARKERS.type", value=b"")
    story.observe("snapshot", path=DIRECTORY, caused_by=story.last)
    story.says_nothing("G9")
    story.start("server#2")
    asked = story.ask(A)
    if repaired:
        story.observe("file", path=f"{DIRECTORY}/MARKERS.type", value=TYPE_BATCHED)
    story.observe("file", path=f"{DIRECTORY}/MARKERS0", value=encode_names([A]))
    story.observe("snapshot", path=DIRECTORY, caused_by=asked)
    story.end(asked, "ok", "created")
    if repaired:
        story.holds("G9")
    else:
        assert story.breaks("G9", under="restart").cause == "after-kill"


def test_damage_in_a_directory_to_which_nobody_wrote_anything_is_the_kits_own() -> None:
    story = Story()
    story.invoke("exists")
    story.flush(A)
    story.fault("damage", "kit", path=f"{DIRECTORY}/MARKERS.type")
    story.type_file(b"")
    assert dict(story.finding("G9").excused)["kit-damage"] == 1 and not story.finding("G9").breaches


@pytest.mark.parametrize("damage", ["removed", "emptied", ""])
@pytest.mark.parametrize("by", ["server#1", "server#2"])
def test_a_type_file_that_a_late_deletion_takes_is_written_again_whatever_damage_hid(damage: str, by: str) -> None:
    story = Story()
    story.start()
    story.create(A)
    deletion = story.invoke("delete")
    story.arrive(deletion)
    story.put(f"{DIRECTORY}/MARKERS0", None, how="delete")
    if damage:
        story.fault("damage", "kit", path=f"{DIRECTORY}/MARKERS.type")
        how = "delete" if damage == "removed" else "put"
        story.put(f"{DIRECTORY}/MARKERS.type", None if damage == "removed" else b"", how=how)
    story.kill()
    story.end(deletion, "info", error="connection reset")
    story.start("server#2")
    story.wait(60_000)
    story.put(f"{DIRECTORY}/MARKERS.type", TYPE_BATCHED, "server#2")
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([B]), "server#2")
    story.put(f"{DIRECTORY}/MARKERS.type", None, by, how="delete")
    story.wait(60_000)
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([B, C]), "server#2")
    story.breaks("G9", under="restart")


@pytest.mark.parametrize(
    "ends", ["repaired", "killed", "paused", "answered-first", "asked-later", "its-own-deletion", "left"]
)
def test_a_create_that_was_open_when_the_type_file_was_deleted_is_answered_after_it_is_back(ends: str) -> None:
    story = begun()
    create = story.ask(A)
    story.put(f"{DIRECTORY}/MARKERS.type", TYPE_BATCHED)
    story.start("second#1")
    deletion = story.invoke("delete")
    taken_by = "server#1" if ends == "its-own-deletion" else "second#1"
    story.put(f"{DIRECTORY}/MARKERS.type", None, taken_by, how="delete")
    story.end(deletion, "ok", True)
    later = story.invoke("create", B) if ends == "asked-later" else None
    story.wait(60_000)
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([A if later is None else B]))
    if ends == "answered-first":
        story.end(create, "ok", "created")
    match ends:
        case "killed":
            story.kill()
        case "paused":
            story.fault("pause", value="begin")
        case "left":
            story.fault("kill", value="end-of-run")
        case _:
            story.put(f"{DIRECTORY}/MARKERS.type", TYPE_BATCHED)
    if ends in ("repaired", "killed", "paused"):
        assert excused(story, "G9") == {"create-open": 1} and not story.finding("G9").breaches
    else:
        story.breaks("G9", under="second-server")


@pytest.mark.parametrize(
    ("answered", "held"),
    [
        ("nothing", True),
        ("old-name", True),  # It was in the file before, so no client waits for this write.
        ("asked-later", False),
        ("asked-again", False),
    ],
)
def test_no_name_that_is_new_in_a_file_is_answered_before_the_type_file_is_back(answered: str, held: bool) -> None:
    story = begun(storage_timeout_ms=1_000, late_effect_ms=2_000)
    first, other = story.server, story.start("second#1")
    story.create(C)
    deletion = story.invoke("delete", caused_by=other)
    story.server = first
    open_, old = story.ask(A), story.ask(C, "again")
    story.put(f"{DIRECTORY}/MARKERS.type", None, "second#1", how="delete")
    story.end(deletion, "ok", True)
    for _ in range(20):  # Until nothing of the deletion can act.
        story.wait(1_000).observe("phase", value="faults")
    new = {"asked-later": B, "asked-again": A}.get(answered)
    late = story.ask(new, "late") if new else old
    story.put(f"{DIRECTORY}/MARKERS0", encode_names([C, A, B] if new == B else [C, A]))
    if answered != "nothing":
        story.end(late, "ok", "created" if new == B else "exists")
    story.put(f"{DIRECTORY}/MARKERS.type", TYPE_BATCHED)
    story.end(open_, "ok", "created")
    assert bool(story.finding("G9").breaches) is not held
    assert excused(story, "G9")["deletion-open"] and excused(story, "G9").get("create-open", 0) == held


def test_direct_mode_has_no_type() -> None:
    assert not Story(mode="direct").finding("G9").applicable


@pytest.mark.parametrize("storage", ["hdfs", "s3-unconditional"])
def test_falling_back_and_saying_so_holds(storage: str) -> None:
    story = Story(storage=storage)
    assert "no choice" in story.says_nothing("G22").undecided
    story.observe("mode", value="direct", error="cannot batch here")
    story.holds("G22")


def test_not_falling_back_or_not_saying_so_breaks_it() -> None:
    story = Story(storage="hdfs")
    story.observe("mode", value="timeline")
    story.breaks("G22")
    story = Story(storage="hdfs")
    story.observe("mode", value="direct")
    story.breaks("G22")
    story = Story(storage="hdfs")
    story.observe("mode", value="direct", error="HDFS")
    story.flush(A)
    story.breaks("G22")


@pytest.mark.parametrize("storage", ["s3", "hdfs"])
@pytest.mark.parametrize(
    ("chosen", "reason", "cause"),
    [
        ("direct", "no server", ""),
        ("direct", None, "no-reason"),
        ("timeline", None, "no-fallback"),
        ("", "no server", "no-fallback"),
    ],
)
def test_a_write_without_a_server_falls_back_and_says_so(
    storage: str, chosen: str, reason: str | None, cause: str
) -> None:
    story = Story(storage=storage)
    story.observe("mode", value="timeline" if storage == "s3" else "direct", error=None if storage == "s3" else "HDFS")
    story.observe("mode", instant="001", path=NO_SERVER, value=chosen, error=reason)
    assert [breach.cause for breach in story.finding("G22").breaches] == ([cause] if cause else [])
    assert story.finding("G22").judged == 2


def test_the_fallback_is_asked_for_only_where_it_is_needed() -> None:
    assert not Story(storage="s3").finding("G22").applicable
    assert not Story(storage="hdfs", mode="direct").finding("G22").applicable

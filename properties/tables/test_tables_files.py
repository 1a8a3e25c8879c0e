"""G13 to G16, G18 and G19 of tables at rest: real ones hold, and each bend is seen by the judge that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from marker_sim.judges import judge
from properties.faces.judges import JUDGES
from properties.tables.frozen import TABLE, TABLES, Frozen, Writes, at_rest, frozen

FILES = ("G14", "G15", "G18", "G19")
LATER = ("1.0.2-mor", "1.2.0-mor")
STRAY = "0-9-9"


def kind(tree: Frozen, action: str) -> tuple[str, str]:
    """The last completed entry of an action and its instant."""
    path = max(path for path in tree.files if path.endswith(f".{action}"))
    return path, path.rpartition("/")[2][:17]


def target(tree: Frozen) -> str:
    """The instant that was rolled back: the only one a rollback names and the timeline has no commit of."""
    story = at_rest(tree)
    entries = [e for e in story.history().events if e.operation == "entry"]
    facts = [fact for e in entries if isinstance(e.value, tuple) for fact in e.value]
    return next(fact.removeprefix("rolled-back ") for fact in facts if fact.startswith("rolled-back "))


def bent(name: str, *changes: Callable[[Frozen], object], **header: Any) -> Writes:
    return at_rest(frozen(name), changes, **header)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("guarantee", FILES)
def test_what_a_real_release_wrote_holds(name: str, guarantee: str) -> None:
    """Cleaned, compacted and replaced files, command blocks and files of a killed attempt are no breach."""
    found = bent(name).judged(guarantee)
    assert found.applicable and not found.breaches and not found.undecided
    assert found.judged or (guarantee == "G15" and name.endswith("cow"))


@pytest.mark.parametrize("guarantee", ("G13", "G14", "G15", "G16", "G18", "G19", "G24"))
def test_without_an_audit_nothing_applies(guarantee: str) -> None:
    story = Writes()
    story.write("ok", "k=1")
    assert not story.judged(guarantee).applicable


@pytest.mark.parametrize("guarantee", ("G14", "G15", "G16", "G18", "G19"))
def test_an_audit_that_was_not_ended_counts_for_nothing(guarantee: str) -> None:
    tree = frozen("1.0.2-cow")
    del tree.sizes[tree.data(kind(tree, "commit")[1])]
    story = Writes()
    story.audit(tree, story.write("ok", "k=1"), end=False)
    assert not story.judged(guarantee).applicable


@pytest.mark.parametrize("guarantee", ("G14", "G15", "G16", "G18", "G19"))
def test_a_table_without_a_timeline_is_inconclusive(guarantee: str) -> None:
    found = at_rest(Frozen({}, {})).judged(guarantee)
    assert found.applicable and (not found.judged or guarantee == "G19") and not found.breaches


@pytest.mark.parametrize("name", TABLES)
def test_a_committed_file_that_is_gone_is_seen(name: str) -> None:
    tree = frozen(name)
    gone = tree.data(
        kind(tree, "commit" if name.endswith("cow") else "deltacommit")[1] if name != "0.15.0-mor" else ".log.4"
    )
    found = at_rest(tree, (lambda t: t.sizes.pop(gone),)).judged("G14")
    assert [breach.under for breach in found.breaches] == ["client"]
    assert gone in found.breaches[0].message and "not stored" in found.breaches[0].message
    assert len(found.breaches[0].evidence) >= 2


@pytest.mark.parametrize("name", TABLES)
def test_an_attempt_that_was_not_accepted_must_be_gone(name: str) -> None:
    tree = frozen(name)
    instant = kind(tree, "commit")[1]
    stray = f"a/f-0_{STRAY}_{instant}.parquet"
    found = at_rest(tree, (lambda t: t.sizes.update({stray: 7}),)).judged("G14")
    assert len(found.breaches) == 1 and stray in found.breaches[0].message and instant in found.breaches[0].message


@pytest.mark.parametrize("name", LATER)
def test_a_log_file_of_version_8_bears_its_own_instant(name: str) -> None:
    tree = frozen(name)
    instant = kind(tree, "deltacommit")[1]
    stray = f"a/.f-0_{instant}.log.1_{STRAY}"
    assert len(at_rest(tree, (lambda t: t.sizes.update({stray: 7}),)).judged("G14").breaches) == 1


def test_a_log_file_of_version_6_that_nobody_names_is_nobodys() -> None:
    tree = frozen("0.15.0-mor")
    stray = f"a/.f-0_{kind(tree, 'deltacommit')[1]}.log.1_{STRAY}"
    story = at_rest(tree, (lambda t: t.sizes.update({stray: 7}),))
    assert not story.judged("G14").breaches and not story.judged("G15").breaches


def test_where_tasks_outlive_their_driver_a_stray_accuses_nobody() -> None:
    """Not G14, for it may have come after finalize; with every effect known the order tells."""
    tree = frozen("1.0.2-cow")
    instant = kind(tree, "commit")[1]
    stray, named = f"a/f-0_{STRAY}_{instant}.parquet", tree.data(instant)
    tree.sizes[stray] = 7
    apart: dict[str, Any] = {"options": {"master": "standalone"}}
    assert not at_rest(tree, **apart).judged("G14").breaches
    for order, count in (((stray, named), 1), ((named, stray), 0)):
        story = Writes(witness="effects", **apart)
        story.write("info", "k=1")
        for file in order:
            story.effect(file)
        story.audit(tree, story.write("ok", "k=2"))
        assert len(story.judged("G14").breaches) == count, order


def test_a_file_that_a_late_put_brings_back_after_its_rollback_accuses_nobody() -> None:
    """Neither does one that came after the rollback had begun; one that came before and stayed does."""
    tree = frozen("1.0.2-mor")
    instant = target(tree)
    stray, entry = f"a/f-0_{STRAY}_{instant}.parquet", kind(tree, "rollback")[0]
    tree.sizes[stray] = 7
    there: tuple[str, bytes | None] = (stray, b"x")
    gone: tuple[str, bytes | None] = (stray, None)
    rolled: tuple[str, bytes | None] = (entry, b"x")
    for before, after, count in (
        ((there,), (rolled,), 1),
        ((there,), (gone, rolled, there), 0),
        ((), (rolled, there), 0),
        ((), (there, rolled), 0),
    ):
        story = Writes(witness="effects", storage="s3")
        story.write("info", "k=1")
        for path, content in before:
            story.effect(path, content)
        story.recorder.record("driver-2", "driver", "invoke", "write", *story.place, value=("k=2",))
        for path, content in after:
            story.effect(path, content)
        done = story.recorder.record("driver-2", "driver", "ok", "write", *story.place, caused_by=story.recorder.mark())
        story.audit(tree, done)
        assert len(story.judged("G15").breaches) == count, (before, after)


def test_an_empty_base_file_is_as_good_as_none() -> None:
    tree = frozen("1.2.0-cow")
    path = tree.data(kind(tree, "commit")[1])
    assert len(at_rest(tree, (lambda t: t.sizes.update({path: 0}),)).judged("G14").breaches) == 1


@pytest.mark.parametrize("name", TABLES)
def test_a_base_file_has_the_size_that_its_commit_says(name: str) -> None:
    """A log file may be larger than its write stat says."""
    tree = frozen(name)
    base = next(path for path in sorted(tree.sizes) if path.endswith(".parquet"))
    for size in (tree.sizes[base] - 1, tree.sizes[base] + 1):
        found = at_rest(tree, (lambda t, size=size: t.sizes.update({base: size}),)).judged("G14")  # type: ignore[misc]
        assert [base in breach.message and f"it has {size}" in breach.message for breach in found.breaches] == [True]
        tree = frozen(name)
    for log in [path for path in tree.sizes if ".log." in path]:
        tree.sizes[log] += 1
    assert not at_rest(tree).judged("G14").breaches


def test_a_commit_that_cannot_be_read_is_seen() -> None:
    tree = frozen("1.0.2-cow")
    path, instant = kind(tree, "commit")
    found = at_rest(tree, (lambda t: t.files.update({path: b""}),)).judged("G14")
    assert len(found.breaches) == 1 and instant in found.breaches[0].message and path in found.breaches[0].message


def test_a_file_is_accused_once_however_many_audits_show_it() -> None:
    tree = frozen("1.0.2-cow")
    tree.sizes[f"a/f-0_{STRAY}_{kind(tree, 'commit')[1]}.parquet"] = 7
    story = at_rest(tree)
    story.audit(tree, story.write("ok", "k=3"))
    assert len(story.judged("G14").breaches) == 1


@pytest.mark.parametrize("clean", ("completed", "requested"))
def test_what_a_clean_took_or_takes_is_no_loss_and_without_it_is_one(clean: str) -> None:
    tree = frozen("0.15.0-cow")
    entries = [path for path in tree.files if ".clean" in path]
    if clean == "requested":
        for path in entries:
            if not path.endswith(".requested"):
                del tree.files[path]
    assert not at_rest(tree).judged("G14").breaches
    for path in entries:
        tree.files.pop(path, None)
    assert len(at_rest(tree).judged("G14").breaches) == 7


def test_once_entries_were_archived_what_is_missing_proves_nothing() -> None:
    tree = frozen("1.0.2-cow")
    commits = [path for path in tree.files if ".clean" in path]
    for path in commits:
        del tree.files[path]
    tree.files[".hoodie/timeline/history/001_002_0.parquet"] = b"x"
    found = at_rest(tree).judged("G14")
    assert not found.breaches and found.judged


@pytest.mark.parametrize("name", LATER)
def test_a_file_that_a_rollback_left_is_seen(name: str) -> None:
    tree = frozen(name)
    instant = target(tree)
    for stray in (f"a/f-0_{STRAY}_{instant}.parquet", f"b/.f-0_{instant}.log.1_{STRAY}"):
        story = bent(name, lambda t, path=stray: t.sizes.update({path: 7}))  # type: ignore[misc]
        found = story.judged("G15")
        assert len(found.breaches) == 1 and stray in found.breaches[0].message and instant in found.breaches[0].message


def test_a_log_file_whose_rollback_wrote_no_command_block_is_seen() -> None:
    name = "0.15.0-mor"
    assert not bent(name).judged("G15").breaches
    found = bent(name, lambda t: t.sizes.pop(t.data("ce27e16b", ".log.2"))).judged("G15")
    assert len(found.breaches) == 1 and "command block" in found.breaches[0].message


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_an_instant_that_nobody_knows_is_seen(name: str) -> None:
    stray = f"a/f-0_{STRAY}_20200101000000000.parquet"
    found = bent(name, lambda t: t.sizes.update({stray: 7})).judged("G15")
    assert len(found.breaches) == 1 and stray in found.breaches[0].message
    archived = bent(
        name,
        lambda t: t.sizes.update({stray: 7}),
        lambda t: t.files.update({".hoodie/archived/.commits_.archive.1_1-0-1": b"x"}),
    )
    assert not archived.judged("G15").breaches


def test_a_committed_file_that_a_rollback_took_is_seen() -> None:
    name = "1.0.2-mor"
    tree = frozen(name)
    taken = next(
        fact.removeprefix("deleted ")
        for event in at_rest(tree).history().events
        if event.operation == "entry" and isinstance(event.value, tuple) and "action rollback" in event.value
        for fact in event.value
        if fact.startswith("deleted ")
    )
    story = Writes()
    done = story.write("ok", "k=1")
    story.audit(tree, done)
    events = [
        event._replace(value=(*event.value, f"wrote {taken}"))
        if isinstance(event.value, tuple) and "action deltacommit" in event.value and "state completed" in event.value
        else event
        for event in story.recorder.events
    ]
    story.recorder.events[:] = events
    found = story.judged("G15")
    assert len(found.breaches) == 1 and "was deleted by the rollback" in found.breaches[0].message


@pytest.mark.parametrize("name", LATER)
def test_a_rollback_that_was_cut_short_reaches_its_end_or_is_seen(name: str) -> None:
    tree = frozen(name)
    instant = target(tree)
    stray = f"a/f-0_{STRAY}_{instant}.parquet"
    pending = f".hoodie/timeline/{instant}.deltacommit.inflight"
    for leave, count in ((None, 0), (stray, 1), (pending, 1)):
        bend = frozen(name)
        if leave == stray:
            bend.sizes[stray] = 7
        elif leave == pending:
            bend.files[pending] = b""
        story = Writes()
        story.write("info", "k=1")
        story.killed(f"{TABLE}/.hoodie/timeline/x.rollback.inflight", "rollback-inflight", "driver-2")
        story.audit(bend, story.write("ok", "k=3", process="driver-3"))
        found = story.judged("G16")
        assert found.judged == 1 and len(found.breaches) == count, leave


def test_without_a_kill_in_a_rollback_there_is_nothing_to_judge() -> None:
    found = bent("1.0.2-mor").judged("G16")
    assert found.applicable and not found.judged and not found.breaches


@pytest.mark.parametrize("name", TABLES)
def test_markers_that_are_left_are_seen_once_a_later_commit_is_there(name: str) -> None:
    tree = frozen(name)
    instants = sorted(path.rpartition("/")[2][:17] for path in tree.files if path.endswith("commit.requested"))
    first, last = instants[0], instants[-1]
    for instant, count in ((first, 1), (last, 0)):
        marker = f".hoodie/.temp/{instant}/MARKERS0"
        found = bent(name, lambda t, path=marker: t.files.update({path: b""})).judged("G18")  # type: ignore[misc]
        assert len(found.breaches) == count and found.judged, instant
    apart = bent(name, lambda t: t.files.update({f".hoodie/.temp/{first}/MARKERS0": b""}), options={"master": "spark:"})
    assert not apart.judged("G18").breaches


@pytest.mark.parametrize("name", TABLES)
def test_a_write_that_stays_pending_is_seen_and_a_table_service_is_not(name: str) -> None:
    folder = ".hoodie/" if name.startswith("0.") else ".hoodie/timeline/"
    entry = {"G19": "20260101000000000.deltacommit.requested", "none": "20260101000000000.compaction.requested"}
    for word, file in entry.items():
        found = bent(name, lambda t, path=folder + file: t.files.update({path: b""})).judged("G19")  # type: ignore[misc]
        assert found.judged == 1 and len(found.breaches) == (word == "G19")


def test_a_marker_comes_before_its_data_file() -> None:
    marker = ".hoodie/.temp/001/a/f-0_0-1-2_001.parquet.marker.CREATE"
    data = "a/f-0_0-1-2_001.parquet"
    for order, count in (((marker, data), 0), ((data, marker), 1), ((data,), 1)):
        story = Writes(witness="effects", storage="s3", mode="direct")
        done = story.write("ok", "k=1")
        for path in ("a/.hoodie_partition_metadata", *order, ".hoodie/001.commit", data):
            story.effect(path, b"" if path == marker else b"x")
        story.audit(Frozen({}, {}), done)
        found = story.judged("G13")
        assert found.judged == 1 and len(found.breaches) == count
    assert not bent("1.0.2-cow").judged("G13").applicable, "a local file system does not tell the order"


MARKED = "a/f-0_0-1-2_001.parquet"
MARKER, ANOTHERS = (f".hoodie/.temp/{instant}/{MARKED}.marker.CREATE" for instant in ("001", "002"))


@pytest.mark.parametrize(
    ("effects", "said"),
    (
        (((MARKER, b""), (MARKED, b"x"), (MARKER, None)), ""),
        (((MARKER, b""), (MARKER, None), (MARKED, b"x")), "was deleted"),
        (((MARKER, b""), (MARKER, None), (MARKER, b""), (MARKED, b"x")), ""),
        (((ANOTHERS, b""), (MARKED, b"x")), "only one of 002"),
        (((ANOTHERS, b""), (MARKER, b""), (ANOTHERS, None), (MARKED, b"x")), ""),
        (((ANOTHERS, b""), (MARKED, b"x"), (MARKER, b"")), "only one of 002"),
    ),
)
def test_a_marker_counts_while_it_is_stored_and_of_its_own_instant(
    effects: tuple[tuple[str, bytes | None], ...], said: str
) -> None:
    for master, deleter, judged in (("local", "driver-1", 1), ("local", "driver-2", 0), ("spark:", "driver-1", 0)):
        story = Writes(witness="effects", storage="s3", mode="direct", options={"master": master})
        done = story.write("ok", "k=1")
        for path, content in effects:
            story.effect(path, content, deleter if content is None else "driver-1")
        story.audit(Frozen({}, {}), done)
        found = story.judged("G13")
        sure = judged if said == "was deleted" else 1
        assert found.judged == sure and [said in breach.message for breach in found.breaches] == [True] * bool(
            sure and said
        )


@pytest.mark.parametrize(("name", "count"), (("0.15.0-mor", 1), ("1.0.2-mor", 2)))
def test_a_log_file_is_data_unless_it_may_hold_a_command_block(name: str, count: int) -> None:
    """Below version 8 that is any that no commit names, whatever its write token says."""
    tree = frozen(name)
    named = tree.data(".log.")
    other = f"a/.f-0_20200101000000000.log.2_{STRAY}"
    story = Writes(witness="effects", storage="s3")
    done = story.write("ok", "k=1")
    for path in (named, other):
        story.effect(path)
    story.audit(tree, done)
    found = story.judged("G13")
    assert found.judged == count and len(found.breaches) == count


def test_what_a_black_box_asks_of_its_markers_is_nobodys_business() -> None:
    """Markers come and go by requests that are not in the history: so no name counts as never requested."""
    story = Writes(witness="effects", storage="s3")
    done = story.write("ok", "k=1")
    story.effect(".hoodie/.temp/001/a/f-0_0-1-2_001.parquet.marker.CREATE", b"")
    story.audit(frozen("1.0.2-cow"), done)
    findings = judge(story.history())
    assert {finding.guarantee for finding in findings if finding.applicable} == {
        "G13",
        "G14",
        "G15",
        "G16",
        "G18",
        "G19",
        "G25",
    }
    assert set(JUDGES) == {
        "G13",
        "G14",
        "G15",
        "G16",
        "G18",
        "G19",
        "G24",
        "G25",
        "G26",
        "G27",
        "G28",
        "G29",
    }

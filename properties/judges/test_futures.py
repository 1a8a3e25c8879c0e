"""G30 to G32, and horizons: what becomes of a table, told by hand step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marker_sim.history import History
from marker_sim.judges import judge
from properties.faces.campaign import find_false_statement
from properties.faces.judges import Finding, leaves, split_impact
from properties.judges.writers import TABLE, TIMELINE, Shared, data_file, instant

PLACE = {"table": TABLE, "instant": ""}
KEPT, FAILED = "p/a", "p/b"


class Later(Shared):
    """A write of k1 that completed, one of k2 that failed and was rolled back, and what becomes of the table.

    stray: whether the file of the failed write is left.
    """

    def __init__(self, *, stray: bool = True) -> None:
        super().__init__(writers="0")
        self.rows = {"k1": "w1"}
        self.archives: dict[str, tuple[str, ...] | str] = {}
        self.stored = {data_file(KEPT, 1)} | ({data_file(FAILED, 2)} if stray else set())
        self.entries: dict[str, tuple[str, ...] | str] = {}
        self.numbers: dict[str, int] = {}
        self.steps = 0
        self.write(1, "k1=w0")
        self.record(1, "commit", f"wrote {data_file(KEPT, 1)}")
        self.write(2, "k2=w2", kind="info", put=data_file(FAILED, 2))
        self.record(3, "rollback", f"rolled-back {instant(2)}")
        self.write(4, "k1=w1", put=[*self.entries][-1])
        self.record(4, "commit")
        self.audit(self.events[-1].index)

    def write(self, number: int, *rows: str, kind: str = "ok", put: str = "") -> None:
        asked = self.add("driver-1", "invoke", "write", value=rows, **PLACE)
        if put:
            self.put(number, put)
        self.add("driver-1", kind, "write", caused_by=asked, error=None if kind == "ok" else "it failed", **PLACE)

    def record(self, number: int, action: str, *facts: str, error: str = "") -> None:
        """A completed entry is on the timeline from now on."""
        path = f"{TIMELINE}/{instant(number)}_{instant(number)}.{action}"
        self.entries[path] = error or (f"action {action}", *facts, "state completed")
        self.numbers[path] = number

    def audit(self, cause: int, listing: tuple[str, ...] | None = None, error: str | None = None, **rows: Any) -> None:
        """The table is read. rows: of readers, by default what is right of Hudi."""
        self.add("kit", "observe", "audit", "kit", value="begin", caused_by=cause, **PLACE)
        for path, facts in self.entries.items():
            own: dict[str, Any] = {"value": facts} if isinstance(facts, tuple) else {"error": facts}
            if "error" in own:
                own["value"] = (f"action {path.rpartition('.')[2]}", "state completed")
            self.add(
                "kit",
                "observe",
                "entry",
                "kit",
                table=TABLE,
                instant=instant(self.numbers[path]),
                path=f"{TABLE}/{path}",
                **own,
            )
        for path, said in self.archives.items():
            own = {"value": said} if isinstance(said, tuple) else {"error": said}
            self.add("kit", "observe", "archive", "kit", path=f"{TABLE}/{path}", **own, **PLACE)
        for path in sorted(self.stored):
            self.add("kit", "observe", "data-file", "kit", path=path, value=4, **PLACE)
        right = tuple(f"{key}={value}" for key, value in sorted(self.rows.items()))
        for reader, found in {"hudi": right, **rows}.items():
            columns = {"value": found} if isinstance(found, tuple) else {"error": found}
            self.add(reader.replace("_", "-"), "observe", "rows", "kit", **columns, **PLACE)
        if listing is not None or error:
            self.add("hudi-metadata", "observe", "listing", "kit", value=listing, error=error, **PLACE)
        self.add("kit", "observe", "audit", "kit", value="end", **PLACE)

    def step(self, name: str, listing: tuple[str, ...] | None = None, failed: str | None = None, **rows: Any) -> None:
        """A step was taken, "" for none, and the table is read. rows: as of `audit`."""
        at = self.add("kit", "observe", "future", "kit", value=name, error=failed, **PLACE)
        self.audit(at, listing, **rows)

    def commit(self, number: int, row: str, kind: str = "ok", **rows: Any) -> None:
        """A step that writes one row to a file of its own."""
        self.write(number, row, kind=kind)
        if kind == "ok":
            key, _, value = row.partition("=")
            self.rows[key] = value
            self.stored.add(data_file(f"q/{number}", number))
            self.record(number, "commit", f"wrote {data_file(f'q/{number}', number)}")
        self.step("commit", **rows)

    def judged(self, guarantee: str) -> Finding:
        (found,) = judge(History(self.header, tuple(self.events)), frozenset({guarantee}))
        return found

    def holding(self, guarantee: str, **excused: int) -> None:
        found = self.judged(guarantee)
        assert found.applicable and found.judged and not found.breaches and not found.undecided, found
        assert dict(found.excused) == {name.replace("_", "-"): times for name, times in excused.items()}

    def breach(self, guarantee: str, *words: str) -> str:
        found = self.judged(guarantee)
        assert len(found.breaches) == 1, found
        assert all(word in found.breaches[0].message for word in words), found.breaches[0].message
        return found.breaches[0].message


def begun(**how: Any) -> Later:
    story = Later(**how)
    story.step("")
    return story


@pytest.mark.parametrize("guarantee", ["G30", "G31", "G32"])
def test_a_history_without_a_future_is_not_judged(guarantee: str) -> None:
    assert not Later().judged(guarantee).applicable


# G30, and the horizon of what others find.


def test_a_row_of_a_failed_write_that_comes_back_is_a_breach_at_its_first_step_and_the_horizon_of_the_leftover() -> (
    None
):
    story = begun()
    story.commit(5, "q5=w5")
    story.holding("G30")
    impact, rest = split_impact(story.breach("G15", data_file(FAILED, 2)))
    assert impact == "harmless so far: hudi still found the right rows after step 1 (commit)"
    assert data_file(FAILED, 2) in rest
    story.step("archive", hudi=("k1=w1", "k2=w2", "q5=w5"))
    story.step("clean", hudi=("k1=w1", "k2=w2", "q5=w5"))
    story.breach(
        "G30", "hudi finds 1 wrong rows (1 of no completed write, 1 of them of failed writes", "step 2 (archive)"
    )
    assert story.breach("G15").startswith("impact: hudi finds 1 wrong rows")


def test_what_harms_nobody_says_how_many_futures_were_played() -> None:
    story = begun()
    story.header = replace(story.header, options={**story.header.options, "harmless_futures": "4"})
    story.step("archive")
    assert "as hudi did in the 4 futures that were played before this one" in story.breach("G15")


def test_a_step_that_fails_for_ever_is_said_and_accuses_nobody() -> None:
    story = begun()
    story.step("clean", failed="it was too early; later it goes")
    story.step("archive", failed="no manifest; and none later")
    story.step("clean")
    story.step("archive", failed="no manifest; and none later")
    assert not story.judged("G30").breaches
    impact, rest = split_impact(story.breach("G15", data_file(FAILED, 2)))
    assert impact.endswith(", and step 2 (archive) fails: no manifest, and none later") and "clean" not in impact
    assert data_file(FAILED, 2) in rest


def test_each_reader_is_judged_by_itself() -> None:
    story = begun()
    story.step("archive", hudi_metadata=("k1=w1", "k2=w2"), hudi_rs=("k1=w1", "k2=w2"))
    assert {breach.message.split()[1] for breach in story.judged("G30").breaches} == {"hudi-metadata", "hudi-rs"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((), "1 lost"),
        (("k1=w1|twice|w0",), "1 more than once"),
        (("k1=w1", "k1=w1"), "1 more than once"),
        (("k1=w0",), "1 with other values"),
        ("it has a broken footer", "cannot read the table any more (it has a broken footer)"),
    ],
)
def test_a_row_of_a_completed_write_that_is_lost_doubled_or_another_is_a_breach(found: Any, words: str) -> None:
    story = begun(stray=False)
    story.step("clean", hudi=found)
    story.breach("G30", words, "after step 1 (clean)")


def test_readers_that_differ_before_the_first_step_are_wrong_at_once() -> None:
    story = Later()
    story.step("", hudi_metadata=("k1=w1", "k2=w2"))
    story.breach("G30", "hudi-metadata", "before the first step")


def test_rows_that_were_wrong_before_are_the_horizon_of_what_else_was_found() -> None:
    story = Later()
    story.audit(story.events[-1].index, hudi=())
    story.step("", hudi=())
    story.step("archive", hudi=())
    assert story.breach("G15").startswith("impact: readers find wrong rows at once; ")
    assert story.judged("G24").breaches[0].message.startswith(f"{TABLE} as hudi reads it")


def test_after_a_restore_the_rows_of_the_savepoint_are_right() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    story.commit(5, "k1=w5")
    story.holding("G30")
    story.rows["k1"] = "w1"
    story.step("restore")
    story.holding("G30")
    story.commit(6, "k1=w6", hudi=("k1=w5",))
    story.breach("G30", "with other values", "step 4 (commit)")


def test_after_a_restore_that_failed_what_it_would_have_changed_is_not_judged() -> None:
    story = begun(stray=False)
    story.step("savepoint")
    story.commit(5, "q5=w5")
    story.step("restore", failed="it failed")
    story.step("archive", hudi=("k1=w1",))
    story.holding("G30")


def test_a_write_of_the_future_that_failed_is_not_judged_until_its_key_is_written_again() -> None:
    story = begun(stray=False)
    story.commit(5, "k1=w5", kind="info", hudi=("k1=w5",))
    story.holding("G30")
    story.commit(6, "k1=w6", hudi=("k1=w5",))
    assert "step 2 (commit)" in story.breach("G30")


@pytest.mark.parametrize("found", ["unsupported: it merges by itself", "it panicked"])
def test_a_foreign_reader_that_cannot_read_such_tables_accuses_nobody(found: str) -> None:
    story = begun(stray=False)
    story.step("cluster", hudi_rs=found)
    story.holding("G30", reader_unsupported=1)
    story = Later(stray=False)
    story.step("", hudi_rs=())
    story.step("cluster", hudi_rs=())
    story.holding("G30", reader_unsupported=1)


def test_without_a_reading_before_the_future_nothing_is_decided() -> None:
    story = Later()
    story.audit(story.events[-1].index, hudi="it cannot be read")
    story.step("", hudi="it cannot be read")
    assert story.judged("G30").undecided == "what Hudi reads before the future is not known"
    assert story.breach("G15").startswith("impact: readers find wrong rows at once; ")


# G31.


def test_records_that_say_what_happened_are_true() -> None:
    story = begun()
    story.commit(5, "q5=w5")
    story.stored.remove(data_file(KEPT, 1))
    story.record(6, "clean", f"deleted {data_file(KEPT, 1)}")
    story.step("clean")
    story.holding("G31")


def test_a_commit_that_names_what_is_not_stored_is_a_breach_unless_a_record_of_the_step_deleted_it() -> None:
    story = begun()
    story.commit(5, "q5=w5")
    story.record(6, "commit", f"wrote {data_file('q/6', 6)}")
    story.step("commit")
    story.breach("G31", "its commit says that it wrote", data_file("q/6", 6))
    story = begun()
    story.record(6, "commit", f"wrote {data_file('q/6', 6)}")
    story.record(7, "restore", f"deleted {data_file('q/6', 6)}")
    story.step("restore")
    story.holding("G31")
    story = begun()
    story.record(6, "commit", f"wrote {data_file('q/6', 6)}")
    story.record(7, "restore", f"deleted {data_file('q/5', 5)}")
    story.step("restore")
    story.breach("G31", "its commit says that it wrote", data_file("q/6", 6))


@pytest.mark.parametrize("action", ["clean", "rollback"])
def test_a_record_that_names_as_deleted_what_is_stored_is_a_breach_unless_it_says_that_this_failed(action: str) -> None:
    name = data_file(KEPT, 1)
    story = begun()
    story.record(6, action, f"deleted {name}", f"not-deleted {name}")
    story.step("clean")
    story.holding("G31")
    story.record(7, action, f"deleted {name}")
    story.step("clean")
    story.breach("G31", f"its {action} says that it deleted {name!r}, which is stored")


def test_a_file_that_vanishes_without_a_record_is_a_breach() -> None:
    story = begun()
    story.stored.remove(data_file(KEPT, 1))
    story.step("archive")
    story.breach("G31", "was deleted or changed after step 1 (archive), and no record says so")


def test_a_completed_record_that_cannot_be_read_is_a_breach_from_the_first_reading_on() -> None:
    story = Later()
    story.record(3, "rollback", error="it ends too early")
    story.step("")
    story.step("clean")
    story.breach("G31", "its completed rollback cannot be read: it ends too early")


# G32.


def listed(story: Later) -> tuple[str, ...]:
    return tuple(sorted(story.stored - {data_file(FAILED, 2)}))


def test_a_listing_leaves_out_what_no_completed_commit_wrote() -> None:
    story = begun()
    story.step("clean", listed(story))
    story.holding("G32")


def test_a_listing_of_what_is_not_stored_or_without_what_is_is_a_breach() -> None:
    story = begun()
    story.step("clean", (*listed(story), "p/gone-0_0-1-0_20260101000000001.parquet"))
    story.breach("G32", "lists 'p/gone", "after step 1 (clean), which is not stored")
    story = begun()
    story.step("clean", ())
    story.breach("G32", "does not list", data_file(KEPT, 1))


def test_a_commit_counts_as_completed_when_its_entry_is_archived() -> None:
    story = begun()
    story.entries = {path: facts for path, facts in story.entries.items() if story.numbers[path] != 1}
    story.step("archive", ())
    story.breach("G32", "does not list", data_file(KEPT, 1))


def test_a_metadata_table_that_cannot_be_read_is_a_breach_and_none_decides_nothing() -> None:
    story = begun()
    story.step("clean")
    assert story.judged("G32").undecided == "it has no metadata table"
    at = story.add("kit", "observe", "future", "kit", value="rebuild", **PLACE)
    story.audit(at, error="it is corrupt")
    story.breach("G32", "the metadata table cannot be read after step 2 (rebuild): it is corrupt")


def test_a_file_of_an_unknown_write_is_not_missed_in_a_listing() -> None:
    story = begun(stray=False)
    story.stored.add("p/strange.parquet")
    story.step("clean", tuple(sorted(story.stored - {"p/strange.parquet"})))
    story.holding("G32", owner_unknown=1)


# What is worth a future.


def test_a_table_is_worth_a_future_when_anything_is_left_or_missing() -> None:
    def left(story: Later) -> bool:
        return leaves(History(story.header, tuple(story.events)))

    assert left(Later()) and not left(Later(stray=False)) and not leaves(History(Later().header, ()))
    story = Later(stray=False)
    story.stored.clear()
    story.audit(story.events[-1].index)
    assert left(story)
    story = Later(stray=False)
    story.record(3, "rollback", error="it ends too early")
    story.audit(story.events[-1].index)
    assert left(story)


def test_a_row_that_is_planted_in_the_last_reading_of_a_future_is_detected() -> None:
    story = begun(stray=False)
    story.step("archive")
    caught = find_false_statement(History(story.header, tuple(story.events)))
    assert caught is not None and caught.caught and caught.guarantee == "G30"

"""Log files of timeline layout 1 by the write that put them; upgraded tables and compactions, which break nothing."""

from __future__ import annotations

import json

import pytest

from properties.tables.frozen import TABLE, Frozen, Writes, at_rest

I = tuple(f"202601010000000{number:02d}" for number in range(10))  # noqa: E741
BASE = f"a/f_0-1-1_{I[0]}.parquet"
STRAY, BLOCK, NEXT = (f"a/.f_{I[0]}.log.{version}_0-{version}-{version}" for version in (1, 2, 3))


def commit(*paths: str) -> bytes:
    stats = {"a": [{"fileId": "f", "path": path} for path in paths]}
    return json.dumps({"partitionToWriteStats": stats, "extraMetadata": {}}).encode()


def rollback(
    target: str, deleted: tuple[str, ...] = (), undone: tuple[str, ...] = (), by: tuple[str, ...] = ()
) -> bytes:
    partition = {
        "partitionPath": "a",
        "successDeleteFiles": deleted,
        "logFilesFromFailedCommit": dict.fromkeys(undone, 1),
        "rollbackLogFiles": dict.fromkeys(by, 1),
    }
    return json.dumps({"commitsRollback": [target], "partitionMetadata": {"a": partition}}).encode()


def sizes(*paths: str) -> dict[str, int]:
    return dict.fromkeys(paths, 9)


class Layout1:
    """A table of version 6 on S3: its second write is killed at a log file, its third rolls that back and completes."""

    def __init__(self, record: bytes, block: bool = False, late: bool = False, **header: object) -> None:
        self.story = Writes(**{"witness": "effects", "storage": "s3", **header})
        self.tree = Frozen({}, {})
        done = self.write(0, BASE)
        self.put(f".hoodie/{I[0]}.deltacommit", commit(BASE))
        self.end(done, "ok")
        asked = self.write(1, *(() if late else (STRAY,)))
        self.story.killed(f"{TABLE}/{STRAY}")
        self.end(asked, "info")
        asked = self.asks("driver-3")
        if late:
            self.put(STRAY)
        self.put(f".hoodie/{I[2]}.rollback.requested", b"", process="driver-3")
        if block:
            self.put(BLOCK, process="driver-3")
        self.put(f".hoodie/{I[2]}.rollback", record, process="driver-3")
        self.drop(f".hoodie/{I[1]}.deltacommit.requested")
        self.put(f".hoodie/{I[3]}.deltacommit.requested", b"", process="driver-3")
        self.put(NEXT, process="driver-3")
        self.put(f".hoodie/{I[3]}.deltacommit", commit(NEXT), process="driver-3")
        self.story.audit(self.tree, self.end(asked, "ok", "driver-3"))

    def asks(self, process: str) -> int:
        recorder, place = self.story.recorder, self.story.place
        return recorder.record(process, "driver", "invoke", "write", *place, value=(f"k={recorder.mark()}",))

    def write(self, number: int, *files: str) -> int:
        asked = self.asks("driver-1")
        self.put(f".hoodie/{I[number]}.deltacommit.requested", b"")
        for file in files:
            self.put(file)
        return asked

    def end(self, asked: int, outcome: str, process: str = "driver-1") -> int:
        record = self.story.recorder.record
        return record(process, "driver", outcome, "write", *self.story.place, caused_by=asked)  # type: ignore[arg-type]

    def put(self, path: str, content: bytes | None = None, process: str = "driver-1") -> None:
        if content is None:
            self.tree.sizes[path] = 9
        else:
            self.tree.files[path] = content
        self.story.effect(path, content or b"x", process)

    def drop(self, path: str) -> None:
        del self.tree.files[path]
        self.story.effect(path, None, "driver-3")


def test_a_log_file_that_a_rollback_forgot_is_seen_where_effects_are_known() -> None:
    found = Layout1(rollback(I[1])).story.judged("G15")
    assert [STRAY in breach.message and I[1] in breach.message for breach in found.breaches] == [True]
    assert not Layout1(rollback(I[1]), witness="reads", storage="local").story.judged("G15").breaches


@pytest.mark.parametrize("record", (rollback(I[1], (), (STRAY,), (BLOCK,)), rollback(I[1], (), (), (BLOCK,))))
def test_a_command_block_in_its_group_is_enough_and_is_nobodys_file(record: bytes) -> None:
    """A block that a killed run of the rollback appended, and its record does not name, is one as well."""
    for guarantee in ("G14", "G15", "G16"):
        found = Layout1(record, block=True).story.judged(guarantee)
        assert not found.breaches
    assert Layout1(record, block=True).story.judged("G15").judged == 1


def test_a_command_block_of_a_killed_run_counts_where_no_record_names_it() -> None:
    """The next run may find the instant gone and complete the rollback with an empty record, as Hudi 1.1 does."""
    for guarantee in ("G14", "G15", "G16"):
        assert not Layout1(rollback(I[1]), block=True).story.judged(guarantee).breaches
    found = Layout1(rollback(I[1]), block=True).story.judged("G15")
    assert found.judged == 1 and dict(found.excused) == {"block-of-attempt": 1}


def test_a_log_file_that_comes_late_or_under_an_unreadable_record_accuses_nobody() -> None:
    for told in (
        Layout1(rollback(I[1]), late=True),
        Layout1(b""),
        Layout1(rollback(I[1]), options={"master": "spark:"}),
    ):
        assert not told.story.judged("G15").breaches


@pytest.mark.parametrize("accepted", (False, True))
def test_a_log_file_that_its_own_commit_does_not_name_is_seen(accepted: bool) -> None:
    story = Writes(witness="effects", storage="s3")
    files = (BASE, NEXT, STRAY)
    asked = story.recorder.record("driver-1", "driver", "invoke", "write", *story.place, value=("k=1",))
    for path in (f".hoodie/{I[0]}.deltacommit.requested", *files, f".hoodie/{I[0]}.deltacommit"):
        story.effect(path)
    done = story.recorder.record("driver-1", "driver", "ok", "write", *story.place, caused_by=asked)
    named = files if accepted else files[:2]
    story.audit(Frozen({f".hoodie/{I[0]}.deltacommit": commit(*named)}, sizes(*files)), done)
    found = story.judged("G14")
    assert [STRAY in breach.message for breach in found.breaches] == [True] * (not accepted)


def upgraded(*files: str) -> Frozen:
    """A table of version 8 whose first writes were made at version 6."""
    folder = ".hoodie/timeline/"
    return Frozen(
        {
            f"{folder}{I[0]}_{I[0]}.deltacommit": commit(BASE),
            f"{folder}{I[2]}_{I[2]}.rollback": rollback(I[1], (), (STRAY,), (BLOCK,)),
            f"{folder}{I[5]}_{I[5]}.deltacommit": commit(f"a/.f_{I[5]}.log.1_0-7-7"),
        },
        sizes(BASE, f"a/.f_{I[5]}.log.1_0-7-7", *files),
    )


def test_log_files_from_before_an_upgrade_accuse_nobody_and_later_ones_do() -> None:
    old = upgraded(STRAY, BLOCK, NEXT)
    for guarantee in ("G14", "G15"):
        assert not at_rest(old).judged(guarantee).breaches
    own = f"a/.f_{I[5]}.log.2_0-8-8"
    assert [own in breach.message for breach in at_rest(upgraded(own)).judged("G14").breaches] == [True]
    story = Writes(witness="effects", storage="s3")
    done = story.write("ok", "k=1")
    story.effect(BLOCK)
    story.audit(old, done)
    assert not story.judged("G13").judged, "a command block is no data"


@pytest.mark.parametrize("waits", (True, False))
def test_a_compaction_that_runs_again_under_its_instant_accuses_nobody(waits: bool) -> None:
    again = f"a/f_0-4-4_{I[3]}.parquet"
    tree = Frozen(
        {
            f".hoodie/{I[0]}.deltacommit": commit(BASE),
            f".hoodie/{I[4]}.rollback": rollback(I[3], (f"a/f_0-3-3_{I[3]}.parquet",)),
            f".hoodie/{I[5]}.deltacommit": commit(NEXT),
        },
        sizes(BASE, NEXT, again),
    )
    if waits:
        tree.files[f".hoodie/{I[3]}.compaction.requested"] = b""
    found = at_rest(tree).judged("G15")
    assert [again in breach.message for breach in found.breaches] == [True] * (not waits)
    assert found.judged == (not waits)


def test_what_nobody_can_say_is_not_counted_as_judged() -> None:
    """Executors of their own and a file system that does not tell the order: nothing could ever accuse."""
    tree = Frozen(
        {
            f".hoodie/{I[0]}.commit": commit(BASE),
            f".hoodie/{I[2]}.rollback": rollback(I[1]),
            f".hoodie/{I[3]}.commit": commit(f"a/f_0-8-8_{I[3]}.parquet"),
            f".hoodie/.temp/{I[1]}/MARKERS0": b"x",
        },
        sizes(BASE, *(f"a/f_0-{n}-{n}_{instant}.parquet" for n, instant in ((7, I[1]), (8, I[3]), (9, I[3])))),
    )
    counts = {"standalone": {"G14": 1, "G15": 0, "G18": 0}, "local": {"G14": 2, "G15": 1, "G18": 3}}
    for master, expected in counts.items():
        for guarantee, count in expected.items():
            found = at_rest(tree, options={"master": master}).judged(guarantee)
            assert (found.judged, len(found.breaches)) == (count, 1 if master == "local" else 0), (master, guarantee)

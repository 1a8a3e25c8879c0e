"""Timelines that real releases wrote, of both layouts, as facts."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from marker_sim.timeline import Entry, State, entry_at
from properties.faces.tables import Unreadable, decode, is_archive, recorded_facts
from properties.tables.frozen import RELEASES, TABLES, Frozen, frozen


@pytest.mark.parametrize(
    ("path", "place"),
    (
        (".hoodie/001.commit.requested", Entry("001", "commit", State.REQUESTED)),
        (".hoodie/001.inflight", Entry("001", "commit", State.INFLIGHT)),
        (".hoodie/001.commit", Entry("001", "commit", State.COMPLETED)),
        (".hoodie/001.deltacommit.inflight", Entry("001", "deltacommit", State.INFLIGHT)),
        (".hoodie/timeline/001_002.rollback", Entry("001", "rollback", State.COMPLETED, "002")),
        (".hoodie/timeline/001.clustering.requested", Entry("001", "clustering", State.REQUESTED)),
        (".hoodie/hoodie.properties", None),
        (".hoodie/timeline/001_002.commit.3f0c-11", None),
        (".hoodie/.001.commit.crc", None),
        (".hoodie/metadata/.hoodie/001.deltacommit", None),
        (".hoodie/archived/001.commit", None),
        ("a/001.commit", None),
    ),
)
def test_an_entry_is_told_by_its_name_and_place(path: str, place: Entry | None) -> None:
    assert entry_at(path) == place


def test_archives_are_told_from_their_indices() -> None:
    assert is_archive(".hoodie/archived/.commits_.archive.1_1-0-1")
    assert is_archive(".hoodie/timeline/history/001_002_0.parquet")
    assert not is_archive(".hoodie/timeline/history/_version_")
    assert not is_archive("a/001.parquet")


def of(tree: Frozen, path: str) -> dict[str, list[str]]:
    place = entry_at(path)
    assert place is not None
    found: dict[str, list[str]] = {}
    for fact in recorded_facts(place, tree.files[path]):
        word, _, rest = fact.partition(" ")
        found.setdefault(word, []).append(rest)
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_entry_of_a_real_timeline_is_read(name: str) -> None:
    tree = frozen(name)
    places = {path: entry_at(path) for path in tree.files}
    read = {path: recorded_facts(place, tree.files[path]) for path, place in places.items() if place is not None}
    sizes = {fact.removeprefix("size ") for found in read.values() for fact in found if fact.startswith("size ")}
    assert sizes >= {f"{path} {size}" for path, size in tree.sizes.items() if path.endswith(".parquet")}
    written = [fact for found in read.values() for fact in found if fact.startswith("wrote ")]
    assert len(read) == len(tree.files) - 1, "all but hoodie.properties"
    assert {fact.partition(" ")[2] for fact in written} >= set(tree.sizes) - {
        path for path in tree.sizes if ".log." in path
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_names_what_it_deletes_and_what_it_deleted(release: str) -> None:
    tree = frozen(f"{release}-cow")
    path = min(path for path in tree.files if path.endswith(".clean"))
    instant = path.rpartition("/")[2][:17]
    planned, done = of(tree, tree.entry(instant, ".clean.requested")), of(tree, path)
    assert planned["will-delete"] == done["deleted"] and len(done["deleted"]) == 5
    assert not set(done["deleted"]) & set(tree.sizes)


@pytest.mark.parametrize("release", RELEASES)
def test_an_overwrite_names_the_groups_it_replaced(release: str) -> None:
    tree = frozen(f"{release}-cow")
    path = min(path for path in tree.files if path.endswith(".replacecommit"))
    found = of(tree, path)
    assert len(found["replaced"]) == 1 and found["replaced"][0].startswith("a|") and found["write"] == ["5"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_rollback_names_its_instant_and_what_it_did(release: str) -> None:
    tree = frozen(f"{release}-mor")
    path = min(path for path in tree.files if path.endswith(".rollback"))
    found, asked = of(tree, path), of(tree, tree.entry(path.rpartition("/")[2][:17], ".rollback.requested"))
    assert found["rolled-back"] == asked["rolled-back"] and len(found["rolled-back"]) == 1
    if release == "0.15.0":
        assert set(found["appended"]) <= set(tree.sizes), "table version 6 undoes by command blocks"
        assert len(found["undone"]) == 2 and "deleted" not in found
    else:
        assert found["deleted"] == asked["will-delete"], "later versions delete log files"
        assert not set(found["deleted"]) & set(tree.sizes)


@pytest.mark.parametrize("action", ("commit", "replacecommit"))
def test_json_and_avro_say_the_same(action: str) -> None:
    """A table that was upgraded has entries of both kinds in one timeline."""
    tree = frozen("1.0.2-cow")
    path = min(path for path in tree.files if path.endswith(f".{action}"))
    place, content = Entry("001", action, State.COMPLETED), tree.files[path]
    assert content.startswith(b"Obj")
    assert recorded_facts(place, json.dumps(decode(content)).encode()) == recorded_facts(place, content)


def test_a_record_that_is_stored_twice_is_read_once_and_two_are_not_read() -> None:
    """Avro repeats a block whose write failed when it was done, and Hudi reads the first record."""
    tree = frozen("1.0.2-cow")
    path = min(path for path in tree.files if path.endswith(".clean"))
    place, content = Entry("001", "clean", State.COMPLETED), tree.files[path]
    reader = fastavro.reader(io.BytesIO(content))
    assert reader.writer_schema is not None
    record: Any = next(reader)
    for second, read in ((record, True), ({**record, "startCleanTime": "another"}, False)):
        fastavro.writer(twice := io.BytesIO(), reader.writer_schema, [record, second])
        if read:
            assert recorded_facts(place, twice.getvalue()) == recorded_facts(place, content)
            continue
        with pytest.raises(Unreadable, match="2 records, not one"):
            recorded_facts(place, twice.getvalue())


@pytest.mark.parametrize(
    "content", (b"", b"{", b"[]", b"{}", b"Obj\x01", b"\x00" * 40, b'{"partitionToWriteStats": 3}')
)
def test_a_completed_commit_that_says_nothing_is_unreadable(content: bytes) -> None:
    with pytest.raises(Unreadable, match="commit of 001"):
        recorded_facts(Entry("001", "commit", State.COMPLETED), content)


@pytest.mark.parametrize("name", TABLES)
def test_a_torn_entry_is_unreadable_or_says_nothing_wrong(name: str) -> None:
    tree = frozen(name)
    for path, content in tree.files.items():
        place = entry_at(path)
        if place is None:
            continue
        whole = recorded_facts(place, content)
        for length in range(0, len(content), 97):
            try:
                torn = recorded_facts(place, content[:length])
            except Unreadable:
                continue
            assert set(torn) <= set(whole), f"{path} cut to {length} bytes"

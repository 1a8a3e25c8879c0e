"""Names and bytes of layout 6: what is written can be read, and what is not a timeline entry is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marker_sim.timeline import (
    ACTIONS,
    Entry,
    State,
    WriteStat,
    WriteToken,
    base_file_name,
    decode_commit,
    decode_rollback,
    encode_commit,
    encode_rollback,
    instant_at,
    log_file_name,
    parse_data_file,
    parse_entry,
)

BOOTSTRAP = "00000000000001"  # HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS
TOKENS = st.builds(WriteToken, *[st.integers(0, 10**12)] * 3)
FILE_IDS = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", State)
def test_an_entry_is_found_again_under_its_path(action: str, state: State) -> None:
    entry = Entry("20240101000000000", action, state)
    assert parse_entry(entry.path("lake/t")) == entry


def test_the_files_of_a_copy_on_write_commit_are_called_as_hudi_calls_them() -> None:
    names = [Entry("001", "commit", state).path("t") for state in State]
    assert names == ["t/.hoodie/001.commit.requested", "t/.hoodie/001.inflight", "t/.hoodie/001.commit"]


@pytest.mark.parametrize(
    "path",
    [
        "t/.hoodie/hoodie.properties",
        "t/.hoodie/001.commit.17.tmp",
        "t/.hoodie/.temp/001/f_1-0-0_001.parquet.marker.CREATE",
        "t/001.commit",
        "t/.hoodie/001.commit.inflight",
        "t/.hoodie/001.savepoint",
    ],
)
def test_other_files_are_no_entries(path: str) -> None:
    assert parse_entry(path) is None


@given(FILE_IDS, TOKENS)
def test_a_base_file_says_what_it_is(file_id: str, token: WriteToken) -> None:
    file = parse_data_file(f"p/q/{base_file_name(file_id, token, '20240101000000000')}")
    assert file is not None
    assert (file.partition, file.file_id, file.token, file.version) == ("p/q", file_id, token, None)


@given(FILE_IDS, TOKENS, st.integers(1, 999))
def test_a_log_file_says_what_it_is(file_id: str, token: WriteToken, version: int) -> None:
    file = parse_data_file(log_file_name(file_id, "20240101000000000", version, token))
    assert file is not None
    assert (file.partition, file.file_id, file.token, file.version) == ("", file_id, token, version)


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_instants_grow_and_are_never_used_again(now_ms: int, before_ms: int) -> None:
    before = instant_at(before_ms, "")
    instant = instant_at(now_ms, before)
    assert len(instant) == 17
    assert instant > before
    assert (instant == instant_at(now_ms, "")) == (now_ms > before_ms)


# Names on timelines: times of 17 and 14 digits, names that are no time, and invalid ones.
INSTANTS = st.one_of(
    st.integers(0, 10**13).map(lambda ms: instant_at(ms, "")),
    st.integers(0, 10**13).map(lambda ms: instant_at(ms, "")[:14]),
    st.sampled_from(("00000000000000", BOOTSTRAP, "00000000000002", "001", "9" * 14, "9" * 17, "99991231235959999")),
    st.from_regex(r"[0-9]{1,25}", fullmatch=True),
    st.text(st.characters(exclude_characters="./"), min_size=1, max_size=20),
)


@given(st.integers(0, 10**13), INSTANTS)
@example(0, "9" * 17)
@example(0, "99991231235959999")
@example(0, "²²")
def test_an_instant_is_later_than_any_that_was_there(now_ms: int, newest: str) -> None:
    """As strings, which is how Hudi compares them (HoodieTimeline.compareTimestamps)."""
    instant = instant_at(now_ms, newest)
    assert instant > newest
    assert instant >= instant_at(now_ms, "")
    entry = Entry(instant, "commit", State.COMPLETED)
    assert parse_entry(entry.path("t")) == entry


@given(st.integers(0, 10**13), INSTANTS)
def test_instants_grow_as_long_as_one_likes(now_ms: int, newest: str) -> None:
    """Also when the clock stands still, and without growing by a character for each."""
    instants = [newest]
    for _ in range(12):
        instants.append(instant_at(now_ms, instants[-1]))
    assert instants == sorted(set(instants))
    assert len(instants[-1]) <= max(17, len(newest) + 12)


def test_write_stats_survive_a_commit() -> None:
    stats = (WriteStat("", "f", "f_1-0-0_1.parquet", 3, ""), WriteStat("größe", "g", "größe/g_1-0-0_1.parquet", 1, "0"))
    data = encode_commit(stats, {"write": "1"})
    assert decode_commit(data) == stats
    assert set(json.loads(data)["partitionToWriteStats"]) == {"", "größe"}
    assert decode_rollback(encode_rollback("001", "commit")) == ("001", "commit")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"partitionToWriteStats": {"": [{}]}}'])
def test_torn_records_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no commit metadata"):
        decode_commit(data)
    with pytest.raises(ValueError, match="no rollback metadata"):
        decode_rollback(data)

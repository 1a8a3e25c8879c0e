"""Names and the MARKERS<n> codec keep every accepted name byte for byte."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marker_sim.names import (
    MarkerType,
    check_marker_name,
    data_path,
    decode_names,
    encode_names,
    is_append,
    is_marker_name,
    marker_file,
    marker_file_index,
    marker_name,
    parse_directory,
    stored_names,
)
from marker_sim.unusual_names import DIRECTORIES, HOSTILE_NAMES, PARTITIONS, must_be_refused, twins

_SEGMENT = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/"), min_size=1
).filter(lambda part: part not in (".", "..") and len(part.encode()) < 200)
_NAMES = st.builds(
    marker_name,
    st.lists(_SEGMENT, max_size=4).map("/".join),
    _SEGMENT.map(lambda part: part + ".parquet"),
    st.sampled_from(MarkerType),
)


@given(st.lists(_NAMES, unique=True))
def test_what_is_encoded_is_decoded_in_order(names: list[str]) -> None:
    for name in names:
        check_marker_name(name)
    assert decode_names(encode_names(names)) == tuple(names)


@given(st.lists(_NAMES, min_size=1, unique=True), st.data())
def test_a_torn_file_yields_only_whole_names_that_were_written(names: list[str], data: st.DataObject) -> None:
    encoded = encode_names(names)
    torn = decode_names(encoded[: data.draw(st.integers(0, len(encoded)))])
    assert torn == tuple(names[: len(torn)])


@given(st.binary())
def test_decoding_never_fails_on_damaged_files(content: bytes) -> None:
    decode_names(content)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_data_path_of_a_marker_is_its_name_without_the_suffix(partition: str) -> None:
    name = marker_name(partition, "f1_0-1-2_001.parquet", MarkerType.MERGE)
    assert not name.startswith("/")
    assert data_path(name) == (f"{partition}/" if partition else "") + "f1_0-1-2_001.parquet"
    assert is_append(marker_name(partition, ".f1_001.log.1_0-1-2", MarkerType.APPEND))


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, ".hoodie/20250101000000000.commit.marker.CREATE"])
def test_hostile_names_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(ValueError, match="marker name"):
        check_marker_name(name)


@pytest.mark.parametrize(
    ("file_name", "index"),
    [
        ("MARKERS0", 0),
        ("MARKERS19", 19),
        ("MARKERS.type", None),
        (".MARKERS3.crc", None),
        ("MARKERS03", None),
        ("MARKERS1.tmp", None),
        ("MARKERS1\n", None),
        ("xMARKERS1", None),
    ],
)
def test_only_marker_files_have_an_index(file_name: str, index: int | None) -> None:
    assert marker_file_index(file_name) == index


@pytest.mark.parametrize("path", DIRECTORIES)
def test_marker_directories_are_split_and_joined(path: str) -> None:
    assert parse_directory(path).path == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "t",
        "t/.hoodie/.temp/",
        "/.hoodie/.temp/1",
        "t/../u/.hoodie/.temp/1",
        "t/.hoodie/.temp/a/b",
        "t//.hoodie/.temp/1",
    ],
)
def test_what_is_no_marker_directory_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"instant|segments|temp"):
        parse_directory(path)


def test_a_mixed_directory_reads_as_the_union_without_side_files() -> None:
    directory = "t/.hoodie/.temp/001"
    files = {
        f"{directory}/{marker_file(0)}": b"a.marker.CREATE\nhalf.mark",
        f"{directory}/MARKERS.type": b"",
        f"{directory}/.MARKERS0.crc": b"x.marker.CREATE\n",
        f"{directory}/MARKERS0/b.parquet.marker.MERGE": b"",
        "t/.hoodie/.temp/0011/MARKERS0": b"other.marker.CREATE\n",
    }
    assert stored_names(directory, files) == {"a.marker.CREATE", "MARKERS0/b.parquet.marker.MERGE"}
    assert not is_marker_name(".marker.CREATE")


def test_twins_are_two_valid_names() -> None:
    rng = random.Random(1)
    for part in PARTITIONS:
        for _ in range(30):
            pair = twins(rng, f"{part}/f1_0-0-0_001.parquet.marker.CREATE".lstrip("/"), forms=True)
            assert pair[0] != pair[1]
            for name in pair:
                assert not must_be_refused(name)
                check_marker_name(name)

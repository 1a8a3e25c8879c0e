"""Damaged marker directories and timelines: no reader crashes, hangs, omits names silently, or touches other files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.real.served import Served, serving
from properties.volume import volume
from scenarios.fuzz.file_fuzz import FileTrials
from scenarios.fuzz.file_inputs import DIRECTORIES, JSONS, TIMELINES, Damage
from scenarios.fuzz.known import KNOWN_FILES, KNOWN_TIMELINES

TRIALS = volume(400, quick=100)
CAUGHT = r"touched outside|short of|is not stored"
FAULTS = {"follows-links": "a link to a directory outside", "skips-what-fails": "a link to what never ends"}


@contextmanager
def server(root: Path, fault: str = "") -> Iterator[Served]:
    (root / "base").mkdir()
    program = ("scenarios.fuzz.faulty", fault) if fault else ("marker_sim",)
    with serving("--base", str(root / "base"), "--batch-interval-ms", "2", program=program) as served:
        yield served


@pytest.fixture(scope="module", params=["in this process", "by a server"])
def trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileTrials]:
    root = tmp_path_factory.mktemp("damaged")
    if request.param == "in this process":
        yield FileTrials(root)
        return
    with server(root) as served:
        yield FileTrials(root, served.port)
        served.process.terminate()
        assert served.process.communicate() == ("", "")


@pytest.mark.parametrize("name", KNOWN_FILES)
def test_every_known_damage_of_a_marker_directory_is_withstood(trials: FileTrials, name: str) -> None:
    trials.directory_trial(KNOWN_FILES[name])


@settings(max_examples=TRIALS)
@given(DIRECTORIES)
def test_readers_and_writers_withstand_damaged_files(trials: FileTrials, damages: list[Damage]) -> None:
    trials.directory_trial(damages)


@pytest.mark.parametrize("name", KNOWN_TIMELINES)
def test_every_known_damage_of_a_timeline_is_withstood(tmp_path: Path, name: str) -> None:
    FileTrials(tmp_path).timeline_trial(KNOWN_TIMELINES[name])


@settings(max_examples=TRIALS)
@given(damages=TIMELINES)
def test_a_recovery_withstands_a_damaged_timeline(
    tmp_path_factory: pytest.TempPathFactory, damages: list[Damage]
) -> None:
    FileTrials(tmp_path_factory.mktemp("timeline")).timeline_trial(damages)


@pytest.mark.parametrize("data", JSONS, ids=lambda data: repr(data[:40]))
def test_odd_json_is_decoded_or_refused(tmp_path: Path, data: bytes) -> None:
    FileTrials(tmp_path).codec_trial(data)


@given(data=st.binary(max_size=40))
def test_bytes_are_decoded_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    FileTrials(tmp_path_factory.mktemp("codec")).codec_trial(data)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_server_is_caught(fault: str, tmp_path: Path) -> None:
    with (
        server(tmp_path, fault) as served,
        pytest.raises(AssertionError, match=CAUGHT),
    ):
        FileTrials(tmp_path, served.port).directory_trial(KNOWN_FILES[FAULTS[fault]])

"""Damaged marker directories and timelines: no reader crashes, hangs, omits names silently, or touches other files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from properties.volume import volume
from scenarios.fuzz.file_fuzz import FileFuzzer
from scenarios.fuzz.ledger import Broken
from scenarios.fuzz.subject import Subject, serve_command

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

INPUTS = volume(1_500, quick=400)
# How many kinds of damage 400 inputs may lack: 8 times so many lacked none five times, one twice and two once.
RARE = volume(0, quick=4)
INPUTS_TO_CATCH = 4_000
KINDS = {"file", "link", "fifo", "socket", "directory", "full-directory", "denied", "huge-line", "many", "instead"}
ENDS = {("list_all", "ok"), ("list_all", "PathRefused"), ("begin", "ok"), ("begin", "ValueError")}
FAULTS = {"follows-links": "touched outside", "skips-what-fails": "short of|after a create"}


@contextmanager
def server(root: Path, fault: str = "") -> Iterator[Subject]:
    base = root / "base"
    base.mkdir()
    words = serve_command(str(base))
    if fault:
        words = [words[0], "-m", "scenarios.fuzz.faulty", fault, *words[words.index("serve") :]]
    subject = Subject(words, root / "server.log")
    try:
        yield subject
    finally:
        subject.end()


def test_every_known_damage_is_withstood(tmp_path: Path) -> None:
    fuzzer = FileFuzzer(tmp_path)
    fuzzer.run_known()
    assert fuzzer.statistics.touched == 0


@pytest.mark.draws(runs=INPUTS, one_in=INPUTS // 3)
def test_readers_and_writers_withstand_damaged_files(tmp_path: Path, chaos_seed: int) -> None:
    fuzzer = FileFuzzer(tmp_path)
    fuzzer.run(INPUTS, chaos_seed)
    statistics = fuzzer.statistics
    assert statistics.inputs.total() >= INPUTS and len(KINDS - set(statistics.inputs)) <= RARE
    assert len(ENDS - set(statistics.calls)) <= RARE // 4, statistics.calls


@pytest.mark.draws(runs=INPUTS // 4, one_in=INPUTS // 12)
def test_the_server_withstands_damaged_files(tmp_path: Path, chaos_seed: int) -> None:
    with server(tmp_path) as subject:
        fuzzer = FileFuzzer(tmp_path, port=subject.port)
        fuzzer.run_known()
        fuzzer.run(INPUTS // 4, chaos_seed)
        assert fuzzer.statistics.calls["server /all", "200"] and fuzzer.statistics.calls["server /create", "200"]
        assert subject.alive() and not subject.alarms()


@pytest.mark.draws(runs=INPUTS_TO_CATCH, one_in=400, fails=5e-5)
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_server_is_caught(fault: str, tmp_path: Path, chaos_seed: int) -> None:
    with server(tmp_path, fault) as subject, pytest.raises(Broken, match=FAULTS[fault]):
        fuzzer = FileFuzzer(tmp_path, port=subject.port, shrink=False)
        fuzzer.run_known()
        fuzzer.run(INPUTS_TO_CATCH, chaos_seed)

"""Hostile requests against a running `marker-sim serve`; and the same against servers that are broken on purpose."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from properties.volume import NIGHTLY, volume
from scenarios.fuzz import places
from scenarios.fuzz.client import Line, converse
from scenarios.fuzz.http_fuzz import HttpFuzzer, Place
from scenarios.fuzz.http_inputs import API, Ending, Input, Part, request
from scenarios.fuzz.ledger import Broken
from scenarios.fuzz.subject import serve_command

# Hypothesis prints what broke a property, however large it is; the fuzzer's own message is what counts.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

INPUTS = volume(1_500, quick=400)
# How many kinds of inputs and of answers 400 inputs may lack. In 12 times so many no kind of input was lacking, and one
# of answers, 403, twice.
RARE = volume(0, quick=4)
# The rarest sight of a fault, a create that is answered twice, took 226, 867 and 934 inputs.
INPUTS_TO_CATCH = 10_000
CONNECTIONS = 400
BOUND_S = 60.0
FAULTS = {
    "no-base": "must be refused|touched",
    "splits-names": "must be refused|against the rules|nobody was told|said nothing",
    "early-true": "answered and is not stored|lacks",
    "silent-on-bad-text": "no end within",
    "replaces-bad-text": "must be refused|no text|nobody was told|nobody asked for|lacks",
    "twice": "answered true|before there was one",
    "dies": "process is gone|reset|closed|refused",
}


@contextmanager
def served(tmp_path: Path) -> Iterator[Place]:
    place = places.local(tmp_path)(0)
    try:
        yield place
    finally:
        place.close()


def good_create(place: Place, name: str) -> tuple[int, bytes]:
    directory = place.ground.uri(f"{place.ground.base.path}/t0/.hoodie/.temp/20260101000000000")
    target = API + f"/create?markerdirpath={quote(directory)}&markername={quote(name)}".encode()
    part = Part(b"POST", target)
    heard, _ = converse(place.subject.port, Input("good", (request(part),), Ending.WAIT, (part,)), BOUND_S)
    assert heard.answers, f"a good client heard nothing: {heard}"
    return heard.answers[0].status, heard.answers[0].body


def test_every_known_hostile_input_is_withstood(tmp_path: Path) -> None:
    with HttpFuzzer(places.local(tmp_path)) as fuzzer:
        fuzzer.run_known()
        assert fuzzer.statistics.unanswered == 0 and fuzzer.statistics.touched == 0 and fuzzer.statistics.servers == 1


@pytest.mark.draws(runs=INPUTS, one_in=INPUTS // 3, fails=1e-5)
def test_drawn_hostile_inputs_are_answered_and_change_nothing(tmp_path: Path, chaos_seed: int) -> None:
    with HttpFuzzer(places.local(tmp_path)) as fuzzer:
        fuzzer.run(INPUTS, chaos_seed)
        statistics = fuzzer.statistics
    assert statistics.inputs.total() >= INPUTS and set(statistics.inputs) <= KINDS
    assert len(KINDS - set(statistics.inputs)) <= RARE
    answers = {status for _, status in statistics.outcomes}
    assert answers >= {"200", "400"} and len({"403", "404", "405"} - answers) <= RARE // 2
    assert statistics.owed["target", "accept"] and statistics.owed["target", "refuse"]
    assert statistics.servers == 1, "the server was the same process all the time"


KINDS = {
    "target",
    "request-line",
    "headers",
    "framing",
    "body",
    "pipelined",
    "mutated",
    "garbage",
    "cut",
    "vanishing",
    "slow",
    "huge",
}


def test_idle_and_half_open_connections_keep_nobody_waiting(tmp_path: Path) -> None:
    with served(tmp_path) as place, ExitStack() as held:
        directory = place.ground.uri(f"{place.ground.base.path}/t0/.hoodie/.temp/20260101000000000")
        half = request(
            Part(b"POST", API + f"/create?markerdirpath={quote(directory)}&markername=half.marker.CREATE".encode())
        )
        starts = (b"", half[:20], half[: len(half) // 2], half[:-2], half.replace(b"Length: 0", b"Length: 9") + b"four")
        for number in range(CONNECTIONS):
            line = Line(place.subject.port, BOUND_S)
            held.callback(line.close)
            line.send((starts[number % len(starts)],))
        for number in range(10):
            assert good_create(place, f"good{number}.marker.CREATE") == (200, b"true")
        stored = place.ground.stored()
        assert sum(len(names) for names in stored.values()) == 10, "half a request stores nothing"
        assert place.subject.alive() and not place.subject.alarms()


def test_slow_clients_are_answered_and_slow_nobody_down(tmp_path: Path) -> None:
    with served(tmp_path) as place, ExitStack() as held:
        directory = place.ground.uri(f"{place.ground.base.path}/t0/.hoodie/.temp/20260101000000000")
        clients = []
        for number in range(40):
            line = Line(place.subject.port, BOUND_S)
            held.callback(line.close)
            target = API + f"/create?markerdirpath={quote(directory)}&markername=slow{number}.marker.CREATE".encode()
            clients.append((line, request(Part(b"POST", target))))
        for at in range(max(len(data) for _, data in clients)):
            for line, data in clients:
                line.send((data[at : at + 1],))
            if at % 50 == 0:
                assert good_create(place, f"quick{at}.marker.CREATE") == (200, b"true")
        for line, _ in clients:
            heard = line.answers((b"POST",))
            assert [answer.body for answer in heard.answers] == [b"true"], heard


@pytest.mark.draws(runs=INPUTS_TO_CATCH, one_in=1_000, fails=5e-5)
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_server_is_caught(fault: str, chaos_seed: int) -> None:
    def command(base: str) -> list[str]:
        words = serve_command(base)
        return [words[0], "-m", "scenarios.fuzz.faulty", fault, *words[words.index("serve") :]]

    assert sys.executable == command("")[0]
    bound_s = 2.0 if fault == "silent-on-bad-text" else BOUND_S  # For hangs alone, unless one is the fault.
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as plain,  # A folder whose own name no fault changes.
        HttpFuzzer(places.local(Path(plain), command), bound_s=bound_s, shrink=False) as fuzzer,
        pytest.raises(Broken, match=f"(?s){FAULTS[fault]}"),
    ):
        if not NIGHTLY:
            fuzzer.run_known()
        fuzzer.run(INPUTS_TO_CATCH, chaos_seed)

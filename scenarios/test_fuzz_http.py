"""Hostile requests against a running `marker-sim serve`; and the same against servers that are broken on purpose."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.real.served import Served, serving
from properties.volume import volume
from scenarios.fuzz import rules
from scenarios.fuzz.client import Answer, Garbled, Heard, Line, converse
from scenarios.fuzz.ground import Ground, Stored
from scenarios.fuzz.http_inputs import API, Ending, Input, Part, Scene, request
from scenarios.fuzz.known import KNOWN
from scenarios.fuzz.rules import Asked, Due, good_directory, good_name

INPUTS = volume(1_500, quick=200)
CONNECTIONS = 400
BOUND_S = 60.0
RSS_GROWTH_MAX_BYTES = 256 * 2**20
BROKEN_TEXT = ("mutated", "garbage", "cut")  # Kinds of inputs whose bytes may mean any name.
# Each defect, and the known input that shows it.
FAULTS = {
    "no-base": "a directory outside",
    "splits-names": "a line break in a name",
    "early-true": "a name of sixteen bytes",
    "silent-on-bad-text": "bytes that are no text",
    "replaces-bad-text": "bytes that are no text",
    "twice": "one name twice",
    "dies": "a name that is not ASCII",
}


class Place:
    """A server on a fresh tree; a new one after a trial that broke something."""

    def __init__(self, root: Path, fault: str = "", bound_s: float = BOUND_S) -> None:
        self._root, self._fault, self.bound_s = root, fault, bound_s
        self._held = ExitStack()
        self.good = 0
        self._start()

    def _start(self) -> None:
        self._held.close()
        shutil.rmtree(self._root / "tree", ignore_errors=True)
        self.ground = Ground(self._root / "tree")
        self.scene = Scene(self.ground.base, self.ground.out)
        self.usual = rules.usual_directories(self.ground.base)
        more = ("--batch-interval-ms", "2")
        program = ("scenarios.fuzz.faulty", self._fault) if self._fault else ("marker_sim",)
        self.served = self._held.enter_context(serving("--base", self.ground.base, *more, program=program))
        self.rss_bytes = self._rss()

    def trial(self, each: Input) -> None:
        """Send an input and judge what became of it; then good clients, storage, the tree and the process."""
        try:
            heard, line = converse(self.served.port, each, self.bound_s)
            with ExitStack() as held:
                if line is not None:
                    held.callback(line.close)
                _afterwards(self, _judged(self, each, heard))
        except (AssertionError, Garbled, OSError):
            self._start()
            raise

    def ask(self, route: str, directory: str, name: str = "") -> object:
        """The value that a good client is answered."""
        query = f"markerdirpath={quote(directory, safe='')}" + (f"&markername={quote(name, safe='')}" if name else "")
        part = Part(rules.METHODS[route], API + f"{route}?{query}".encode())
        heard, _ = converse(self.served.port, Input("good", (request(part),), Ending.WAIT, (part,)), self.bound_s)
        assert heard.answers and heard.answers[0].status == 200, f"a good {route} of {directory!r} came to {heard}"
        value: object = json.loads(heard.answers[0].body)
        return value

    def grown_bytes(self) -> int:
        """By how much the server's memory grew."""
        return self._rss() - self.rss_bytes

    def close(self) -> None:
        """End the server."""
        self._held.close()

    def _rss(self) -> int:
        rss: int = psutil.Process(self.served.process.pid).memory_info().rss
        return rss


class Account:
    """What storage may hold after an input, and what it must hold."""

    def __init__(self) -> None:
        self.may: set[tuple[str, str]] = set()
        self.must: set[tuple[str, str]] = set()
        self.any_name = False
        self.requests: set[str] = set()
        self.directories: set[str] = set()
        self.unsure: set[str] = set()  # Directories whose deletion was not answered, so it may come late.

    def unanswered(self, asked: Asked) -> None:
        """A request that may have been done."""
        self.directories |= asked.directories
        if asked.route == "/dir/delete":
            self.unsure |= asked.directories
        self.may |= _markers(asked)

    def answered(self, asked: Asked, value: object) -> None:
        """A request that was answered 200 with this value."""
        markers = _markers(asked)
        match asked.route:
            case "/dir/delete":
                self.must = {each for each in self.must if each[0] not in asked.directories}
            case "/create":
                assert isinstance(value, bool), f"a create was answered {value!r}"
                assert markers, "a create was answered of what is no text"
                if len(markers) == 1:
                    resent = bool(asked.requests & self.requests - {""})  # The same answer is due again.
                    assert resent or not (value and markers <= self.must), f"two creates of {markers} answered true"
                    assert value or markers <= self.may, f"{markers} was answered false before there was one"
                    self.must |= markers
                self.requests |= asked.requests
            case "/dir/exists":
                assert isinstance(value, bool)
            case "/all" | "/create-and-merge" | "/append":
                assert isinstance(value, list), f"{asked.route} was answered {value!r}"
        self.may |= markers

    def check(self, stored: Stored, base: str) -> None:
        """Compare with what storage holds."""
        for directory, names in stored.items():
            for name, count in names.items():
                assert self.any_name or (directory, name) in self.may, f"{name!r} in {directory!r}: nobody was told"
                assert count == 1 and good_name(name) and good_directory(directory, base), (directory, name, count)
        sure = {(directory, name) for directory, name in self.must if directory not in self.unsure}
        lacks = {(directory, name) for directory, name in sure if name not in stored.get(directory, Counter())}
        assert not lacks, f"{lacks} was answered and is not stored"


def _markers(asked: Asked) -> set[tuple[str, str]]:
    return {(directory, name) for directory in asked.directories for name in asked.names}


def _judged(here: Place, each: Input, heard: Heard) -> Account:
    """Each whole request is answered in time, with a status that fits."""
    assert heard.end != "silent", f"no end within {here.bound_s:.0f} s of an input that {each.ending.value}"
    account = Account()
    account.any_name = each.kind in BROKEN_TEXT
    requests = [rules.asked(method, target, here.ground.base, each.plain) for method, target in each.requests]
    if not requests and len(head := each.pieces[0].partition(b"\r\n")[0].split(b" ")) > 1:
        account.unanswered(rules.asked(head[0], head[1], here.ground.base, False))
    tidy = all(rules.is_tidy(target) for _, target in each.requests)
    if each.ending is Ending.WAIT and len(heard.answers) < len(requests) and (tidy or len(requests) == 1):
        last = heard.answers[-1] if heard.answers else None
        refused = last is not None and (last.closes or (last.status >= 400 and not each.plain))
        assert refused, f"{len(requests)} requests, {len(heard.answers)} answers, and the connection was {heard.end}"
    for asked, (method, _), number in zip(requests, each.requests, range(len(requests)), strict=True):
        if number >= len(heard.answers):
            account.unanswered(asked)
            continue
        _fits(asked, method, heard.answers[number], account)
    late = [answer for answer in heard.answers[max(1, len(requests)) :] if answer.status < 400]
    assert not late, f"what follows the request was answered {late}"
    return account


def _fits(asked: Asked, method: bytes, answer: Answer, account: Account) -> None:
    shown = f"{asked} was answered {answer.status} {answer.body[:200]!r}"
    assert answer.status == 200 or 400 <= answer.status < 500 or answer.status in (501, 505), shown
    assert asked.due is not Due.REFUSE or answer.status != 200, f"must be refused: {shown}"
    assert asked.due is not Due.ACCEPT or answer.status == 200, f"must be accepted: {shown}"
    if answer.status == 200:
        account.may |= set() if asked.route in rules.METHODS else _markers(asked)  # A path that may be read as another.
    if answer.status == 200 and method != b"HEAD" and asked.route:
        account.answered(asked, json.loads(answer.body))


def _afterwards(here: Place, account: Account) -> None:
    """Good clients are served, and nothing is stored or changed that should not be."""
    base = here.ground.base
    fresh = f"{base}/t0/.hoodie/.temp/20260101999999999"
    # What a client that left asked for is done before what is asked for later in the same directory.
    for directory in (fresh, *(each for each in sorted(account.directories) if each in here.usual)):
        here.good += 1
        name = f"good/{here.good}.marker.CREATE"
        assert here.ask("/create", directory, name) is True
        listed = here.ask("/all", directory)
        assert isinstance(listed, list) and (name in listed or directory in account.unsure)
        assert listed == [name] or directory != fresh
        account.may.add((directory, name))
        account.must.add((directory, name))
    stored = here.ground.stored()
    account.check(stored, base)
    for each in sorted(stored):
        assert here.ask("/dir/delete", each) is True or each in account.unsure
    assert here.ground.stored() == {}
    assert here.ground.touched() == []
    assert here.served.process.poll() is None, "the server's process is gone"


@contextmanager
def placed(root: Path, fault: str = "", bound_s: float = BOUND_S) -> Iterator[Place]:
    place = Place(root, fault, bound_s)
    try:
        yield place
    finally:
        place.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with placed(tmp_path_factory.mktemp("hostile")) as here:
        yield here


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_hostile_input_is_withstood(place: Place, name: str) -> None:
    served = place.served
    for each in KNOWN[name]:
        place.trial(each.filled(place.scene))
    assert place.served is served


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("one name twice", Due.ACCEPT),
        ("a name that is not ASCII", Due.ACCEPT),
        ("a line break in a name", Due.REFUSE),
        ("bytes that are no text", Due.REFUSE),
        ("an empty directory", Due.REFUSE),
        ("a directory outside", Due.REFUSE),
        ("a directory in another one", Due.REFUSE),
    ],
)
def test_the_rules_decide_what_is_plain_and_what_is_forbidden(place: Place, name: str, due: Due) -> None:
    requests = [each for row in KNOWN[name] for each in row.filled(place.scene).requests]
    assert {rules.asked(method, target, place.ground.base, True).due for method, target in requests} == {due}


@settings(max_examples=INPUTS)
@given(st.data())
def test_drawn_hostile_inputs_are_answered_and_change_nothing(place: Place, data: st.DataObject) -> None:
    place.trial(data.draw(place.scene.inputs))


def test_a_server_complains_of_nothing_and_keeps_its_memory(place: Place) -> None:
    """After all inputs before."""
    assert place.grown_bytes() < RSS_GROWTH_MAX_BYTES
    place.served.process.terminate()
    assert place.served.process.communicate() == ("", "")


def _create(ground: Ground, name: str, version: bytes = b"HTTP/1.1") -> bytes:
    directory = f"{ground.base}/t0/.hoodie/.temp/20260101000000000"
    target = API + f"/create?markerdirpath={quote(directory)}&markername={quote(name)}".encode()
    return request(Part(b"POST", target), version)


def _good_create(served: Served, ground: Ground, name: str) -> None:
    assert served.create(f"{ground.base}/t0/.hoodie/.temp/20260101000000000", name) is True


def test_idle_and_half_open_connections_keep_nobody_waiting(tmp_path: Path) -> None:
    with placed(tmp_path) as here, ExitStack() as held:
        half = _create(here.ground, "half.marker.CREATE")
        starts = (b"", half[:20], half[: len(half) // 2], half[:-2], half.replace(b"Length: 0", b"Length: 9") + b"four")
        for number in range(CONNECTIONS):
            line = Line(here.served.port, BOUND_S)
            held.callback(line.close)
            line.send((starts[number % len(starts)],))
        for number in range(10):
            _good_create(here.served, here.ground, f"good{number}.marker.CREATE")
        stored = here.ground.stored()
        assert sum(len(names) for names in stored.values()) == 10, "half a request stores nothing"
        assert here.served.process.poll() is None


def test_slow_clients_are_answered_and_slow_nobody_down(tmp_path: Path) -> None:
    with placed(tmp_path) as here, ExitStack() as held:
        clients = []
        for number in range(40):
            line = Line(here.served.port, BOUND_S)
            held.callback(line.close)
            clients.append((line, _create(here.ground, f"slow{number}.marker.CREATE")))
        for at in range(max(len(data) for _, data in clients)):
            for line, data in clients:
                line.send((data[at : at + 1],))
            if at % 50 == 0:
                _good_create(here.served, here.ground, f"quick{at}.marker.CREATE")
        for line, _ in clients:
            heard = line.answers((b"POST",))
            assert [answer.body for answer in heard.answers] == [b"true"], heard


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_server_is_caught(fault: str, tmp_path: Path) -> None:
    bound_s = 2.0 if fault == "silent-on-bad-text" else BOUND_S  # For hangs alone, unless one is the fault.
    with placed(tmp_path, fault, bound_s) as here, pytest.raises((AssertionError, OSError)):
        for each in KNOWN[FAULTS[fault]]:
            here.trial(each.filled(here.scene))

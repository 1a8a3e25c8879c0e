"""Hostile inputs against a running server, and what must hold after each.

One trial is a few inputs, one connection each. Every whole request must be answered in time with a status that fits;
then a fresh client creates and lists markers, everything that is stored is compared with what was answered, the tree
around the base with what it was, and the server is the same process as before, said nothing of an error and keeps its
memory. The server is new after a trial that broke something, so that Hypothesis can shrink what broke it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from scenarios.fuzz import rules
from scenarios.fuzz.client import Answer, Garbled, Heard, Line, converse
from scenarios.fuzz.ground import Ground
from scenarios.fuzz.http_inputs import API, Ending, Input, Part, Scene, request
from scenarios.fuzz.known import KNOWN
from scenarios.fuzz.ledger import Broken, Ledger
from scenarios.fuzz.rules import Asked, Due
from scenarios.fuzz.subject import Subject

BOUND_S = 10.0
SHRINK_BOUND_S = 2.0
TRIAL_INPUTS_MAX = 25
ROUND_TRIALS = 50
RSS_GROWTH_MAX_BYTES = 256 * 2**20
_NAME_IN_BYTES = re.compile(rb"markername=([^&\s]*)")


class Place(NamedTuple):
    """A fresh tree and the server on it. close: leaves nothing running."""

    ground: Ground
    subject: Subject
    close: Callable[[], None]


@dataclass(slots=True)
class Tally:
    """What was tried and what came of it, by kind of input."""

    inputs: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    owed: Counter[tuple[str, str]] = field(default_factory=Counter)
    trials: int = 0
    servers: int = 0
    unanswered: int = 0
    touched: int = 0
    rss_growth_bytes: int = 0


class HttpFuzzer:
    """Trials against servers that `place` starts, each on a fresh tree at one path; ends them all when it is left."""

    def __init__(self, place: Callable[[int], Place], bound_s: float = BOUND_S, shrink: bool = True) -> None:
        self.statistics = Tally()
        self._phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
        self._place = place
        self._bound_s = bound_s
        self._now: Place | None = None
        self._broken = False
        self._rss_bytes = 0
        self._good = 0

    def __enter__(self) -> HttpFuzzer:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def run_known(self) -> None:
        """Try every known input; Broken names the first that breaks something."""
        for name, rows in KNOWN.items():
            try:
                self.trial([self._filled(row) for row in rows])
            except Broken as broken:
                raise Broken(f"known input {name!r}: {broken}") from broken

    def run(self, inputs: int, start: int) -> None:
        """Try drawn inputs until there were so many; Broken carries the smallest that broke."""
        number = 0
        while self.statistics.inputs.total() < inputs:
            self._round(start * 1_000_003 + number, inputs)
            number += 1

    def trial(self, inputs: Sequence[Input]) -> None:
        """Send the inputs one after another and judge each, then the server, the storage and the tree."""
        here = self._here()
        ledger, held = Ledger(), list[Line]()
        self.statistics.trials += 1
        try:
            for each in inputs:
                self._one(here, each, ledger, held)
            self._afterwards(here, ledger)
        except (Broken, Garbled, OSError) as trouble:
            shown = trouble if isinstance(trouble, Broken) else Broken(f"{type(trouble).__name__}: {trouble}")
            alarm = here.subject.alarms()
            self._bound_s, self._broken = min(self._bound_s, SHRINK_BOUND_S), True
            self._leave()
            text = f"{shown}\n{alarm}" if alarm and alarm not in str(shown) else str(shown)
            raise Broken(f"{text}\n{self._program(here, inputs)}") from trouble
        finally:
            for line in held:
                line.close()

    def _round(self, number: int, inputs: int) -> None:
        """Some trials that one seed makes; the driver is fresh in each round, so a round can be run alone."""
        ground = self._here().ground
        each = Scene(ground.base.uri, ground.out).inputs

        @seed(number)
        @settings(
            max_examples=ROUND_TRIALS,
            database=None,
            deadline=None,
            phases=self._phases,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        @given(st.integers(1, TRIAL_INPUTS_MAX).flatmap(lambda count: st.lists(each, min_size=count, max_size=count)))
        def judged(drawn: list[Input]) -> None:
            # Once something broke, the limit would make what broke it look flaky.
            if self._broken or self.statistics.inputs.total() < inputs:
                self.trial(drawn)

        try:
            judged()
        except BaseExceptionGroup as several:
            raise Broken(f"not each time, so perhaps a race: {_first(several)}") from None

    def _one(self, here: Place, each: Input, ledger: Ledger, held: list[Line]) -> None:
        self.statistics.inputs[each.kind] += 1
        heard, line = converse(here.subject.port, each, self._bound_s)
        if line is not None:
            held.append(line)
        for answer in heard.answers:
            self.statistics.outcomes[each.kind, str(answer.status)] += 1
        if not heard.answers or heard.end == "silent":
            self.statistics.outcomes[each.kind, heard.end] += 1
        if heard.end == "silent":
            self.statistics.unanswered += 1
            raise Broken(f"no end within {self._bound_s:.0f} s of an input that {each.ending.value}: {heard}")
        requests = self._asked(here, each)
        self._enough(each, heard, len(requests))
        for number, asked in enumerate(requests):
            if number < len(heard.answers):
                self.statistics.owed[each.kind, asked.due.value] += 1
                judge_answer(asked, heard.answers[number], ledger)
            else:
                ledger.unanswered(asked)
        for answer in heard.answers[max(1, len(requests)) :]:
            if answer.status < 400:
                raise Broken(f"what follows the request was answered {answer.status} {answer.body[:200]!r}")

    def _enough(self, each: Input, heard: Heard, requests: int) -> None:
        """A waiting client receives as many answers as requests, unless the server refused one and closed."""
        if each.ending is not Ending.WAIT or len(heard.answers) >= requests:
            return
        last = heard.answers[-1] if heard.answers else None
        tidy = all(map(rules.is_tidy, (target for _, target in each.requests)))
        if not tidy and requests > 1:
            return  # What is no HTTP ends the connection, also for the requests before it that wait for answers.
        if last is None or not (last.closes or (last.status >= 400 and not each.plain)):
            self.statistics.unanswered += 1
            raise Broken(f"{requests} requests, {len(heard.answers)} answers, and the connection was {heard.end}")

    def _asked(self, here: Place, each: Input) -> tuple[Asked, ...]:
        requests = each.requests
        if not requests:
            head = b"".join(each.pieces).lstrip(b"\r\n").partition(b"\r\n")[0].split(b" ")
            requests = ((head[0], head[1]),) if len(head) == 3 else ()
        base = here.ground.base
        found = tuple(rules.asked(method, target, base, each.plain) for method, target in requests)
        names = [rules.text_of(raw) for raw in _NAME_IN_BYTES.findall(b"".join(each.pieces))]
        if each.kind in ("mutated", "garbage", "cut"):
            # Bytes were changed anywhere: a second reading of them may find another name or directory.
            return tuple(one._replace(due=Due.EITHER, names=one.names | set(filter(None, names))) for one in found)
        return found

    def _afterwards(self, here: Place, ledger: Ledger) -> None:
        """Good clients are served, and nothing is stored or changed that should not be."""
        base = here.ground.base.path
        for directory in sorted(ledger.accounts):
            if rules.directory_due(directory, base, "/create") is Due.ACCEPT:
                self._create_and_list(here, directory, ledger)
        self._create_and_list(here, f"{base}/t0/.hoodie/.temp/20260101999999999", ledger)
        stored = here.ground.stored()
        ledger.check(stored)
        for directory in sorted(stored):
            value = self._ask(here, "/dir/delete", directory)
            if value is not True:
                raise Broken(f"the deletion of {directory!r}, which holds markers, was answered {value!r}")
        left = here.ground.stored()
        if left:
            raise Broken(f"deleted and still stored: {left}")
        touched = here.ground.touched()
        self.statistics.touched += len(touched)
        if touched:
            raise Broken("touched what is not its own: " + "; ".join(touched[:5]))
        self._healthy(here)

    def _create_and_list(self, here: Place, directory: str, ledger: Ledger) -> None:
        self._good += 1
        name = f"good/{self._good}.marker.CREATE"
        for route, extra in (("/create", name), ("/all", "")):
            asked = Asked(b"", route, Due.ACCEPT, frozenset({directory}), frozenset({name}))
            ledger.done(asked, self._ask(here, route, directory, extra))

    def _ask(self, here: Place, route: str, directory: str, name: str = "") -> object:
        query = f"markerdirpath={quote(here.ground.uri(directory), safe='')}"
        query += f"&markername={quote(name, safe='')}" if name else ""
        part = Part(rules.METHODS[route], API + f"{route}?{query}".encode())
        heard, _ = converse(here.subject.port, Input("good", (request(part),), Ending.WAIT, (part,)), self._bound_s)
        if not heard.answers or heard.answers[0].status != 200:
            raise Broken(f"a good {route} of {directory!r} afterwards came to {heard}")
        value: object = json.loads(heard.answers[0].body)
        return value

    def _healthy(self, here: Place) -> None:
        if not here.subject.alive():
            raise Broken("the server's process is gone")
        alarm = here.subject.alarms()
        if alarm:
            raise Broken(f"the server's output speaks of an error: {alarm}")
        growth = here.subject.rss_bytes() - self._rss_bytes
        self.statistics.rss_growth_bytes = max(self.statistics.rss_growth_bytes, growth)
        if growth > RSS_GROWTH_MAX_BYTES:
            raise Broken(f"the server's memory grew by {growth} bytes")

    def _here(self) -> Place:
        if self._now is None:
            self._now = self._place(self.statistics.servers)
            self.statistics.servers += 1
            self._rss_bytes = self._now.subject.rss_bytes()
        return self._now

    def _leave(self) -> None:
        if self._now is not None:
            place, self._now = self._now, None
            place.close()

    def _filled(self, row: Input) -> Input:
        ground = self._here().ground
        scenario = Scene(ground.base.uri, ground.out)
        parts = tuple(Part(method, scenario.fill(target)) for method, target in row.requests)
        return row._replace(pieces=tuple(map(scenario.fill, row.pieces)), requests=parts)

    def _program(self, here: Place, inputs: Sequence[Input]) -> str:
        rows = "".join(f"    {each!r},\n" for each in _unfilled(inputs, here.ground))
        return f"inputs, as a row of scenarios/fuzz/known.py:\n{rows}"


def judge_answer(asked: Asked, answer: Answer, ledger: Ledger) -> None:
    """The status fits what was asked, and a body of 200 is the JSON that Hudi's clients read."""
    shown = f"{asked} was answered {answer.status} {answer.body[:200]!r}"
    fits = answer.status == 200 or 400 <= answer.status < 500 or answer.status in (501, 505)
    if not fits:
        raise Broken(f"no status for this: {shown}")
    if asked.due is Due.REFUSE and answer.status == 200:
        raise Broken(f"must be refused: {shown}")
    if asked.due is Due.ACCEPT and answer.status != 200:
        raise Broken(f"must be accepted: {shown}")
    if answer.status == 200 and asked.method != b"HEAD" and asked.route:
        with suppress(UnicodeDecodeError, ValueError):
            ledger.done(asked, json.loads(answer.body))
            return
        raise Broken(f"no JSON: {shown}")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception that broke a property, however deep Hypothesis put it."""
    for each in group.exceptions:
        return _first(each) if isinstance(each, BaseExceptionGroup) else each
    raise AssertionError(group)


def _unfilled(inputs: Sequence[Input], ground: Ground) -> list[Input]:
    def strip(text: bytes) -> bytes:
        return text.replace(ground.base.uri.encode(), b"{base}").replace(ground.out.encode(), b"{out}")

    return [
        each._replace(
            pieces=tuple(map(strip, each.pieces)),
            requests=tuple(Part(method, strip(target)) for method, target in each.requests),
        )
        for each in inputs
    ]

"""The judges of writes against definitions that are too slow to ship: random small runs, every moment looked at."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from marker_sim.history import Event, History
from marker_sim.judges import judge
from marker_sim.timeline import COMMIT, ROLLBACK, State, encode_rollback
from properties.judges.jobs import Job, base

INSTANTS = ("001", "002")
FILES = tuple(base(stem, instant, f"{number}-0-0") for instant in INSTANTS for number, stem in enumerate("ab"))
FILE = st.sampled_from(FILES)
INSTANT = st.sampled_from(INSTANTS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("mark"), FILE),
        st.tuples(st.just("put"), FILE),
        st.tuples(st.just("remove"), FILE),
        st.tuples(st.just("finalize"), INSTANT),
        st.tuples(st.just("commit"), INSTANT, st.frozensets(FILE, max_size=2)),
        st.tuples(st.just("rollback"), INSTANT),
        st.tuples(st.just("delete"), INSTANT),
    ),
    max_size=16,
)


def instant_of(path: str) -> str:
    return path.removesuffix(".parquet").rpartition("_")[2]


def tell(steps: list[tuple[object, ...]]) -> History:
    """Two writes have begun; whatever comes is done in any order, commits and rollbacks in single effects."""
    story = Job()
    for instant in INSTANTS:
        story.begin(instant)
    for number, step in enumerate(steps):
        match step:
            case ("mark", str(path)):
                story.mark(path, instant_of(path))
            case ("put", str(path)):
                story.data(path, b"%d" % number)
            case ("remove", str(path)):
                story.data(path, None)
            case ("finalize", str(instant)):
                story.finalize(instant)
            case ("commit", str(instant), frozenset() as paths):
                story.complete(instant, *(path for path in sorted(paths) if instant_of(path) == instant))
            case ("rollback", str(instant)):
                rollback = story.step("rollback", instant)
                story.listing(instant)
                story.entry(f"{instant}-{number}", State.COMPLETED, encode_rollback(instant, COMMIT), ROLLBACK)
                story.done(rollback)
            case ("delete", str(instant)):
                story.delete_markers(instant)
    return story.history()


class Oracle:
    """What is in storage after each event, and what follows by definition."""

    def __init__(self, history: History) -> None:
        self.events = history.events
        stored: set[str] = set()
        self.stored: list[frozenset[str]] = []
        for event in self.events:
            if event.kind == "effect" and event.path is not None:
                (stored.discard if event.value is None else stored.add)(event.path)
            self.stored.append(frozenset(stored))

    def effects(self, path: str) -> list[Event]:
        return [event for event in self.events if event.kind == "effect" and event.path == path]

    def unmarked(self) -> set[str]:
        found = set()
        for path in FILES:
            marker = f"t/.hoodie/.temp/{instant_of(path)}/{path}.marker.CREATE"
            puts = [event.index for event in self.effects(f"t/{path}") if event.value is not None]
            if puts and not any(marker in self.stored[moment] for moment in range(puts[0])):
                found.add(path)
        return found

    def invoked(self, operation: str, instant: str) -> list[int]:
        return [e.index for e in self.events if e.kind == "invoke" and (e.operation, e.instant) == (operation, instant)]

    def listings(self, operation: str, instant: str) -> list[tuple[int, int]]:
        """The first invocation and last completion of the listings within each step."""
        found = []
        for begin in self.invoked(operation, instant):
            end = next(e.index for e in self.events if e.caused_by == begin and e.kind == "ok")
            inside = [e.index for e in self.events[begin + 1 : end] if e.operation.startswith("list")]
            found.append((inside[0], inside[-1]))
        return found

    def late(self) -> set[tuple[str, int]]:
        found = set()
        for path in FILES:
            ends = [end for kind in ("finalize", "rollback") for _, end in self.listings(kind, instant_of(path))]
            for event in self.effects(f"t/{path}"):
                came = event.value is not None and f"t/{path}" not in self.stored[event.index - 1]
                if came and any(end < event.index for end in ends):
                    found.add((path, event.index))
        return found

    def stayed(self, instant: str, low: int, high: int) -> set[str]:
        """The instant's files that were there before `low` and at every moment until `high`."""
        return {
            path
            for path in FILES
            if instant_of(path) == instant
            and all(f"t/{path}" in self.stored[moment] for moment in range(low - 1, high + 1))
        }

    def strays(self) -> set[tuple[str, int]]:
        found = set()
        for instant in INSTANTS:
            content = None
            for event in self.effects(f"t/.hoodie/{instant}.commit"):
                if event.value != content and isinstance(event.value, bytes):
                    before = [listed for listed, _ in self.listings("finalize", instant) if listed < event.index]
                    low = before[-1] if before else event.index
                    named = {path for path in FILES if path.encode() in event.value}
                    found |= {(path, event.index) for path in self.stayed(instant, low, event.index) - named}
                content = event.value
        return found

    def left(self) -> set[tuple[str, int]]:
        found = set()
        for instant in INSTANTS:
            for listed, _ in self.listings("rollback", instant):
                done = next(e.index for e in self.events[listed:] if e.kind == "effect" and "rollback" in str(e.path))
                found |= {(path, done) for path in self.stayed(instant, listed, done)}
        return found

    def deleted_early(self) -> set[tuple[str, int]]:
        found = set()
        for instant in INSTANTS:
            home, commit = f"t/.hoodie/.temp/{instant}", f"t/.hoodie/{instant}.commit"
            for moment in self.invoked("delete", instant):
                before = [listed for listed, end in self.listings("rollback", instant) if end < moment]
                low = before[-1] if before else moment
                marked = {path for path in FILES if f"{home}/{path}.marker.CREATE" in self.stored[low]}
                if commit not in self.stored[moment] and marked & self.stayed(instant, low, moment):
                    found.add((instant, moment))
        return found


def breached(history: History, guarantee: str, words: str) -> set[tuple[str, int]]:
    """The file or instant in each message with these words, and the last event that proves it."""
    (finding,) = judge(history, frozenset({guarantee}))
    return {(b.message.split("'")[1], b.evidence[-1]) for b in finding.breaches if words in b.message}


@settings(deadline=None)
@given(steps=STEPS)
@example(steps=[("mark", FILES[0]), ("put", FILES[0]), ("remove", FILES[0]), ("finalize", "001"), ("put", FILES[0])])
@example(steps=[("put", FILES[2]), ("rollback", "002"), ("put", FILES[2]), ("remove", FILES[2]), ("put", FILES[2])])
@example(steps=[("mark", FILES[0]), ("put", FILES[0]), ("rollback", "001"), ("delete", "001"), ("delete", "001")])
@example(steps=[("put", FILES[2]), ("rollback", "002"), ("mark", FILES[2])])
def test_the_judges_of_writes_find_what_their_definitions_say(steps: list[tuple[object, ...]]) -> None:
    history = tell(steps)
    oracle = Oracle(history)
    assert {path for path, _ in breached(history, "G13", "no marker")} == oracle.unmarked()
    assert breached(history, "G14", "does not name it, and it is stored then") == oracle.strays()
    assert breached(history, "G15", "is left when") == oracle.left()
    assert breached(history, "G20", "was put at event") == oracle.late()
    (finding,) = judge(history, frozenset({"G17"}))
    matches = [
        re.match(r"t/(\d+): the deletion of its markers was invoked at event (\d+) ", b.message)
        for b in finding.breaches
    ]
    early = {(match[1], int(match[2])) for match in matches if match}
    assert early == oracle.deleted_early()

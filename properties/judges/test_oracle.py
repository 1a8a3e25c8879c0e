"""The judges against definitions that are too slow to ship: random small histories, every moment looked at."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from marker_sim.history import Event, History
from marker_sim.judges import judge
from marker_sim.names import stored_names
from properties.faces.history import HistoryIndex
from properties.judges.build import DIRECTORY, Story, marker

NAMES = tuple(marker(letter) for letter in "abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(NAMES)),
        st.tuples(st.just("answer"), st.sampled_from(["created", "exists", "fail", "info"])),
        st.tuples(st.just("write"), st.frozensets(st.sampled_from(NAMES)), st.sampled_from([0, 1])),
        st.tuples(st.just("drop"), st.sampled_from([0, 1])),
        st.tuples(st.just("delete")),
        st.tuples(st.just("deleted"), st.sampled_from(["ok", "fail"])),
        st.tuples(st.just("list"), st.frozensets(st.sampled_from(NAMES))),
        st.tuples(st.just("kill")),
    ),
    max_size=14,
)


def tell(steps: list[tuple[object, ...]]) -> History:
    """Play drawn steps; answers go to the oldest open call."""
    story = Story(num_threads=2)
    story.start()
    asks: list[int] = []
    deletes: list[int] = []
    lives = 1
    for step in steps:
        match step:
            case ("ask", str(name)):
                asks.append(story.ask(name))
            case ("answer", str(answer)) if asks:
                ok = answer in ("created", "exists")
                story.end(
                    asks.pop(0), "ok" if ok else answer, answer if ok else None, error=None if ok else "no answer"
                )
            case ("write", frozenset() as names, int(file)):
                story.put(f"{DIRECTORY}/MARKERS{file}", "".join(f"{name}\n" for name in sorted(names)).encode())
            case ("drop", int(file)):
                story.put(f"{DIRECTORY}/MARKERS{file}", None)
            case ("delete",):
                deletes.append(story.invoke("delete"))
            case ("deleted", str(outcome)) if deletes:
                story.end(deletes.pop(0), outcome, True if outcome == "ok" else None)
            case ("list", frozenset() as names):
                story.list(*names)
            case ("kill",):
                story.kill(f"server#{lives}")
                lives += 1
                story.start(f"server#{lives}")
    return story.history()


class Oracle:
    """Everything by definition: what is stored after each event, and which calls surround it."""

    def __init__(self, history: History) -> None:
        self.events = history.events
        files: dict[str, bytes] = {}
        self.stored: list[frozenset[str]] = []
        for event in self.events:
            if event.kind == "effect" and event.path is not None:
                if isinstance(event.value, bytes):
                    files[event.path] = event.value
                else:
                    files.pop(event.path, None)
            self.stored.append(stored_names(DIRECTORY, files))
        self.ended = {event.caused_by: event for event in self.events if event.kind in ("ok", "fail", "info")}

    def calls(self, operation: str) -> list[tuple[Event, Event | None]]:
        return [(e, self.ended.get(e.index)) for e in self.events if e.kind == "invoke" and e.operation == operation]

    def answers(self) -> list[tuple[Event, Event]]:
        return [(ask, done) for ask, done in self.calls("create") if done is not None and done.kind == "ok"]

    def deletions(self) -> list[tuple[int, float]]:
        """When each deletion may act: from its invocation to its answer; refused ones never."""
        return [
            (invoke.index, done.index if done is not None else float("inf"))
            for invoke, done in self.calls("delete")
            if done is None or done.kind == "ok"
        ]

    def flushed(self, answer: str) -> set[int]:
        """G1 and G2: answers that storage does not back."""
        return {
            done.index
            for ask, done in self.answers()
            if done.value == answer
            and not any(begin < done.index and ask.index < end for begin, end in self.deletions())
            and ask.path not in self.stored[done.index]
        }

    def lost(self) -> set[str]:
        """G3: names that were stored at or after an answer and are absent later."""
        found: set[str] = set()
        for ask, done in self.answers():
            assert ask.path is not None
            if any(begin < done.index < end for begin, end in self.deletions()):
                continue
            limit = min((begin for begin, _ in self.deletions() if begin > done.index), default=len(self.events))
            moments = range(done.index, limit)
            there = [ask.path in self.stored[moment] for moment in moments]
            if not there[0] and any(begin < done.index and ask.index < end for begin, end in self.deletions()):
                continue
            first = there.index(True) if True in there else len(there)
            if False in there[first:]:
                found.add(ask.path)
        return found

    def returned(self) -> set[str]:
        """G10: names stored at some moment after an answered deletion without a create that allows it."""
        found: set[str] = set()
        for begin, end in self.deletions():
            if end == float("inf"):
                continue
            for moment in range(int(end), len(self.events)):
                for name in self.stored[moment]:
                    allowed = any(
                        ask.path == name
                        and ask.index <= moment
                        and (done is None or done.index > begin or done.kind == "info")
                        and not (done is not None and done.kind == "fail")
                        for ask, done in self.calls("create")
                    )
                    if not allowed:
                        found.add(name)
        return found

    def ghosts(self) -> set[str]:
        """G4: names stored at a moment before any request for them, where any request named the directory."""
        found: set[str] = set()
        if all(event.kind != "invoke" for event in self.events):
            return found
        for moment, names in enumerate(self.stored):
            asked = {
                ask.path
                for ask, done in self.calls("create")
                if ask.index < moment and not (done is not None and done.kind == "fail")
            }
            found |= names - asked
        return found

    def short(self) -> set[tuple[int, str]]:
        """G11: (listing, name) that was answered before and is not shown, with no deletion in between."""
        found: set[tuple[int, str]] = set()
        for invoke, done in self.calls("list"):
            if done is None or not isinstance(done.value, tuple):
                continue
            for ask, answer in self.answers():
                assert ask.path is not None
                due = answer.index < invoke.index and not any(
                    begin < done.index and ask.index < end for begin, end in self.deletions()
                )
                if due and ask.path not in done.value:
                    found.add((invoke.index, ask.path))
        return found


def breached(history: History, guarantee: str) -> list[str]:
    (finding,) = judge(history, frozenset({guarantee}))
    return [breach.message for breach in finding.breaches]


@settings(deadline=None)
@given(steps=STEPS)
@example(steps=[("ask", NAMES[0]), ("answer", "created"), ("write", frozenset(NAMES), 0), ("drop", 0), ("kill",)])
@example(steps=[("ask", NAMES[0]), ("write", frozenset(NAMES[:1]), 0), ("answer", "created"), ("delete",)])
def test_the_fast_judges_agree_with_the_definitions(steps: list[tuple[object, ...]]) -> None:
    history = tell(steps)
    oracle = Oracle(history)
    for guarantee, answer in (("G1", "created"), ("G2", "exists")):
        told = [message.partition(f'was answered "{answer}" at event ')[2] for message in breached(history, guarantee)]
        assert {int(text.split()[0]) for text in told} == oracle.flushed(answer)
    assert {message.split("'")[1] for message in breached(history, "G3")} == oracle.lost()
    assert {message.split("'")[1] for message in breached(history, "G10") if " stored " in message} == oracle.returned()
    ghosts = {message.split("'")[1] for message in breached(history, "G4") if "no create had requested it" in message}
    assert ghosts == oracle.ghosts()
    (finding,) = judge(history, frozenset({"G11"}))
    lists = {event.index for event in history.events if event.kind == "invoke" and event.operation == "list"}
    found = {(*lists.intersection(breach.evidence), breach.message.split("'")[1]) for breach in finding.breaches}
    assert found == oracle.short()


@settings(deadline=None)
@given(steps=STEPS)
def test_presence_by_interval_is_presence_by_definition(steps: list[tuple[object, ...]]) -> None:
    history = tell(steps)
    oracle = Oracle(history)
    spans = HistoryIndex(history).rest.home(DIRECTORY).spans
    for moment, names in enumerate(oracle.stored):
        open_ = {name for name, span in spans.items() if sum(edge <= moment for edge in span) % 2}
        assert open_ == names


CONTENTS = st.binary(max_size=12) | st.lists(st.sampled_from("ab\n"), max_size=12).map(lambda s: "".join(s).encode())


@settings(deadline=None)
@given(contents=st.lists(st.none() | CONTENTS, max_size=8), extend=st.lists(st.booleans(), min_size=8, max_size=8))
def test_parsing_only_what_was_added_finds_what_parsing_everything_finds(
    contents: list[bytes | None], extend: list[bool]
) -> None:
    story = Story()
    before = b""
    for content, more in zip(contents, extend, strict=False):
        if content is not None and more:
            content = before + content  # noqa: PLW2901
        story.put(f"{DIRECTORY}/MARKERS0", content)
        before = content or b""
    history = story.history()
    oracle = Oracle(history)
    spans = HistoryIndex(history).rest.home(DIRECTORY).spans
    for moment, names in enumerate(oracle.stored):
        assert {name for name, span in spans.items() if sum(edge <= moment for edge in span) % 2} == names

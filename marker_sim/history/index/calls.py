"""The records of a HistoryIndex: calls, writes and their steps, deletions, server lives, faults, directories, names.

Judges derive their statements about missing markers from the life of a name. Where storage is only read at intervals,
effects, if the run has any, show more than the reads: in a format that only its own reader can read, a file that bears
the name, or has it in its content, is taken to hold it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qs

from marker_sim.faults import FAULT_CLASS
from marker_sim.history import Event, Value
from marker_sim.history.index.presence import NEVER, present

NO_LIFE = -1
SEVERAL_LIVES = -2
LISTINGS = frozenset({"list", "list-data", "list-log"})
STEPS = frozenset({"begin", "rollback", "sweep", "attempt", "finalize", "commit"})
DAMAGE = "damage"
CHANGED_BY_KIT = (DAMAGE, "directory-removed")
SPREADING = frozenset({"disk-full", "no-space"})  # Faults that affect other paths too.
DEADLY = frozenset({"kill", "torn-write"})
MS = 1_000_000
_WITHIN = rb"[^\s\"'\\,;=\x00-\x1f]"  # A byte next to a text that makes it part of a longer name.


class RecordedCall(NamedTuple):
    """One invocation with its outcome.

    done: the index of its completion, NEVER while open. life: the `started` event of the server life that received
    it, or to which it was addressed; NO_LIFE without a server, SEVERAL_LIVES when a duplicate reached another one.
    """

    invoke: int
    done: int
    outcome: str  # ok, fail, info or open
    operation: str
    name: str
    value: Value
    identity: Value
    life: int

    @property
    def span(self) -> tuple[int, int]:
        """The events at which it began and ended."""
        return self.invoke, self.done

    @property
    def asked(self) -> str:
        """The name in a hostile request as it would be read from a file: without the quotes in which the simulated
        world records it, and with surrogates for invalid UTF-8.
        """
        text = self.identity
        if isinstance(text, bytes):
            return text.decode("utf-8", "surrogateescape")
        with suppress(SyntaxError, ValueError):
            if isinstance(text, str) and text[:1] in ("'", '"'):
                return str(literal_eval(text))
        return str(text)

    @property
    def asked_names(self) -> tuple[str, ...]:
        """The names that a hostile request may ask for: itself, and those in its query."""
        query = self.asked.rpartition("?")[2]
        return self.asked, *parse_qs(query, keep_blank_values=True).get("markername", ())


class WriteStep(NamedTuple):
    """One part of a write: begin, rollback, sweep, attempt, finalize or commit.

    done and outcome: as of a RecordedCall.
    instant: "" for a begin that did not end ok.
    path: of an attempt, relative to the table.
    """

    invoke: int
    done: int
    outcome: str
    operation: str
    process: str
    table: str
    instant: str
    path: str

    def surrounds(self, index: int) -> bool:
        """Whether an event happened between the step's invocation and its completion."""
        return self.invoke < index < self.done

    def may_act(self, index: int) -> bool:
        """Whether a request of the step may be applied at an event; with an unknown outcome, at any later one."""
        return self.invoke < index and (index < self.done or self.outcome != "ok")


class TableWrite(NamedTuple):
    """One write of a black-box write path, as its caller saw it. rows: the "key=value" that it upserts, sorted.

    service: the table service that it was instead, "" for none.
    """

    invoke: int
    done: int
    outcome: str
    process: str
    table: str
    rows: tuple[str, ...]
    service: str = ""


class Deletion(NamedTuple):
    """A deletion, which may have had an effect from `invoke` until `settled`.

    answered: its `ok`, NEVER for none.
    kit: whether it is damage by the kit, which is an excuse like a deletion, but no promise of an empty directory.
    """

    invoke: int
    settled: int
    answered: int
    life: int
    kit: bool = False


class FaultSpan(NamedTuple):
    """One fault, from event `begin` to `end` (equal for a momentary one).

    touched: the invocation that it disturbed. home: the marker directory of its path, None where it has none, or one
    that nobody named: a server's own, which may belong to any.
    """

    kind: str
    cls: str
    process: str
    path: str | None
    touched: int | None
    begin: int
    end: int
    home: str | None

    @property
    def storage(self) -> bool:
        """Whether it is a fault of storage."""
        return FAULT_CLASS.get(self.kind) == "storage"

    def reaches(self, low: int, directory: str | None) -> bool:
        """Whether it matters to a directory from an event on; decided by the invocation it touched, or by its path."""
        if self.cls == "wire":
            return self.touched is None or self.touched >= low
        return self.cls != "storage" or directory is None or self.concerns(directory)

    def concerns(self, directory: str) -> bool:
        """Whether it may have affected a marker directory: by its home, or because it has none or spreads."""
        return self.home in (None, directory) or self.kind in SPREADING


@dataclass(slots=True, eq=False)
class ServerLife:
    """One life of a server; `end` is NEVER while it lives, `exited` says that it ended by itself."""

    start: int
    process: str
    end: int = NEVER
    exited: bool = False
    pauses: list[tuple[int, int]] = field(default_factory=list)

    def well(self, low: int, high: int) -> bool:
        """Whether it lived and was not paused from `low` to `high`."""
        return self.start <= low and high < self.end and not self.paused(low, high)

    def paused(self, low: int, high: int) -> bool:
        """Whether it was paused at any time from `low` to `high`."""
        return any(begin <= high and low <= end for begin, end in self.pauses)


@dataclass(slots=True, eq=False)
class Directory:
    """The calls of one marker directory. creates: in order of completion, open ones last. answers: those answered ok.

    deletions: those that may have had an effect, by invocation.
    """

    path: str
    creates: list[RecordedCall] = field(default_factory=list)
    answers: list[RecordedCall] = field(default_factory=list)
    listings: list[RecordedCall] = field(default_factory=list)
    deletes: list[RecordedCall] = field(default_factory=list)
    others: list[RecordedCall] = field(default_factory=list)
    hostile: list[RecordedCall] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)

    def disturbed(self, low: int, high: int) -> bool:
        """Whether a deletion may have had an effect between `low` and `high`."""
        for deletion in self.deletions:
            if deletion[0] >= high:
                return False
            if deletion[1] > low:
                return True
        return False

    def protected(self, moment: int) -> Iterator[tuple[int, int]]:
        """The intervals, up to the next deletion, in which a marker answered at an event must stay stored.

        They continue after damage by the kit, and after deletions that were open at that event, for markers that
        remained.
        """
        low = moment
        for deletion in self.deletions:
            if deletion.settled <= low:
                continue
            if deletion.invoke > low:
                yield low, deletion.invoke
            if deletion.invoke > moment and not deletion.kit:
                return
            low = deletion.settled
        if low < NEVER:
            yield low, NEVER

    def deleted(self, low: int, high: int) -> bool:
        """Whether a deletion was invoked between two events, so that earlier markers need not remain."""
        return any(low < deletion.invoke < high for deletion in self.deletions)

    def settled_before(self, moment: int) -> int:
        """The last event at which a deletion invoked before `moment` may have had an effect, -1 for none."""
        return max((d.settled for d in self.deletions if d.invoke < moment), default=-1)


class NameLife(NamedTuple):
    """The life of one name. spans: [from, to, from, to, ...] as in presence.py; witnessed: from effects, complete."""

    spans: tuple[int, ...]
    witnessed: bool

    def stored(self, moment: int) -> bool:
        """Whether it was stored at an event."""
        return present(list(self.spans), moment) is not None

    def since(self, moment: int) -> int | None:
        """The event since which the name, stored at `moment`, has been stored; None if it is not stored then."""
        return max(at for at in self.spans[::2] if at <= moment) if self.stored(moment) else None

    def came(self, after: int) -> int | None:
        """The next event at which it was stored."""
        return next((at for at in self.spans[::2] if at > after), None)

    def gone(self, low: int, high: int) -> int | None:
        """The last event that removed it between `low` and `high`, at which it is not stored."""
        if self.stored(high):
            return None
        return max((at for at in self.spans[1::2] if low < at <= high), default=None)

    def around(self, moment: int) -> str:
        """The end of a sentence about a name that is not stored at an event: when it was stored."""
        came, gone = self.came(moment), self.gone(-1, moment)
        if gone is not None:
            again = f", and stored again at event {came}" if came is not None else ""
            return f"; it was gone from event {gone} on{again}"
        if came is not None:
            return f"; it was stored at event {came}"
        return ", nor at any other time" if self.witnessed else ", and no reading of storage shows it"


def life_from_effects(effects: Iterable[Event], directory: str, name: str) -> NameLife:
    """The life of a name in a marker directory, from the effects on its files, whatever their format is."""
    path = f"{directory}/{name}"
    text = re.escape(name.encode("utf-8", "surrogateescape"))
    # It begins with the text itself, which makes the search a hundred times as fast.
    held_in = re.compile(b"%b(?<!%b%b)(?!%b)" % (text, _WITHIN, text, _WITHIN))
    files: set[str] = set()
    spans: list[int] = []
    for event in effects:
        assert event.path is not None
        content = event.value if isinstance(event.value, bytes) else None
        held = content is not None and (event.path == path or held_in.search(content) is not None)
        if held != (event.path in files):
            files ^= {event.path}
            if bool(files) != bool(len(spans) % 2):
                spans.append(event.index)
    return NameLife(tuple(spans), witnessed=True)

"""Judge of the rows that readers find in a black-box table: G24 rows-survive, from writes and rows alone.

One writer writes a table, one write after the other, and a row's text says which write it is of. So a key shows the
last write of it that is visible. Writes that ended ok are visible; those of unknown outcome are or are not, wholly, and
stay so. Each reader is judged by itself, and readers of one rest, between the same two writes, by each other.

The value of a row that the kit wrote follows its last "=", so that a key may hold one; elsewhere it follows the first.
A restore takes back, on purpose, what was written after the last savepoint. While one that began is not completed, or
that savepoint is not certain, keys that it may have taken back are not judged, nor whether the table can be read. Other
table services change no row.

A row of the kit without a value deletes: a key that is not found may be so by any deletion after which no completed
write wrote it. Where that may be more than one, or the key may never have been visible, it decides about none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.judges.findings import Inquiry, judge_of

UNSUPPORTED = "unsupported:"


@judge_of("G24")
def rows_survive(case: Inquiry) -> None:
    """G24: at every reading after a completed write each key is found once, as the last visible write of it left it.

    A write of unknown outcome shows in all of its keys or in none, at each reading the same, also before any write
    completed. A reader that cannot read such tables at all says "unsupported:" and is not judged.
    """
    view = case.view
    case.applicable = bool(view.table_writes and view.rows)
    writes = sorted(view.table_writes, key=lambda write: write.done)  # Of several writers the last to end wrote last.
    refused = ""
    decided = _Decided({}, {})
    rows_of = Rows(view.header.world in ("spark", "java"))
    for event in view.rows:
        before = [write for write in writes if write.table == event.table and write.invoke < event.index]
        mine, unsure = not_taken_back(before, rows_of)
        if unsure and view.excuse("restore-unfinished") and event.error is not None:
            continue
        done = any(write.outcome == "ok" and write.done < event.index for write in mine)
        if not mine or (event.error is not None and not done and view.excuse("no-write-completed")):
            continue
        if event.error is not None and event.error.startswith(UNSUPPORTED) and view.excuse("reader-unsupported"):
            refused = event.error
            continue
        case.judged += 1
        ended = [index for write in mine if write.done < event.index for index in (write.invoke, write.done)][-2:]
        if event.error is not None:
            message = f"{event.table} cannot be read by {event.process}: {event.error}"
            case.breach(message, (event.index,), also=ended)
            continue
        for message, evidence in _wrong(event, mine, decided, rows_of, unsure):
            text = f"{event.table} as {event.process} reads it: {message}"
            case.breach(text, (*evidence, event.index), also=ended)
    case.undecided = refused if not case.judged else ""


def not_taken_back(writes: list[TableWrite], rows_of: Rows) -> tuple[list[TableWrite], set[str]]:
    """Of the writes before a reading those of rows that no restore took back, and the keys of what one may have."""
    kept, unsure, saved = list[TableWrite](), set[str](), 0
    for write in writes:
        ok = write.outcome == "ok"
        if not write.service:
            kept.append(write)
        elif write.service == "savepoint":
            saved = len(kept) if ok else 0
        elif write.service == "restore" and ok and saved:
            del kept[saved:]
            unsure = set()
        elif write.service == "restore":
            unsure |= {rows_of.key_of(row) for other in kept[saved:] for row in other.rows}
    return kept, unsure


class Rows(NamedTuple):
    """How rows are read. kit: whether the kit wrote them; then one without a value is a deletion."""

    kit: bool

    def key_of(self, row: str) -> str:
        """The key of a row."""
        return row.rpartition("=")[0] if self.kit else row.partition("=")[0]

    def deletes(self, row: str) -> bool:
        """Whether a row is a deletion."""
        return self.kit and row.endswith("=")

    def named(self, row: str) -> str:
        """A row in words."""
        return f"{self.key_of(row)!r} (deleted)" if self.deletes(row) else repr(row)

    def absent(
        self, rows: list[tuple[str, TableWrite]], seen: Collection[int], unseen: Collection[int]
    ) -> tuple[int | None, bool]:
        """Where among the writes of a key it is when it is not found, None before all, and whether that is certain.

        seen, unseen: writes that are visible or not, as other keys show.
        """
        first = max((n for n, (_, w) in enumerate(rows) if w.outcome == "ok" or w.invoke in seen), default=-1)
        gone = [n for n, (row, _) in enumerate(rows) if self.deletes(row)]
        may = [n for n in gone if n >= first]
        if len(may) > 1:
            may = [n for n in may if rows[n][1].invoke not in unseen]
        if not may:  # What was written after the last deletion is lost.
            return max((n for n in gone if n < first), default=None), False
        return may[-1], len(may) == 1 and first >= 0


class _Decided(NamedTuple):
    """What readings showed about a write of unknown outcome: whether it is visible, and the first reading that tells.

    by_reader: by reader and write. at_rest: by the last write before the reading and the write, with the reader; a
    reading during a write has a key of its own.
    """

    by_reader: dict[tuple[str, int], tuple[bool, int]]
    at_rest: dict[tuple[int, int], tuple[bool, int, str]]


def _wrong(
    event: Event, writes: list[TableWrite], decided: _Decided, rows_of: Rows, unsure: set[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The mistakes in one reading with the writes that prove them; at most one breach for each write. unsure: keys that
    are not judged.
    """
    key_of, history = rows_of.key_of, dict[str, list[tuple[str, TableWrite]]]()
    for row, write in ((row, each) for each in writes for row in each.rows if key_of(row) not in unsure):
        history.setdefault(key_of(row), []).append((row, write))
    found = [row for row in event.texts if key_of(row) not in unsure]
    shown = {key_of(row): row for row in found}
    for key, count in sorted(Counter(key_of(row) for row in found).items()):
        if count > 1:
            yield f"the key {key!r} is found {count} times", ()
    for key in sorted(shown.keys() - history.keys()):
        yield f"the row {shown[key]!r} is of no write", ()
    seen: dict[int, list[str]] = {}
    unseen: dict[int, list[str]] = {}
    lost: dict[int, list[str]] = {}
    # Keys that are not found come last: what others show of writes decides by which deletion one may be so.
    deleted = {key: key not in shown and sum(row.endswith("=") for row, _ in rows) for key, rows in history.items()}
    for key, rows in sorted(history.items(), key=lambda each: (each[0] not in shown, deleted[each[0]], each[0])):
        at, certain = next((n for n, (row, _) in enumerate(rows) if row == shown.get(key)), None), True
        if at is None and key in shown:
            yield f"the row {shown[key]!r} is of no write of its key", (rows[-1][1].invoke,)
            continue
        if at is None:
            at, certain = rows_of.absent(rows, seen, unseen)
        for row, write in rows[0 if at is None else at + 1 :]:
            (lost if write.outcome == "ok" else unseen).setdefault(write.invoke, []).append(row)
        if at is not None and certain and rows[at][1].outcome != "ok":
            seen.setdefault(rows[at][1].invoke, []).append(rows[at][0])
    by_invoke = {write.invoke: write for write in writes}
    for invoke, rows_lost in sorted(lost.items()):
        key = key_of(rows_lost[0])
        instead = f"{shown[key]!r} is" if key in shown else "nothing of its key is"
        message = (
            f"{len(rows_lost)} of the {len(by_invoke[invoke].rows)} rows of a completed write are not found, the first"
            f" {rows_of.named(rows_lost[0])}, for which {instead}"
        )
        yield message, (invoke, by_invoke[invoke].done)
    yield from _in_part(event, by_invoke, seen, unseen, decided, rows_of)


def _in_part(
    event: Event,
    writes: dict[int, TableWrite],
    seen: dict[int, list[str]],
    unseen: dict[int, list[str]],
    decided: _Decided,
    rows_of: Rows,
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The mistakes in writes that did not end ok: found in part, failed and found, or not found by all readings."""
    for invoke in sorted(seen.keys() | unseen.keys()):
        write = writes[invoke]
        if invoke in seen and invoke in unseen:
            message = (
                f"a write that ended {write.outcome} is found in part: {rows_of.named(seen[invoke][0])} is and"
                f" {rows_of.named(unseen[invoke][0])} is not, of which no later write is found"
            )
            yield message, (invoke,)
            continue
        if invoke in seen and write.outcome == "fail":
            yield f"the row {rows_of.named(seen[invoke][0])} is of a write that failed", (invoke, write.done)
            continue
        now = invoke in seen
        row = rows_of.named((seen if now else unseen)[invoke][0])
        before, when = decided.by_reader.setdefault((event.process, invoke), (now, event.index))
        rest = max(writes) if all(other.done < event.index for other in writes.values()) else -event.index
        first, read_at, reader = decided.at_rest.setdefault((rest, invoke), (now, event.index, event.process))
        if first != now and reader != event.process:
            finds, misses = (event.process, reader) if now else (reader, event.process)
            yield (
                f"the row {row} of a write that ended {write.outcome} is found by {finds} and not by {misses},"
                " with no write in between",
                (invoke, read_at),
            )
        elif before != now:
            was = "was found before and is not now" if before else "was not found before and is now"
            yield (
                f"the row {row} of a write that ended {write.outcome} {was}",
                (invoke, when),
            )

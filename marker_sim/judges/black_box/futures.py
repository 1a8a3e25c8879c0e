"""Judges of what becomes of a table: G30 leftovers-stay-unseen, G31 records-are-true, G32 metadata-is-true.

A future begins with the first `future` event: a reading of the table as the writes left it, then one after each step.
All other judges see only what came before. Right at a step is what Hudi read before the future where a write can have
left that, and the rows of the writes of the future since, of one that failed those before it as well until a reading
shows which; after a restore what was right at the savepoint, after one that failed what was so before it as well. A
reader that differs from Hudi before the first step is wrong at once.

The horizon of what other judges found is the first step at which a reader finds wrong rows, "harmless so far" if none.
It also says which step fails for ever, if one does: that accuses nobody, for what prevents it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from marker_sim.history import Event, History
from marker_sim.history.index.calls import TableWrite
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.table_audit import CLEANING, Audit
from marker_sim.judges.black_box.rows import UNSUPPORTED, Rows, not_taken_back
from marker_sim.judges.findings import Breach, Finding, breach_of
from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import ROLLBACK

_DELETED = ("deleted", "will-delete")
_TWICE = "|twice|"  # Between the values of a key that Hudi's readers find more than once.
_Rows = dict[str, set[tuple[str, ...]]]  # What may be found of each key.
_NOT_THERE: set[tuple[str, ...]] = {()}
_ANY = (_TWICE,)  # What may be found is not known.


class _Case:
    """A history with a future. steps: its events in order; begin: the first."""

    def __init__(self, view: HistoryIndex) -> None:
        self.view = view
        self.steps = [event for event in view.future if event.operation == "future"]
        self.begin = self.steps[0].index
        self.audits = [audit for audit in view.tables.audits if audit.begin > self.begin]
        self.judged = 0

    def when(self, index: int) -> tuple[int, str]:
        """The number of the step before an event, and when that is in words."""
        taken = [str(event.value) for event in self.steps if event.index <= index][1:]
        return len(taken), f"after step {len(taken)} ({taken[-1]})" if taken else "before the first step"

    def finding(self, guarantee: str, breaches: list[Breach], undecided: str = "") -> Finding:
        """The finding of a judge."""
        told = "" if self.judged or breaches else undecided or "no step of its future was read"
        return Finding(guarantee=guarantee, judged=self.judged, breaches=tuple(breaches), undecided=told)


def judge_of_futures(guarantee: str, judged: Callable[[_Case], Finding]) -> Callable[[HistoryIndex], Finding]:
    """A judge of histories with a future; not applicable to others."""

    def found(view: HistoryIndex) -> Finding:
        begun = any(event.operation == "future" for event in view.future)
        return judged(_Case(view)) if begun else Finding(guarantee=guarantee, applicable=False)

    return found


def leaves(history: History) -> bool:
    """Whether the last audit shows anything that a failed write or rollback left: a file of no completed commit, a
    marker, an entry that is not completed or cannot be read; or a file that is missing.
    """
    audits = HistoryIndex(history).tables.audits
    if not audits:
        return False
    audit = audits[-1]
    broken = audit.markers or audit.unfinished or any(entry.error for entry in audit.entries)
    left = any(not owner or audit.covers(owner) for owner in audit.owned.keys() - audit.committed.keys())
    missing = (path for path in audit.claims.keys() - audit.files.keys() if not audit.deleting(path, *CLEANING))
    return bool(broken or left) or any(missing)


def horizon(view: HistoryIndex) -> str:
    """The horizon of what the writes of a history with a future left, in words; "" for a future without a step."""
    case = _Case(view)
    first = next(_wrong(case), None)
    fails = _failing(case)
    if first is not None:
        return f"{first[0]}{fails}"
    steps, readers = len(case.steps) - 1, sorted({event.process for event in view.rows if event.index > case.begin})
    if not case.judged:
        return f"no step after it could be read{fails}"
    others = int(view.header.options.get("harmless_futures", 0))
    as_before = f", as hudi did in the {others} futures that were played before this one" if others else ""
    words = f"harmless so far: {' and '.join(readers)} still found the right rows {case.when(view.end)[1]}"
    return f"{words}{as_before}{fails}" if steps else ""


def _failing(case: _Case) -> str:
    """The first step that fails and does not succeed later either, in words; "" for none."""
    last = {event.value: event.error for event in case.steps}
    for number, event in enumerate(case.steps):
        if event.error and last[event.value]:
            return f", and step {number} ({event.value!s}) fails: {event.error:.200}"
    return ""


def _leftovers_stay_unseen(case: _Case) -> Finding:
    table = case.steps[0].table
    breaches = [breach_of(case.view, f"{table}: {words}", evidence) for words, evidence in _wrong(case)]
    return case.finding("G30", breaches, "what Hudi reads before the future is not known")


def _wrong(case: _Case) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The first wrong reading of each reader, in their order: what it finds and when, with the evidence."""
    view = case.view
    before = [event for event in view.rows if event.index < case.begin and event.process == "hudi"]
    if not before or before[-1].error is not None:
        return
    writes = [write for write in view.table_writes if write.invoke > case.begin]
    may = _written({}, not_taken_back([each for each in view.table_writes if each not in writes], Rows(True))[0])
    may = {key: {own} & may.get(key, _NOT_THERE) or {_ANY} for key, own in _by_key(before[-1], may).items()}
    since: list[_Rows] = []  # The savepoint, if it is known: what may have been found then, and after each write.
    half: str | None = ""  # Why the last restore failed, which a later write may finish.
    failed = {row for write in view.table_writes if write.outcome != "ok" for row in write.rows}
    events = sorted([*case.steps, *(e for e in view.rows if e.index > case.begin)], key=lambda e: e.index)
    done: set[str] = set()
    for event in events:
        while writes and writes[0].done < event.index:
            may = _written(may, [writes.pop(0)])
            since = since and [*since, may]
        if event.operation == "future":
            if event.value == "savepoint":
                since = [] if event.error else [may]
            elif event.value == "restore":
                half = event.error
                since = since if half else since[:1]
                may = {key: set().union(*(each.get(key, _NOT_THERE) for each in since)) or {_ANY} for key in may}
            continue
        if event.process in done or not (words := _reading(case, event, dict(may) if half else may, failed)):
            continue
        done.add(event.process)
        step, when = case.when(event.index)
        if event.process != "hudi-rs" or step:
            yield f"{event.process} {words} {when}", (before[-1].index, event.index)
        else:
            view.excuse("reader-unsupported")


def _written(may: _Rows, writes: Iterable[TableWrite]) -> _Rows:
    """What may be found after some writes, where one of unknown outcome had an effect or none."""
    may = dict(may)
    for write in writes:
        for key, _, value in (row.rpartition("=") for row in write.rows):
            may[key] = {(value,) if value else ()} | (set() if write.outcome == "ok" else may.get(key, _NOT_THERE))
    return may


def _reading(case: _Case, event: Event, may: _Rows, failed: set[str]) -> str:
    """What a reader finds that is not right, "" for nothing; then readers may find nothing else until the next write.

    What hudi-rs finds decides for no other reader.
    """
    if event.error is not None:
        if event.error.startswith(UNSUPPORTED) or event.process == "hudi-rs":
            case.view.excuse("reader-unsupported")
            return ""
        return f"cannot read the table any more ({event.error:.200})"
    case.judged += 1
    found = _by_key(event, may)
    wrong = (key for key in sorted(found) if found[key] not in may.get(key, _NOT_THERE))
    sure = [key for key in wrong if _ANY not in may.get(key, ()) or not case.view.excuse("wrong-before")]
    if not sure and event.process != "hudi-rs":
        may |= {key: {own} for key, own in found.items() if own in may[key]}
    if not sure:
        return ""
    lost = [key for key in sure if not found[key]]
    twice = [key for key in sure if len(found[key]) > 1]
    back = [key for key in sure if found[key] and may.get(key, _NOT_THERE) == _NOT_THERE]
    old = [key for key in sure if key not in {*twice, *back, *lost}]
    kinds = {"more than once": twice, "of no completed write": back, "lost": lost, "with other values": old}
    counts = ", ".join(f"{len(keys)} {words}" for words, keys in kinds.items() if keys)
    count = len(failed & {f"{key}={value}" for key in sure for value in found[key]})
    of_failed = f", {count} of them of failed writes" if count else ""
    first, instead = sure[0], [*max(may.get(sure[0], _NOT_THERE))]
    return f"finds {len(sure)} wrong rows ({counts}{of_failed}), of {first!r} {[*found[first]]} instead of {instead},"


def _by_key(event: Event, may: _Rows) -> dict[str, tuple[str, ...]]:
    """The values of each key that a reader finds, none of others that may be there."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(may, ())
    for row in event.texts:
        key, _, values = row.partition("=")
        found[key] = *found.get(key, ()), *values.split(_TWICE)
    return found


def _records_are_true(case: _Case) -> Finding:
    """G31: each record that is new at a step, against the files of that step; of those before the future, rollbacks.
    A completed one stays as it was.
    """
    breaches, before, said = list[Breach](), dict[str, int](), set[str]()
    known, errors = dict[str, TableEntry](), set[str]()

    def add(audit: Audit, about: str, message: str, *evidence: int) -> None:
        breaches.append(breach_of(case.view, f"{audit.table}/{about}: {message}", (*evidence, audit.begin)))

    for number, audit in enumerate(case.audits):
        new = [entry for entry in audit.entries if entry.path not in known]
        said |= {p for e in new if e.action in (*CLEANING, ROLLBACK) for word in _DELETED for p in e.of(word)}
        for archive in audit.archives.values():
            said |= {*archive.texts}
            if archive.error and archive.error not in errors:
                add(audit, archive.path or "", f"the archive cannot be read: {archive.error}", archive.index)
                errors.add(archive.error)
        for entry in (each for each in audit.entries if each.done):
            older = known.get(entry.path)
            if older == entry._replace(event=older.event if older else 0):
                continue
            if entry.error:
                add(audit, entry.instant, f"its completed {entry.action} cannot be read: {entry.error}", entry.event)
            elif older and not older.error:
                message = f"its completed {entry.action} was changed {case.when(audit.begin)[1]}"
                add(audit, entry.instant, message, older.event, entry.event)
            elif number or entry.action == ROLLBACK:
                case.judged += 1
                if told := _untrue(audit, entry, said if number else {*entry.of("wrote")}):
                    add(audit, entry.instant, f"its {entry.action} {told}", entry.event)
        known = {entry.path: entry for entry in audit.entries}
        sizes = {path: audit.sizes[path] for path in audit.files}
        other = (path for path, size in before.items() if sizes.get(path) != size)
        if silent := {path for path in other if sizes.get(path, -1) < before[path] or ".log." not in path} - said:
            message = f"{min(silent)!r} was deleted or changed {case.when(audit.begin)[1]}, and no record says so"
            add(audit, "", message)
        before = sizes
    return case.finding("G31", breaches)


def _untrue(audit: Audit, entry: TableEntry, said: set[str]) -> str:
    """What is not true in a completed record, "" for nothing. said: the files that may be gone.

    A compaction or clustering that was rolled back runs again under the same instant, with the same names.
    """
    gone = [path for path in entry.of("wrote") if path not in audit.files.keys() | said]
    again = {path for path, claim in audit.claims.items() if claim.instant in entry.of("rolled-back")}
    deleted = {*entry.of("deleted")}
    kept = deleted & audit.files.keys() - {*entry.of("not-deleted")} - again
    silent = {p for e in audit.entries if e.instant == entry.instant for p in e.of("will-delete")} - deleted
    if gone:
        return f"says that it wrote {gone[0]!r}, which is not stored"
    if kept:
        return f"says that it deleted {min(kept)!r}, which is stored"
    return f"does not name {min(silent)!r}, which its plan says it deletes" if silent else ""


def _metadata_is_true(case: _Case) -> Finding:
    """G32: each listing by the metadata table, against the files of its audit; those of instants that no completed
    commit had are left aside.
    """
    completed = set[str]()
    listings = [event for event in case.view.future if event.operation == "listing"]
    for audit in case.view.tables.audits:
        completed = completed - audit.rolled_back.keys() | audit.committed.keys()
        for event in (each for each in listings if audit.begin < each.index < audit.end):
            case.judged += 1
            listed = {*event.texts}
            more = sorted(listed - audit.files.keys())
            less = sorted(audit.files.keys() - listed)
            less = [path for path in less if _completed(case.view, audit.owner(path), completed)]
            when = case.when(event.index)[1]
            told = f"does not list {less[0]!r} {when}, which a completed commit wrote" if less else ""
            told = f"lists {more[0]!r} {when}, which is not stored" if more else told
            told = f"cannot be read {when}: {event.error:.200}" if event.error else told
            if told:
                message = f"{audit.table}: the metadata table {told}"
                return case.finding("G32", [breach_of(case.view, message, (audit.begin, event.index))])
    return case.finding("G32", [], "it has no metadata table")


def _completed(view: HistoryIndex, owner: str, completed: set[str]) -> bool:
    """Whether the instant of a file is completed, as far as it is known."""
    return owner in completed or (not owner and not view.excuse("owner-unknown"))


leftovers_stay_unseen = judge_of_futures("G30", _leftovers_stay_unseen)
records_are_true = judge_of_futures("G31", _records_are_true)
metadata_is_true = judge_of_futures("G32", _metadata_is_true)

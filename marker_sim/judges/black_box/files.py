"""Judges of the files of a table at rest: G14 reconcile-exact and G15 rollback-complete.

Only certain cases are breaches. Not judged are log files of timeline layout 1 whose write is unknown, files that a
task may have written after finalize or after the rollback listed markers, and missing files where entries of the
timeline cannot be read; they make a finding undecided when nothing else was judged. Each file is reported once, at the
first audit that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.table_audit import Audit
from marker_sim.history.index.tables import Tables
from marker_sim.judges.findings import Breach, Finding, breach_of
from marker_sim.names import TEMP
from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import UNDOING

# The number judged, the breaches, and the number undecided.
Count = tuple[int, list[Breach], int]


def judge_of_tables(
    guarantee: str, check: Callable[[HistoryIndex, Tables], Count]
) -> Callable[[HistoryIndex], Finding]:
    """A judge made of a check that returns the number judged, the breaches, and the number undecided.

    Not applicable to a history without an audit that was ended. Undecided when nothing was judged and something could
    not be decided.
    """

    def judged(view: HistoryIndex) -> Finding:
        tables = view.tables
        if not tables.audits:
            return Finding(guarantee=guarantee, applicable=False)
        count, breaches, open_ = check(view, tables)
        undecided = ""
        if not count and not breaches and open_:
            reasons = [why for audit in tables.audits for why in (audit.hides_loss, audit.hides_instants) if why]
            undecided = reasons[0] if reasons else f"the writes of {open_} files or instants are unknown"
        breaches.sort(key=lambda breach: (breach.evidence, breach.message))
        return Finding(
            guarantee=guarantee, applicable=True, judged=count, breaches=tuple(breaches), undecided=undecided
        )

    return judged


def breach(view: HistoryIndex, audit: Audit, instant: str, message: str, *evidence: int) -> Breach:
    """A breach about an instant that an audit shows, counted under the faults before the audit."""
    proof = (*evidence, *((audit.write.invoke,) if audit.write else ()), audit.begin)
    return breach_of(view, f"{audit.table}/{instant}: {message}", proof, f"{audit.table}{TEMP}{instant}")


def _reconcile_exact(view: HistoryIndex, tables: Tables) -> Count:
    """G14, of every completed commit of every audit: the files that it names are stored, unless a clean deleted them;
    and no other data file of its instant is left that was stored when its markers were listed. A commit with a file
    that cannot be decided is not counted.
    """
    judged, open_ = 0, 0
    found: dict[tuple[str, str], Breach] = {}
    for audit in tables.audits:
        for entry in audit.entries:
            if entry.done and entry.error and entry.action not in UNDOING:
                message = f"its completed entry {entry.path} cannot be read: {entry.error}"
                add(found, audit, entry.path, breach(view, audit, entry.instant, message, entry.event))
        for instant, commit in audit.committed.items():
            if commit.error:
                continue
            before = open_
            for path, message in _missing(view, audit, commit):
                if audit.hides_loss:
                    open_ += view.excuse("timeline-hidden")
                else:
                    add(found, audit, path, breach(view, audit, instant, message, commit.event))
            for path in audit.owned.get(instant, ()):
                if path in audit.named:
                    continue
                if tables.surely_before_finalize(audit, path, commit):
                    message = f"{path!r} of the instant is stored, and its completed commit does not name it"
                    proof = breach(view, audit, instant, message, audit.files[path], commit.event)
                    add(found, audit, path, proof)
                else:
                    open_ += view.excuse("late-write")
            judged += open_ == before
    return judged, list(found.values()), open_


def _missing(view: HistoryIndex, audit: Audit, commit: TableEntry) -> Iterator[tuple[str, str]]:
    """Files that a commit names which are missing, empty or of another size than it says, and which neither a clean nor
    a restore deleted.
    """
    said = commit.numbers("size")
    for path in commit.of("wrote"):
        if path in audit.files:
            size = audit.sizes[path]
            if path.endswith(".parquet") and size == 0:
                yield path, f"its completed commit names {path!r}, which is empty"
            elif said.get(path, str(size)) != str(size):
                yield path, f"its completed commit says that {path!r} has {said[path]} bytes, and it has {size!r}"
        elif path in audit.cleaned:
            view.excuse("clean-took-it")
        elif path not in audit.taken:
            yield path, f"its completed commit names {path!r}, which is not stored, and no clean deleted it"


def _rollback_complete(view: HistoryIndex, tables: Tables) -> Count:
    """G15, of every completed rollback: no file of its instant is left, and it deleted no committed file; and of every
    data file: its instant is on the timeline, or a rollback names it.

    A log file of layout 1 may stay when a command block of the rollback is in its file group. Not judged are a
    compaction that was rolled back and is pending again, and a rollback whose time is unknown.
    """
    judged, open_ = 0, 0
    found: dict[tuple[str, str], Breach] = {}
    for audit in tables.audits:
        for instant, rollbacks in audit.rolled_back.items():
            before = open_
            if instant in audit.waiting:
                open_ += view.excuse("waits-its-turn")
                continue
            for path in audit.owned.get(instant, ()) if instant not in audit.committed else ():
                message = left(view, audit, rollbacks[-1], path)
                if message and tables.surely_before_rollback(audit, path, rollbacks[-1]):
                    proof = breach(view, audit, instant, message, audit.files[path], rollbacks[-1].event)
                    add(found, audit, path, proof)
                elif message:
                    open_ += view.excuse("late-write")
            if open_ == before and not tables.tells_rollbacks(audit):
                view.excuse("tasks-outlive-driver")
            elif open_ == before:
                judged += 1
        for path, commit in audit.named.items():
            if path not in audit.files and path in audit.taken and path not in audit.cleaned:
                rollback = audit.taken[path]
                message = f"{path!r}, which its completed commit names, was deleted by the rollback {rollback.instant}"
                add(found, audit, path, breach(view, audit, commit.instant, message, commit.event, rollback.event))
        for instant, paths in audit.owned.items():
            if instant in audit.known:
                continue
            if not instant or audit.hides_instants:
                open_ += len(paths)
                view.excuse("timeline-hidden" if instant else "owner-unknown")
                continue
            for path in paths:
                message = f"{path!r} bears an instant of which the timeline has neither a write nor a rollback"
                add(found, audit, path, breach(view, audit, instant, message, audit.files[path]))
    return judged, list(found.values()), open_


def left(view: HistoryIndex, audit: Audit, rollback: TableEntry, path: str) -> str:
    """The reason why a file of a rolled back instant should have been deleted, "" for none."""
    undone = audit.undone.get(path, rollback)
    if path not in audit.undone and not audit.log_of_base(path):
        return f"{path!r} is stored although the rollback {rollback.instant} of its instant is completed"
    if audit.covers(undone, path) or (audit.covers(undone, path, attempted=True) and view.excuse("block-of-attempt")):
        return ""
    return f"{path!r} is stored, and the rollback {undone.instant} of its instant put no command block into its group"


def add(found: dict[tuple[str, str], Breach], audit: Audit, path: str, proof: Breach) -> None:
    """Keep the first breach about a path."""
    found.setdefault((audit.table, path), proof)


reconcile_exact = judge_of_tables("G14", _reconcile_exact)
rollback_complete = judge_of_tables("G15", _rollback_complete)

"""Judges of the files of a table at rest: G14 reconcile-exact and G15 rollback-complete.

Only certain cases are breaches. Not judged are log files of timeline layout 1 whose write is unknown, files that a
task may have written after finalize or after the rollback listed markers, and missing files where entries of the
timeline cannot be read; they make a finding undecided when nothing else was judged. Each file is reported once, at the
first audit that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.table_audit import CLEANING, Audit
from marker_sim.judges.findings import Breach, Finding, breach_of
from marker_sim.names import TEMP
from marker_sim.tables.entries import TableEntry
from marker_sim.timeline import UNDOING


class TableInquiry:
    """What a judge finds in the tables of a history.

    judged: the number decided. open: the number that could not be decided.
    breaches: the first one by table and what it is about.
    """

    def __init__(self, view: HistoryIndex) -> None:
        self.view = view
        self.tables = view.tables
        self.judged = 0
        self.open = 0
        self.breaches: dict[tuple[str, str], Breach] = {}

    def excuse(self, name: str) -> None:
        """Count that an excuse kept something undecided."""
        self.open += self.view.excuse(name)

    def add(self, audit: Audit, about: str, instant: str, message: str, *evidence: int) -> None:
        """Add a breach about an instant that an audit shows, counted under the faults before the audit."""
        if (audit.table, about) not in self.breaches:
            proof = (*evidence, *((audit.write.invoke,) if audit.write else ()), audit.begin)
            text = f"{audit.table}/{instant}: {message}"
            self.breaches[audit.table, about] = breach_of(self.view, text, proof, f"{audit.table}{TEMP}{instant}")

    def finding(self, guarantee: str, undecided: str) -> Finding:
        """The result of the judge."""
        breaches = sorted(self.breaches.values(), key=lambda breach: (breach.evidence, breach.message))
        return Finding(guarantee=guarantee, judged=self.judged, breaches=tuple(breaches), undecided=undecided)


def judge_of_tables(guarantee: str, check: Callable[[TableInquiry], object]) -> Callable[[HistoryIndex], Finding]:
    """A judge made of a check that fills an inquiry.

    Not applicable to a history without an audit that was ended. Undecided when nothing was judged and something could
    not be decided.
    """

    def judged(view: HistoryIndex) -> Finding:
        audits = view.tables.audits
        if not audits:
            return Finding(guarantee=guarantee, applicable=False)
        case = TableInquiry(view)
        check(case)
        undecided = ""
        if not case.judged and not case.breaches and case.open:
            reasons = [why for audit in audits for why in (audit.hidden(*CLEANING), audit.hidden(*UNDOING)) if why]
            undecided = reasons[0] if reasons else f"the writes of {case.open} files or instants are unknown"
        return case.finding(guarantee, undecided)

    return judged


def _reconcile_exact(case: TableInquiry) -> None:
    """G14, of every completed commit of every audit: the files that it names are stored, unless a clean deleted them;
    and no other data file of its instant is left that was stored when its markers were listed. A commit with a file
    that cannot be decided is not counted.
    """
    for audit in case.tables.audits:
        for entry in audit.entries:
            if entry.done and entry.error and entry.action not in UNDOING:
                message = f"its completed entry {entry.path} cannot be read: {entry.error}"
                case.add(audit, entry.path, entry.instant, message, entry.event)
        for instant, commit in audit.committed.items():
            if commit.error:
                continue
            before = case.open
            for path, message in _missing(case.view, audit, commit):
                if audit.hidden(*CLEANING):
                    case.excuse("timeline-hidden")
                else:
                    case.add(audit, path, instant, message, commit.event)
            for path in audit.owned.get(instant, ()):
                if path in audit.claims:
                    continue
                if case.tables.surely_before_finalize(audit, path, commit):
                    message = f"{path!r} of the instant is stored, and its completed commit does not name it"
                    case.add(audit, path, instant, message, audit.files[path], commit.event)
                else:
                    case.excuse("late-write")
            case.judged += case.open == before


def _missing(view: HistoryIndex, audit: Audit, commit: TableEntry) -> Iterator[tuple[str, str]]:
    """Files that a commit names which are empty or of another size than it says, or are missing and either no clean and
    no restore deleted them or readers need them.
    """
    said = commit.numbers("size")
    for path in commit.of("wrote"):
        if path in audit.files:
            size = audit.sizes[path]
            if path.endswith(".parquet") and size == 0:
                yield path, f"its completed commit names {path!r}, which is empty"
            elif said.get(path, str(size)) != str(size):
                yield path, f"its completed commit says that {path!r} has {said[path]} bytes, and it has {size!r}"
            continue
        needed = audit.convicts(audit.claims[path])
        if not needed and audit.deleting(path, *CLEANING):
            view.excuse("clean-took-it")
        elif audit.taken(path) is None:
            why = "no clean may delete it" if needed else "no clean deleted it"
            yield path, f"its completed commit names {path!r}, which is not stored, and {why}"


def _rollback_complete(case: TableInquiry) -> None:
    """G15, of every completed rollback: no file of its instant is left, and it deleted no committed file; and of every
    data file: its instant is on the timeline, or a rollback names it.

    A log file of layout 1 may stay when a command block of the rollback is in its file group. Not judged are a
    compaction that was rolled back and is pending again, and a rollback whose time is unknown.
    """
    for audit in case.tables.audits:
        for instant, rollback in audit.rolled_back.items():
            before = case.open
            for path, message in left(case, audit, instant, rollback):
                case.add(audit, path, instant, message, audit.files[path], rollback.event)
            if case.open == before and not case.tables.tells_rollbacks(audit):
                case.view.excuse("tasks-outlive-driver")
            elif case.open == before:
                case.judged += 1
        for path, claim in audit.claims.items():
            taken = None if path in audit.files or audit.deleting(path, *CLEANING) else audit.taken(path)
            if taken is not None:
                message = f"{path!r}, which its completed commit names, was deleted by the rollback {taken.instant}"
                case.add(audit, path, claim.instant, message, audit.committed[claim.instant].event, taken.event)
        for instant, paths in audit.owned.items():
            if instant in audit.known:
                continue
            if not instant or audit.hidden(*UNDOING):
                case.open += len(paths)
                case.view.excuse("timeline-hidden" if instant else "owner-unknown")
                continue
            for path in paths:
                message = f"{path!r} bears an instant of which the timeline has neither a write nor a rollback"
                case.add(audit, path, instant, message, audit.files[path])


def left(case: TableInquiry, audit: Audit, instant: str, rollback: TableEntry) -> Iterator[tuple[str, str]]:
    """The files of a rolled back instant that should have been deleted, each with the reason."""
    if instant in audit.waiting:
        case.excuse("waits-its-turn")
        return
    for path in audit.owned.get(instant, ()) if instant not in audit.committed else ():
        message = _left(case.view, audit, rollback, path)
        if message and case.tables.surely_before_rollback(audit, path, rollback):
            yield path, message
        elif message:
            case.excuse("late-write")


def _left(view: HistoryIndex, audit: Audit, rollback: TableEntry, path: str) -> str:
    """The reason why a file of a rolled back instant should have been deleted, "" for none."""
    undone = audit.saying("undone").get(path, [rollback])[-1]
    if path not in audit.saying("undone") and not audit.log_of_base(path):
        return f"{path!r} is stored although the rollback {rollback.instant} of its instant is completed"
    if audit.undoes(undone, path) or (audit.undoes(undone, path, attempted=True) and view.excuse("block-of-attempt")):
        return ""
    return f"{path!r} is stored, and the rollback {undone.instant} of its instant put no command block into its group"


reconcile_exact = judge_of_tables("G14", _reconcile_exact)
rollback_complete = judge_of_tables("G15", _rollback_complete)

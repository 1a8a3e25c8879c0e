"""Judge of the rows that a reader of the table finds at the end: G24 rows-survive.

In plans of writes each write has an ordinal, which its commit names, and every task of it writes the rows
"<partition>/<group>/<ordinal>=<ordinal>", "<partition>/<group>/all=<ordinal>" and, since a key that every write
updates hides rows that an old log file restores, "<partition>/<group>/<odd or even>=<ordinal>". So the expected rows
follow from the plan and the commits. A history without such a plan is not judged; older ones have no third row. A
commit that was there before the run has one row in each group, "<partition>/<group>/<instant>=0".
"""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.history import Event
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.write_path import Completion, WritePathIndex
from marker_sim.judges.findings import Inquiry
from marker_sim.judges.write_path.steps import judge_of_writes
from marker_sim.timeline import WriteStat, parse_data_file


@judge_of_writes("G24")
def rows_survive(case: Inquiry) -> None:
    """G24: the rows of every completed write of the plan are found, and no group shows an older write than its last."""
    view, path = case.view, case.view.writes
    _in_log_files(case)
    for event in view.rows:
        if event.error is not None:
            case.judged += 1
            _unreadable(case, event, event.error)
            continue
        pairs = (row.rpartition("=") for row in event.texts)
        found = {key: value for key, _, value in pairs}
        third = any(key.endswith(("/odd", "/even")) for key in found)
        for done, key, ordinal in _expected(view, str(event.table), third):
            case.judged += 1
            shown = found.get(key)
            if shown is None or not shown.isdigit() or int(shown) < ordinal:
                what = "is not found" if shown is None else f"shows {shown!r}"
                message = f"the row {key!r} of write {ordinal} of {event.table}, completed at event {done.at}, {what}"
                message += _since(path, done, key)
                case.breach(message, (done.at, event.index), also=(path.answer(done),))


def _unreadable(case: Inquiry, event: Event, error: str) -> None:
    """The breach of a table that cannot be read, with the commit whose file is missing, else the last one."""
    path = case.view.writes
    commits = [done for done in path.commits if done.key[0] == event.table]
    named = [(done, stat.path) for done in commits for stat in done.stats or () if stat.path in error]
    gone = next((path.gone(done.key[0], file, event.index) for done, file in named), None)
    message = f"{event.table} cannot be read: {error}"
    message += f"; it was gone from event {gone} on" if gone is not None else ""
    last = [done for done, _ in named] or commits
    case.breach(message, (event.index,), also=[path.answer(done) for done in last[-1:]])


def _since(path: WritePathIndex, done: Completion, row: str) -> str:
    """The end of a sentence: what happened to the files that contain a row."""
    group = row.rpartition("/")[0]
    if not any(_group(stat) == group for stat in done.stats or ()):
        return "; its commit names no file of its group"
    harm = next((harm for harm in path.harms if harm.key == done.key and harm.at > done.at), None)
    if harm is not None:
        return f"; its committed file {harm.path!r} was removed or changed at event {harm.at}"
    later = [
        other.at
        for other in path.commits
        if other.key[0] == done.key[0] and other.at > done.at
        for stat in other.stats or ()
        if _group(stat) == group
    ]
    if later:
        return f"; the commit of event {max(later)} wrote its group last"
    newer = (
        (other.key[1], other.at)
        for other in path.commits
        if other.key[0] == done.key[0] and other.at < done.at and other.key[1] > done.key[1]
        if any(_group(stat) == group for stat in other.stats or ())
    )
    instant, at = max(newer, default=("", 0))
    return f"; its group has the later instant {instant}, committed before it at event {at}" if instant else ""


def _group(stat: WriteStat) -> str:
    return f"{stat.partition}/{stat.file_id.removesuffix('-0')}"


def _in_log_files(case: Inquiry) -> None:
    """Commits of the run that put rows of a COPY_ON_WRITE table into a log file, where its readers do not look."""
    view, path = case.view, case.view.writes
    if (view.header.plan or {}).get("merge_on_read", True):
        return
    for done in path.commits:
        logs = [
            stat.path for stat in done.stats or () if (file := parse_data_file(stat.path)) and file.version is not None
        ]
        if logs and done.at >= view.start:
            message = f"{'/'.join(done.key)}: its commit names the log file {logs[0]!r}, and the table is COPY_ON_WRITE"
            case.breach(message, (done.at,), also=(path.answer(done),))


def _expected(view: HistoryIndex, table: str, third: bool) -> Iterator[tuple[Completion, str, int]]:
    """The expected rows: the commit that wrote each, its key, and the least ordinal that it may show."""
    writes = (view.header.plan or {}).get("writes", ())
    for done in view.writes.commits:
        ordinal = done.ordinal
        if done.key[0] != table:
            continue
        if done.at < view.start:
            for stat in done.stats or ():
                yield done, f"{_group(stat)}/{done.key[1]}", 0
            continue
        if ordinal is None or not 0 < ordinal <= len(writes):
            view.excuse("not-in-plan")
            continue
        for task in writes[ordinal - 1].get("tasks", ()):
            group = f"{task.get('partition', '')}/{task.get('group', 'f0')}"
            yield done, f"{group}/{ordinal}", ordinal
            yield done, f"{group}/all", ordinal
            if third:
                yield done, f"{group}/{'odd' if ordinal % 2 else 'even'}", ordinal

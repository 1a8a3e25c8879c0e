"""Judge of two histories of one plan: G21 modes-agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marker_sim.history import History
from marker_sim.history.index.calls import Directory
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.findings import Breach, Finding, breach_of
from marker_sim.timeline import parse_data_file


@dataclass(frozen=True, slots=True)
class _Run:
    """The facts of one run that are compared, by table. named: paths by ordinal, of "markers" or "commits"."""

    view: HistoryIndex
    named: Mapping[tuple[str, str], frozenset[str]]
    rows: Mapping[str, tuple[str, ...] | None]
    rows_at: Mapping[str, int]
    committed: Mapping[str, int]


def modes_agree(first: History, second: History) -> Finding:
    """G21: both modes lead to the same table. The evidence is events of the second history.

    Without a fault in both: the markers and the commits of every table name the same data paths, where an instant
    counts as the ordinal of its write. With several copies of a task, and where a create failed, only the commits are
    compared, and any attempt counts as any other. With faults: the rows are the same, if each write of the plan that
    was meant to complete has completed in both. A table whose rows could not be read is not judged; reconcile-exact
    and rollback-complete judge missing files.
    """
    if _plan(first) != _plan(second):
        return Finding(guarantee="G21", undecided="the two histories are of different plans")
    views = (HistoryIndex(first), HistoryIndex(second))
    failed = any(map(_create_failed, views))
    exact = not failed and not any(map(_has_copies, views))
    runs = (_read(views[0], exact), _read(views[1], exact))
    if not all(view.stepped for view in views):
        return Finding(guarantee="G21", applicable=False)
    if any(run.view.header.witness != "effects" for run in runs):
        undecided = "storage was read now and then, so what was committed is not known"
        return Finding(guarantee="G21", undecided=undecided)
    faultless = not any(run.view.faults for run in runs)
    judged = 0
    breaches: list[Breach] = []
    excused: dict[str, int] = {}
    if faultless:
        judged += len(runs[0].named.keys() | runs[1].named.keys())
        excused["create-failed"] = len(runs[0].rows) if failed else 0
        breaches += _other_paths(*runs)
    if faultless or all(_all_completed(run) for run in runs):
        tables = [t for t, rows in runs[0].rows.items() if rows is not None and runs[1].rows.get(t) is not None]
        judged += len(tables)
        excused["rows-unread"] = len(runs[0].rows) - len(tables)
        breaches += [breach for table in tables for breach in _other_rows(*runs, table)]
    else:
        excused["write-incomplete"] = len(runs[0].rows)
    decided = tuple(sorted((name, count) for name, count in excused.items() if count))
    return Finding(guarantee="G21", judged=judged, breaches=tuple(breaches), excused=decided)


def _plan(history: History) -> dict[str, Any]:
    return {name: value for name, value in (history.header.plan or {}).items() if name != "mode"}


def _has_copies(view: HistoryIndex) -> bool:
    """Whether a task has several copies: whether one starts at all depends on when the first attempt succeeds."""
    return any(task.get("copies", 1) > 1 for write in _writes(view) for task in write.get("tasks", ()))


def _create_failed(view: HistoryIndex) -> bool:
    """Whether a create got no answer: its task is tried again, and a stray marker is not."""
    return any(call.operation == "create" and call.outcome != "ok" for _, call in view.calls())


def _read(view: HistoryIndex, exact: bool) -> _Run:
    events = [event for event in view.rows if event.table is not None]
    rows = {str(e.table): e.value if isinstance(e.value, tuple) and not e.error else None for e in events}
    return _Run(
        view=view,
        named=_named(view, exact),
        rows=rows,
        rows_at={str(event.table): event.index for event in events},
        committed=_completed(view),
    )


def _named(view: HistoryIndex, exact: bool) -> dict[tuple[str, str], frozenset[str]]:
    path = view.writes
    ordinals: dict[str, dict[str, int]] = {}
    for write in path.writes:
        known = ordinals.setdefault(write.key[0], {})
        known.setdefault(write.key[1], len(known))
    named: dict[tuple[str, str], frozenset[str]] = {}
    for table, known in ordinals.items():
        directories = (path.directory((table, instant)) for instant in known)
        asked = [view.names_data(name)[1] for d in directories if d is not None for name in _markers(view, d)]
        committed = [stat.path for done in path.commits if done.key[0] == table for stat in done.stats or ()]
        named[table, "commits"] = frozenset(_neutral(file, known, exact) for file in committed)
        if exact:
            named[table, "markers"] = frozenset(_neutral(file, known, exact) for file in asked)
    return named


def _markers(view: HistoryIndex, directory: Directory) -> set[str]:
    """The markers that were ever stored in a directory, or answered where storage is not known."""
    home = None if view.reads else view.rest.homes.get(directory.path)
    return {call.name for call in directory.answers} if home is None else set(home.spans)


def _completed(view: HistoryIndex) -> Counter[str]:
    """The number of completed writes of each table, of those begun before all faults were healed."""
    healed = min((index for index, phase in view.phases if phase != "faults"), default=NEVER)
    begun = {write.key for write in view.writes.writes if write.begin.invoke < healed}
    return Counter(table for table, _ in begun.intersection(done.key for done in view.writes.commits))


def _writes(view: HistoryIndex) -> list[dict[str, Any]]:
    return list((view.header.plan or {}).get("writes", ()))


def _all_completed(run: _Run) -> bool:
    """Whether, of the writes begun before faults were healed, each table completed as many as the plan meant to."""
    plan = run.view.header.plan or {}
    tables = plan.get("tables", ["t"])
    meant = Counter(tables[write.get("table", 0)] for write in _writes(run.view) if not write.get("abandon"))
    return bool(meant) and all(run.committed.get(table, 0) == count for table, count in meant.items())


def _neutral(path: str, ordinals: Mapping[str, int], exact: bool) -> str:
    """A data path with ordinals instead of instants and, unless exact, without its attempt."""
    file = parse_data_file(path)
    if file is None:
        for instant, ordinal in ordinals.items():
            path = path.replace(instant, f"#{ordinal}")
        return path
    # Every engine numbers stages in its own way; ours makes the number from the instant.
    token = f"{file.token.task}-{file.token.attempt}" if exact else str(file.token.task)
    made = f"#{ordinals[file.instant]}" if file.instant in ordinals else file.instant
    version = "" if file.version is None else f".log.{file.version}"
    return f"{file.partition}/{file.file_id}_{token}_{made}{version}"


def _other_paths(first: _Run, second: _Run) -> Iterator[Breach]:
    for key in sorted(first.named.keys() | second.named.keys()):
        table, what = key
        one, other = first.named.get(key, frozenset()), second.named.get(key, frozenset())
        differ = sorted(one ^ other)
        if differ:
            has = first if differ[0] in one else second
            mode = has.view.header.mode
            message = f"the {what} of {table} name {differ[0]!r} in {mode} mode only ({len(differ)} path(s) differ)"
            last = second.rows_at.get(table, second.view.end - 1)
            yield breach_of(second.view, message, (last,), also=(_answer(second, table),))


def _other_rows(first: _Run, second: _Run, table: str) -> Iterator[Breach]:
    one, other = first.rows[table] or (), second.rows[table] or ()
    differ = sorted({*one} ^ {*other})
    if differ:
        mode = (first if differ[0] in one else second).view.header.mode
        message = f"{table} has the row {differ[0]!r} in {mode} mode only ({len(differ)} row(s) differ)"
        faulted = second.view if second.view.faults else first.view
        under, fault = faulted.blamed(0, faulted.end)
        shown = {second.rows_at[table], _answer(second, table), fault if faulted is second.view else None}
        evidence = tuple(sorted(index for index in shown if index is not None and index < second.view.end))
        yield Breach(message=message, evidence=evidence, under=under)


def _answer(run: _Run, table: str) -> int | None:
    """The answer to the last commit of a table, None where none was committed."""
    return next((run.view.writes.answer(d) for d in reversed(run.view.writes.commits) if d.key[0] == table), None)

"""A program as a system under test.

The parts of a write that a program may have of its own; the kit's write client performs the others:

attempt    in an executor: the marker, then the file with the content that the kit gives
finalize   in the driver: delete every file that a marker names and no accepted attempt wrote
commit     in the driver: put the completed instant on the timeline
rollback   in the driver: delete every file that a marker names, then take the instant off the timeline
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from marker_sim.command import PREFIX
from marker_sim.command.messages import WRITE
from marker_sim.command.programs import ProgramPool, pool_of
from marker_sim.command.session import Acts, Line, ProgramSession, make_factory, session_of
from marker_sim.markers.store import Context
from marker_sim.names import data_path
from marker_sim.system import Outside, System
from marker_sim.timeline import COMMIT, Entry, WriteStat
from marker_sim.writer.attempt import (
    Assignment,
    CreateMarker,
    make_marker,
    marker_of,
    rows_of,
    stat_of,
)
from marker_sim.writer.client import UNDONE, Journal, Markers, WriteClient, no_journal
from marker_sim.writer.slices import LINES, RowFormat


class ProgramWriteClient(WriteClient):
    """The driver's side of a write, with the program's finalize, commit and rollback where it has them."""

    def __init__(
        self,
        pool: ProgramPool,
        table: str,
        context: Context,
        markers: Markers,
        action: str = COMMIT,
        journal: Journal = no_journal,
    ) -> None:
        super().__init__(table, context, markers, action, journal)
        self._parts = pool.hello.parts
        self._call = session_of(pool, WRITE, context).call

    def _reconcile(self, instant: str, accepted: frozenset[str]) -> None:
        if "finalize" not in self._parts:
            super()._reconcile(instant, accepted)
            return
        listing = partial(self._ask, self._markers.store(self._directory(instant)).list_all)
        files = sorted(f"{self._table}/{path}" for path in accepted)
        acts = self._listing(instant, listing, accepted)
        self._call("finalize", acts, table=self._table, instant=instant, files=files)

    def _complete(self, entry: Entry, data: bytes) -> None:
        if "commit" not in self._parts:
            super()._complete(entry, data)
            return
        told = {"instant": entry.instant, "path": entry.path(self._table), "data": base64.b64encode(data).decode()}
        self._call("commit", {}, table=self._table, **told)

    def _undo(self, instant: str, action: str) -> None:
        if "rollback" not in self._parts:
            super()._undo(instant, action)
            return
        listing = partial(self._markers.stored, self._directory(instant))
        entries = [Entry(instant, action, state).path(self._table) for state in UNDONE]
        acts = self._listing(instant, listing, frozenset())
        self._call("rollback", acts, table=self._table, instant=instant, entries=entries)

    def _listing(self, instant: str, listing: Callable[[], tuple[str, ...]], keep: frozenset[str]) -> Acts:
        """The operation that gives the program the names of the instant's markers."""

        def markers(_: Line) -> Line:
            names = listing()
            self._to_delete(instant, {data_path(name) for name in names} - keep)
            return {"names": list(names)}

        return {"markers": markers}


def program_attempt(
    pool: ProgramPool,
    work: Assignment,
    context: Context,
    create: CreateMarker,
    slow_ms: float = 0.0,
    rows_as: RowFormat = LINES,
) -> WriteStat:
    """An attempt performed by the program (in place of writer.attempt.write_file).

    slow_ms: how long it waits between marker and file.
    """
    runtime = context.runtime
    rows = rows_of(work, context.storage, runtime, rows_as)

    def marker(asked: Line) -> None:
        make_marker(asked["name"], runtime, create)
        runtime.sleep(slow_ms)

    session_of(pool, WRITE, context).call(
        "attempt",
        {"marker": marker},
        table=work.table,
        instant=work.instant,
        name=marker_of(work),
        path=f"{work.table}/{work.path}",
        data=base64.b64encode(rows_as.encode(rows, str(work.token))).decode(),
    )
    return stat_of(work, len(rows))


class ProgramsOutside(Outside):
    """The programs that implement the processes of runs."""

    def __init__(self, pool: ProgramPool) -> None:
        self._pool = pool

    def ended(self, shared: dict[str, Any]) -> None:
        """A process is dead: end its programs or make them reusable."""
        for session in shared.values():
            if isinstance(session, ProgramSession):
                session.ended()

    @property
    def reused(self) -> bool:
        """Whether programs that promise nothing are tried for one process after another."""
        return self._pool.doubtful

    @reused.setter
    def reused(self, reused: bool) -> None:
        self._pool.reused = reused

    def stop_reuse(self) -> bool:
        """Start a program for each process from now on; returns whether programs were reused before."""
        return self._pool.stop_reuse()

    def check(self) -> None:
        """HarnessError when a program broke the protocol in the finished run."""
        self._pool.check()

    def close(self) -> None:
        """End all programs."""
        self._pool.close()


def program_system(command: str) -> System:
    """The system that a command line starts; HarnessError when it does not start or answers no proper hello."""
    pool = pool_of(command)
    hello = pool.hello
    made = System(
        name=f"{PREFIX}{command}",
        version=f"{hello.name} {hello.version}".strip(),
        direct=make_factory(pool, "direct") if "direct" in hello.modes else None,
        server=make_factory(pool, "timeline") if "timeline" in hello.modes else None,
        layout="names",
        profile="python",
        outside=ProgramsOutside(pool),
    )
    if "attempt" in hello.parts:
        made = replace(made, write_file=partial(program_attempt, pool))
    if {*hello.parts} - {"attempt"}:
        made = replace(made, write_client=partial(ProgramWriteClient, pool))
    return made

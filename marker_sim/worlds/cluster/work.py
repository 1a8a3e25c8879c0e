"""The work of clients, executors and drivers, for any kind of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from marker_sim.faults import FaultKind
from marker_sim.faults.sites import RESULT_SENT, TASK_TAKEN
from marker_sim.history import Value
from marker_sim.markers.store import Rejected
from marker_sim.names import MarkerDirectory, MarkerType, data_path, marker_name
from marker_sim.plan import AS, MALFORMED, Op, Write
from marker_sim.seams import Refused, SeamError
from marker_sim.timeline import COMMIT, DELTA_COMMIT, WriteStat
from marker_sim.unusual_names import written
from marker_sim.worlds.cluster.environment import DriverMarkers, ProcessEnvironment
from marker_sim.worlds.cluster.recording import CallEnd, RecordedMarkers, ask_store, record_call
from marker_sim.writer.attempt import Assignment
from marker_sim.writer.backend import Backend, JobFailed
from marker_sim.writer.client import WriteClient

# After a kill no server listens for a while; a client without a wait would use up its work on refusals.
REFUSED_PAUSE_MS = 50
RunStage = Callable[[WriteClient, str, str], tuple[WriteStat, ...]]


class StageBackend(Backend, Protocol):
    """The executors that a driver's stage runs on (writer.backend.Backend).

    mode: the marker mode of the write that is under way.
    again: runs every task of its stage once more; None before all are done and after the commit.
    """

    mode: str = ""
    again: Callable[[], None] | None = None


def perform_operations(environment: ProcessEnvironment, mode: str, ops: Iterable[Op]) -> bool:
    """Perform and record operations of a client without writes, in order; False after one with an unknown outcome.

    mode: the cluster's, "direct" or "timeline".
    """
    refused = False
    for op in ops:
        if op.spelled in MALFORMED and mode == "direct":
            continue  # The request is never read.
        wait_ms = op.after_ms + (REFUSED_PAUSE_MS if refused else 0)
        if wait_ms:
            environment.runtime.sleep(wait_ms)
        ended = _perform(environment, mode, op)
        if ended.kind == "info":
            return False
        refused = isinstance(ended.error, Refused)
    return True


def _perform(environment: ProcessEnvironment, mode: str, op: Op) -> CallEnd:
    place = environment.settings.directories[op.directory]
    creates, hostile = op.kind == "create", op.kind == "hostile"
    server = "second" if op.server else "server"
    path = op.name if creates else _address(environment, op)[1].lstrip("/") if hostile else None
    asked = (op.request or None) if creates else repr(op.name) if hostile else None
    started = environment.server_started(server) if mode == "timeline" else None
    act = partial(_operate, environment, mode, op, server)
    return record_call(environment.events, environment.me, op.kind, place, path, asked, started, act)


def _address(environment: ProcessEnvironment, op: Op) -> tuple[str, str]:
    """The form in which a request writes the directory, and the path it names; both as usual for a valid one."""
    address = environment.plan.directories[op.directory]
    if op.spelled not in MALFORMED:
        return address, environment.settings.directories[op.directory].path
    return written(environment.settings.directories[op.directory], address, op.spelled)


def _operate(environment: ProcessEnvironment, mode: str, op: Op, server: str) -> Any:
    store, create = environment.client_store(mode, _address(environment, op)[0], server)
    if op.kind in ("create", "hostile"):
        return create(op.name, op.request)._value_  # The same as `value`, which is a slower property.
    return ask_store(store, op.kind)


def perform_attempt(environment: ProcessEnvironment, work: Assignment, mode: str, slow_ms: int) -> CallEnd:
    """One attempt of a task on an executor.

    Taking the task and reporting its end are steps as well: a death there means that nothing or everything was done.
    """
    place = MarkerDirectory(work.table, work.instant)

    def act() -> WriteStat:
        markers = environment.markers(mode, place)
        if not work.strays:
            return environment.write_file(work, markers.create, slow_ms)
        return environment.write_file(work, with_strays(environment, work, markers), slow_ms)

    environment.step(TASK_TAKEN)
    token = str(work.token)
    ended = record_call(environment.events, environment.me, "attempt", place, work.path, token, None, act)
    environment.step(RESULT_SENT)
    return ended


def with_strays(
    environment: ProcessEnvironment, work: Assignment, markers: RecordedMarkers
) -> Callable[[str, str], object]:
    """The create of an attempt whose markers do not fit (plan.Task): it requests those of other files first."""
    there = work.slice
    files = (*([there.base] if there.base else []), *there.logs) if there is not None else ()
    kinds = dict[str, str]()
    for what, _, kind in (stray.partition("-") for stray in work.strays):
        if what == AS:
            kinds[work.path] = kind
            continue
        for path in files:
            with suppress(SeamError, Rejected):  # The attempt does not depend on its success.
                markers.create(marker_name("", path, MarkerType(kind)), environment.runtime.unique_id())

    def create(name: str, request: str) -> object:
        path = data_path(name)
        return markers.create(marker_name("", path, MarkerType(kinds[path])) if path in kinds else name, request)

    return create


def perform_write(
    environment: ProcessEnvironment,
    write: Write,
    ordinal: int,
    run_stage: RunStage,
    note_part: Callable[..., Any] | None = None,
) -> str:
    """One write of a driver; returns "", or the reason why the driver cannot continue.

    ordinal: of the write in its run, from 1.
    run_stage: given the write client, the instant and the marker mode, runs every task; one write stat for each.
    note_part: records each part of the write, `record_part` if None.
    """
    me, record = environment.me, environment.events.record
    try:
        _write(environment, write, ordinal, run_stage, note_part or record_part)
    except JobFailed as failed:
        value = "abandoned" if write.abandon else None
        record(me.name, me.role, "observe", "job-failed", value=value, error=str(failed))
    except Exception as error:
        return repr(error)
    return ""


def _write(
    environment: ProcessEnvironment, write: Write, ordinal: int, run_stage: RunStage, note_part: Callable[..., Any]
) -> None:
    plan, table = environment.plan, environment.plan.tables[write.table]
    if write.after_ms:
        environment.runtime.sleep(write.after_ms)
    choice = environment.settings.mode_of(write.markers)
    if choice.mode == "timeline":
        environment.need_server()
    client = environment.system.write_client(
        table,
        environment.context(table),
        DriverMarkers(environment, choice.mode),
        DELTA_COMMIT if plan.merge_on_read else COMMIT,
        partial(note_part, environment, table),
    )
    instant = client.begin()
    asked = None if choice is environment.settings.choice else write.markers
    environment.events.record(
        "kit", "kit", "observe", "mode", table, instant, asked, choice.mode, choice.reason or None
    )
    stats = run_stage(client, instant, choice.mode)
    if write.abandon:
        raise JobFailed("the application gave up")
    client.finalize(instant, stats)
    client.commit(instant, stats, {"write": str(ordinal)})


def run_stage(
    environment: ProcessEnvironment,
    backend: StageBackend,
    write: Write,
    ordinal: int,
    client: WriteClient,
    instant: str,
    mode: str,
) -> tuple[WriteStat, ...]:
    """The stage of a write on a driver's executors (`RunStage`, when the first four arguments are given)."""
    plan, system = environment.plan, environment.system
    backend.mode = mode
    stage = system.stage(plan.tables[write.table], instant, write, ordinal, client.slices, plan.merge_on_read)
    stats = stage.run(backend)
    backend.again = partial(stage.run_again, backend)
    return stats


def run_stage_again(environment: ProcessEnvironment, backend: StageBackend) -> None:
    """The fault `stage-retried` of a driver: when all tasks are done, it computes their results again."""
    if backend.again is not None:
        me = environment.me
        environment.events.record(me.name, "nemesis", "fault", FaultKind.STAGE_RETRIED.value, path="")
        backend.again()


def record_part(
    environment: ProcessEnvironment,
    table: str,
    operation: str,
    instant: str | None,
    value: Value,
    body: Callable[[], Any],
) -> Any:
    """Record a part of a write to a table (writer.client.Journal, when the first two arguments are given)."""
    me = environment.me
    before, me.part = me.part, operation
    ended = record_call(environment.events, me, operation, (table, instant), None, value, None, body)
    me.part = before
    if ended.error is not None:
        raise ended.error
    if operation == "begin":
        environment.began(MarkerDirectory(table, ended.value))
    return ended.value

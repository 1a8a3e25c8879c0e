"""A driver and its executors, as Spark runs them: the writes of a plan, one after another.

    driver      begin, the tasks of a stage (stage.py) on its executors, finalize, commit (writer/client.py)
    executor    one attempt at a time (writer/attempt.py), beside whatever zombies it still has

A write whose tasks fail leaves its instant behind and the driver goes on with the next; a driver whose own calls fail
exits. When a driver is gone, its executors go on for a while, its embedded timeline server does not, and the next
write has a new driver. Messages between driver and executors take a moment and are not lost: what a network between
them can do to an attempt is the fault `zombie`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from marker_sim.faults import FaultKind
from marker_sim.faults.sites import RESULT_SENT, TASK_HEARD_OF, TASK_TAKEN
from marker_sim.history import APPLICATION_ENDED, NOT_GETTING_ON, Value
from marker_sim.markers.choice import Choice
from marker_sim.markers.client import TimelineMarkers
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.plan import Fault, Task, Write
from marker_sim.timeline import COMMIT, DELTA_COMMIT
from marker_sim.worlds.simulated.runtime import SimMailbox
from marker_sim.worlds.simulated.scheduler import MS, Process
from marker_sim.writer.backend import Attempt, JobFailed, Message
from marker_sim.writer.recording import RecordedMarkers, record_call
from marker_sim.writer.slices import table_rows
from marker_sim.writer.stage import Stage

if TYPE_CHECKING:
    from marker_sim.worlds.simulated.cluster import Cluster

MESSAGE_NS = MS // 2
LOST_EXECUTOR_NS = 20 * MS
WRITE_LIMIT_NS = 900_000 * MS
LINGER_AFTER_END_MS = 5_000
PROBE_GROUP = "probe"


class SimulatedWrites:
    """The writes of one cluster. instants: the marker directories of those that began. executors: of this driver."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.instants: dict[MarkerDirectory, None] = {}
        self.executors: list[Process] = []
        self._driver: Process | None = None
        self._stage: tuple[Stage, _Backend] | None = None  # What the driver finalizes and commits.
        self._ordinal = 0
        self._tables: dict[int, None] = {}

    def play(self, write: Write) -> None:
        """Let the driver perform one write, until it is through or gone and its successor may begin."""
        scheduler = self.cluster.scheduler
        self._ordinal += 1
        self._tables[write.table] = None
        driver = self._driver or self._start_driver()
        driver.state["working"] = True
        scheduler.spawn(driver, partial(self._work, driver, write, self._ordinal))
        scheduler.run_until_stop(scheduler.now_ns + WRITE_LIMIT_NS)
        if driver.alive and driver.state["working"]:
            self._leave(driver, NOT_GETTING_ON, 0)

    def probe(self) -> None:
        """When all is well again, a new driver writes to each table: it must come to an end."""
        if not self._tables:
            return
        if self._driver is not None:
            self._leave(self._driver, APPLICATION_ENDED, LINGER_AFTER_END_MS)
        for table in list(self._tables):
            # Something new, and something on top of what the table may hold already.
            known = next(
                (task for write in self.cluster.plan.writes if write.table == table for task in write.tasks), None
            )
            more = (Task(partition=known.partition, group=known.group, kind="APPEND"),) if known else ()
            self.play(Write(table=table, tasks=(Task(group=PROBE_GROUP), *more)))

    def observe(self) -> None:
        """Read every table as a reader of completed commits does."""
        scheduler, files = self.cluster.scheduler, self.cluster.store.objects
        for number in self._tables:
            table = self.cluster.plan.tables[number]
            value, error = None, None
            try:
                value = tuple(f"{key}={row}" for key, row in sorted(table_rows(table, files).items()))
            except ValueError as unreadable:
                error = str(unreadable)
            scheduler.record("kit", "kit", "observe", "rows", table, value=value, error=error)

    def mode_of(self, write: Write) -> Choice:
        """The marker mode of a write: what it asks for, or the plan does, on this storage."""
        cluster = self.cluster
        return cluster.system.chosen_for_write(
            write.markers, cluster.choice, cluster.plan.mode, cluster.store.capabilities, cluster.options
        )

    # The driver's actor.

    def _work(self, driver: Process, write: Write, ordinal: int) -> None:
        scheduler = self.cluster.scheduler
        try:
            self._write(driver, write, ordinal)
        except JobFailed as failed:
            value = "abandoned" if write.abandon else None
            scheduler.record(driver.name, driver.role, "observe", "job-failed", value=value, error=str(failed))
        except Exception as error:
            self._leave(driver, repr(error), 0)
        driver.state["working"] = False
        scheduler.stop = True

    def _write(self, driver: Process, write: Write, ordinal: int) -> None:
        cluster, table = self.cluster, self.cluster.plan.tables[write.table]
        storage, runtime = cluster.seams(driver)[:2]
        if write.after_ms:
            runtime.sleep(write.after_ms)
        choice = self.mode_of(write)
        if choice.mode == "timeline":
            self._need_server()
        client = cluster.system.write_client(
            table,
            storage,
            runtime,
            cluster.options,
            _DriverMarkers(self, driver, choice.mode),
            DELTA_COMMIT if cluster.plan.merge_on_read else COMMIT,
            partial(self._journal, driver, table),
        )
        instant = client.begin()
        cluster.scheduler.record(
            "kit", "kit", "observe", "mode", table, instant, value=choice.mode, error=choice.reason or None
        )
        stage = cluster.system.stage(table, instant, write, ordinal, client.slices, cluster.plan.merge_on_read)
        backend = _Backend(self, driver, choice.mode)
        stats = stage.run(backend)
        if write.abandon:
            raise JobFailed("the application gave up")
        self._stage = (stage, backend)
        client.finalize(instant, stats)
        client.commit(instant, stats, {"write": str(ordinal)})
        self._stage = None

    def _journal(
        self, driver: Process, table: str, operation: str, instant: str | None, value: Value, body: Any
    ) -> Any:
        before, driver.part = driver.part, operation
        ended = record_call(self.cluster.scheduler, driver, operation, (table, instant), None, value, None, body)
        driver.part = before
        if ended.error is not None:
            raise ended.error
        if operation == "begin":
            self.instants[MarkerDirectory(table, ended.value)] = None
        return ended.value

    def launch(self, driver: Process, attempt: Attempt, mode: str) -> None:
        """Send an attempt to its executor."""
        scheduler = self.cluster.scheduler
        scheduler.at(scheduler.now_ns + MESSAGE_NS, self._arrived, (driver, attempt, mode))

    def _arrived(self, argument: tuple[Process, Attempt, str]) -> None:
        executor = argument[1].executor
        if executor.alive:
            self.cluster.scheduler.start(executor, partial(self._attempt, *argument))

    # An executor's actor.

    def _attempt(self, driver: Process, attempt: Attempt, mode: str) -> None:
        cluster, executor, work = self.cluster, attempt.executor, attempt.work
        scheduler = cluster.scheduler
        running: dict[Any, Attempt] = executor.state["attempts"]
        running[getcurrent()] = attempt
        place = MarkerDirectory(work.table, work.instant)

        def act() -> Any:
            storage, runtime = cluster.seams(executor)[:2]
            create = self.markers(executor, mode, place).create
            return cluster.system.write_file(work, storage, runtime, create, attempt.slow_ms)

        # Taking the task and reporting its end are steps as well: whoever dies there did nothing, or did all of it.
        scheduler.step(executor)
        if executor.actor.sited:
            scheduler.arrive(executor, TASK_TAKEN)
        ended = record_call(scheduler, executor, "attempt", place, work.path, str(work.token), None, act)
        scheduler.step(executor)
        if executor.actor.sited:
            scheduler.arrive(executor, RESULT_SENT)
        del running[getcurrent()]
        result = ended.value if ended.error is None else ended.error
        self.tell(driver, Message("ended", attempt, result), MESSAGE_NS)

    def markers(self, process: Process, mode: str, place: MarkerDirectory) -> RecordedMarkers:
        """The marker store that a process uses for an instant, recorded."""
        known: dict[tuple[str, str], RecordedMarkers] = process.state.setdefault("markers", {})
        key = (mode, place.path)
        if key not in known:
            cluster = self.cluster
            context = cluster.context(process, place.path)
            if mode == "timeline":
                known[key] = RecordedMarkers(
                    TimelineMarkers(context), cluster.scheduler, process, place, self._server_started
                )
            else:
                assert cluster.system.direct is not None
                store = cluster.system.direct(context)
                known[key] = RecordedMarkers(store, cluster.scheduler, process, place, lambda: None)
        return known[key]

    def _server_started(self) -> int | None:
        server = self.cluster.address("server")
        return server.started if server else None

    # Lives.

    def _start_driver(self) -> Process:
        driver = self.cluster.new_process("driver", "driver")
        driver.state["mailbox"] = SimMailbox(self.cluster.scheduler, driver)
        driver.state["on_death"] = self._driver_died
        self._driver = driver
        self.executors = [self._new_executor(driver, slot) for slot in range(self.cluster.plan.executors)]
        return driver

    def _new_executor(self, driver: Process, slot: int) -> Process:
        executor = self.cluster.new_process(f"executor-{slot}", "executor")
        executor.state["attempts"] = {}
        executor.state["on_death"] = partial(self._executor_died, driver, slot, executor)
        return executor

    def _need_server(self) -> None:
        server = self.cluster.servers["server"]
        if server is None or (not server.alive and self.cluster.plan.embedded):
            if server is not None:
                self.cluster.injector.forget_restart(server)
            self.cluster.start_server("server")

    def _driver_died(self, fault: Fault) -> None:
        self._gone(max(0, fault.value) if fault.kind is FaultKind.KILL else 0)
        scheduler = self.cluster.scheduler
        scheduler.at(scheduler.now_ns + max(0, fault.duration_ms) * MS, self._stop)

    def _stop(self, _: Any) -> None:
        self.cluster.scheduler.stop = True

    def _leave(self, driver: Process, why: str, linger_ms: int) -> None:
        """A driver ends by itself."""
        self.cluster.scheduler.record(driver.name, driver.role, "observe", "exited", error=why)
        self.cluster.injector.end(driver)
        self._gone(linger_ms)

    def _gone(self, linger_ms: int) -> None:
        cluster, scheduler = self.cluster, self.cluster.scheduler
        self._driver = self._stage = None
        for executor in self.executors:
            scheduler.at(scheduler.now_ns + linger_ms * MS, self._follow, executor)
        server = cluster.servers["server"]
        if cluster.plan.embedded and server is not None and server.alive:
            scheduler.record(server.name, server.role, "fault", "kill", value="with-its-driver")
            cluster.injector.end(server)

    def _follow(self, executor: Process) -> None:
        if executor.alive:
            self.cluster.scheduler.record(executor.name, executor.role, "observe", "exited", error="its driver is gone")
            self.cluster.injector.end(executor)

    def _executor_died(self, driver: Process, slot: int, executor: Process, fault: Fault) -> None:
        lost = dict.fromkeys([executor.busy, *executor.state["attempts"].values()])
        for attempt in lost:
            if attempt is not None and attempt.counted:
                self._lose(driver, attempt, LOST_EXECUTOR_NS)
        if fault.duration_ms >= 0:
            scheduler = self.cluster.scheduler
            scheduler.at(scheduler.now_ns + fault.duration_ms * MS, self._replace_executor, (driver, slot))

    def _replace_executor(self, argument: tuple[Process, int]) -> None:
        driver, slot = argument
        if driver.alive and driver is self._driver:
            self.executors[slot] = self._new_executor(driver, slot)
            self.tell(driver, Message("executor"), MESSAGE_NS)

    # Faults of tasks.

    def strike(self, process: Process, fault: Fault) -> None:
        """A fault of the attempt that is making this step."""
        attempt: Attempt | None = process.state.get("attempts", {}).get(getcurrent())
        if process is self._driver and fault.kind is FaultKind.STAGE_RETRIED and self._stage is not None:
            self.record_fault(process, fault.kind.value, "")
            stage, backend = self._stage
            stage.run_again(backend)
        if attempt is None or self._driver is None:
            return
        driver, scheduler = self._driver, self.cluster.scheduler
        match fault.kind:
            case FaultKind.ATTEMPT_KILLED:
                self.record_fault(process, fault.kind.value, attempt.work.path)
                del process.state["attempts"][getcurrent()]
                self.cluster.locks.drop_actor(process, getcurrent())
                if attempt.counted:
                    self._lose(driver, attempt, MESSAGE_NS + max(0, fault.duration_ms) * MS)
                scheduler.park()
            case FaultKind.ZOMBIE:
                self.record_fault(process, fault.kind.value, attempt.work.path)
                if attempt.counted:
                    self._lose(driver, attempt, MESSAGE_NS)
                scheduler.sleep(process, max(0, fault.duration_ms) * MS)
            case FaultKind.SPECULATIVE if attempt.counted:
                self.record_fault(process, fault.kind.value, attempt.work.path)
                self.tell(driver, Message("speculate", attempt, max(1, fault.value)), MESSAGE_NS)
            case FaultKind.STAGE_RETRIED if attempt.counted:
                self.record_fault(process, fault.kind.value, attempt.work.path)
                self.tell(driver, Message("stage-lost", attempt), MESSAGE_NS)

    def record_fault(self, process: Process, kind: str, path: str) -> None:
        """A fault of a task happens now."""
        self.cluster.scheduler.record(process.name, "nemesis", "fault", kind, path=path)

    def _lose(self, driver: Process, attempt: Attempt, after_ns: int) -> None:
        attempt.counted = False
        self.tell(driver, Message("lost", attempt), after_ns)

    def tell(self, driver: Process, message: Message, after_ns: int) -> None:
        """Let a driver hear something, if it lives by then."""
        scheduler = self.cluster.scheduler
        scheduler.at(scheduler.now_ns + after_ns, self._hears, (driver, message))

    def _hears(self, argument: tuple[Process, Message]) -> None:
        driver, message = argument
        if driver.alive:
            driver.state["mailbox"].post(message)


class _Backend:
    """The cluster as the driver of a stage knows it (writer.stage.Backend). mode: of the write's markers."""

    def __init__(self, jobs: SimulatedWrites, driver: Process, mode: str) -> None:
        self._jobs = jobs
        self._driver = driver
        self._mode = mode

    @property
    def workers(self) -> list[Process]:
        """The executors of this driver."""
        return self._jobs.executors

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor."""
        self._jobs.launch(self._driver, attempt, self._mode)

    def hear(self) -> Message:
        """The next message."""
        message: Message = self._driver.state["mailbox"].get()
        if self._driver.actor.sited:
            self._jobs.cluster.scheduler.arrive(self._driver, TASK_HEARD_OF)
        return message

    def remind(self, message: Message, after_ms: int) -> None:
        """Tell the driver something later."""
        self._jobs.tell(self._driver, message, after_ms * MS)

    def speculated(self, path: str) -> None:
        """Attempts of a task start at once."""
        self._jobs.record_fault(self._driver, "speculative", path)


class _DriverMarkers:
    """Where a driver finds markers (writer.client.Markers)."""

    def __init__(self, jobs: SimulatedWrites, driver: Process, mode: str) -> None:
        self._jobs = jobs
        self._driver = driver
        self._mode = mode

    def store(self, directory: str) -> RecordedMarkers:
        """The store of this write's mode."""
        return self._jobs.markers(self._driver, self._mode, parse_directory(directory))

    def stored(self, directory: str) -> tuple[str, ...]:
        """What a fresh reader finds: the reference's direct store reads every format of Hudi's."""
        cluster = self._jobs.cluster
        make = cluster.system.reader(self._mode)

        def listing() -> tuple[str, ...]:
            return tuple(sorted(make(cluster.context(self._driver, directory)).list_all()))

        place = parse_directory(directory)
        ended = record_call(cluster.scheduler, self._driver, "list", place, None, None, None, listing)
        if ended.error is not None:
            raise ended.error
        names: tuple[str, ...] = ended.value
        return names

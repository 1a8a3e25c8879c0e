"""The surroundings of code in one simulated process, and the work of its actors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from greenlet import getcurrent

from marker_sim.faults.sites import TASK_HEARD_OF
from marker_sim.names import MarkerDirectory
from marker_sim.plan import Write
from marker_sim.seams import Reply, Request
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.environment import ProcessEnvironment
from marker_sim.worlds.cluster.run import ClusterRun
from marker_sim.worlds.cluster.work import StageBackend, perform_attempt, perform_operations, perform_write, run_stage
from marker_sim.worlds.cluster.writes import MESSAGE_MS
from marker_sim.worlds.host import ClientLife, ExecutorLife, TimelineServerLife
from marker_sim.worlds.simulated.runtime import SimHostLocks, SimMailbox, SimRuntime
from marker_sim.worlds.simulated.scheduler import MS, Process, Scheduler
from marker_sim.worlds.simulated.storage import SimStorage
from marker_sim.worlds.simulated.wire import SimWire
from marker_sim.writer.attempt import Assignment
from marker_sim.writer.backend import Attempt, Message

MESSAGE_NS = int(MESSAGE_MS * MS)


class SimulatedEnvironment(ProcessEnvironment):
    """A process of a simulated cluster; its requests to the cluster are answered at once."""

    me: Process
    wire: SimWire

    def __init__(
        self, cluster: ClusterRun, scheduler: Scheduler, locks: SimHostLocks, process: Process, storage: SimStorage
    ) -> None:
        settings, life = cluster.settings, process.life
        later = isinstance(life, TimelineServerLife) and not life.first
        wire = SimWire(scheduler, process, cluster.servers.address, _answer)
        super().__init__(
            process,
            scheduler,
            settings,
            settings.later_options if later else settings.options,
            (storage, SimRuntime(scheduler, process, locks), wire),
        )
        self._cluster, self._locks = cluster, locks
        self._scheduler = scheduler

    def step(self, site: str) -> None:
        """One step of this process."""
        self._scheduler.step(self.me)
        if self.me.actor.sited:
            self._scheduler.arrive(self.me, site)

    def server_started(self, server: str) -> int | None:
        """The `started` event of the server with a name, dead or alive."""
        there = self._cluster.servers.address(server)
        return there.started if there else None

    def need_server(self) -> None:
        """Start an embedded server if there is none."""
        self._cluster.servers.need()

    def began(self, place: MarkerDirectory) -> None:
        """Note the table and instant of a write."""
        self._cluster.writes.instants[place] = None

    def write_file(self, work: Assignment, create: Callable[[str, str], object], slow_ms: int) -> WriteStat:
        """The file of an attempt, whose rows are lines of text."""
        return self.system.write_file(work, self.context(work.table), create, slow_ms)

    # The bodies of actors.

    def operate(self) -> None:
        """Perform the remaining operations of a client."""
        clients, life = self._cluster.clients, self.me.life
        assert isinstance(life, ClientLife)
        if perform_operations(self, self._cluster.choice.mode, life.rest()):
            clients.left()
        else:
            self.me.alive = False
            self._locks.drop(self.me)
            self.ended()
            clients.go_on(self.me)

    def write(self, write: Write, ordinal: int) -> None:
        """Perform a write as a driver."""
        backend = self.me.backend
        why = perform_write(self, write, ordinal, partial(run_stage, self, backend, write, ordinal))
        backend.again = None
        self._cluster.writes.through(self.me, why)

    def attempt(self, driver: Process, attempt: Attempt, mode: str) -> None:
        """Perform an attempt as an executor."""
        life = self.me.life
        assert isinstance(life, ExecutorLife)
        life.running[getcurrent()] = attempt
        ended = perform_attempt(self, attempt.work, mode, attempt.slow_ms)
        del life.running[getcurrent()]
        result = ended.value if ended.error is None else ended.error
        work = attempt.work
        if (work.table, work.instant, work.token.stage) in self._cluster.writes.lost:
            result = None  # The driver that was notified of the loss ignores the result.
        self._cluster.host.tell(driver, "ended", attempt, result, MESSAGE_MS)


def _answer(server: Process, request: Request) -> Reply:
    """Answer a request as a timeline server."""
    environment: SimulatedEnvironment = server.environment
    served = environment.served_store
    try:
        return environment.system.handle(
            request, lambda directory: served(directory)[0], lambda directory: served(directory)[1]
        )
    except Exception as error:
        return Reply(500, f"the implementation raised {error!r}")


class SimulatedBackend(StageBackend):
    """The cluster that a driver's stage runs on (writer.backend.Backend)."""

    def __init__(self, cluster: ClusterRun, scheduler: Scheduler, driver: Process) -> None:
        self.mailbox = SimMailbox(scheduler, driver)
        self._cluster = cluster
        self._scheduler = scheduler
        self._driver = driver

    @property
    def workers(self) -> list[Process]:
        """The executors of this driver."""
        return self._cluster.writes.executors

    def launch(self, attempt: Attempt) -> None:
        """Send an attempt to its executor."""
        scheduler = self._scheduler
        scheduler.at(scheduler.now_ns + MESSAGE_NS, self._arrived, (attempt, self.mode))

    def _arrived(self, argument: tuple[Attempt, str]) -> None:
        attempt, mode = argument
        executor: Process = attempt.executor
        if executor.alive:
            body = partial(executor.environment.attempt, self._driver, attempt, mode)
            self._scheduler.start(executor, body)

    def receive(self) -> Message:
        """The next message."""
        message: Message = self.mailbox.get()
        if self._driver.actor.sited:
            self._scheduler.arrive(self._driver, TASK_HEARD_OF)
        return message

    def remind(self, message: Message, after_ms: int) -> None:
        """Send the driver a message later."""
        self._cluster.host.tell(self._driver, message.kind, message.attempt, message.result, after_ms)

    def speculated(self, path: str) -> None:
        """Record that several attempts of a task start at once."""
        self._scheduler.record(self._driver.name, "nemesis", "fault", "speculative", path=path)

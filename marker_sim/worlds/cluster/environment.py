"""The surroundings of the code of one cluster process: its seams, its marker stores, and its cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from marker_sim.markers.protocol import Creates, create_with_identity, takes_identity
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.names import MarkerDirectory, parse_directory
from marker_sim.options import MarkerOptions
from marker_sim.seams import Runtime, Storage, Wire
from marker_sim.timeline import WriteStat
from marker_sim.worlds.cluster.recording import Actor, Events, RecordedMarkers, record_call
from marker_sim.worlds.cluster.settings import ClusterSettings
from marker_sim.writer.attempt import Assignment


class ProcessEnvironment(ABC):
    """One process of a cluster; the simulated world and real processes implement the abstract part.

    me: whose calls are recorded.
    identity: whether every store that it served took the identity of a request.
    """

    def __init__(
        self,
        me: Actor,
        events: Events,
        settings: ClusterSettings,
        options: MarkerOptions,
        seams: tuple[Storage, Runtime, Wire],
    ) -> None:
        self.me = me
        self.events = events
        self.settings = settings
        self.system = settings.system
        self.plan = settings.plan
        self.options = options
        self.storage, self.runtime, self.wire = seams
        self.identity = True
        self._shared: dict[str, Any] = {}
        self._stores: dict[tuple[str, str], tuple[MarkerStore, Creates]] = {}
        self._markers: dict[tuple[str, str], RecordedMarkers] = {}

    @abstractmethod
    def step(self, site: str) -> None:
        """Count a step that is no call through a seam, at a site."""

    @abstractmethod
    def server_started(self, server: str) -> int | None:
        """The `started` event of the server with a name, None where there is none."""

    @abstractmethod
    def need_server(self) -> None:
        """Ensure that an embedded timeline server is running."""

    @abstractmethod
    def began(self, place: MarkerDirectory) -> None:
        """Note the table and instant of a write, as soon as it has one."""

    @abstractmethod
    def write_file(self, work: Assignment, create: Callable[[str, str], object], slow_ms: int) -> WriteStat:
        """The system's part of an attempt, with this world's format of rows."""

    def context(self, directory: str) -> Context:
        """The context that an implementation gets."""
        return Context(
            storage=self.storage,
            runtime=self.runtime,
            wire=self.wire,
            directory=directory,
            options=self.options,
            process=self._shared,
        )

    def ended(self) -> None:
        """Release what the stores have outside of the kit: the process is dead."""
        if self.system.outside is not None:
            self.system.outside.ended(self._shared)

    def client_store(self, mode: str, directory: str, server: str) -> tuple[MarkerStore, Creates]:
        """The store of a client without writes, and its create; server: "server" or "second"."""
        known = self._stores.get((directory, server))
        if known is None:
            store = self._store(mode, directory, server)
            known = self._stores[directory, server] = (store, create_with_identity(store))
        return known

    def served_store(self, directory: str) -> tuple[MarkerStore, Creates]:
        """The store of a timeline server for a directory, and its create."""
        known = self._stores.get((directory, ""))
        if known is None:
            assert self.system.server is not None
            store = self.system.server(self.context(directory))
            known = self._stores[directory, ""] = (store, create_with_identity(store))
            self.identity &= takes_identity(type(store))
        return known

    def markers(self, mode: str, place: MarkerDirectory) -> RecordedMarkers:
        """The marker store that this process uses for an instant, recorded."""
        key = (mode, place.path)
        known = self._markers.get(key)
        if known is None:
            server: Callable[[], int | None] = lambda: None  # noqa: E731
            if mode == "timeline":
                server = partial(self.server_started, "server")
            store = self._store(mode, place.path, "server")
            known = self._markers[key] = RecordedMarkers(store, self.events, self.me, place, server)
        return known

    def _store(self, mode: str, directory: str, server: str) -> MarkerStore:
        context = self.context(directory)
        if mode == "timeline":
            return self.system.client(context, server)
        assert self.system.direct is not None
        return self.system.direct(context)


@dataclass(frozen=True, slots=True)
class DriverMarkers:
    """The markers that a driver works with (writer.client.Markers).

    mode: of the write.
    """

    environment: ProcessEnvironment
    mode: str

    def store(self, directory: str) -> RecordedMarkers:
        """The store of this write's mode."""
        return self.environment.markers(self.mode, parse_directory(directory))

    def stored(self, directory: str) -> tuple[str, ...]:
        """The markers that a fresh reader finds, sorted: the reference's direct store reads all of Hudi's formats."""
        environment = self.environment
        factory = environment.system.reader(self.mode)

        def listing() -> tuple[str, ...]:
            return tuple(sorted(factory(environment.context(directory)).list_all()))

        place = parse_directory(directory)
        ended = record_call(environment.events, environment.me, "list", place, None, None, None, listing)
        if ended.error is not None:
            raise ended.error
        names: tuple[str, ...] = ended.value
        return names

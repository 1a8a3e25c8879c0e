"""A client of the simulated world: performs its operations in order, over several lives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.protocol import Creates
from marker_sim.markers.store import MarkerStore
from marker_sim.plan import Op
from marker_sim.seams import Refused
from marker_sim.worlds.simulated.scheduler import Process
from marker_sim.writer.recording import create_with_identity, record_call

if TYPE_CHECKING:
    from marker_sim.worlds.simulated.cluster import Cluster


REFUSED_PAUSE_MS = 50


class Client:
    """An executor or driver that works through its operations, over several lives."""

    def __init__(self, cluster: Cluster, name: str, process: Process, ops: tuple[Op, ...]) -> None:
        self.cluster = cluster
        self.name = name
        self.process = process
        self.ops = ops
        self.done = 0
        self.refused = False
        self.stores: dict[tuple[int, int], tuple[MarkerStore, Creates]] = {}

    def work(self) -> None:
        """Perform the remaining operations; the body of the client's actor."""
        while self.done < len(self.ops):
            op = self.ops[self.done]
            self.done += 1
            # Nobody listens for a while after a kill; a client that went on at once would spend its work on refusals.
            wait_ms = op.after_ms + (REFUSED_PAUSE_MS if self.refused else 0)
            self.refused = False
            if wait_ms:
                self.cluster.seams(self.process)[1].sleep(wait_ms)
            if self.perform(op):
                # Unknown outcome: this process never acts again, the work goes on in another.
                self.process.alive = False
                self.reborn(self.process)
                return
        self.cluster.client_left()

    def reborn(self, before: Process) -> None:
        """Go on with what is left, in a new process."""
        process = self.cluster.new_process(self.name, before.role)
        process.state["client"] = self
        self.process = process
        self.stores = {}
        self.cluster.scheduler.spawn(process, self.work)

    def perform(self, op: Op) -> bool:
        """Invoke one operation and record how it ended; True when nobody knows."""
        cluster = self.cluster
        place = cluster.directories[op.directory]
        creates, hostile = op.kind == "create", op.kind == "hostile"
        server_name = "second" if op.server else "server"
        server = cluster.address(server_name) if cluster.choice.mode == "timeline" else None
        path = op.name if creates else place.path if hostile else None
        asked = (op.request or None) if creates else repr(op.name) if hostile else None
        started = server.started if server else None
        act = partial(self._act, op, server_name)
        ended = record_call(cluster.scheduler, self.process, op.kind, place, path, asked, started, act)
        self.refused = isinstance(ended.error, Refused)
        return ended.kind == "info"

    def _act(self, op: Op, server_name: str) -> Any:
        store, create = self._store(op, server_name)
        match op.kind:
            case "create" | "hostile":
                return create(op.name, op.request)._value_  # As `value`, which is a function of Python's own.
            case "list":
                return tuple(sorted(store.list_all()))
            case "list-data":
                return tuple(sorted(store.list_data_paths()))
            case "list-log":
                return tuple(sorted(store.list_log_paths()))
            case "exists":
                return bool(store.exists())
            case "delete":
                return bool(store.delete())
            case _:
                raise AssertionError(op)

    def _store(self, op: Op, server_name: str) -> tuple[MarkerStore, Creates]:
        key = (op.directory, op.server)
        known = self.stores.get(key)
        if known is None:
            context = self.cluster.context(self.process, self.cluster.plan.directories[op.directory])
            store: MarkerStore
            if self.cluster.choice.mode == "timeline":
                store = TimelineMarkers(context, server_name)
            else:
                assert self.cluster.system.direct is not None
                store = self.cluster.system.direct(context)
            known = self.stores[key] = (store, create_with_identity(store))
        return known

"""The process of a client of the marker store alone: it performs the operations of a plan in order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.protocol import Creates
from marker_sim.markers.store import MarkerStore
from marker_sim.names import parse_directory
from marker_sim.writer.recording import create_with_identity, record_call

if TYPE_CHECKING:
    from marker_sim.worlds.processes.children import Child

REFUSED_PAUSE_MS = 50
Stores = dict[tuple[str, str], tuple[MarkerStore, Creates]]  # Of one process, by directory and server.


def perform(child: Child, ops: tuple[Any, ...]) -> None:
    """Perform operations in order; after an unknown end this process does nothing any more."""
    mode, _ = child.link.ask("mode", "")
    refused = False
    stores: Stores = {}
    for number, op in enumerate(ops):
        child.link.ask("op", number)
        wait_ms = op.after_ms + (REFUSED_PAUSE_MS if refused else 0)
        if wait_ms:
            child.runtime.sleep(wait_ms)
        ended = _operate(child, mode, op, stores)
        refused = ended == "fail"
        if ended == "info":
            break
    child.link.ask("client-through")
    os._exit(0)


def _operate(child: Child, mode: str, op: Any, stores: Stores) -> str:
    directory = child.plan.directories[op.directory]
    place = parse_directory(directory)
    server = "second" if op.server else "server"
    started = child.link.ask("server-started", server) if mode == "timeline" else None
    if (directory, server) not in stores:
        stores[directory, server] = _opened(child, mode, directory, server)
    store, create = stores[directory, server]

    def act() -> Any:
        match op.kind:
            case "create" | "hostile":
                return create(op.name, op.request).value
            case "list":
                return tuple(sorted(store.list_all()))
            case "list-data":
                return tuple(sorted(store.list_data_paths()))
            case "list-log":
                return tuple(sorted(store.list_log_paths()))
            case "exists":
                return bool(store.exists())
            case _:
                return bool(store.delete())

    creates = op.kind == "create"
    path = op.name if creates else place.path if op.kind == "hostile" else None
    asked = (op.request or None) if creates else repr(op.name) if op.kind == "hostile" else None
    return record_call(child.link, child.me, op.kind, place, path, asked, started, act).kind


def _opened(child: Child, mode: str, directory: str, server: str) -> tuple[MarkerStore, Creates]:
    context = child.context(directory)
    if mode == "timeline":
        store: MarkerStore = TimelineMarkers(context, server)
    else:
        assert child.system.direct is not None
        store = child.system.direct(context)
    return store, create_with_identity(store)

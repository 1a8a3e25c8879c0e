"""What a forked child does: be a driver, an executor, a client of the marker store or the timeline server."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from marker_sim.markers.protocol import takes_identity
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.plan import Op
from marker_sim.seams import Storage
from marker_sim.serve.server import Settings, run
from marker_sim.storages.local import LocalStorage
from marker_sim.worlds.cluster.work import perform_attempt, perform_operations
from marker_sim.worlds.processes.children import AttemptEnded, Child
from marker_sim.worlds.processes.driver_process import drive
from marker_sim.worlds.processes.seams import CountedStorage


def run_child(spec: dict[str, Any]) -> None:
    """The body of a forked child."""
    child = Child(spec)
    match spec["kind"]:
        case "TimelineServerLife":
            serve(child, spec["storage"])
        case "ClientLife":
            operate(child, spec["ops"])
        case "WriteDriverLife":
            drive(child)
        case _:
            execute(child)


@cache
def prepare(storage: str, life: str) -> None:
    """Load what such children use, so that it is in memory when they are forked."""
    if storage == "s3":
        from marker_sim.storages.s3 import S3Storage

        S3Storage("http://127.0.0.1:1", "lake", access_key="none").close()
    if life == "TimelineServerLife":
        from marker_sim.serve import connections  # noqa: F401
    gc.freeze()


def serve(child: Child, storage: dict[str, str]) -> None:
    """Run what `marker-sim serve` runs, on storage that meets the interceptor, and report its port to the kit."""
    base = storage["root"] if storage["kind"] == "local" else f"s3a://{storage['bucket']}"

    def ready(url: str) -> None:
        child.link.ask("listening", urlsplit(url).port)

    def factory(context: Context) -> MarkerStore:
        assert child.system.server is not None
        store = child.system.server(context)
        if not takes_identity(type(store)):
            child.link.ask("no-identity")
        return store

    def open_storage(local: bool, root: str) -> Storage:
        # A server keeps local paths relative to the directory above its base.
        return CountedStorage(LocalStorage(Path(root)), child.steps, child.link) if local else child.storage

    run(Settings(bases=(base,), options=child.options), ready, open_storage, factory)


def operate(child: Child, ops: tuple[Op, ...]) -> None:
    """A client of the marker store performs operations in order; after an unknown end this process does nothing."""

    def begun() -> Iterator[Op]:
        for op in ops:
            child.link.ask("op")
            yield op

    child.link.ask("client-through", perform_operations(child, child.settings.choice.mode, begun()))
    os._exit(0)


def execute(child: Child) -> None:
    """Perform the attempts that the kit hands on, each in a thread of its own, until the kit hangs up."""
    inbox = child.link.connect("inbox")
    child.link.ask("ready")
    while True:
        try:
            number, work, slow_ms, mode = inbox.recv()
        except (EOFError, OSError):
            return
        threading.Thread(target=_attempt, args=(child, number, work, slow_ms, mode), daemon=True).start()


def _attempt(child: Child, number: int, work: Any, slow_ms: int, mode: str) -> None:
    child.me.attempt = number
    try:
        ended = perform_attempt(child, work, mode, slow_ms)
    except AttemptEnded:
        return
    # A plain tuple: a mutant's classes are its own and known to nobody else.
    result = tuple(ended.value) if ended.error is None else repr(ended.error)
    child.link.ask("ended", number, result, ended.error is None)

"""The timeline server's process: settings, start, graceful stop.

When the server listens, one line is printed. SIGTERM and SIGINT stop accepting, answer queued requests for at most
STOP_TIMEOUT_S and end with 0. An exception in an actor of the reference ends the process at once with EXIT_DIED,
because no request would be answered any more. Nothing is created at import, so a forked child may call `run` as well.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from marker_sim.errors import HarnessError, UsageError
from marker_sim.markers.protocol import Creates, create_with_identity
from marker_sim.markers.server import served_markers
from marker_sim.markers.store import Context, Factory, MarkerStore
from marker_sim.options import MarkerOptions
from marker_sim.seams import Refused, Reply, Request, Storage
from marker_sim.serve.app import MarkerApp, Stores
from marker_sim.serve.bases import Located, parse_base
from marker_sim.serve.runtime import FIRST_MAX, FairThreadPool, LoopRuntime, LoopStorage
from marker_sim.storages.locks import HostLocks
from marker_sim.surroundings.requirements import need

WAITING_MAX = 10_000
STOP_TIMEOUT_S = 10
BACKLOG = 4_096
EXIT_DIED = 4
GC_EVERY = 50_000
SWITCH_S = 0.0002
STORES_MAX = 4_096
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server.

    bases: as on the command line.
    port: 0 for any.
    waiting_max: requests without an answer.
    s3_endpoint: None for that of the environment.
    s3_timeout_s: to connect, and for each read.
    fsync: whether local storage is synced before an answer.
    """

    bases: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 0
    options: MarkerOptions = field(default_factory=MarkerOptions)
    s3_endpoint: str | None = None
    s3_timeout_s: float = 3.0
    waiting_max: int = WAITING_MAX
    fsync: bool = False


def run(
    settings: Settings,
    ready: Callable[[str], object] | None = None,
    open_storage: Callable[[bool, str], Storage] | None = None,
    factory: Factory = served_markers,
) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. `ready` gets the URL. Call it in a main thread.

    open_storage: makes the storage for (whether it is local, directory or bucket), instead of those of `storages`.
    factory: makes the store of a marker directory, by default the reference's.
    UsageError for malformed bases; HarnessError when uvicorn is missing or the address is taken.
    """
    bases = tuple(parse_base(text) for text in settings.bases)
    if not bases:
        raise UsageError("no --base is given; name at least one table or directory of tables to serve")
    need("serving", "httptools", "uvicorn")
    opened = open_storage or partial(_open_storage, settings)
    storages = {(base.local, base.root): opened(base.local, base.root) for base in bases}
    with _listen(settings.host, settings.port) as listener, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        listening = partial(ready or _print_ready, _url(listener))
        runner.run(_serve(settings, bases, storages, factory, listener, listening))
    return 0


async def _serve(
    settings: Settings,
    bases: tuple[Located, ...],
    storages: Mapping[tuple[bool, str], Storage],
    factory: Factory,
    listener: socket.socket,
    ready: Callable[[], object],
) -> None:
    from uvicorn import Config

    from marker_sim.serve.connections import Connection, QuietServer, sweep_connections

    loop = asyncio.get_running_loop()
    lanes = FairThreadPool(loop)
    stores = _stores_of(loop, lanes, storages, settings.options, factory)
    runtime = LoopRuntime(loop, lanes, None, _died)
    app = MarkerApp(runtime, bases, stores, settings.waiting_max)
    config = Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
    server = QuietServer(config)
    # Objects created so far are permanent: the collector need not scan them again.
    gc.freeze()
    gc.set_threshold(GC_EVERY)
    # After each of a storage call's some twenty system calls its thread needs the interpreter lock again.
    sys.setswitchinterval(SWITCH_S)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, partial(setattr, server, "should_exit", True))
    sweeping = loop.create_task(sweep_connections(server.server_state.connections))
    server.once_started = ready
    try:
        await server.serve(sockets=[listener])
    finally:
        sweeping.cancel()


def _stores_of(
    loop: asyncio.AbstractEventLoop,
    lanes: FairThreadPool,
    storages: Mapping[tuple[bool, str], Storage],
    options: MarkerOptions,
    factory: Factory,
) -> Stores:
    """The stores of marker directories, with the runtime, locks and owner shared by those of one root."""
    seams: dict[tuple[bool, str], tuple[LoopStorage, LoopRuntime, dict[str, Any]]] = {}
    for (local, root), storage in storages.items():
        runtime = LoopRuntime(loop, lanes, HostLocks(Path(root)) if local else None, _died)
        seams[local, root] = (LoopStorage(storage, runtime), runtime, {})

    @lru_cache(STORES_MAX)
    def store_of(located: Located) -> tuple[MarkerStore, Creates]:
        storage, runtime, process = seams[located.local, located.root]
        store = factory(
            Context(
                storage=storage,
                runtime=runtime,
                wire=_NoWire(),
                directory=located.directory,
                options=options,
                process=process,
            )
        )
        return store, create_with_identity(store)

    return store_of


class _NoWire:
    """The wire of a timeline server, which sends no requests."""

    def call(self, server: str, request: Request, deadline_ms: int) -> Reply:
        """Raise: a timeline server sends no requests."""
        raise Refused(f"a timeline server sends no requests, not even to {server}")


def _open_storage(settings: Settings, local: bool, root: str) -> Storage:
    if local:
        from marker_sim.storages.local import LocalStorage

        return LocalStorage(Path(root), settings.fsync)
    from marker_sim.storages.s3 import S3Storage

    found = [os.environ[name] for name in ENDPOINT_VARIABLES if os.environ.get(name)]
    endpoint = settings.s3_endpoint or (found[0] if found else None)
    seconds = settings.s3_timeout_s
    return S3Storage(endpoint, root, connect_timeout_s=seconds, read_timeout_s=seconds, concurrency=FIRST_MAX)


def _listen(host: str, port: int) -> socket.socket:
    """A socket listening on the port; HarnessError when that is not possible."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family is socket.AF_INET6
        return socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        why = (error.strerror or "").partition(" (while")[0]
        raise HarnessError(f"cannot listen on {host}:{port}: {why}; give another --host or --port") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The loop factory of uvloop where installed, which halves the time of a request; else that of asyncio."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


def _died(name: str, error: BaseException) -> NoReturn:
    print(
        f"marker-sim serve: the actor {name!r} died; the server ends, for it could not answer any more", file=sys.stderr
    )
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    os._exit(EXIT_DIED)


def _print_ready(url: str) -> None:
    print(f"listening on {url}", flush=True)

"""Stored names in a foreign format: a fresh instance of the system lists a copy of storage, in virtual time.

Every world that stores a foreign format reads it here, at the end of a run: the instance is alone, nothing fails, and
whatever it does besides listing changes neither the storage of the run nor its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from marker_sim.errors import HarnessError
from marker_sim.markers.checked import mistake_at
from marker_sim.markers.store import Context
from marker_sim.options import MarkerOptions
from marker_sim.seams import Reply, Request, SeamError, Unsupported
from marker_sim.system import System
from marker_sim.worlds.simulated.runtime import SimHostLocks, SimRuntime
from marker_sim.worlds.simulated.scheduler import MS, ActorState, Process, Scheduler
from marker_sim.worlds.simulated.storage import SimStorage, Store
from marker_sim.worlds.simulated.wire import SimWire

LIMIT_S = 900
READER = "reader"  # The process that lists, as histories name it.


class NotListed(HarnessError):
    """A system did not list what is stored, although nothing failed then: it raised, exited, or did not answer."""


class FreshReader(NamedTuple):
    """Reads names. mode: of the markers. storage: the model, by name. files: everything stored. now_ns: the clock."""

    system: System
    mode: str
    storage: str
    options: MarkerOptions
    files: Mapping[str, bytes]
    now_ns: int

    def names(self, directory: str) -> tuple[str, ...] | None:
        """The markers of a directory, sorted; None in Hudi's format, which judges read themselves.

        NotListed when the system fails, for which no fault can be the reason then; HarnessError when the kit does.
        """
        if self.system.layout == "hudi":
            return None
        scheduler = Scheduler(lambda *_: None, lambda _: setattr(scheduler, "stop", True))
        scheduler.now_ns = self.now_ns
        store = Store(scheduler, self.storage, self.files)
        process = Process(READER, "kit", ActorState(READER, (), 0))
        context = Context(
            storage=SimStorage(store, process),
            runtime=SimRuntime(scheduler, process, SimHostLocks(scheduler)),
            wire=SimWire(scheduler, process, lambda _: None, _no_server),
            directory=directory,
            options=self.options,
            process={},
        )
        make = self.system.reader(self.mode)
        found: list[tuple[str, ...]] = []
        raised: list[Exception | SystemExit] = []

        def read() -> None:
            try:
                found.append(tuple(sorted(make(context).list_all())))
            except Unsupported:
                found.append(())  # Its calls in the run were recorded as refused as well.
            except (Exception, SystemExit) as error:
                raised.append(error)
                raise
            finally:
                scheduler.stop = True

        try:
            scheduler.spawn(process, read)
            scheduler.run_until_stop(self.now_ns + LIMIT_S * 1000 * MS)
        finally:
            scheduler.close()
            if self.system.outside is not None:
                self.system.outside.ended(context.process)
        if not found:
            raise _failed(self.system, raised[0] if raised else None, directory)
        scheduler.release()
        return found[0]


def _failed(system: System, error: Exception | SystemExit | None, directory: str) -> Exception:
    """What to raise for a fresh instance that raised an error, or did not answer."""
    if error is None:
        return NotListed(f"did not answer in {LIMIT_S} s")
    if isinstance(error, SystemExit) or (system.outside is not None and isinstance(error, SeamError)):
        return NotListed(f"raised {error!r}")
    if place := mistake_at(error):
        return NotListed(f"raised {error!r} at {place}")
    return HarnessError(f"a fresh instance of {system.name} did not list {directory}: {error!r}")


def _no_server(server: Process, request: Request) -> Reply:
    raise HarnessError(f"{server.name} was asked for {request.path}, and no server is there")

"""Stored names in a foreign format: a fresh instance of the system lists a copy of storage, in virtual time.

Every world that stores a foreign format reads it here, at the end of a run: the instance is alone, nothing fails, and
whatever it does besides listing changes neither the storage of the run nor its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from marker_sim.errors import HarnessError, UsageError
from marker_sim.markers.checked import mistake_at
from marker_sim.markers.store import Context
from marker_sim.options import MarkerOptions
from marker_sim.seams import Reply, Request, Unsupported
from marker_sim.system import System
from marker_sim.worlds.simulated.runtime import SimHostLocks, SimRuntime
from marker_sim.worlds.simulated.scheduler import MS, ActorState, Process, Scheduler
from marker_sim.worlds.simulated.storage import SimStorage, Store
from marker_sim.worlds.simulated.wire import SimWire

LIMIT_S = 900


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

        UsageError with the line of a class that raises, because no fault can be the reason; HarnessError when the kit
        raises, or the instance does not list within `LIMIT_S` of virtual time.
        """
        if self.system.layout == "hudi":
            return None
        scheduler = Scheduler(lambda *_: None, lambda _: setattr(scheduler, "stop", True))
        scheduler.now_ns = self.now_ns
        store = Store(scheduler, self.storage, self.files)
        process = Process("reader", "kit", ActorState("reader", (), 0))
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
        raised: list[Exception] = []

        def read() -> None:
            try:
                found.append(tuple(sorted(make(context).list_all())))
            except Unsupported:
                found.append(())  # Its calls in the run were recorded as refused as well.
            except Exception as error:
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
            died = [event.error for event in scheduler.events if event.operation in ("actor-died", "exited")]
            if raised and (place := mistake_at(raised[0])):
                raise UsageError(
                    f"{self.system.name} raised {raised[0]!r} at {place}, when a fresh instance listed {directory}"
                    " without any fault; correct it"
                ) from raised[0]
            why = died[-1] if died else f"no answer in {LIMIT_S} s of virtual time"
            raise HarnessError(f"a fresh instance of {self.system.name} did not list {directory}: {why}")
        scheduler.release()
        return found[0]


def _no_server(server: Process, request: Request) -> Reply:
    raise HarnessError(f"{server.name} was asked for {request.path}, and no server is there")

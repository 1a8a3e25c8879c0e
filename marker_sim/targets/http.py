"""Any server that speaks the timeline server's HTTP, started by a command: `--sut http --start COMMAND`.

Python packages for the runs are imported when they begin, so that judging Python classes needs none of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from marker_sim.errors import HarnessError, UsageError
from marker_sim.plan import Plan
from marker_sim.reading import read_command
from marker_sim.search.seeds import plan_seed
from marker_sim.surroundings.requirements import lacking
from marker_sim.targets.server_settings import batching
from marker_sim.targets.target import (
    OF_WRITERS,
    SERVERS,
    CampaignRequest,
    RealRuns,
    ServerOptions,
    Target,
    TargetCapabilities,
)

COMPOSED = "{threads} {interval_ms}"  # Placeholders in every command that the kit composes.
OF_SERVER = TargetCapabilities(profile="http", world=SERVERS, modes=("timeline",), refuses=OF_WRITERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget(Target):
    """A timeline server started by a command.

    start: the command of a target that needs no `--start`.
    startup_s: how long it may take to answer.
    at_once: how many runs of a plan may wait for answers at once; few if a start is slow.
    ahead: its start does nothing on storage, so the next server may start before the present one dies.
    """

    sut: str = "http"
    can: TargetCapabilities = OF_SERVER
    start: str = ""
    startup_s: float = 60.0
    at_once: int = 6
    ahead: bool = False

    def check_options(self, server: ServerOptions, storage: str) -> None:
        """UsageError for a missing command, one without a port, or placeholders that the storage does not have."""
        if "start" in self.can.refuses:
            return
        if not server.start.strip():
            raise UsageError(
                f"--sut {self.sut} needs the command that starts the server; write --start 'COMMAND {{port}} ...', for"
                " example --start './my-server --port {port} --dir {storage}'"
            )
        if "{port}" not in server.start:
            raise UsageError(
                f"--start was given {server.start!r}; write {{port}} where the port belongs, for the kit picks it"
            )
        for name in ("{endpoint}", "{bucket}"):
            if storage != "s3" and name in server.start:
                raise UsageError(
                    f"--start was given {name}, which is there with --storage s3 alone; add it, or leave {name} out"
                )

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Check the packages, the programs of the commands, and the object store."""
        check_packages(self.sut, f"http on {request.storage}")
        check_program("--start", self.start or request.server.start)
        check_surroundings(request)

    def real_runs(self, request: CampaignRequest, progress: Callable[[str], None]) -> AbstractContextManager[RealRuns]:
        """The runs of plans against the server."""
        from marker_sim.targets.http_plans import open_plans

        start = self.command(request, progress)
        return open_plans(start, request, self.version, self.startup_s, self.at_once, self.ahead)

    def plan_of(self, request: CampaignRequest, number: int) -> Plan:
        """The plan that a campaign with this seed has with this number."""
        from marker_sim.targets.http_plans import loses_power, names_tell, plan_for_servers
        from marker_sim.targets.run_environment import wires_on

        storage, server = request.storage, request.server
        batches = batching(server.start or self.start or COMPOSED, server.batch_threads)
        wires, seed = wires_on(storage, server.endpoint), plan_seed(request.seed, number)
        return plan_for_servers(number, seed, storage, batches, wires, names_tell(request), power=loses_power(request))

    def goals(self, request: CampaignRequest) -> tuple[str, ...]:
        """The events that decide the guarantees in plans."""
        from marker_sim.targets.http_plans import decided_by, loses_power
        from marker_sim.targets.run_environment import wires_on
        from marker_sim.worlds.http.planned_run import OF_PLANS

        server = request.server
        decided = decided_by(server, wires_on(request.storage, server.endpoint), loses_power(request))
        return tuple(OF_PLANS + name for name in decided)

    def command(self, request: CampaignRequest, progress: Callable[[str], None]) -> str:
        """The command that starts the server."""
        return self.start or request.server.start


def check_packages(sut: str, part: str) -> None:
    """HarnessError when a part of the kit lacks a Python package."""
    why = lacking(part)
    if why:
        raise HarnessError(f"--sut {sut} needs {why}")


def check_surroundings(request: CampaignRequest) -> None:
    """HarnessError or UsageError for a reader that does not run, or an object store that is unusable."""
    if request.server.reader:
        check_program("--reader", request.server.reader)
    if request.server.endpoint is not None:
        from marker_sim.targets.server_settings import check_keys
        from marker_sim.worlds.http.s3_worlds import probe_site

        check_keys(request.server.endpoint)
        probe_site(request.server.endpoint)


def check_program(option: str, text: str) -> None:
    """Check the program at the beginning of a command, unless its name has a placeholder."""
    program = read_command(option, text, "was given an empty command; write the command")[0]
    if "{" not in program and shutil.which(program) is None:
        there = "is there and cannot be run; make it executable" if os.path.isfile(program) else "was not found"
        raise HarnessError(f"{option}: the program {program!r} {there}; give its full path or put it on PATH")


def parse(text: str) -> Target | None:
    """The target of a text, None for a name that is not of this module."""
    return HttpTarget() if text == "http" else None

"""A program as a system under test."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from marker_sim.command.pool import PREFIX, ProgramPool, pool_of
from marker_sim.command.session import ProgramSession, make_factory
from marker_sim.command.writes import ProgramWriteClient, program_attempt
from marker_sim.system import Outside, System


class ProgramsOutside(Outside):
    """The programs that implement the processes of runs."""

    def __init__(self, pool: ProgramPool) -> None:
        self._pool = pool

    def ended(self, shared: dict[str, Any]) -> None:
        """A process is dead: end its programs or make them reusable."""
        for session in shared.values():
            if isinstance(session, ProgramSession):
                session.ended()

    def check(self) -> None:
        """HarnessError when a program broke the protocol in the finished run."""
        self._pool.check()

    def close(self) -> None:
        """End all programs."""
        self._pool.close()


def program_system(command: str) -> System:
    """The system that a command line starts; HarnessError when it does not start or answers no proper hello."""
    pool = pool_of(command)
    hello = pool.hello
    made = System(
        name=f"{PREFIX}{command}",
        version=f"{hello.name} {hello.version}".strip(),
        direct=make_factory(pool, "direct") if "direct" in hello.modes else None,
        server=make_factory(pool, "timeline") if "timeline" in hello.modes else None,
        layout="names",
        profile="python",
        outside=ProgramsOutside(pool),
    )
    if "attempt" in hello.parts:
        made = replace(made, write_file=partial(program_attempt, pool))
    if {*hello.parts} - {"attempt"}:
        made = replace(made, write_client=partial(ProgramWriteClient, pool))
    return made

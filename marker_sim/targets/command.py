"""A program in any language that speaks JSON lines (docs/command.md), by its command line.

`--sut 'command:./my-program --flag'`, or `--sut command --start './my-program --flag'`, which is the same. It runs the
plans that Python factories run, in the simulated world, below the kit's write client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from marker_sim.command import PREFIX
from marker_sim.command.programs import split_command
from marker_sim.errors import UsageError
from marker_sim.system import System
from marker_sim.targets.http import check_program
from marker_sim.targets.python import MODELS, PythonTarget
from marker_sim.targets.target import (
    REFUSED,
    CampaignRequest,
    ServerOptions,
    Target,
    TargetCapabilities,
)

NAME = PREFIX.removesuffix(":")
OF_PROGRAM = TargetCapabilities(
    profile="python",
    storages=MODELS,
    plans=True,
    refuses={option: why for option, why in REFUSED.items() if option != "start"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget(PythonTarget):
    """A program, whose name contains the whole command line, so that the name is enough to start it."""

    can: TargetCapabilities = OF_PROGRAM

    def started_by(self, server: ServerOptions) -> Target:
        """The target with the command of `--start` in its name; UsageError for no command and for two."""
        if server.start and self.sut != NAME:
            raise UsageError(f"--start was given with --sut {self.sut!r}, which has a command; write one of them")
        named = replace(self, sut=f"{PREFIX}{server.start}") if server.start else self
        split_command(named.command)
        return named

    @property
    def command(self) -> str:
        """The command line, "" for none."""
        return self.sut.removeprefix(PREFIX) if self.sut != NAME else ""

    def load(self) -> System:
        """The system of the program, started and greeted."""
        split_command(self.command)
        return super(CommandTarget, self).load()

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Find the program, start it, and check that it implements one of the requested marker modes."""
        split_command(self.command)
        check_program("--sut command", self.command)
        super(CommandTarget, self).prepare(request, progress)


def parse(text: str) -> Target | None:
    """The target of a text, None for a name that is not of this module."""
    return CommandTarget(sut=text) if text == NAME or text.startswith(PREFIX) else None

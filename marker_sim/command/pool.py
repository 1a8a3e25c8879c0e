"""The running programs of one command: handed to the processes of a run, then ended or used again."""

from __future__ import annotations

import atexit
import os
import shlex
from functools import cache

from marker_sim.command.messages import Hello
from marker_sim.command.process import ProgramProcess
from marker_sim.errors import HarnessError, UsageError

FIRST_START_S = 60.0  # The program may be compiled first.
START_S = 12.0  # Within a run, whose watchdog checks every 15 s.
PREFIX = "command:"


class ProgramPool:
    """The programs started by one command for one process of the kit.

    hello: of the first program. trouble: why none can be used any more in this run, "" without a reason.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.trouble = ""
        self._words = split_command(command)
        self._idle: list[ProgramProcess] = []
        self._given: list[ProgramProcess] = []
        atexit.register(self.close)
        first = self._start(FIRST_START_S)
        self.hello: Hello = first.hello
        self._idle.append(first)

    def lease(self) -> ProgramProcess:
        """A program in its initial state; HarnessError when none can be started."""
        program = self._idle.pop() if self._idle else self._start(START_S)
        self._given.append(program)
        return program

    def give_back(self, program: ProgramProcess) -> None:
        """Take back the program of a dead process: it is ended, or kept where a `start` resets it."""
        if program not in self._given:
            return
        self._given.remove(program)
        if program.usable and self.hello.reset:
            self._idle.append(program)
        else:
            program.end()

    def check(self) -> None:
        """HarnessError when a program broke the protocol in the finished run."""
        trouble, self.trouble = self.trouble, ""
        if trouble:
            raise HarnessError(trouble)

    def blame(self, error: HarnessError) -> None:
        """Record that a program cannot be used or broke the protocol; only the first such sentence is kept."""
        self.trouble = self.trouble or self._sentence(error)

    def close(self) -> None:
        """End all programs; the next lease starts a new one."""
        programs, self._idle, self._given = [*self._idle, *self._given], [], []
        for program in programs:
            program.end()

    def _start(self, limit_s: float) -> ProgramProcess:
        try:
            return ProgramProcess(self._words, limit_s)
        except HarnessError as error:
            raise HarnessError(self._sentence(error)) from error

    def _sentence(self, error: HarnessError) -> str:
        begin = f"--sut command: the program {self.command!r}: "
        return str(error) if str(error).startswith(begin) else f"{begin}{error} (docs/command.md)"


def split_command(command: str) -> list[str]:
    """The words of a command line; UsageError for an empty one."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--sut command: {command!r} is not a valid command line: {error}") from error
    if not words:
        raise UsageError("--sut command: the command is empty; write --sut command --start './my-program --flag'")
    return words


def pool_of(command: str) -> ProgramPool:
    """The pool of this process of the kit; HarnessError when the program does not start or answers no proper hello."""
    return _pool_of(command, os.getpid())


@cache
def _pool_of(command: str, pid: int) -> ProgramPool:
    return ProgramPool(command)

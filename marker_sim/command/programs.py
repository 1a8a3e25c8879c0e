"""The running programs of one command. Each reads a line from standard input and prints lines until it waits for the
next one; a pool gives programs to the processes of a run, and ends or reuses them after it.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from subprocess import PIPE, TimeoutExpired
from tempfile import TemporaryFile
from typing import Any

from marker_sim.command.messages import PROTOCOL, Hello, ProgramLine, read_hello, read_line, shown
from marker_sim.errors import HarnessError
from marker_sim.reading import read_command
from marker_sim.surroundings import supervisor

FIRST_START_S = 60.0  # The first start may include a compilation.
START_S = 12.0  # Shorter than a check of the run's watchdog, every 15 s.
TURN_S = 10.0
LINES_MAX = 100_000
LINE_SIZE_MAX = 1 << 24
_CHUNK = 1 << 16
_TAIL = 2_000


class ProgramEnded(Exception):
    """The program ended by itself; the message says how."""


class ProgramProcess:
    """A program that has started and answered hello.

    words: its command line. start_s: how long it may take to say hello. Everything is killed by `end`.
    """

    def __init__(self, words: Sequence[str], start_s: float) -> None:
        self.usable = True
        self.used = False
        self._errors = TemporaryFile()  # noqa: SIM115
        self._lines: deque[bytes] = deque()  # Complete unread lines, and one incomplete line at the end.
        self._part = bytearray()
        self._process = supervisor.start(words, {}, stdin=PIPE, stdout=PIPE, stderr=self._errors, dies_with_kit=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        try:
            said = self.turn({"event": "hello", "protocol": PROTOCOL}, start_s)
            self.hello: Hello = read_hello(said)
        except ProgramEnded as ended:
            self.end()
            raise HarnessError(f"before it said hello it {ended}") from None
        except BaseException:
            self.end()
            raise

    def turn(self, message: Mapping[str, Any], limit_s: float = 0.0) -> list[ProgramLine]:
        """The lines that the program prints in answer to a line, without the final "wait".

        ProgramEnded when it ends instead, HarnessError for lines that are none of the protocol, or when it does not
        wait in time (0 for TURN_S). After an error it is not usable.
        """
        limit_s = limit_s or TURN_S
        self.usable = False
        line = json.dumps(message).encode() + b"\n"
        if self._lines or self._part:
            early = self._lines[0] if self._lines else bytes(self._part)
            raise HarnessError(f'it printed {shown(early)} after "wait"; print only after a line of the kit')
        said: list[ProgramLine] = []
        left, deadline = memoryview(line), time.monotonic() + limit_s
        while True:
            while self._lines:
                read = read_line(self._lines.popleft())
                if read.do == "wait":
                    self.usable = True
                    return said
                said.append(read)
            if len(said) > LINES_MAX:
                raise HarnessError(f'it printed more than {LINES_MAX} lines and no "wait" after {shown(line)}')
            ready = self._ready(bool(left), deadline)
            if not ready:
                raise HarnessError(
                    f'it printed no "wait" within {limit_s:.0f} s after {shown(line)}; a program may wait for'
                    " nothing but the kit's next line, and sleeps by asking for it"
                )
            if self._to in ready:
                try:
                    left = left[os.write(self._to, left) :]
                except BrokenPipeError:
                    left = left[:0]
            if self._from in ready:
                self._read(deadline)

    def _read(self, deadline: float) -> None:
        """Read what is available of the program's output."""
        data = os.read(self._from, _CHUNK)
        if not data:
            raise ProgramEnded(self._how_it_ended(deadline))
        self._part += data
        if b"\n" in data:
            *whole, self._part = self._part.split(b"\n")
            self._lines.extend(map(bytes, whole))
        if len(self._part) > LINE_SIZE_MAX:
            raise HarnessError(f"it printed a line of more than {LINE_SIZE_MAX >> 20} MB")

    def _ready(self, writing: bool, deadline: float) -> frozenset[int]:
        """The pipes that are ready; none when the time is over."""
        left_s = deadline - time.monotonic()
        if left_s < 0:
            return frozenset()
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        if writing:
            poll.register(self._to, select.POLLOUT)
        return frozenset(number for number, _ in poll.poll(left_s * 1000))

    def _how_it_ended(self, deadline: float) -> str:
        """How a program ended that closed its standard output, and what it wrote on standard error."""
        with suppress(TimeoutExpired):
            self._process.wait(max(0.1, deadline - time.monotonic()))
        code = self._process.poll()
        how = (
            "closed its standard output"
            if code is None
            else f"was killed by signal {-code}"
            if code < 0
            else f"ended with exit code {code}"
        )
        return f"{how}; on standard error it said: {self._last_words()}"

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _TAIL))
        text = self._errors.read().decode("utf-8", "replace").strip()
        return " | ".join(text.splitlines()[-4:]) or "(nothing)"

    def end(self) -> None:
        """Kill the program and its process group with SIGKILL; the program has ended when this returns."""
        self.usable = False
        supervisor.signal_session(self._process, signal.SIGKILL)
        if self._process.returncode is None:
            supervisor.end_process(self._process.pid)  # Popen.wait with a time limit sleeps for milliseconds.
            self._process.wait(supervisor.END_S)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class ProgramPool:
    """The programs of one command, reused within one process of the kit.

    hello: of the first program. trouble: why no program can be used any more in this run, "" for no reason.
    reused: whether programs that do not promise to reset are tried for another process, until `reuse_stopped`, which
    means
        that one kept state.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.trouble = ""
        self.reused = self.reuse_stopped = False
        self._words = split_command(command)
        self._idle: list[ProgramProcess] = []
        self._given: list[ProgramProcess] = []
        atexit.register(self.close)
        first = self._start(FIRST_START_S)
        self.hello: Hello = first.hello
        self._idle.append(first)

    def lease(self) -> ProgramProcess:
        """A program in its initial state; HarnessError when none can be started."""
        idle = self._idle
        program = idle.pop() if idle and (self._reuses or not idle[-1].used) else self._start(START_S)
        program.used = True
        self._given.append(program)
        return program

    def give_back(self, program: ProgramProcess) -> None:
        """Take back the program of a dead process: end it, or keep it if a `start` resets it."""
        if program not in self._given:
            return
        self._given.remove(program)
        if program.usable and self._reuses:
            self._idle.append(program)
        else:
            program.end()

    @property
    def _reuses(self) -> bool:
        return self.hello.reset or (self.hello.reset is None and self.reused and not self.reuse_stopped)

    @property
    def doubtful(self) -> bool:
        """Whether programs that promise nothing are reused."""
        return self._reuses and not self.hello.reset

    def stop_reuse(self) -> bool:
        """Start a program for each process from now on; returns whether programs that promise nothing were reused."""
        tried = self.doubtful
        self.reuse_stopped = self.reuse_stopped or tried
        return tried

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
    empty = "the command is empty; write --sut command --start './my-program --flag'"
    return read_command("--sut command:", command, empty)


def pool_of(command: str) -> ProgramPool:
    """The pool of this process of the kit; HarnessError when the program does not start or answers no proper hello."""
    return _pool_of(command, os.getpid())


@cache
def _pool_of(command: str, pid: int) -> ProgramPool:
    return ProgramPool(command)

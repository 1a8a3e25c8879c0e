"""The door: it runs unmodified commands and stops their storage calls in one directory at the kit, one at a time.

    process ── system call ──► filter ──► decide(call) ──► done by the kit ──► applied(call, outcome) ──► answer
                                          └──────────────── under `lock` ───────────────┘

One thread answers all commands. So calls are ordered, an effect is known before any process can see its result, and a
kill is a position in that order. `decide` and `applied` may end commands (`DoorCommand.end`): a call of such a command
is then not performed, or not answered. The thread waits for no managed process except one that it kills. Nobody who
holds a lock that `decide` or `applied` takes may wait for a managed process.

Not seen: writes to mapped memory, descriptors passed over a socket, actions of other programs, and files that were
open before the command started, except on descriptors below 10. `unseen` names the known escapes.
Calls of a root process that dropped capabilities are performed with the kit's capabilities.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.door import kernel, launch
from marker_sim.worlds.door.calls import Caller, CallOutcome, Decision, FileCall, HeldCalls
from marker_sim.worlds.door.effects import Act, Scope
from marker_sim.worlds.door.held import HeldCall, free_number
from marker_sim.worlds.door.kernel import Notice
from marker_sim.worlds.door.launch import DoorCommand
from marker_sim.worlds.door.meanings import read_call

Decide = Callable[[FileCall], Decision]
Applied = Callable[[FileCall, CallOutcome], object]
CallerOf = Callable[[DoorCommand, int], Caller | None]
_END_S = 10.0
_AGAIN_MS = 2.0


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call that is not answered yet. decision: None until `decide` was called."""

    command: DoorCommand
    held: HeldCall
    act: Act
    call: FileCall
    decision: Decision | None = None


class Door:
    """Watches a directory from its creation until `close`. `start` runs a command behind it.

    decide: returns the decision about a call; applied: receives its outcome, before the caller is answered.
    lock: held from `decide` until `applied` has returned, for instance the interceptor's.
    closed: called when a process is about to close its last descriptor of a file open for writing.
    reads: whether opens for reading, listings and stats stop as well.
    caller_of: maps a command and a pid to the caller, by default the command itself. While it returns None, calls of
    that
        process wait, decided or not, and others are served.
    held: counts and seconds by command. unseen: writes known to have escaped. troubles: failures of the kit, which
    `check`
        raises.
    """

    def __init__(
        self,
        root: Path,
        decide: Decide,
        applied: Applied = lambda call, outcome: None,
        *,
        closed: Callable[[FileCall], object] = lambda call: None,
        lock: contextlib.AbstractContextManager[object] | None = None,
        reads: bool = False,
        caller_of: CallerOf = lambda command, pid: command,
    ) -> None:
        self.lock = lock if lock is not None else threading.RLock()
        self.troubles: list[BaseException] = []
        self.held: dict[str, HeldCalls] = {}
        self._root = os.path.realpath(root)
        self._decide, self._applied, self._closed = decide, applied, closed
        self._reads = reads
        self._caller_of = caller_of
        self._names = {number: name for name, number in kernel.own_numbers().items()}
        self._calls = itertools.count(1)
        self._commands: dict[int, tuple[DoorCommand, Scope]] = {}
        self._started: list[DoorCommand] = []
        self._scopes: list[Scope] = []
        self._late: list[tuple[float, int, _Waiting]] = []
        self._put_off = itertools.count()
        self._poll = select.epoll()
        self._wake = os.pipe()
        self._poll.register(self._wake[0], select.EPOLLIN)
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="door")
        self._thread.start()
        forget = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def __enter__(self) -> Door:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None:
            self.check()

    @property
    def unseen(self) -> tuple[str, ...]:
        """Sentences about writes that are known to have escaped; with any, the history may be incomplete."""
        return tuple(sorted({sentence for scope in self._scopes for sentence in tuple(scope.unseen)}))

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        process: str,
        role: str = "timeline-server",
        stdin: supervisor.Stream = subprocess.DEVNULL,
        stdout: supervisor.Stream = subprocess.PIPE,
        stderr: supervisor.Stream = subprocess.STDOUT,
        folder: Path | None = None,
    ) -> DoorCommand:
        """Start a command behind the door, with `environment` added to the kit's own; HarnessError when it cannot run.

        The command has to stay in the foreground: when it ends, everything that it started is ended.
        """
        command = launch.start(
            words,
            environment,
            name=process,
            role=role,
            reads=self._reads,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            folder=folder,
        )
        kernel.hand_over_at_once(command.listener)
        scope = Scope(self._root, command.base, command.popen.pid)
        self._started.append(command)
        self._scopes.append(scope)
        self._commands[command.listener] = command, scope
        self._poll.register(command.listener, select.EPOLLIN)
        return command

    def lives(self, process: str) -> bool:
        """Whether a command of this name runs and was not ended."""
        return any(
            command.name == process and not command.ended and command.popen.poll() is None for command in self._started
        )

    def move(self, root: Path) -> None:
        """Watch another directory from now on, and clear `unseen`. No process may have a file of the old one open."""
        self._root = os.path.realpath(root)
        for scope in self._scopes:
            scope.root = self._root
            scope.unseen.clear()

    def check(self) -> None:
        """Raise HarnessError when the kit failed at a call, so that no command is blamed for it."""
        if self.troubles:
            first, count = self.troubles[0], len(self.troubles)
            raise HarnessError(f"the door failed at {count} calls, first: {type(first).__name__}: {first}") from first

    def close(self) -> None:
        """End all commands and stop watching. The caller must not hold the lock."""
        if self._closing:
            return
        try:
            with contextlib.ExitStack() as ends:
                for command in self._started:
                    ends.callback(command.end)
        finally:
            self._closing = True
            os.write(self._wake[1], b"x")
            self._thread.join(_END_S)
            self._forget()

    def _forget(self) -> None:
        for command in self._started:
            command.forget()
        self._commands.clear()
        if not self._poll.closed:
            self._poll.close()
            for number in self._wake:
                os.close(number)

    def _serve(self) -> None:
        try:
            self._answer_all()
        except BaseException as error:
            self.troubles.append(error)
            for command in self._started:  # Their calls would wait for ever.
                command.end()

    def _answer_all(self) -> None:
        kernel.leave_common_directory()
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # A request must not be interrupted.
        while not self._closing:
            wait_s = max(0.0, self._late[0][0] - time.monotonic()) if self._late else None
            for number, events in self._poll.poll(wait_s):
                if number in self._commands:
                    self._listen(number, *self._commands[number], events)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, waiting = heapq.heappop(self._late)
                with self._answering(waiting.command, waiting.held), self.lock:
                    self._go_on(waiting)

    def _listen(self, listener: int, command: DoorCommand, scope: Scope, events: int) -> None:
        if not events & select.EPOLLIN:
            self._poll.unregister(listener)  # The last process under this filter has ended.
            del self._commands[listener]
            command.listener = -1
            os.close(listener)
            return
        notice, began = None, time.monotonic()
        try:
            notice = kernel.receive(listener)
            held = HeldCall(notice, self._names[notice.number])
        except kernel.CallerGone:
            return
        except Exception as error:
            self._failed(command, notice, error)
            return
        before = self.held.get(command.name, HeldCalls())
        self.held[command.name] = before._replace(since=began)
        with self._answering(command, held):
            self._take(command, scope, held)
        self.held[command.name] = HeldCalls(before.calls + 1, before.seconds + time.monotonic() - began)

    @contextlib.contextmanager
    def _answering(self, command: DoorCommand, held: HeldCall) -> Iterator[None]:
        """A context in which a call is answered or postponed; errors of the kit are kept in `troubles`."""
        try:
            yield
        except kernel.CallerGone:
            pass
        except Exception as error:
            if kernel.is_held(command.listener, held.notice.id):
                self._failed(command, held.notice, error)
        finally:
            if not any(held is late[2].held for late in self._late):
                held.close()

    def _failed(self, command: DoorCommand, notice: Notice | None, error: Exception) -> None:
        self.troubles.append(error)
        if notice is not None:
            with contextlib.suppress(kernel.CallerGone, OSError):
                kernel.answer(command.listener, notice.id, error=errno.EIO)

    def _take(self, command: DoorCommand, scope: Scope, held: HeldCall) -> None:
        """Take a call that just arrived: answer it, or decide about it."""
        if command.ended:
            return
        found = read_call(held, scope)
        if found is None:
            kernel.let_pass(command.listener, held.notice.id)
        elif isinstance(found, int):
            kernel.answer(command.listener, held.notice.id, error=found)
        elif not kernel.is_held(command.listener, held.notice.id):
            return
        elif found.call is None:
            self._answer(command, held, found, _done(found, Decision()))
        else:
            with self.lock:
                self._go_on(_Waiting(command, held, found, found.call))

    def _go_on(self, waiting: _Waiting) -> None:
        """Decide about a call, perform and answer it, or postpone it when a step has to wait. The lock is held."""
        command, held = waiting.command, waiting.held
        caller = self._caller_of(command, held.pid)
        if caller is None and kernel.is_held(command.listener, held.notice.id):
            self._later(waiting, _AGAIN_MS)
        elif waiting.decision is not None:
            self._carry_out(waiting, waiting.decision, caller)
        elif caller is not None and not caller.ended:
            call = waiting.call = waiting.call._replace(process=caller.name, role=caller.role)
            if call.operation == "close":
                self._closed(call)
                kernel.let_pass(command.listener, held.notice.id)
                return
            call = waiting.call = call._replace(number=next(self._calls))
            decision = waiting.decision = self._decide(call)
            if not caller.ended and (decision.late_ms or self._caller_of(command, held.pid) is None):
                self._later(waiting, decision.late_ms)
            else:
                self._carry_out(waiting, decision, caller)

    def _later(self, waiting: _Waiting, after_ms: float) -> None:
        heapq.heappush(self._late, (time.monotonic() + after_ms / 1000, next(self._put_off), waiting))

    def _carry_out(self, waiting: _Waiting, decision: Decision, caller: Caller | None) -> None:
        """Carry out a decision: perform the call or not, answer it, and kill before or after it. The lock is held."""
        command, held, act = waiting.command, waiting.held, waiting.act
        if decision.kill == "before":
            self._kill(command, held, decision)
        outcome = CallOutcome(False, error=decision.error)
        if self._waits(waiting, caller) and (decision.applied or not decision.error):
            outcome = _done(act, decision)
        self._applied(waiting.call, outcome._replace(result=0) if act.opens else outcome)
        if decision.kill == "after":
            self._kill(command, held, decision)
        if self._waits(waiting, caller):
            self._answer(command, held, act, outcome)

    def _waits(self, waiting: _Waiting, caller: Caller | None) -> bool:
        """Whether the caller counts as alive and still waits for its answer."""
        ended = caller is None or caller.ended or waiting.command.ended
        return not ended and kernel.is_held(waiting.command.listener, waiting.held.notice.id)

    def _kill(self, command: DoorCommand, held: HeldCall, decision: Decision) -> None:
        """Kill a process, or its whole command; first close the kit's copies of its files, which keep their locks."""
        held.close()
        if not decision.alone:
            command.end()
            return
        with contextlib.suppress(ProcessLookupError):
            supervisor.end_process(held.pid)

    def _answer(self, command: DoorCommand, held: HeldCall, act: Act, outcome: CallOutcome) -> None:
        listener, id_ = command.listener, held.notice.id
        if outcome.error:
            kernel.answer(listener, id_, error=outcome.error)
        elif act.perform is None:
            kernel.let_pass(listener, id_)
        elif not act.opens:
            kernel.answer(listener, id_, outcome.result)
        elif (number := free_number(held, command.base, command.cursors, act.number_min)) is None:
            kernel.answer(listener, id_, error=errno.EMFILE)
        else:
            kernel.answer_with_file(listener, id_, outcome.result, number, os.O_CLOEXEC if act.close_on_exec else 0)


def _done(act: Act, decision: Decision) -> CallOutcome:
    """The outcome of performing a call; a call that only reads is performed by the process later."""
    try:
        result = act.perform(decision.bytes_max) if act.perform is not None else 0
    except OSError as error:
        return CallOutcome(False, error=error.errno or errno.EIO)
    return CallOutcome(True, result, decision.error)

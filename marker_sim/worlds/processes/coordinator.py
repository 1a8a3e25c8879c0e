"""The kit's side of what children ask: a thread a connection, so that a child that waits holds up nobody else.

A local effect is applied by the child between "enter" and "leave", with the interceptor's lock held by the thread that
answers it: no other event of any process comes in between. When the child dies in that time, storage says whether it
was applied.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FaultKind
from marker_sim.worlds.interceptor import ArmedFault, Interceptor, StorageCall

Answer = Callable[..., Any]
TEMPLATE = "template"
END_TIMEOUT_S = 5.0
EFFECT_S = 30.0  # For one effect, during which everybody else waits.
PAUSED_POLL_S = 0.005


class Coordinator:
    """Answers the children of one run after another."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._answers: dict[str, Answer] = {"wrong-return": _refuse}
        self._known: dict[str, bytes | None] = {}
        self._inboxes: dict[str, Connection] = {}
        self._arrived = threading.Condition()
        self._sending = threading.Lock()
        self._roles: dict[str, str] = {}
        self._dead: Callable[[str], bool] = lambda process: False
        self._left: Callable[[str], object] = lambda process: None
        self._closed = False
        self._listener = Listener(self.address, "AF_UNIX", backlog=512)
        self._threads = [threading.Thread(target=self._listen, daemon=True, name="hub")]
        self._threads[0].start()

    def attach_template(self, answers: Mapping[str, Answer]) -> None:
        """Add the functions that answer the template's messages."""
        self._answers.update(answers)

    def attach(
        self,
        interceptor: Interceptor,
        answers: Mapping[str, Answer],
        stored: Callable[[str], bytes | None],
        paused: Callable[[str], bool],
        failed: Callable[[BaseException], None],
        dead: Callable[[str], bool] = lambda process: False,
        left: Callable[[str], object] = lambda process: None,
    ) -> None:
        """A run begins.

        answers: by what is asked, called with the child's name and the arguments.
        stored: the content of a storage path now, for effects whose process died while it applied them.
        paused: whether a child is stopped.
        failed: hears what went wrong while a child was answered.
        dead: whether a child was killed: what it had still sent is not recorded.
        left: hears of each connection that a child closed, which its end does too.
        """
        self.interceptor = interceptor
        self._failed = failed
        self._paused = paused
        self._dead = dead
        self._left = left
        self._answers.update(answers)
        self._stored = stored
        self._known.clear()
        with self._arrived:
            for process in [name for name in self._inboxes if name != TEMPLATE]:
                self._inboxes.pop(process).close()

    def expect(self, process: str, role: str) -> None:
        """A child with this name is about to connect."""
        self._roles[process] = role

    def post(self, process: str, *message: Any) -> None:
        """Send a child a message as soon as it has its inbox; one to a dead child is dropped."""
        with self._arrived:
            self._arrived.wait_for(lambda: process in self._inboxes or self._closed, END_TIMEOUT_S)
            inbox = self._inboxes.get(process)
        if inbox is not None:
            try:
                with self._sending:
                    inbox.send(message)
            except OSError:
                return

    def close(self) -> None:
        """Close the connections to all children and end the threads that answer them."""
        self._closed = True
        with self._arrived:
            self._arrived.notify_all()
        try:
            # Wakes the listener, which nothing else does.
            from multiprocessing.connection import Client

            Client(self.address, "AF_UNIX").close()
        except OSError:
            pass
        self._listener.close()
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        for inbox in self._inboxes.values():
            inbox.close()

    def _listen(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
                if self._closed:
                    connection.close()
                    return
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads = [known for known in self._threads if known.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: Connection) -> None:
        process = ""
        try:
            process, purpose = connection.recv()
            if purpose == "inbox":
                with self._arrived:
                    self._inboxes[process] = connection
                    self._arrived.notify_all()
                while process == TEMPLATE:
                    what, *arguments = connection.recv()
                    self._answers[what](*arguments)
                return
            while True:
                what, arguments = connection.recv()
                if what == "enter":
                    self._effect(connection, process, *arguments)
                elif what == "record":
                    with self.interceptor.lock:
                        if self._dead(process):
                            raise EOFError
                        index = self.interceptor.recorder.record_row(*arguments)
                    connection.send(index)
                else:
                    connection.send(self._answers[what](process, *arguments))
        except (EOFError, OSError):
            connection.close()
            if process:
                self._left(process)
        except Exception as error:
            # Whoever asked gets no answer, and the run must not be judged as if nothing had happened.
            self._failed(error)
            connection.close()

    def _effect(self, connection: Connection, process: str, operation: str, path: str) -> None:
        """One write of a child to a local file; the answer is what strikes it, None to go on.

        A child that is paused holds up nobody: its turn comes when it goes on.
        """
        call = StorageCall(process, self._roles.get(process, ""), operation, path)
        armed, counted, slow_ms = None, False, 0
        while True:
            with self.interceptor.lock:
                if not counted and not self._paused(process):
                    armed, counted = self.interceptor.strike(call), True
                    if armed is not None and armed.kind is FaultKind.SLOW_STORAGE:
                        slow_ms, armed = armed.fault.settings.late_ms, None
                if not slow_ms and not self._paused(process):
                    self._apply(connection, armed, call)
                    break
            # Not with the lock held: a slow call holds up whoever made it and nobody else.
            time.sleep(slow_ms / 1000 or PAUSED_POLL_S)
            slow_ms = 0
        connection.send(None)

    def _apply(self, connection: Connection, armed: ArmedFault | None, call: StorageCall) -> None:
        """Let a child apply its effect or its fault; the interceptor's lock is held until then."""
        try:
            hit = armed is not None and armed.hits(call)
            connection.send(armed.fault if armed is not None and hit else None)
            if not connection.poll(EFFECT_S):
                raise HarnessError(
                    f"{call.process} did not end its {call.operation} of {call.path} within {EFFECT_S:.0f} s"
                )
            what, (effects,) = connection.recv()
            assert what == "leave", what
        except (EOFError, OSError):
            self._died_inside(call)
            raise
        for applied, where, data in effects:
            self._known[where] = data
            self.interceptor.applied(None, call, applied, where, data)
        self.interceptor.passed_by(armed, call)

    def _died_inside(self, call: StorageCall) -> None:
        now = self._stored(call.path)
        if now == self._known.get(call.path):
            return
        self._known[call.path] = now
        operation = "delete" if now is None else "put" if call.operation != "overwrite" else "overwrite-piece"
        self.interceptor.applied(None, call, operation, call.path, now)


def _refuse(_: str, sentence: str) -> None:
    """A store in a child returned what the contract does not allow: the run fails, and nothing of it is judged."""
    raise UsageError(sentence)

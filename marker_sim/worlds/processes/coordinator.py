"""The kit's side of what children ask: a thread a connection, so that a child that waits holds up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.worlds.interceptor import Interceptor

Answer = Callable[..., Any]
TEMPLATE = "template"
END_TIMEOUT_S = 5.0


class Coordinator:
    """Answers the children of one run after another."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._answers: dict[str, Answer] = {"wrong-return": _refuse}
        self._inboxes: dict[str, Connection] = {}
        self._arrived = threading.Condition()
        self._sending = threading.Lock()
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
        failed: Callable[[BaseException], None],
        dead: Callable[[str], bool] = lambda process: False,
        left: Callable[[str], object] = lambda process: None,
    ) -> None:
        """A run begins.

        answers: by what is asked, called with the child's name and the arguments.
        failed: hears what went wrong while a child was answered.
        dead: whether a child was killed: what it had still sent is not recorded.
        left: hears of each connection that a child closed, which its end does too.
        """
        self.interceptor = interceptor
        self._failed = failed
        self._dead = dead
        self._left = left
        self._answers.update(answers)
        with self._arrived:
            for process in [name for name in self._inboxes if name != TEMPLATE]:
                self._inboxes.pop(process).close()

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
                if what == "record":
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


def _refuse(_: str, sentence: str) -> None:
    """A store in a child returned what the contract does not allow: the run fails, and nothing of it is judged."""
    raise UsageError(sentence)

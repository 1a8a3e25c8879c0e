"""Requests of children to the kit: one answer a request, over one connection for each of their threads.

The kit has a thread for each connection, so a waiting child delays nobody else. A child that was killed during a
request gets no answer, and one whose kit is gone ends: nothing runs on unobserved.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import MappingProxyType
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.worlds.cluster.recording import Events
from marker_sim.worlds.interceptor import Interceptor

Answer = Callable[..., Any]
TEMPLATE = "template"
END_TIMEOUT_S = 5.0
KIT_GONE = 70


class Coordinator:
    """Answers the children of successive runs. answers: to messages of the template."""

    def __init__(self, path: Path, answers: Mapping[str, Answer] = MappingProxyType({})) -> None:
        # Addressed by a descriptor of its folder: a socket's address has at most 107 bytes, temporary folders may have
        # more.
        self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        self.address = f"/proc/{os.getpid()}/fd/{self._folder}/{path.name}"
        self._answers: dict[str, Answer] = {"wrong-return": _refuse, **answers}
        self._inboxes: dict[str, Connection] = {}
        self._arrived = threading.Condition()
        self._sending = threading.Lock()
        self._dead: Callable[[str], bool] = lambda process: False
        self._closed = False
        self._listener = Listener(self.address, "AF_UNIX", backlog=512)
        self._threads = [threading.Thread(target=self._listen, daemon=True, name="hub")]
        self._threads[0].start()

    def attach(
        self,
        interceptor: Interceptor,
        answers: Mapping[str, Answer],
        failed: Callable[[BaseException], None],
        dead: Callable[[str], bool],
    ) -> None:
        """Begin a run.

        answers: by what is asked, called with the child's name and the arguments.
        failed: hears what went wrong while a child was answered.
        dead: whether a child was killed: what it had still sent is not recorded.
        """
        self.interceptor = interceptor
        self._failed = failed
        self._dead = dead
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
            with self._sending, suppress(OSError):
                inbox.send(message)

    def close(self) -> None:
        """Close the connections to all children and end the threads that answer them."""
        self._closed = True
        with self._arrived:
            self._arrived.notify_all()
        with suppress(OSError):
            Client(self.address, "AF_UNIX").close()  # Nothing else wakes the listener.
        self._listener.close()
        os.close(self._folder)
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
                if what == "append":
                    with self.interceptor.lock:
                        if self._dead(process):
                            raise EOFError
                        index = self.interceptor.recorder.append(*arguments)
                    connection.send(index)
                else:
                    connection.send(self._answers[what](process, *arguments))
        except (EOFError, OSError):
            connection.close()
        except Exception as error:
            # The child gets no answer, and the run must not be judged as if nothing had happened.
            self._failed(error)
            connection.close()


def _refuse(_: str, sentence: str) -> None:
    """Fail the run because a store in a child returned a value that the contract does not allow; nothing is judged."""
    raise UsageError(sentence)


@dataclass(eq=False)
class CoordinatorClient(Events):
    """Requests to the kit, from any thread of one process."""

    address: str
    process: str
    role: str
    _own: threading.local = field(default_factory=threading.local)

    def ask(self, what: str, *arguments: Any) -> Any:
        """Send a request and wait for the answer; does not return in a process that must not continue."""
        try:
            connection: Connection | None = getattr(self._own, "connection", None)
            if connection is None:
                connection = self._own.connection = self.connect("asks")
            connection.send((what, arguments))
            return connection.recv()
        except (EOFError, OSError):
            os._exit(KIT_GONE)

    def connect(self, purpose: str) -> Connection:
        """Open another connection; on an "inbox" the kit speaks first."""
        connection = Client(self.address, "AF_UNIX")
        connection.send((self.process, purpose))
        return connection

    def append(self, row: tuple[Any, ...]) -> int:
        """Append an event to the kit's history; returns its index."""
        index: int = self.ask("append", row)
        return index

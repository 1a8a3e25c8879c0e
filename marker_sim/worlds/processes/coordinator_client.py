"""A child's side of the coordinator: one connection a thread, one answer a question.

A child that was killed while it asks gets no answer, and one whose kit is gone ends: nothing runs on unobserved.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.connection import Client, Connection
from typing import Any

from marker_sim.history import Kind, Value

KIT_GONE = 70


class CoordinatorClient:
    """Questions to the kit, from any thread of one process."""

    def __init__(self, address: str, process: str, role: str) -> None:
        self.process = process
        self.role = role
        self._address = address
        self._own = threading.local()

    def ask(self, what: str, *arguments: Any) -> Any:
        """Ask the kit and wait for its answer; does not return to a process that must not go on."""
        try:
            connection: Connection | None = getattr(self._own, "connection", None)
            if connection is None:
                connection = self._own.connection = self.connect("asks")
            connection.send((what, arguments))
            return connection.recv()
        except (EOFError, OSError):
            os._exit(KIT_GONE)

    def connect(self, purpose: str) -> Connection:
        """A connection of its own; "inbox" is the one on which the kit speaks first."""
        connection = Client(self._address, "AF_UNIX")
        connection.send((self.process, purpose))
        return connection

    def record(
        self,
        process: str,
        role: str,
        kind: Kind,
        operation: str,
        table: str | None = None,
        instant: str | None = None,
        path: str | None = None,
        value: Value = None,
        error: str | None = None,
        caused_by: int | None = None,
    ) -> int:
        """Put an event into the history; its index."""
        index: int = self.ask(
            "record", process, role, kind, operation, table, instant, path, value, error, caused_by
        )  # fmt: skip
        return index

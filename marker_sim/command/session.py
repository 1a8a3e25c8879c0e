"""One process of a run inside a program: its calls, the operations that it requests, and its marker stores.

One actor of the process, the pump, holds all conversation, as the owner of the timeline server's state does: callers
and operations put lines into its inbox. So one line is under way at a time, and an actor that ends in the middle of a
call takes nothing with it that others wait for.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import Any

from marker_sim.command.messages import PROTOCOL, ProgramLine
from marker_sim.command.programs import ProgramEnded, ProgramPool, ProgramProcess
from marker_sim.errors import HarnessError
from marker_sim.markers.files import PathsOfNames
from marker_sim.markers.store import Context, Created, Factory, Rejected
from marker_sim.seams import (
    Condition,
    Conflicted,
    DiskFull,
    Mailbox,
    NotFound,
    PreconditionFailed,
    SeamError,
    StorageFailed,
    StorageTimeout,
    Throttled,
    Unsupported,
)

# Errors of operations and answers, by their word in messages.
ERRORS: dict[str, type[Exception]] = {
    "not-found": NotFound,
    "precondition-failed": PreconditionFailed,
    "conflicted": Conflicted,
    "throttled": Throttled,
    "failed": StorageFailed,
    "disk-full": DiskFull,
    "timeout": StorageTimeout,
    "unsupported": Unsupported,
    "rejected": Rejected,
}
_WORDS = {kind: word for word, kind in ERRORS.items()}
_NONE: Mapping[str, Any] = MappingProxyType({})
Line = dict[str, Any]
Act = Callable[[Line], Line | None]  # Performs an operation; returns the fields of its answer, None for none.
Acts = Mapping[str, Act]
OF_A_PART = ("marker", "markers")  # The operations that only calls of a part of a write may request.


class OpenCall:
    """A call that is not answered yet.

    lists: whether it asks for names.
    acts: operations that only its own thread can perform.
    busy: the id of the operation that this thread performs, 0 for none.
    """

    __slots__ = ("acts", "busy", "lists", "mailbox")

    def __init__(self, mailbox: Mailbox, lists: bool, acts: Acts) -> None:
        self.mailbox = mailbox
        self.lists = lists
        self.acts = acts
        self.busy = 0


class ProgramSession:
    """One process of a run with one role: "direct" or "timeline" markers, or "write"."""

    def __init__(self, pool: ProgramPool, mode: str, context: Context) -> None:
        self._pool = pool
        self._storage = context.storage
        self._runtime = context.runtime
        self._inbox = context.runtime.mailbox()
        self._program: ProgramProcess | None = None
        self._why = ""  # Why the session ended: the program ended by itself or broke the protocol.
        self._calls: dict[int, OpenCall] = {}
        self._number = 0
        self._operations: dict[int, int] = {}  # Operations in progress, each with the call whose thread performs it.
        self._locks: dict[str, AbstractContextManager[None]] = {}
        storage, runtime = context.storage, context.runtime
        self._acts: dict[str, Act] = {
            "put": self._put,
            "overwrite": lambda asked: storage.overwrite(asked["path"], asked["data"]),
            "get": self._get,
            "list": lambda asked: {"paths": storage.list(asked["prefix"])},
            "delete": lambda asked: storage.delete(asked["path"]),
            "sleep": lambda asked: runtime.sleep(asked["ms"]),
            "lock": self._lock,
            "unlock": self._unlock,
        }
        begin = partial(self._pump, _start_line(mode, context))
        context.runtime.spawn("program", begin)

    def ended(self) -> None:
        """Release the program: its process is dead, so its memory must not be used again."""
        if self._program is not None:
            self._pool.give_back(self._program)
            self._program = None

    # Callers.

    def call(self, operation: str, acts: Acts = _NONE, /, **fields: Any) -> Any:
        """The answer of the program: a bool, or a tuple of names; raises the errors that it names.

        acts: operations that the program may ask for in this call alone.
        """
        if self._why or self._pool.trouble:
            raise StorageFailed(self._why or self._pool.trouble)
        self._number = number = self._number + 1
        call = self._calls[number] = OpenCall(self._runtime.mailbox(), operation == "list", acts)
        self._inbox.put({"event": "call", "call": number, "operation": operation, **fields})
        while True:
            said: ProgramLine = call.mailbox.get()
            if said.do != "answer":
                self._perform(said, acts.get(said.do))
                continue
            if error := said.fields.get("error"):
                raise ERRORS[error](said.fields.get("message", "" if error == "unsupported" else error))
            return tuple(said.fields["names"]) if call.lists else said.fields["result"]

    # The pump.

    def _pump(self, line: Line) -> None:
        try:
            if self._pool.trouble:
                raise HarnessError(self._pool.trouble)
            self._program = program = self._pool.lease()
            while True:
                said = program.turn({**line, "now_ms": int(self._runtime.now_ms())})
                for each in said:
                    self._take(each)
                line = self._inbox.get()
                if line["event"] == "done":
                    call = self._calls.get(self._operations.pop(line["id"]))
                    if call is not None:
                        call.busy = 0
        except HarnessError as error:
            self._pool.blame(error)
            self._fail(str(error))
            raise
        except ProgramEnded as ended:
            self._fail(f"the program {ended}")
            raise SystemExit(f"the program {ended}") from None

    def _fail(self, why: str) -> None:
        self._why = why
        for call in self._calls.values():
            call.mailbox.put(ProgramLine("answer", {"error": "failed", "message": why}))

    def _take(self, said: ProgramLine) -> None:
        """Handle one line of the program."""
        if said.do == "answer":
            self._answer(said)
            return
        if said.do == "hello":
            raise HarnessError('it printed a second "hello"')
        if said.id in self._operations:
            raise HarnessError(f'it printed "{said.do}" with id {said.id}, which is that of an operation under way')
        call = self._calls.get(said.call)
        if said.call and (call is None or call.busy):
            why = "is not open" if call is None else f"is at operation {call.busy}; a thread does one at a time"
            raise HarnessError(f'it printed "{said.do}" for call {said.call}, which {why}')
        if said.do in OF_A_PART and (call is None or said.do not in call.acts):
            raise HarnessError(f'it printed "{said.do}" for call {said.call}, which has no such operation')
        self._operations[said.id] = said.call
        if call is None:
            self._runtime.spawn(said.do, partial(self._perform, said))
        else:
            call.busy = said.id
            call.mailbox.put(said)

    def _answer(self, said: ProgramLine) -> None:
        call = self._calls.pop(said.call, None)
        if call is None:
            raise HarnessError(f"it answered call {said.call}, which is not open; a call is answered once")
        if call.busy:
            raise HarnessError(f"it answered call {said.call}, whose thread is at operation {call.busy}")
        error = said.fields.get("error")
        if error is not None and error not in ERRORS:
            raise HarnessError(f"it answered with error {error!r}; write one of {', '.join(ERRORS)}")
        wanted = "names" if call.lists else "result"
        if error is None and wanted not in said.fields:
            raise HarnessError(f'it answered call {said.call} without "{wanted}" or "error"')
        call.mailbox.put(said)

    # Operations, by any actor.

    def _perform(self, said: ProgramLine, act: Act | None = None) -> None:
        try:
            more = (act or self._acts[said.do])(said.fields) or {}
        except (SeamError, ValueError) as error:
            word = "failed" if isinstance(error, SeamError) else "unsupported"
            more = {"error": _WORDS.get(type(error), word), "message": str(error)}
        self._inbox.put({"event": "done", "id": said.id, **more})

    def _put(self, asked: Line) -> Line:
        condition = Condition.IF_ABSENT if asked.get("if_absent") else Condition.NONE
        return {"version": self._storage.put(asked["path"], asked["data"], condition, asked.get("if_version"))}

    def _get(self, asked: Line) -> Line:
        content = self._storage.get(asked["path"])
        return {"data": base64.b64encode(content.data).decode(), "version": content.version}

    def _lock(self, asked: Line) -> None:
        lock = self._runtime.lock(asked["name"])
        lock.__enter__()
        self._locks[asked["name"]] = lock

    def _unlock(self, asked: Line) -> None:
        lock = self._locks.pop(asked["name"], None)
        if lock is None:
            raise ValueError(f"no lock {asked['name']} is held")
        lock.__exit__(None, None, None)


class ProgramMarkers(PathsOfNames):
    """The marker store (markers/store.py) of one directory, implemented by the program."""

    def __init__(self, session: ProgramSession, directory: str) -> None:
        self._call = partial(session.call, directory=directory)

    def create(self, name: str) -> Created:
        """Create a marker; a name that is not Unicode cannot be sent and is rejected here."""
        return self._create(name)

    def _create(self, name: str, **more: str) -> Created:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise Rejected("the marker name is not Unicode") from None
        return Created.CREATED if self._call("create", name=name, **more) else Created.EXISTS

    def list_all(self) -> tuple[str, ...]:
        """Every marker as the program lists it."""
        names: tuple[str, ...] = self._call("list")
        return names

    def exists(self) -> bool:
        """Whether the marker directory exists."""
        return bool(self._call("exists"))

    def delete(self) -> bool:
        """Delete the marker directory; False when there was none."""
        return bool(self._call("delete"))


class IdentifiedMarkers(ProgramMarkers):
    """A marker store whose creates accept the identity of a request."""

    def create(self, name: str, request: str = "") -> Created:
        """Create a marker. request: its identity, "" for none."""
        return self._create(name, request=request)


def make_factory(pool: ProgramPool, mode: str) -> Factory:
    """The factory of a mode, "direct" or "timeline": one session for each process, one store for each directory."""
    kind = IdentifiedMarkers if pool.hello.identity else ProgramMarkers
    return lambda context: kind(session_of(pool, mode, context), context.directory)


def session_of(pool: ProgramPool, mode: str, context: Context) -> ProgramSession:
    """The session of a process and marker mode with its program, which is started at the first call."""
    place = f"program: {mode}"
    if place not in context.process:
        context.process[place] = ProgramSession(pool, mode, context)
    session: ProgramSession = context.process[place]
    return session


def _start_line(mode: str, context: Context) -> Line:
    capabilities, options = context.storage.capabilities, context.options
    return {
        "event": "start",
        "protocol": PROTOCOL,
        "mode": mode,
        "process": context.runtime.unique_id(),
        "storage": capabilities.scheme,
        "put_if_absent": capabilities.put_if_absent,
        "put_if_unchanged": capabilities.put_if_unchanged,
        "atomic_replace": capabilities.atomic_replace,
        "host_lock": capabilities.host_lock,
        "request_timeout_ms": capabilities.request_timeout_ms,
        "late_effect_ms": capabilities.late_effect_ms,
        "batch_threads": options.batch_num_threads,
        "batch_interval_ms": options.batch_interval_ms,
    }

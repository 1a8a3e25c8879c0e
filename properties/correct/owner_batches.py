"""Odd: one owner takes creates and deletions in turn, batches by number, and stores each batch as an object of its own.

Only a server has it, so the module offers a System. Each batch looks at what is stored first; a batch that was read is
remembered by its path, which is never used again.
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Mailbox, StorageError
from marker_sim.system import System
from properties.correct.shape import Shape

FULL = 3
WAIT_MS = 40.0
END = ".batch"


class _Asked(NamedTuple):
    """A create, or a deletion (name None), and who waits for its answer."""

    name: str | None
    answer: Mailbox


class Markers(Shape):
    """Request handlers queue and wait; the owner does the rest."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.batches: dict[str, list[str]] = {}
        self.inbox = self.runtime.mailbox()
        self.runtime.spawn("owner", self._own)

    def create(self, name: str) -> Created:
        """Answered when its batch is stored."""
        self.check(name)
        answer = self._ask(name)
        assert isinstance(answer, Created)
        return answer

    def delete(self) -> bool:
        """In its turn."""
        return bool(self._ask(None))

    def list_all(self) -> tuple[str, ...]:
        """The union of batches; what another server stored too is named once."""
        paths = [path for path in self.storage.list(self.prefix) if path.endswith(END)]
        for path, data in self.read_all(path for path in paths if path not in self.batches).items():
            self.batches[path] = data.decode().split("\0")
        return tuple(sorted({name for path in paths for name in self.batches.get(path, ())}))

    def _ask(self, name: str | None) -> Created | bool:
        answer = self.runtime.mailbox()
        self.inbox.put(_Asked(name, answer))
        said: Created | bool | StorageError = answer.get()
        if isinstance(said, StorageError):
            raise said
        return said

    def _own(self) -> None:
        while True:
            asked: _Asked | None = self.inbox.get()
            batch: list[_Asked] = []
            while asked is not None and asked.name is not None:
                batch.append(asked)
                asked = self.inbox.get(WAIT_MS) if len(batch) < FULL else None
            self._store(batch)
            if asked is not None:
                try:
                    asked.answer.put(super().delete())
                except StorageError as error:
                    asked.answer.put(error)

    def _store(self, batch: list[_Asked]) -> None:
        if not batch:
            return
        try:
            known = set(self.list_all())
            fresh = [name for name in dict.fromkeys(asked.name for asked in batch) if name and name not in known]
            if fresh:
                self.storage.put(f"{self.prefix}{self.runtime.unique_id()}{END}", "\0".join(fresh).encode())
        except StorageError as error:
            for asked in batch:
                asked.answer.put(error)
            return
        for asked in batch:
            asked.answer.put(Created.CREATED if asked.name in fresh else Created.EXISTS)
            fresh = [name for name in fresh if name != asked.name]


SYSTEM = System(name="properties.correct.owner_batches:SYSTEM", server=Markers, layout="names", profile="python")

"""Odd: a write-ahead log of small objects that is merged into one head now and then, by whoever finds it long.

The head names the life of the directory, so that nothing written for an earlier life counts after a deletion, and the
last entry merged, so that no number is used twice in a life. An entry counts only if it was not merged when it was put:
its writer looks at the head once more, and when the head is beyond it asks again.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Condition, Conflicted, Content, PreconditionFailed, StorageError
from properties.correct.shape import AGAIN_MS, Shape

LONG = 6


class View(NamedTuple):
    """The log at one moment: who made each name, the entries that are not merged, and the head as it was read."""

    names: dict[str, str]
    numbers: list[int]
    life: str
    upto: int
    head: Content


class Markers(Shape):
    """head.json and <life>/<number>."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = f"{self.prefix}head.json"

    def create(self, name: str) -> Created:
        """Appends, and merges what has become long."""
        self.check(name)
        me = self.runtime.unique_id()
        while True:
            try:
                view = self._view()
                if view is None:
                    fresh = {"life": self.runtime.unique_id(), "upto": 0, "names": {}}
                    self.replace(self.path, json.dumps(fresh).encode(), None)
                    continue
                if name in view.names:
                    return Created.CREATED if view.names[name] == me else Created.EXISTS
                number = max(view.numbers, default=view.upto) + 1
                entry = json.dumps([name, me]).encode()
                self.storage.put(self._path(view.life, number), entry, Condition.IF_ABSENT)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            head = _head(self.read(self.path))
            if head["life"] == view.life and head["upto"] < number:
                if len(view.numbers) > LONG:
                    self._merge(view)
                return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """Merged or not."""
        view = self._view()
        return tuple(view.names) if view else ()

    def delete(self) -> bool:
        """The head first: with it the life is over, and what is left of it counts no more."""
        paths = sorted(self.storage.list(self.prefix), key=lambda path: path != self.path)
        for path in paths:
            self.remove(path)
        return bool(paths)

    def _view(self) -> View | None:
        """What is there while the head does not change; None without a head, whatever else is left of it."""
        while (content := self.read(self.path)) is not None:
            head = _head(content)
            folder = f"{self.prefix}{head['life']}/"
            parts = (path[len(folder) :] for path in self.storage.list(folder))
            numbers = sorted(int(part) for part in parts if part.isdigit() and int(part) > head["upto"])
            entries = [self.read(self._path(head["life"], number)) for number in numbers]
            again = self.read(self.path)
            if again is None or again.version != content.version or None in entries:
                self.runtime.sleep(AGAIN_MS)
                continue
            names: dict[str, str] = dict(head["names"])
            for entry in entries:
                assert entry is not None
                name, maker = json.loads(entry.data)
                names.setdefault(name, maker)
            return View(names, numbers, head["life"], head["upto"], content)
        return None

    def _merge(self, view: View) -> None:
        """A failure does no harm; entries are removed when the head has them."""
        head = {"life": view.life, "upto": view.numbers[-1], "names": view.names}
        try:
            self.replace(self.path, json.dumps(head).encode(), view.head)
            for number in view.numbers:
                self.remove(self._path(view.life, number))
        except StorageError:
            return

    def _path(self, life: str, number: int) -> str:
        return f"{self.prefix}{life}/{number}"


def _head(content: Content | None) -> dict[str, Any]:
    head: dict[str, Any] = json.loads(content.data) if content else {"life": "", "upto": 0, "names": {}}
    return head

"""Odd: sorted segments that are never changed, and a manifest, replaced if unchanged, that says which of them count.

Creates that come while a batch is being stored are the next batch. A segment is stored first and counts when a manifest
names it, so a put that comes late, or whose batch was given up, changes nothing. Long manifests get one merged segment.
A deletion puts a tombstone in the manifest's place, sweeps what was there before it, and takes the tombstone last. Who
creates after the tombstone begins another life, in a folder of its own, which the sweep does not touch. Memory is an
index of segments by their path, which is never used twice; what is not in it is read again. Stored paths are relative
to the directory, since processes may see the same storage under different roots.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Conflicted, Content, Mailbox, PreconditionFailed, StorageError
from properties.correct.shape import AGAIN_MS, Shape

LONG = 4
OVER = ""


class Asked(NamedTuple):
    """A create that waits, and where it is answered."""

    name: str
    answers: Mailbox


class View(NamedTuple):
    """The directory at one moment: its life (OVER: none), its segments, their names, and the manifest as read."""

    life: str
    segments: tuple[str, ...]
    names: frozenset[str]
    manifest: Content | None


class Markers(Shape):
    """manifest.json and <life>/<segment>."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = f"{self.prefix}manifest.json"
        self.index: dict[str, tuple[str, ...]] = {}
        self.waiting: list[Asked] = []
        self.storing = False

    def create(self, name: str) -> Created:
        """Waits for its batch, which an actor of the process stores, so a killed task blocks no other."""
        asked = Asked(self.check(name), self.runtime.mailbox())
        self.waiting.append(asked)
        if not self.storing:
            self.runtime.spawn("segments", self._store_all)
        answer = asked.answers.get()
        if isinstance(answer, Created):
            return answer
        assert isinstance(answer, StorageError)
        raise answer

    def list_all(self) -> tuple[str, ...]:
        """Sorted."""
        return tuple(sorted(self._view().names))

    def exists(self) -> bool:
        """Whether anything lies there, for an interrupted deletion has something left to do."""
        return any(not path.endswith("/") for path in self.storage.list(self.prefix))

    def delete(self) -> bool:
        """What lay there before the tombstone belongs to lives that are over."""
        paths = self.storage.list(self.prefix)
        if not paths:
            return False
        tombstone = self._manifest(OVER, ())
        while True:
            try:
                self.replace(self.path, tombstone, self.read(self.path))
                break
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                paths = self.storage.list(self.prefix)
        for path in paths:
            if path != self.path:
                self.storage.delete(path)
        self._take(tombstone)
        return True

    def _take(self, tombstone: bytes) -> None:
        """Unless another life has begun in its place."""
        if self.storage.capabilities.host_lock and not self.storage.capabilities.put_if_unchanged:
            with self.runtime.lock(self.path):
                self._take_unguarded(tombstone)
        else:
            self._take_unguarded(tombstone)

    def _take_unguarded(self, tombstone: bytes) -> None:
        there = self.read(self.path)
        if there is not None and there.data == tombstone:
            self.storage.delete(self.path)

    def _store_all(self) -> None:
        """Says itself that it stores: a task that says so first may be killed before it has started anybody."""
        if self.storing:
            return
        self.storing = True
        while self.waiting:
            batch, self.waiting = self.waiting, []
            try:
                fresh = set(self._store({asked.name for asked in batch}))
            except StorageError as error:
                for asked in batch:
                    asked.answers.put(error)
                continue
            for asked in batch:
                asked.answers.put(Created.CREATED if asked.name in fresh else Created.EXISTS)
                fresh.discard(asked.name)
        self.storing = False

    def _store(self, names: set[str]) -> frozenset[str]:
        """Those of the names that were not there; they are now."""
        while True:
            view = self._view()
            fresh = frozenset(names) - view.names
            if not fresh:
                return fresh
            life = view.life or self.runtime.unique_id()
            merges = len(view.segments) >= LONG
            try:
                if view.life == OVER:
                    self.replace(self.path, self._manifest(life, ()), view.manifest)
                    continue
                segment = f"{life}/{self.runtime.unique_id()}"
                kept = sorted(fresh | view.names if merges else fresh)
                self.storage.put(self.prefix + segment, json.dumps(kept).encode())
                segments = (segment,) if merges else (*view.segments, segment)
                self.replace(self.path, self._manifest(life, segments), view.manifest)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            if merges:
                self._forget(view.segments)
            return fresh

    def _forget(self, segments: tuple[str, ...]) -> None:
        """Merged ones; what stays of them counts no more, and goes with the directory."""
        try:
            for segment in segments:
                self.storage.delete(self.prefix + segment)
        except StorageError:
            return

    def _view(self) -> View:
        """Segments that are gone were merged or swept meanwhile: then the manifest is another one by now."""
        while True:
            manifest = self.read(self.path)
            said: dict[str, Any] = json.loads(manifest.data) if manifest else {"life": OVER, "segments": []}
            segments: tuple[str, ...] = tuple(said["segments"])
            index = {path: self.index[path] for path in segments if path in self.index}
            read = self.read_all(self.prefix + path for path in segments if path not in index)
            index |= {path.removeprefix(self.prefix): tuple(json.loads(data)) for path, data in read.items()}
            if len(index) == len(segments):
                self.index = index
                names = frozenset(name for path in segments for name in index[path])
                return View(said["life"], segments, names, manifest)
            self.runtime.sleep(AGAIN_MS)

    def _manifest(self, life: str, segments: tuple[str, ...]) -> bytes:
        """No two are equal, so neither are their versions."""
        return json.dumps({"turn": self.runtime.unique_id(), "life": life, "segments": segments}).encode()

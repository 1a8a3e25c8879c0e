"""The Storage seam for actors on an event loop: calls run in threads, shared fairly by marker directory."""

from __future__ import annotations

from functools import partial

from marker_sim.names import place_of
from marker_sim.seams import Condition, Content, Storage
from marker_sim.serve.runtime import LoopRuntime


class LoopStorage:
    """A storage whose calls run in threads while the loop continues."""

    def __init__(self, inner: Storage, runtime: LoopRuntime) -> None:
        self.capabilities = inner.capabilities
        self._inner = inner
        self._run = runtime.in_thread

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace atomically, under a condition; returns the new version."""
        version: str = self._run(place_of(path), partial(self._inner.put, path, data, condition, expected))
        return version

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace in place."""
        self._run(place_of(path), partial(self._inner.overwrite, path, data))

    def get(self, path: str) -> Content:
        """The object as it is now."""
        content: Content = self._run(place_of(path), partial(self._inner.get, path))
        return content

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every path below a prefix, sorted."""
        paths: tuple[str, ...] = self._run(place_of(prefix), partial(self._inner.list, prefix))
        return paths

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is fine."""
        self._run(place_of(path), partial(self._inner.delete, path))

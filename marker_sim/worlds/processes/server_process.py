"""The timeline server as a child: what `marker-sim serve` runs, on the storage that meets the interceptor."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from marker_sim.markers.protocol import takes_identity
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.seams import Condition, Content, Storage
from marker_sim.serve.server import Settings, run
from marker_sim.worlds.processes.children import Child


class PrefixedStorage:
    """A storage whose paths all begin with `prefix`, as seen from a directory above it."""

    def __init__(self, inner: Storage, prefix: str) -> None:
        self.capabilities = inner.capabilities
        self._inner = inner
        self._prefix = prefix

    def put(self, path: str, data: bytes, condition: Condition = Condition.NONE, expected: str | None = None) -> str:
        """Replace atomically, under a condition."""
        return self._inner.put(path.removeprefix(self._prefix), data, condition, expected)

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace in place."""
        self._inner.overwrite(path.removeprefix(self._prefix), data)

    def get(self, path: str) -> Content:
        """The object as it is now."""
        return self._inner.get(path.removeprefix(self._prefix))

    def list(self, prefix: str) -> tuple[str, ...]:
        """Every path below a prefix, sorted."""
        return tuple(self._prefix + path for path in self._inner.list(prefix.removeprefix(self._prefix)))

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is fine."""
        self._inner.delete(path.removeprefix(self._prefix))


def serve(child: Child, storage: dict[str, str]) -> None:
    """Run a timeline server until the process ends; its port is reported to the kit."""
    local = storage["kind"] == "local"
    base = storage["root"] if local else f"s3a://{storage['bucket']}"
    # A server keeps local paths relative to the directory above its base.
    prefix = f"{Path(base).name}/" if local else ""

    def ready(url: str) -> None:
        child.link.ask("listening", urlsplit(url).port)

    def factory(context: Context) -> MarkerStore:
        assert child.system.server is not None
        store = child.system.server(context)
        if not takes_identity(type(store)):
            child.link.ask("no-identity")
        return store

    settings = Settings(bases=(base,), options=child.options)
    run(settings, ready, lambda _, __: PrefixedStorage(child.storage, prefix), factory)

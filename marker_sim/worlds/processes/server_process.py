"""The timeline server as a child: what `marker-sim serve` runs, on the storage that meets the interceptor."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from marker_sim.markers.protocol import takes_identity
from marker_sim.markers.store import Context, MarkerStore
from marker_sim.seams import Storage
from marker_sim.serve.server import Settings, run
from marker_sim.storages.local import LocalStorage
from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.processes.seams import CountedStorage


def serve(child: Child, storage: dict[str, str]) -> None:
    """Run a timeline server until the process ends; its port is reported to the kit."""
    base = storage["root"] if storage["kind"] == "local" else f"s3a://{storage['bucket']}"

    def ready(url: str) -> None:
        child.link.ask("listening", urlsplit(url).port)

    def factory(context: Context) -> MarkerStore:
        assert child.system.server is not None
        store = child.system.server(context)
        if not takes_identity(type(store)):
            child.link.ask("no-identity")
        return store

    def opened(local: bool, root: str) -> Storage:
        """A server keeps local paths relative to the directory above its base."""
        return CountedStorage(LocalStorage(Path(root)), child.steps, child.link) if local else child.storage

    run(Settings(bases=(base,), options=child.options), ready, opened, factory)

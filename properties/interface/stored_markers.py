"""A class of markers for tests: each marker an object in its directory."""

from __future__ import annotations

from marker_sim.names import data_path, is_append
from properties.faces.markers import Context, Created


class StoredMarkers:
    """A directory as an object for each marker."""

    def __init__(self, context: Context) -> None:
        self._storage, self._runtime = context.storage, context.runtime
        self._prefix, self._path = f"{context.directory}/", f"{context.directory}/names.json"

    def create(self, name: str) -> Created:
        self._storage.put(self._prefix + name, b"")
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        return tuple(path.removeprefix(self._prefix) for path in self._storage.list(self._prefix))

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple(data_path(name) for name in self.list_all() if not is_append(name))

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple(data_path(name) for name in self.list_all() if is_append(name))

    def exists(self) -> bool:
        return bool(self._storage.list(self._prefix))

    def delete(self) -> bool:
        paths = self._storage.list(self._prefix)
        for path in paths:
            self._storage.delete(path)
        return bool(paths)

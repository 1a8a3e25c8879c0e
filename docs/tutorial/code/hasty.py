"""Markers of one directory, an object each."""

from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import check_marker_name, data_path, is_append
from marker_sim.seams import Condition


class Markers:
    def __init__(self, context: Context) -> None:
        self.storage, self.runtime = context.storage, context.runtime
        self.prefix = f"{context.directory}/"

    def create(self, name: str) -> Created:
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        if name in self.list_all():
            return Created.EXISTS
        self.runtime.spawn("write", lambda: self.write(name))
        return Created.CREATED

    def write(self, name: str) -> None:
        self.storage.put(self.prefix + name, b"", Condition.IF_ABSENT)

    def list_all(self) -> tuple[str, ...]:
        found = self.storage.list(self.prefix)
        return tuple(path.removeprefix(self.prefix) for path in found if not path.endswith("/"))

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if not is_append(name)})

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if is_append(name)})

    def exists(self) -> bool:
        return bool(self.list_all())

    def delete(self) -> bool:
        paths = self.storage.list(self.prefix)
        for path in paths:
            self.storage.delete(path)
        return bool(paths)

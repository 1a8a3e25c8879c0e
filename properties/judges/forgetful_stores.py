"""Direct marker stores in a format of their own that store, answer, and do not keep: for what is said of them."""

from __future__ import annotations

from marker_sim.names import check_marker_name, data_path, is_append
from marker_sim.seams import Condition, PreconditionFailed
from properties.faces.markers import Context, Created, Rejected


class Keeps:
    """A correct one."""

    def __init__(self, context: Context) -> None:
        self.storage, self.directory = context.storage, context.directory

    def create(self, name: str) -> Created:
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        try:
            self.storage.put(f"{self.directory}/{name}", b"", Condition.IF_ABSENT)
        except PreconditionFailed:
            return Created.EXISTS
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        prefix = f"{self.directory}/"
        found = self.storage.list(prefix)
        return tuple(path.removeprefix(prefix) for path in found if not path.endswith("/"))

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if not is_append(name)})

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if is_append(name)})

    def exists(self) -> bool:
        return bool(self.list_all())

    def delete(self) -> bool:
        return self.remove(f"{self.directory}/")

    def remove(self, prefix: str) -> bool:
        """Whether there was anything that begins like this."""
        paths = self.storage.list(prefix)
        for path in paths:
            self.storage.delete(path)
        return bool(paths)


class TakesNeighbours(Keeps):
    """A deletion of `001` removes `0010` as well."""

    def delete(self) -> bool:
        return self.remove(self.directory)


class Forgets(Keeps):
    """Every third marker is gone as soon as the next one comes."""

    kept: tuple[str, ...] = ()

    def create(self, name: str) -> Created:
        made = super().create(name)
        self.kept = (*self.kept, name)
        if len(self.kept) == 4:
            self.storage.delete(f"{self.directory}/{self.kept[2]}")
            self.kept = ()
        return made


class NeverStores(Keeps):
    """Every create is answered "created", and nothing is stored."""

    def create(self, name: str) -> Created:
        check_marker_name(name)
        return Created.CREATED

"""Direct markers: one empty file a marker, below the mirrored partition path.

Source: Hudi 0.15.0 DirectWriteMarkers.
"""

from __future__ import annotations

from marker_sim.markers.files import PathsOfNames, create_if_absent, delete_directory, is_stored, read_directory
from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import check_marker_name
from marker_sim.seams import StorageError


class DirectMarkers(PathsOfNames):
    """The markers of one directory, one object each; no state, so every process has its own instance.

    On a storage without create-if-absent two racing creates of one name may both return CREATED.
    """

    def __init__(self, context: Context) -> None:
        self._storage = context.storage
        self._runtime = context.runtime
        self._directory = context.directory
        self._delete_at_once = context.options.delete_parallelism

    def create(self, name: str, request: str = "") -> Created:
        """Store the marker; one left by an earlier try of the same request is not recognised and answered EXISTS."""
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        path = f"{self._directory}/{name}"
        if self._storage.capabilities.put_if_absent:
            return Created.CREATED if create_if_absent(self._storage, self._runtime, path, b"") else Created.EXISTS
        if is_stored(self._storage, self._runtime, path) is not None:
            return Created.EXISTS
        try:
            self._storage.put(path, b"")
        except StorageError:
            # The put may have been applied: look before giving up, never put again.
            if is_stored(self._storage, self._runtime, path) is None:
                raise
            return Created.EXISTS
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """Every marker, sorted, in whatever format it is stored."""
        return tuple(sorted(read_directory(self._storage, self._runtime, self._directory).names()))

    def exists(self) -> bool:
        """Whether anything is stored below the marker directory."""
        return bool(self._storage.list(self._directory + "/"))

    def delete(self) -> bool:
        """Delete the marker directory; False when there was none."""
        return delete_directory(self._storage, self._runtime, self._directory, self._delete_at_once)


def direct_markers(context: Context) -> DirectMarkers:
    """The factory of the reference's direct mode."""
    return DirectMarkers(context)

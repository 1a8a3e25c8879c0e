"""What all correct shapes share: names are checked, paths come from `list_all`, objects are replaced if unchanged.

The classes beside this module are systems under test: each keeps what the profile `python` promises, none looks like
the reference, and none may be accused (properties/markers/test_correct_ones.py, benchmarks/correct_ones.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.markers.files import PathsOfNames
from marker_sim.markers.several import for_each
from marker_sim.markers.store import Context, Rejected
from marker_sim.names import check_marker_name
from marker_sim.seams import Condition, Content, NotFound, PreconditionFailed

AGAIN_MS = 5.0
AT_ONCE = 50
SYSTEMS = (
    "properties.correct.compacted_log:Markers",
    "properties.correct.hash_buckets:Markers",
    "properties.correct.hex_names:Markers",
    "properties.correct.impatient:Markers",
    "properties.correct.log_of_objects:Markers",
    "properties.correct.nested_json:Markers",
    "properties.correct.one_object:Markers",
    "properties.correct.owner_batches:SYSTEM",
    "properties.correct.segments:Markers",
    "properties.correct.two_copies:Markers",
)


class Shape(PathsOfNames):
    """One marker directory; a subclass says how it is stored."""

    def __init__(self, context: Context) -> None:
        self.storage, self.runtime = context.storage, context.runtime
        self.prefix = f"{context.directory}/"

    def exists(self) -> bool:
        """Whether there is a marker."""
        return bool(self.list_all())

    def delete(self) -> bool:
        """Delete whatever lies below the directory; an error leaves the rest to the next deletion."""
        paths = self.storage.list(self.prefix)
        for path in paths:
            self.remove(path)
        return bool(paths)

    def check(self, name: str) -> str:
        """The name; Rejected when it is none."""
        try:
            check_marker_name(name)
        except ValueError as error:
            raise Rejected(str(error)) from error
        return name

    def read(self, path: str) -> Content | None:
        """An object, None when it is not there (any more)."""
        try:
            return self.storage.get(path)
        except NotFound:
            return None

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """What is there of some objects, a few at a time: one after another, 800 on S3 take longer than 10 s."""
        found: dict[str, bytes] = {}

        def read(path: str) -> None:
            content = self.read(path)
            if content is not None:
                found[path] = content.data

        for_each(self.runtime, AT_ONCE, paths, read)
        return found

    def replace(self, path: str, data: bytes, there: Content | None) -> None:
        """Put data where the object is still what was read (None: nothing); PreconditionFailed when it is not.

        One try: after a time-out it may still be applied, so the error goes to the caller and nothing is sent again.
        """
        if there is None:
            self.storage.put(path, data, Condition.IF_ABSENT)
        elif self.storage.capabilities.put_if_unchanged or not self.storage.capabilities.host_lock:
            self.storage.put(path, data, expected=there.version)
        else:
            with self.runtime.lock(path):
                now = self.read(path)
                if now is None or now.version != there.version:
                    raise PreconditionFailed(path)
                self.storage.put(path, data)

    def remove(self, path: str) -> None:
        """Delete an object, not between another's look at it and its put."""
        if self.storage.capabilities.host_lock and not self.storage.capabilities.put_if_unchanged:
            with self.runtime.lock(path):
                self.storage.delete(path)
        else:
            self.storage.delete(path)

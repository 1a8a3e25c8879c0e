"""The error for a path that a storage can never hold or must not follow."""

from __future__ import annotations

from marker_sim.seams import StorageError


class PathRefused(StorageError, ValueError):
    """The path is too long for the storage, leads through a symbolic link or through a file; nothing was changed.

    A ValueError as well, so that a server answers 400: no later try of the same call can succeed.
    """

    definite = True

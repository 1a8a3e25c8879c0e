"""Checks every answer and every put of a foreign marker store against the contract (store.py, seams.py).

A value of a wrong type is a programming error of the class, and no evidence about its markers: it ends the command with
an error message, and nothing is judged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from reprlib import repr as shortened
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, NoReturn

from marker_sim.markers.protocol import takes_identity
from marker_sim.markers.store import Context, Created, Factory, MarkerStore
from marker_sim.seams import Condition, SeamError, Storage, StorageWrapper

Refuse = Callable[[str], NoReturn]
METHODS = ("create", "list_all", "list_data_paths", "list_log_paths", "exists", "delete")
_CREATED = "Created.CREATED or Created.EXISTS of marker_sim.markers.store"
_NAMES = "a tuple, list or set of str"
_TEXT = frozenset({str})
_KIT = f"{Path(__file__).parents[1]}{os.sep}"
_LIBRARY = get_path("stdlib") + os.sep


class WrongReturn(BaseException):
    """A wrong return value. A BaseException, so that an implementation's error handling does not catch it."""


def refuse_at_once(sentence: str) -> NoReturn:
    """Raise WrongReturn, which ends the run."""
    raise WrongReturn(sentence)


def mistake_at(error: Exception) -> str:
    """The place in a class's code that raised an error, "markers.py, line 17, in read"; "" if the kit raised it.

    A seam's error that the class did not handle counts as raised by the class; an error in Python's library as raised
    by its caller.
    """
    frames = [each for each in extract_tb(error.__traceback__) if not _of_library(each.filename)]
    own = [each for each in frames if not each.filename.startswith(_KIT)]
    if not own or (frames[-1] not in own and not isinstance(error, SeamError)):
        return ""
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name}"


def _of_library(file: str) -> bool:
    return file.startswith("<frozen ") or (file.startswith(_LIBRARY) and "site-packages" not in Path(file).parts)


def checked(factory: Factory, given: str, refuse: Refuse) -> Factory:
    """The factory, whose stores check every answer and put.

    given: the user's name of the system, which begins each error message.
    refuse: called with the message about a wrong value.
    """

    def make(context: Context) -> MarkerStore:
        store = factory(replace(context, storage=_CheckedStorage(context.storage, given, refuse)))
        missing = [name for name in METHODS if not callable(getattr(store, name, None))]
        if missing:
            refuse(
                f"{given}: the factory returned {shortened(store)}, which has no method {', '.join(missing)};"
                f" return a store with {', '.join(METHODS)}"
            )
        kind = _IdentifiedStore if takes_identity(type(store)) else _CheckedStore
        return kind(store, given, refuse)

    return make


class _CheckedStorage(StorageWrapper):
    """The storage that a store gets: it refuses puts of anything but bytes and unknown conditions.

    An unknown condition would be ignored, and the class blamed for the result.
    """

    def __init__(self, inner: Storage, given: str, refuse: Refuse) -> None:
        super().__init__(inner)
        self._given = given
        self._refuse = refuse

    def _call(self, operation: str, path: str, *arguments: Any) -> Any:
        match arguments:
            case (data, *_) if not isinstance(data, bytes):
                self._wrong(operation, data, "bytes")
            case (_, condition, _) if not isinstance(condition, Condition):
                self._wrong(operation, condition, "Condition.NONE or Condition.IF_ABSENT of marker_sim.seams")
            case (_, _, expected) if not isinstance(expected, str | None):
                self._wrong(operation, expected, "expected=version, the second part of what get returned")
        return super()._call(operation, path, *arguments)

    def _wrong(self, operation: str, value: Any, expected: str) -> NoReturn:
        self._refuse(f"{self._given}: storage.{operation} was called with {shortened(value)}; give {expected}")


class _CheckedStore:
    """A store whose answers are checked."""

    def __init__(self, store: MarkerStore, given: str, refuse: Refuse) -> None:
        self._store: Any = store
        self._given = given
        self._refuse = refuse

    def create(self, name: str) -> Created:
        """The answer of create, which must be one of the two constants."""
        return self._created(self._store.create(name))

    def list_all(self) -> tuple[str, ...]:
        """The answer of list_all, which must be names."""
        return self._names("list_all")

    def list_data_paths(self) -> tuple[str, ...]:
        """The answer of list_data_paths, which must be paths."""
        return self._names("list_data_paths")

    def list_log_paths(self) -> tuple[str, ...]:
        """The answer of list_log_paths, which must be paths."""
        return self._names("list_log_paths")

    def exists(self) -> bool:
        """The answer of exists, which must be a bool."""
        return self._bool("exists")

    def delete(self) -> bool:
        """The answer of delete, which must be a bool."""
        return self._bool("delete")

    def _created(self, value: Any) -> Created:
        return value if isinstance(value, Created) else self._wrong("create", value, _CREATED)

    def _bool(self, method: str) -> bool:
        value = getattr(self._store, method)()
        return value if isinstance(value, bool) else self._wrong(method, value, "True or False")

    def _names(self, method: str) -> tuple[str, ...]:
        value = getattr(self._store, method)()
        if not isinstance(value, Collection) or isinstance(value, str | bytes | bytearray):
            self._wrong(method, value, _NAMES)
        names = tuple(value)
        if not _TEXT.issuperset(map(type, names)):
            for name in names:
                if not isinstance(name, str):
                    self._wrong(method, value, f"{_NAMES}, of which {shortened(name)} is none")
        return names

    def _wrong(self, method: str, value: Any, expected: str) -> NoReturn:
        self._refuse(f"{self._given}: {method} returned {shortened(value)}; return {expected}")


class _IdentifiedStore(_CheckedStore):
    """A checked store whose create accepts the identity of a request."""

    def create(self, name: str, request: str = "") -> Created:
        """The answer of create, which must be one of the two constants."""
        return self._created(self._store.create(name, request))

"""Attempts that do not count may write at any time: the end of an instant deletes their files twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marker_sim.names import MarkerDirectory
from marker_sim.options import MarkerOptions
from properties.faces.markers import Context, DirectMarkers
from properties.faces.storages import LocalStorage
from properties.faces.worlds import ThreadRuntime
from properties.faces.writer import WriteClient

OPTIONS = MarkerOptions(markers_type="DIRECT")


class Meeting(DirectMarkers):
    """The markers of one directory; `before` happens when they are about to be deleted."""

    def __init__(self, context: Context, before: Callable[[], object]) -> None:
        super().__init__(context)
        self._before = before

    def delete(self) -> bool:
        self._before()
        return super().delete()


class Places:
    """Where a driver finds markers (writer.client.Markers)."""

    def __init__(self, storage: LocalStorage, runtime: ThreadRuntime) -> None:
        self.before: Callable[[], object] = lambda: None
        self._seams: dict[str, Any] = {"storage": storage, "runtime": runtime, "wire": None, "options": OPTIONS}

    def context(self, directory: str) -> Context:
        return Context(directory=directory, **self._seams)

    def store(self, directory: str) -> Meeting:
        return Meeting(self.context(directory), self.before)

    def stored(self, directory: str) -> tuple[str, ...]:
        return self.store(directory).list_all()


@pytest.mark.parametrize("ended_by", ["commit", "rollback", "sweep"])
def test_a_file_that_comes_while_the_markers_go_is_deleted(ended_by: str, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    runtime = ThreadRuntime(SimpleNamespace(step=lambda: None), None, pytest.fail)  # type: ignore[arg-type]
    places = Places(storage, runtime)

    def client() -> WriteClient:
        return WriteClient("t", places.context("t"), places)

    first = client()
    instant = first.begin()
    late = f"p/f-0_0-0-1_{instant}.parquet"
    markers = places.store(MarkerDirectory("t", instant).path)
    if ended_by == "sweep":
        first.finalize(instant, ())
        first.commit(instant, ())
    # Before a sweep: the request was long on its way, and made the directory anew.
    markers.create(f"{late}.marker.CREATE")
    came = []

    def arrives() -> None:
        came.append(markers.exists())
        storage.put(f"t/{late}", b"PAR1")

    places.before = arrives
    if ended_by == "commit":
        first.finalize(instant, ())
        first.commit(instant, ())
    else:
        client().begin()
    assert came == [True], "the attempt found its marker directory and had no reason to take its file back"
    assert storage.list(f"t/{late}") == ()

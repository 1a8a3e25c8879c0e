"""A table takes writes whatever instants its timeline holds already: bootstrapped, of 14 digits, of 17, of no time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marker_sim.timeline import Entry, State, WriteStat, WriteToken, base_file_name
from properties.faces.storages import LocalStorage
from properties.faces.worlds import ThreadRuntime
from properties.faces.writer import WriteClient
from properties.markers.test_timeline import BOOTSTRAP, INSTANTS
from properties.simulated.test_late_attempts import Places


def _commit(storage: LocalStorage, instant: str) -> WriteStat:
    """A completed commit as Hudi leaves it, with keys that only Hudi knows; the file group it made."""
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.put(Entry(instant, "commit", state).path("t"), b"")
    file_id = f"group-of-{instant.encode().hex()}"
    path = base_file_name(file_id, WriteToken(0, 0, 0), instant)
    stat = {"fileId": file_id, "path": path, "prevCommit": None, "numWrites": 3, "minEventTime": None}
    body = {
        "partitionToWriteStats": {"": [stat]},
        "compacted": False,
        "extraMetadata": {"schema": "{}"},
        "operationType": "BOOTSTRAP" if instant == BOOTSTRAP else "UPSERT",
    }
    storage.put(Entry(instant, "commit", State.COMPLETED).path("t"), json.dumps(body).encode())
    storage.put(f"t/{path}", b"PAR1")
    return WriteStat("", file_id, path, 3, "")


_NAMES = INSTANTS.filter(lambda text: "_" not in text and "\0" not in text and not text.startswith(".") and _fits(text))


def _fits(text: str) -> bool:
    try:
        return len(text.encode()) < 60
    except UnicodeEncodeError:
        return False


@given(st.lists(_NAMES, min_size=1, max_size=4, unique=True))
@example([BOOTSTRAP])
@example([BOOTSTRAP, "20260101000000", "20260101000000500"])
@example(["9" * 17])
@example(["20260101", "20260101-1"])
def test_a_table_takes_writes_whatever_its_timeline_holds(before: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = LocalStorage(Path(folder))
        runtime = ThreadRuntime(SimpleNamespace(step=lambda: None), None, pytest.fail)  # type: ignore[arg-type]
        places = Places(storage, runtime)
        there = {_commit(storage, instant) for instant in before}
        instants = [*before]
        for number in range(3):
            client = WriteClient("t", places.context("t"), places)
            instant = client.begin()
            assert instant > max(instants), "later than all that were there"
            assert {stat.file_id for stat in there} <= {file_id for _, file_id in client.slices}
            instants.append(instant)
            stat = WriteStat("", "new", base_file_name("new", WriteToken(number, 0, 0), instant), 1, "")
            storage.put(f"t/{stat.path}", b"PAR1")
            client.finalize(instant, (stat,))
            client.commit(instant, (stat,))
        client = WriteClient("t", places.context("t"), places)
        client.begin()
        assert client.slices["", "new"].base == stat.path, "the last write is the one that is read"
        assert all(storage.get(f"t/{stat.path}").data == b"PAR1" for stat in there), "and nothing was taken away"

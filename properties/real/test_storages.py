"""Both real storages keep the contract of the Storage seam; each also keeps what it alone promises."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.seams import (
    Condition,
    Conflicted,
    NotFound,
    PathRefused,
    PreconditionFailed,
    Storage,
    StorageError,
    StorageFailed,
    StorageTimeout,
    Throttled,
)
from marker_sim.storages.s3 import _answered
from properties.faces.storages import LocalStorage, S3Storage, StoreAnswered
from properties.faces.worlds import Interceptor, Recorder, S3Front

D = "t/.hoodie/.temp/001"
NAMES = (
    "plain.parquet.marker.CREATE",
    "dt=2020-01-01/a%2Fb+c d.parquet.marker.MERGE",
    "größe=12/été/日本/𝄞.log.marker.APPEND",
    "*'()!~;:@&=$,?#[]/x.marker.CREATE",
    "-rf/..a/.hidden.marker.CREATE",
    f"{'s' * 255}/{'é' * 120}.marker.CREATE",
)
CHILD_TIMEOUT_S = 30


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The kit's own front: moto alone compares and puts in two steps, so two creates at once may both succeed."""
    pytest.importorskip("moto.server", reason="moto is missing: pip install 'marker-sim[test]'")
    with S3Front(Interceptor(Recorder()), bucket="lake") as front:
        # The first request imports most of moto.
        S3Storage(front.endpoint, "lake", access_key="kit", read_timeout_s=60.0).list("")
        yield front.endpoint


@pytest.fixture(params=["local", "local with fsync", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param != "s3":
        return LocalStorage(tmp_path / "root", fsync=request.param != "local")
    return S3Storage(
        request.getfixturevalue("endpoint"), "lake", prefix=tmp_path.name, access_key="server-1", read_timeout_s=60.0
    )


def test_what_was_put_is_read_listed_and_deleted_byte_for_byte(storage: Storage) -> None:
    paths = tuple(sorted(f"{D}/{name}" for name in NAMES))
    for path in paths:
        storage.put(path, path.encode())
    assert storage.list("") == storage.list(D) == storage.list(f"{D}/") == paths
    assert storage.list(f"{D}/dt=") == tuple(path for path in paths if path.startswith(f"{D}/dt="))
    assert storage.list("nothing/") == ()
    for path in paths:
        assert storage.get(path).data == path.encode()
        storage.delete(path)
        storage.delete(path)
        with pytest.raises(NotFound):
            storage.get(path)
    assert storage.list("") == ()


@pytest.mark.parametrize("data", [b"", b"content\n"], ids=["empty", "content"])
def test_if_absent_creates_once_and_changes_nothing_afterwards(storage: Storage, data: bytes) -> None:
    version = storage.put(f"{D}/MARKERS0", data, Condition.IF_ABSENT)
    with pytest.raises(PreconditionFailed):
        storage.put(f"{D}/MARKERS0", b"other", Condition.IF_ABSENT)
    assert storage.get(f"{D}/MARKERS0") == (data, version)
    storage.delete(f"{D}/MARKERS0")
    storage.put(f"{D}/MARKERS0", b"other", Condition.IF_ABSENT)
    assert storage.get(f"{D}/MARKERS0").data == b"other"


def test_versions_change_whenever_the_content_does(storage: Storage) -> None:
    seen = set()
    for number in range(200):
        version = storage.put("t/file", f"{number:04}".encode())
        assert storage.get("t/file").version == version
        seen.add(version)
    assert len(seen) == 200


def test_of_many_that_create_at_once_exactly_one_does(storage: Storage) -> None:
    def create(number: int) -> bool:
        try:
            storage.put(f"{D}/MARKERS{number // 8}", f"{number}\n".encode(), Condition.IF_ABSENT)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(64)))
    assert [sum(won[first : first + 8]) for first in range(0, 64, 8)] == [1] * 8
    for number in range(64):
        stored = storage.get(f"{D}/MARKERS{number // 8}").data == f"{number}\n".encode()
        assert stored == won[number]


def test_what_is_not_offered_is_a_defect_of_the_caller(storage: Storage) -> None:
    local = storage.capabilities.host_lock
    with pytest.raises(ValueError, match="capabilities"):
        if local:
            storage.put("a", b"", expected="v")
        else:
            storage.overwrite("a", b"")


def test_s3_replaces_only_the_expected_version(endpoint: str, tmp_path: Path) -> None:
    storage = S3Storage(endpoint, "lake", prefix=tmp_path.name, access_key="server-1")
    first = storage.put("a", b"1")
    second = storage.put("a", b"2", expected=first)
    for path in ("a", "missing"):
        with pytest.raises(PreconditionFailed):
            storage.put(path, b"3", expected=first)
    assert storage.get("a") == (b"2", second) and storage.list("") == ("a",)


def test_s3_lists_every_page(endpoint: str, tmp_path: Path) -> None:
    storage = S3Storage(endpoint, "lake", prefix=tmp_path.name, access_key="server-1")
    paths = [f"{D}/{number:04}" for number in range(30)]
    for path in paths:
        storage.put(path, b"")
    storage._client.meta.events.register(
        "provide-client-params.s3.ListObjectsV2", lambda params, **_: {**params, "MaxKeys": 7}
    )
    assert storage.list(D) == tuple(paths)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "NoSuchKey", NotFound),
        (404, "NoSuchBucket", StoreAnswered),
        (412, "PreconditionFailed", PreconditionFailed),
        (409, "ConditionalRequestConflict", Conflicted),
        (503, "SlowDown", Throttled),
        (429, "TooManyRequests", Throttled),
        (503, "ServiceUnavailable", StoreAnswered),
        (500, "InternalError", StoreAnswered),
        (403, "AccessDenied", StoreAnswered),
        (400, "InvalidArgument", StoreAnswered),
    ],
)
def test_an_answer_of_s3_is_the_error_it_means(status: int, code: str, kind: type[StorageError]) -> None:
    error = _answered("a", {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}})
    assert type(error) is kind


def test_s3_asks_once_and_gives_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked: list[bytes] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                asked.append(connection.recv(65_536))
                held.append(connection)

        held: list[socket.socket] = []
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        storage = S3Storage(f"http://127.0.0.1:{port}", "lake", access_key="server-1", read_timeout_s=0.3)
        assert storage.capabilities.request_timeout_ms == 1_300 and storage.capabilities.late_effect_ms == 2_000
        with pytest.raises(StorageTimeout) as caught:
            storage.put("a", b"content")
        assert not caught.value.definite
        assert len(asked) == 1 and b"100-continue" not in asked[0] and b"Credential=server-1/" in asked[0]
        for connection in held:
            connection.close()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(CHILD_TIMEOUT_S)
    with pytest.raises(StorageFailed, match="no connection"):
        storage.get("a")


def test_a_key_longer_than_s3_takes_is_refused_before_it_is_sent() -> None:
    with pytest.raises(PathRefused, match="1024"):
        S3Storage("http://127.0.0.1:1", "lake", access_key="x").put("k" * 1_025, b"")


def test_without_boto3_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boto3", "botocore", "botocore.config", "botocore.session"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(HarnessError, match=r"pip install '\.\[s3\]'"):
        S3Storage("http://127.0.0.1:1", "lake")

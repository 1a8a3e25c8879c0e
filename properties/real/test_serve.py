"""`marker-sim serve` speaks Hudi's protocol on both storages, refuses malformed requests and stops at signals."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from marker_sim.cli import main
from marker_sim.names import TYPE_BATCHED, stored_names
from marker_sim.seams import Storage
from properties.faces.serve import Refusal, locate, parse_base
from properties.faces.storages import LocalStorage, S3Storage
from properties.real.served import BASE_PATH, Served, read_answer, request_bytes, serving

EXIT_TIMEOUT_S = 30.0
FAST = ("--batch-interval-ms", "5")


class Ground(NamedTuple):
    """A server, how it is asked for marker directories, and the storage it writes to; the directory 1 has a marker."""

    served: Served
    root: str
    storage: Storage
    prefix: str

    def directory(self, instant: str) -> str:
        """A marker directory as requests write it."""
        return f"{self.root}/t/.hoodie/.temp/{instant}"

    def stored(self, instant: str) -> frozenset[str]:
        """The names that storage holds, read without the server."""
        directory = f"{self.prefix}/t/.hoodie/.temp/{instant}"
        return stored_names(directory, {p: self.storage.get(p).data for p in self.storage.list(f"{directory}/")})


@pytest.fixture(scope="module", params=["local", "s3"])
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    if request.param != "s3":
        base = tmp_path_factory.mktemp("ground") / "lake"
        base.mkdir()
        with serving("--base", str(base), *FAST) as served:
            yield _with_a_marker(Ground(served, str(base), LocalStorage(base.parent), base.name))
        return
    moto = pytest.importorskip("moto.server", reason="moto is missing: pip install 'marker-sim[test]'")
    store = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    endpoint = f"http://127.0.0.1:{store.get_host_and_port()[1]}"
    storage = S3Storage(endpoint, "lake", access_key="kit")
    storage._client.create_bucket(Bucket="lake")
    keys = {"AWS_ACCESS_KEY_ID": "server-1", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
    with serving("--base", "s3://lake/tables", "--s3-endpoint", endpoint, *FAST, **keys) as served:
        yield _with_a_marker(Ground(served, "s3a://lake/tables", storage, "tables"))
    store.stop()


def _with_a_marker(ground: Ground) -> Ground:
    assert ground.served.create(ground.directory("1"), "a.parquet.marker.CREATE") is True
    return ground


MALFORMED = (
    (400, "POST", "/create"),
    (400, "POST", "/create?markerdirpath={d}"),
    (400, "POST", "/create?markerdirpath={d}&markername="),
    (400, "POST", "/create?markerdirpath=&markername=a.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=a.marker.CREATE&markername=a.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markerdirpath={d}&markername=a.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=a.marker.CREATE%"),
    (400, "POST", "/create?markerdirpath={d}&markername=a%zz.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=%ff.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=%ed%a0%80.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=a%0a.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=..%2Fa.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=%2Fa.marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=a.marker.DELETE"),
    (400, "POST", "/create?markerdirpath={d}&markername=" + "a" * 300 + ".marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=" + "a%2F" * 3000 + ".marker.CREATE"),
    (400, "POST", "/create?markerdirpath={d}&markername=a.marker.CREATE&requestid=" + "r" * 300),
    (400, "GET", "/all"),
    (400, "GET", "/all?markerdirpath"),
    (400, "GET", "/all?markerdirpath={d}%2Fdeeper"),
    (400, "GET", "/all?markerdirpath={r}%2Ft%2F.hoodie%2F.temp"),
    (400, "GET", "/all?markerdirpath={r}%2Ft"),
    (400, "GET", "/all?markerdirpath={d}%00"),
    (400, "GET", "/all?markerdirpath=relative%2Ft%2F.hoodie%2F.temp%2F1"),
    (400, "GET", "/all?markerdirpath=ftp:%2F%2Fhost%2Ft%2F.hoodie%2F.temp%2F1"),
    (400, "GET", "/all?markerdirpath=file:%2F%2Fhost%2Ft%2F.hoodie%2F.temp%2F1"),
    (400, "GET", "/all?markerdirpath={d}" + "1" * 300),
    (403, "GET", "/all?markerdirpath=%2Ft%2F.hoodie%2F.temp%2F1"),
    (403, "GET", "/all?markerdirpath={r}%2F..%2Fother%2F.hoodie%2F.temp%2F1"),
    (403, "GET", "/all?markerdirpath={r}x%2Ft%2F.hoodie%2F.temp%2F1"),
    (403, "GET", "/all?markerdirpath=s3:%2F%2Fother%2Ft%2F.hoodie%2F.temp%2F1"),
    (403, "POST", "/dir/delete?markerdirpath=%2Fetc%2F.hoodie%2F.temp%2F1"),
    (404, "GET", "/nothing"),
    (404, "GET", "/all/?markerdirpath={d}"),
    (404, "GET", "/"),
    (405, "GET", "/create?markerdirpath={d}&markername=a.marker.CREATE"),
    (405, "POST", "/all?markerdirpath={d}"),
    (405, "OPTIONS", "/create?markerdirpath={d}"),
    (405, "DELETE", "/dir/delete?markerdirpath={d}"),
)


@pytest.mark.parametrize(("status", "method", "target"), MALFORMED, ids=lambda value: str(value)[:60])
def test_what_is_malformed_gets_a_sentence_and_changes_nothing(
    ground: Ground, status: int, method: str, target: str
) -> None:
    before = {path: ground.storage.get(path).data for path in ground.storage.list("")}
    assert before, "there is something to change"
    root = quote(ground.root, safe="")
    target = target.format(d=f"{root}%2Ft%2F.hoodie%2F.temp%2F1", r=root)
    answer = ground.served.raw(
        f"{method} {BASE_PATH}{target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
    )
    assert answer.status == status and isinstance(answer.body, str) and len(answer.body) > 10
    assert {path: ground.storage.get(path).data for path in ground.storage.list("")} == before


def test_the_whole_protocol_is_spoken(ground: Ground) -> None:
    served, directory = ground.served, ground.directory("001")

    def exists() -> bool:
        answer: bool = served.ask("GET", "/dir/exists", markerdirpath=directory).body
        return answer

    assert exists() is False and served.names(directory) == []
    names = ["dt=1/größe %2F+&=?#.parquet.marker.CREATE", "b.parquet.marker.MERGE", ".c.log.1.marker.APPEND"]
    for name in names:
        assert served.create(directory, name, basepath="ignored") is True
        assert served.create(directory, name, unknown="a") is False
        assert name in ground.stored("001")
    assert served.create(directory, "resent.parquet.marker.CREATE", requestid="r1") is True
    assert served.create(directory, "resent.parquet.marker.CREATE", requestid="r1") is True
    assert served.create(directory, "resent.parquet.marker.CREATE", requestid="r2") is False
    names.append("resent.parquet.marker.CREATE")
    assert served.names(directory) == sorted(names) == sorted(ground.stored("001"))
    merged = served.ask("GET", "/create-and-merge", markerdirpath=directory).body
    assert merged == sorted(name for name in names if not name.endswith("APPEND"))
    assert served.ask("GET", "/append", markerdirpath=directory).body == [".c.log.1.marker.APPEND"]
    type_file = ground.storage.get(f"{ground.prefix}/t/.hoodie/.temp/001/MARKERS.type")
    assert type_file.data == TYPE_BATCHED and exists() is True
    assert served.ask("POST", "/dir/delete", markerdirpath=directory).body is True
    assert served.ask("POST", "/dir/delete", markerdirpath=directory).body is False
    assert exists() is False and not ground.stored("001")


def test_every_way_to_write_a_directory_is_the_same_directory(ground: Ground) -> None:
    directory = ground.directory("002")
    ground.served.create(directory, "a.parquet.marker.CREATE")
    if directory.startswith("/"):
        same = [f"file:{directory}", f"file://{directory}", f"file://localhost{directory}", f"/{directory}"]
    else:
        same = [directory.replace("s3a:", scheme) for scheme in ("s3:", "s3n:", "S3A:")]
    same += [f"{directory}/", directory.replace("/t/", "//t/./x/../")]
    for written in same:
        assert ground.served.names(written) == ["a.parquet.marker.CREATE"], written


def test_many_at_once_are_all_stored_in_few_files(ground: Ground) -> None:
    names = [f"p{number % 3}/{number}.parquet.marker.CREATE" for number in range(300)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda name: ground.served.create(ground.directory("003"), name), names * 2))
    assert sum(answers) == 300 and ground.stored("003") == set(names)
    below = f"{ground.prefix}/t/.hoodie/.temp/003/"
    assert len(ground.storage.list(below)) <= 21


def test_long_replies_are_compressed_for_those_who_take_it(ground: Ground) -> None:
    directory = ground.directory("004")
    names = sorted(f"{'x' * 100}{number:02}.parquet.marker.CREATE" for number in range(30))
    with ThreadPoolExecutor(15) as pool:
        assert all(pool.map(lambda name: ground.served.create(directory, name), names))
    for accepted, packed in (("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False)):
        answer = ground.served.ask("GET", "/all", f"accept-encoding: {accepted}\r\n", markerdirpath=directory)
        assert (answer.headers.get("content-encoding") == "gzip") is packed, accepted
        assert (json.loads(gzip.decompress(answer.body)) if packed else answer.body) == names


def test_bodies_are_ignored_up_to_a_size(ground: Ground) -> None:
    asked = {"markerdirpath": ground.directory("005"), "markername": "a.parquet.marker.CREATE"}
    plain = request_bytes("POST", "/create", "content-length: 5\r\n", **asked)
    assert ground.served.raw(plain + b"a=b&c").body is True
    chunked = request_bytes("POST", "/create", "transfer-encoding: chunked\r\n", **asked)
    assert ground.served.raw(chunked + b"3\r\nabc\r\n0\r\n\r\n").body is False
    huge = request_bytes("POST", "/create", "content-length: 70000\r\n", **asked)
    assert ground.served.raw(huge + b"x" * 70_000).status == 413
    endless = b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n"
    assert ground.served.raw(endless).status == 431
    assert ground.served.raw(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000).status == 431
    assert ground.served.raw(b"no http at all\r\n\r\n").status == 400


def test_requests_in_one_connection_are_answered_in_order(ground: Ground) -> None:
    directory = ground.directory("006")
    create = request_bytes("POST", "/create", markerdirpath=directory, markername="a.parquet.marker.CREATE")
    requests = [create, request_bytes("GET", "/nothing"), request_bytes("GET", "/dir/exists", markerdirpath=directory)]
    with ground.served.connect() as connection:
        connection.sendall(b"".join(request.replace(b"connection: close\r\n", b"") for request in requests))
        received = b""
        while received.count(b"HTTP/1.1 ") < 3 or not received.endswith(b"true"):
            piece = connection.recv(65_536)
            assert piece, received
            received += piece
    assert [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]


def test_a_connection_that_repeats_its_headers_is_understood_each_time(ground: Ground) -> None:
    directory, other = ground.directory("016"), ground.directory("017")

    def create(name: str, **more: str) -> bytes:
        where = {"markerdirpath": directory, "markername": name} | more
        return request_bytes("POST", "/create", **where).replace(b"connection: close\r\n", b"")

    asked = [
        (create("a.marker.CREATE"), 200, True),
        (create("a.marker.CREATE"), 200, False),
        (create("größe b/x+y.marker.CREATE"), 200, True),
        (create("b.marker.CREATE").replace(b"b.marker", b"b%2.marker"), 400, "two hexadecimal digits"),
        (create("b.marker.CREATE").replace(b"b.marker", b"%FF.marker"), 400, "not UTF-8"),
        (create("../b.marker.CREATE"), 400, "'..' segments"),
        (create(""), 400, "markername is missing"),
        (create("c.marker.CREATE", requestid="1"), 200, True),
        (create("c.marker.CREATE", requestid="1"), 200, True),
        (create("c.marker.CREATE", requestid="2"), 200, False),
        (create("c.marker.CREATE", requestid="x" * 300), 400, "requestid is longer"),
        (
            create("d.marker.CREATE&markername=e.marker.CREATE").replace(b"%26", b"&").replace(b"%3D", b"="),
            400,
            "twice",
        ),
        (create("a.marker.CREATE", markerdirpath=other), 200, True),
        (create("a.marker.CREATE", markerdirpath="/elsewhere/t/.hoodie/.temp/1"), 403, "outside"),
        (create("f.marker.CREATE").replace(b"\r\n\r\n", b"\r\ncontent-length: 2\r\n\r\nhi"), 200, True),
        (create("g.marker.CREATE").replace(b"POST", b"GET"), 405, "is asked for with POST"),
        (create("h.marker.CREATE").replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), 200, True),
    ]
    with ground.served.connect() as connection:
        for request, status, body in asked:
            half = len(request) // 2 if status == 200 and body is False else 0
            connection.sendall(request[:half])
            connection.sendall(request[half:])
            answer = read_answer(connection)
            assert answer.status == status, (request, answer)
            assert body in answer.body if isinstance(body, str) else answer.body is body, (request, answer)
        assert connection.recv(1) == b""
    letters = ("a", "größe b/x+y", "c", "f", "h")
    assert ground.stored("016") == {f"{letter}.marker.CREATE" for letter in letters}
    assert ground.stored("017") == {"a.marker.CREATE"}


@pytest.mark.parametrize("body", ["", "content-length: 2\r\n\r\nhi"], ids=["plain", "with a body"])
def test_a_client_that_ends_its_half_gets_every_answer_and_then_the_end(ground: Ground, body: str) -> None:
    """So does the second of two, also where a third breaks off; what broke off changes nothing."""
    directory = ground.directory(f"015-{len(body)}")
    names = [f"p/{number}.parquet.marker.CREATE" for number in range(3)]

    def create(name: str, rest: str) -> bytes:
        request = request_bytes("POST", "/create", markerdirpath=directory, markername=name)
        return request.replace(b"connection: close\r\n", b"").removesuffix(b"\r\n") + (rest or "\r\n").encode()

    torn = create(names[2], "content-length: 30\r\n\r\nx"), create(names[2], "x-torn: y")
    for count, end in ((1, b""), (2, b""), (2, torn[0]), (2, torn[1])):
        with ground.served.connect() as connection:
            connection.sendall(b"".join(create(name, body) for name in names[:count]) + end)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as stream:
                assert stream.read().count(b"HTTP/1.1 200 OK\r\n") == count
    assert ground.stored(f"015-{len(body)}") == set(names[:2])


def test_an_answer_to_head_has_no_body(ground: Ground) -> None:
    with ground.served.connect() as connection:
        connection.sendall(request_bytes("HEAD", "/all"))
        received = b""
        while piece := connection.recv(65_536):
            received += piece
    assert received.startswith(b"HTTP/1.1 405 ") and received.endswith(b"\r\n\r\n")


def test_silent_and_half_open_clients_hold_up_nobody(ground: Ground) -> None:
    with ThreadPoolExecutor(8) as pool:
        silent = list(pool.map(lambda _: ground.served.connect(), range(50)))
    try:
        for number, connection in enumerate(silent):
            connection.sendall(b"POST /v1/hoodie/marker/create?marker"[: number % 30])
            if number % 3 == 0:
                connection.shutdown(socket.SHUT_WR)
        assert ground.served.create(ground.directory("007"), "a.parquet.marker.CREATE") is True
    finally:
        for connection in silent:
            connection.close()


def test_a_directory_behind_a_link_is_the_one_it_leads_to_or_refused(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    for table in (base / "real", outside):
        (table / ".hoodie/.temp").mkdir(parents=True)
    (base / "alias").symlink_to("real")
    (base / "away").symlink_to(outside)
    (base / "real/.hoodie/.temp/5").symlink_to(outside)
    bases = (parse_base(str(base)),)
    assert locate(f"{base}/alias/.hoodie/.temp/1", bases) == locate(f"{base}/real/.hoodie/.temp/1", bases)
    for path, status in (("away/.hoodie/.temp/1", 403), ("real/.hoodie/.temp/5", 400)):
        with pytest.raises(Refusal) as caught:
            locate(f"{base}/{path}", bases)
        assert caught.value.status == status


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no --base is given"),
        (["--base", "relative"], "not an absolute path"),
        (["--base", "/"], "would serve every file"),
        (["--base", "gs://bucket"], "'gs' is not served"),
        (["--base", "s3:///key"], "names no bucket"),
        (["--base", "/tables", "--port", "70000"], "--port was given 70000"),
        (["--base", "/tables", "--batch-threads", "0"], "whole number of at least 1"),
        (["--base", "/tables", "--batch-interval-ms", "soon"], "whole number of at least 1"),
        (["--base", "/tables", "--waiting-max", "0"], "--waiting-max was given 0"),
        (["--base", "/tables", "--s3-endpoint", "localhost"], "write a URL"),
    ],
)
def test_wrong_options_get_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words]) == 2
    said = capsys.readouterr()
    assert sentence in said.err and said.err.count("\n") == 1 and not said.out

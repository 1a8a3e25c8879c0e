"""A request in other words says the same, whatever is in it."""

from __future__ import annotations

import socket
import threading
from urllib.parse import parse_qsl

import pytest

from marker_sim.errors import UsageError
from marker_sim.plan import ALONE, REQUEST_FORMS, Op, Plan
from marker_sim.unusual_names import KEPT, PARTITIONS
from marker_sim.worlds.http.http_client import exchange
from properties.faces.report import plan_sentences
from properties.faces.search import NAME_IN_FORMS_MAX, make_hostile_plan, make_merged_plan
from properties.faces.serve import decode, parse_query
from properties.faces.targets import INTERVALS_MS, THREADS
from properties.faces.worlds import done, head, query

NAMES: tuple[str | bytes, ...] = (
    *(f"{part}/a.parquet.marker.CREATE".lstrip("/") for part in PARTITIONS),
    *KEPT,
    b"no text \xff\xc0",
)


@pytest.mark.parametrize("form", ["", *REQUEST_FORMS])
def test_every_form_has_the_same_parameters(form: str) -> None:
    for name in NAMES:
        written = query({"markerdirpath": "/data/größe & co/.hoodie/.temp/1", "markername": name}, form)
        assert written.isascii() and " " not in written
        found = dict(parse_qsl(written, keep_blank_values=True, encoding="utf-8", errors="surrogateescape"))
        text = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
        assert found["markername"] == text and found["markerdirpath"] == "/data/größe & co/.hoodie/.temp/1"
        assert set(found) - {"markerdirpath", "markername"} == (
            {"basepath", "nobody", "empty"} if form == "more-parameters" else set()
        )
        if isinstance(name, str):
            ours = parse_query(written.encode(), frozenset({b"markerdirpath", b"markername"}))
            assert decode(ours[b"markername"]) == name


def test_heads_differ_where_their_forms_do() -> None:
    usual = head(80, "POST", "/t")
    assert usual.endswith(b"Content-Length: 0\r\n\r\n") and head(80, "POST", "/t", "in-pieces") == usual
    assert head(80, "POST", "/t", "empty-chunk").endswith(b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert head(80, "GET", "/t", "empty-chunk") == head(80, "GET", "/t"), "a GET has no body at all"
    assert b"Upgrade: nobody-knows/1\r\n" in head(80, "GET", "/t", "offers-upgrade")
    assert b"Connection: close\r\n" in head(80, "GET", "/t", "last-on-connection")


@pytest.mark.parametrize("form", ALONE)
def test_a_server_gets_the_whole_request_and_its_reply_is_read(form: str) -> None:
    target, got = f"/v1/{'x' * 700}", bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        expected = head(port, "POST", target, form)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while len(got) < len(expected):
                    got.extend(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: a/b\r\n\r\ntrue")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        sent: list[None] = []
        assert exchange(port, "POST", target, lambda: sent.append(None), form, 5.0) == (200, b"true", "a/b")
        thread.join(5.0)
    assert bytes(got) == expected and len(sent) == 1


def test_plans_have_every_form_and_long_names_none() -> None:
    ops: list[Op] = []
    for seed in range(6):  # Each has some hundred operations, of which one in seven has a form.
        ops += make_merged_plan(seed, "local", THREADS, INTERVALS_MS, done).ops
        ops += make_hostile_plan(seed, "s3", THREADS, INTERVALS_MS).ops
    assert {op.form for op in ops} == {"", *REQUEST_FORMS}
    assert not any(op.form for op in ops if len(op.name) > NAME_IN_FORMS_MAX or op.copies > 1)


def test_a_form_is_told_and_an_unknown_one_is_refused() -> None:
    plan = Plan(ops=(Op(actor="executor-0", kind="create", name="a.marker.CREATE", form="escaped"),))
    assert any("(written escaped)" in line for line in plan_sentences(plan))
    with pytest.raises(UsageError, match="form 'loud' is none of"):
        Plan.from_dict({"ops": [{"actor": "executor-0", "kind": "create", "form": "loud"}]})

"""The probe of an S3 endpoint believes an honest store, catches each kind of liar, and leaves nothing behind."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FaultKind
from marker_sim.worlds.s3_front import requests
from properties.faces.faults import ANY_CALL
from properties.faces.worlds import (
    BrokenPromise,
    HttpServer,
    MotoStore,
    ProbedCapabilities,
    ProbeReply,
    Response,
    judge_race,
    probe_s3,
)
from properties.real.fronts import aimed, client, fronted

PROMISES = ("put_if_absent", "put_if_unchanged", "list_after_put", "read_after_delete")
Environ = dict[str, Any]
Ask = Callable[[Environ], Response]


class IgnoresIfNoneMatch:
    """Puts whatever comes."""

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return ask(environ)


class IgnoresIfMatch:
    """The same for the other condition."""

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        environ.pop("HTTP_IF_MATCH", None)
        return ask(environ)


class LooksBeforeItLeaps:
    """Checks If-None-Match, lets the others do so too, and puts then."""

    def __init__(self) -> None:
        self.meeting = threading.Barrier(4)

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        if environ.pop("HTTP_IF_NONE_MATCH", None):
            look = {**environ, "REQUEST_METHOD": "HEAD", "wsgi.input": io.BytesIO(), "CONTENT_LENGTH": "0"}
            if ask(look).code == 200:
                return requests.error(412, "PreconditionFailed", "It is there", "")
            self.meeting.wait(10)
        return ask(environ)


class DoesNotKnowConditions:
    """As stores without conditional puts."""

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        if "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ:
            return requests.error(501, "NotImplemented", "A header you provided implies functionality", "")
        return ask(environ)


class ListsThePast:
    """Every prefix is listed as it was when it was first asked for."""

    def __init__(self) -> None:
        self.listings: dict[str, Response] = {}

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        if environ["REQUEST_METHOD"] == "GET" and "list-type" in environ["QUERY_STRING"]:
            return self.listings.setdefault(environ["QUERY_STRING"], ask(environ))
        return ask(environ)


class ListsTheDeleted:
    """Listings show what is gone, reads do not."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        if environ["REQUEST_METHOD"] == "DELETE":
            self.gone.append(environ["RAW_URI"].removeprefix("/lake/"))
        answer = ask(environ)
        if "list-type" in environ["QUERY_STRING"]:
            ghosts = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in self.gone)
            body = answer.body.replace(b"</ListBucketResult>", ghosts.encode() + b"</ListBucketResult>")
            return Response(answer.status, [("Content-Type", "application/xml")], body)
        return answer


class ServesTheDeleted:
    """A read of what was deleted shows it once more."""

    def __init__(self) -> None:
        self.ghosts: dict[str, Response] = {}

    def __call__(self, environ: Environ, ask: Ask) -> Response:
        target = environ["RAW_URI"]
        if environ["REQUEST_METHOD"] == "DELETE":
            self.ghosts[target] = ask({**environ, "REQUEST_METHOD": "GET"})
        if environ["REQUEST_METHOD"] == "GET" and target in self.ghosts:
            return self.ghosts.pop(target)
        return ask(environ)


@contextmanager
def served(behaviour: Callable[[Environ, Ask], Response]) -> Iterator[tuple[str, MotoStore]]:
    """Moto behind something that may lie; only moto itself is called one by one."""
    store = MotoStore("lake")
    lock = threading.Lock()

    def ask(environ: Environ) -> Response:
        with lock:
            return store.ask(environ)

    server = HttpServer(lambda environ: behaviour(environ, ask))
    try:
        yield server.endpoint, store
    finally:
        server.close()
        store.close()
    assert server.troubles == []


def _probe(endpoint: str, **options: int) -> ProbedCapabilities:
    return probe_s3(endpoint, "lake", "probe", "secret", "us-east-1", "r0", **options)


def test_the_front_is_honest_and_nothing_is_left_on_it() -> None:
    with fronted() as stage:
        client(stage.front.endpoint).put_object(Bucket="lake", Key="r0/kept", Body=b"1")
        found = _probe(stage.front.endpoint)
        assert stage.front.objects() == {"r0/kept": b"1"}
    assert found.to_dict() == {
        **dict.fromkeys(PROMISES, True),
        "tries": dict.fromkeys(PROMISES, 20),
        "seen": dict.fromkeys(PROMISES, "kept in 20 of 20 rounds"),
    }


@pytest.mark.parametrize(
    ("behaviour", "broken", "sentence"),
    [
        (IgnoresIfNoneMatch, ("put_if_absent",), "4 of 4 puts with If-None-Match: * at once were answered 200"),
        (LooksBeforeItLeaps, ("put_if_absent",), "4 of 4 puts with If-None-Match: * at once were answered 200"),
        (IgnoresIfMatch, ("put_if_unchanged",), "4 of 4 puts with If-Match at once were answered 200"),
        (DoesNotKnowConditions, ("put_if_absent", "put_if_unchanged"), "does not take the condition"),
        (ListsThePast, ("list_after_put", "read_after_delete"), "listing asked for after a"),
        (ListsTheDeleted, ("read_after_delete",), "a listing asked for after a deletion was answered showed the key"),
        (ServesTheDeleted, ("read_after_delete",), "a read asked for after a deletion was answered found the object"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_liar_is_caught_in_its_own_lie_and_believed_in_the_rest(
    behaviour: type, broken: tuple[str, ...], sentence: str
) -> None:
    with served(behaviour()) as (endpoint, store):
        # The past is what was there before a put only where the first listing was faster than it.
        found = _probe(endpoint, rounds=20 if behaviour is ListsThePast else 3)
        assert store.objects() == {}
    told = found.to_dict()
    assert tuple(promise for promise in PROMISES if not told[promise]) == broken
    for promise in broken:
        assert sentence in found.seen[promise]
    if behaviour is DoesNotKnowConditions:
        assert found.honest("it").header()["storage"] == "s3-unconditional", "it lacks something and does not lie"
    else:
        with pytest.raises(HarnessError, match="it does not keep"):
            found.honest("it")


def test_what_could_not_be_decided_is_not_believed() -> None:
    with fronted() as stage:
        stage.interceptor.arm(aimed(FaultKind.SERVER_ERROR, operations=ANY_CALL, calls=1_000_000))
        with pytest.raises(HarnessError, match="could not be removed"):
            _probe(stage.front.endpoint, rounds=2)
        stage.interceptor.disarm()
        found = _probe(stage.front.endpoint, rounds=2)
    assert found.put_if_absent


def test_an_undecided_promise_says_so() -> None:
    def broken(environ: Environ, ask: Ask) -> Response:
        return (
            requests.error(*requests.INTERNAL_ERROR, "")
            if environ["REQUEST_METHOD"] in ("PUT", "POST")
            else ask(environ)
        )

    with served(broken) as (endpoint, _):
        found = _probe(endpoint, rounds=3)
    assert not any(found.to_dict()[promise] for promise in PROMISES)
    assert set(found.tries.values()) == {0}
    assert all(sentence.startswith("only 0 of 3 rounds could be decided") for sentence in found.seen.values())


def test_races_that_decide_nothing_are_no_lies_and_lies_are() -> None:
    won, lost, late = ProbeReply(200, "e", b"a"), ProbeReply(409, "", b"b"), ProbeReply(0, "", b"c")
    assert judge_race("x", (won, lost), b"a", b"")
    assert not judge_race("x", (won, late), b"c", b""), "nobody knows about the late one"
    assert not judge_race("x", (lost, lost), b"", b""), "both were asked to try again"
    assert not judge_race("x", (won, lost), None, b"")
    for told, stored, before in [((won, won), b"a", b""), ((won, lost), b"b", b""), ((lost, lost), b"b", b"old")]:
        with pytest.raises(BrokenPromise):
            judge_race("x", told, stored, before)


def test_a_wrong_bucket_and_a_silent_endpoint_are_told_apart() -> None:
    with fronted() as stage:
        endpoint = stage.front.endpoint
        with pytest.raises(UsageError, match="bucket pond is not ours to use"):
            probe_s3(endpoint, "pond", "probe", "secret", "us-east-1", "")
        with pytest.raises(UsageError, match="a race needs"):
            _probe(endpoint, racers=1)
    with pytest.raises(HarnessError, match="does not answer"):
        _probe(endpoint)

"""Tests whether an S3 endpoint keeps the four promises that markers depend on, by trying to make it break them.

    put_if_absent      of many If-None-Match: * puts on one key at once one is answered 200, its content is stored,
                       and one more is refused
    put_if_unchanged   of many If-Match puts on one ETag at once the same; so is one on an ETag of the
                       past, or of nothing
    list_after_put     a listing asked for after a put was answered shows the key
    read_after_delete  neither a listing nor a read asked for after a deletion was answered shows the object

A promise holds when no round showed a lie and at least half of them could be decided; a round that met a time-out or
a 5xx decides nothing, and neither does one in which no put won and nothing was stored (409: ask again).
Limits: a lie that a few hundred quiet requests from one machine do not show is not seen. No state is left behind.
Source: guarantees, D, object store; 409 and 412 as in S3's reference of PutObject.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from marker_sim.errors import HarnessError, UsageError
from marker_sim.seams import Condition, Conflicted, NotFound, PreconditionFailed, StorageError
from marker_sim.storages.s3 import S3Storage, StoreAnswered

ROUNDS = 20
RACERS = 4
CONNECT_S, READ_S = 5.0, 10.0
MEETING_TIMEOUT_S = 30.0
_REFUSED = (404, 409, 412)
_UNKNOWN_TO_STORE = (400, 501)
NO_CONDITION = "the store does not take the condition"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedCapabilities:
    """The promises that an endpoint keeps.

    tries: the number of decided rounds, by promise; seen: a sentence about the result, by promise.
    """

    put_if_absent: bool
    put_if_unchanged: bool
    list_after_put: bool
    read_after_delete: bool
    tries: Mapping[str, int]
    seen: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    def honest(self, store: str) -> ProbedCapabilities:
        """These capabilities; HarnessError when the store breaks a promise, because a server could be blamed for it.

        A store that refuses a condition as unsupported breaks no promise: the history's capabilities say so.
        """
        for promise, seen in self.seen.items():
            if not getattr(self, promise) and NO_CONDITION not in seen:
                raise HarnessError(
                    f"{store} does not keep {promise.replace('_', '-')} ({seen}), so nothing can be judged on it; give"
                    " another endpoint, or leave --s3-endpoint out to use the kit's own"
                )
        return self

    def header(self) -> dict[str, Any]:
        """The storage in a history's header, in the terms of the simulated models."""
        conditions = {"put_if_absent": self.put_if_absent, "put_if_unchanged": self.put_if_unchanged}
        return {
            "storage": "s3" if all(conditions.values()) else "s3-unconditional",
            "capabilities": {**conditions, "atomic_replace": True},
        }


class BrokenPromise(Exception):
    """A broken promise, shown by a round; the message is a sentence."""


def probe_s3(
    endpoint: str,
    bucket: str,
    access_key: str,
    secret: str,
    region: str,
    prefix: str,
    *,
    rounds: int = ROUNDS,
    racers: int = RACERS,
) -> ProbedCapabilities:
    """The result of trying each promise for some rounds below a fresh prefix, which is emptied afterwards.

    UsageError when the bucket is not there or not ours to use; HarnessError without an answer, or when what was
    written could not be removed.
    """
    if rounds < 1 or racers < 2:
        raise UsageError(f"{rounds} rounds of {racers} racers: a race needs a round and two racers at least")
    storage = S3Storage(
        endpoint,
        bucket,
        f"{prefix}/honesty-{uuid.uuid4().hex}",
        access_key,
        secret_key=secret,
        region=region,
        connect_timeout_s=CONNECT_S,
        read_timeout_s=READ_S,
        concurrency=racers,
    )
    checks: dict[str, Callable[[ProbeEndpoint, int], bool]] = {
        "put_if_absent": _absent_round,
        "put_if_unchanged": _unchanged_round,
        "list_after_put": _list_round,
        "read_after_delete": _delete_round,
    }
    with ProbeEndpoint(storage, bucket, racers) as target:
        found = {name: _try(check, target, rounds) for name, check in checks.items()}
    return ProbedCapabilities(
        **{name: holds for name, (holds, _, _) in found.items()},
        tries={name: tries for name, (_, tries, _) in found.items()},
        seen={name: seen for name, (_, _, seen) in found.items()},
    )


def _try(check: Callable[[ProbeEndpoint, int], bool], target: ProbeEndpoint, rounds: int) -> tuple[bool, int, str]:
    """Whether a promise holds, the number of rounds that decided it, and a sentence about the result."""
    decided = 0
    for number in range(rounds):
        try:
            decided += check(target, number)
        except BrokenPromise as lie:
            return False, decided + 1, f"round {number + 1}: {lie}"
    if decided * 2 < rounds:
        return False, decided, f"only {decided} of {rounds} rounds could be decided; the others met time-outs or errors"
    return True, decided, f"kept in {decided} of {rounds} rounds"


def _absent_round(target: ProbeEndpoint, number: int) -> bool:
    key = f"absent-{number}"
    told = target.race(lambda racer: target.put(key, f"{number} {racer}", Condition.IF_ABSENT))
    decided = judge_race("If-None-Match: *", told, target.get(key), b"")
    again = target.put(key, f"{number} late", Condition.IF_ABSENT) if decided else None
    if again is not None and again.status == 200:
        raise BrokenPromise("a put with If-None-Match: * was answered 200 although the object was there")
    return decided and again is not None and again.status in _REFUSED


def _unchanged_round(target: ProbeEndpoint, number: int) -> bool:
    key = f"unchanged-{number}"
    first = target.put(key, f"{number} first")
    if first.status != 200:
        return False
    told = target.race(lambda racer: target.put(key, f"{number} {racer}", expected=first.etag))
    decided = judge_race("If-Match", told, target.get(key), first.body)
    if not decided:
        return False
    stale = target.put(key, f"{number} stale", expected=first.etag)
    nothing = target.put(f"nothing-{number}", "nothing", expected=first.etag)
    if stale.status == 200:
        raise BrokenPromise("a put with If-Match on an ETag that was replaced was answered 200")
    if nothing.status == 200:
        raise BrokenPromise("a put with If-Match was answered 200 although no object was there")
    return stale.status in _REFUSED and nothing.status in _REFUSED


def judge_race(condition: str, told: tuple[ProbeReply, ...], stored: bytes | None, before: bytes) -> bool:
    """Whether a race was decided; BrokenPromise when the condition was not honoured.

    stored: the content read afterwards, None when it could not be read. before: the earlier content, b"" for no object.
    """
    winners = [one for one in told if one.status == 200]
    strange = sorted({one.status for one in told} - {200, *_REFUSED})
    if len(winners) > 1:
        raise BrokenPromise(
            f"{len(winners)} of {len(told)} puts with {condition} at once were answered 200; one may be"
        )
    if any(status in _UNKNOWN_TO_STORE for status in strange):
        raise BrokenPromise(f"a put with {condition} was answered {strange[0]}: {NO_CONDITION}")
    if strange or stored is None:
        return False
    if not winners:
        if stored != before:
            raise BrokenPromise(f"every put with {condition} was refused, and one of them is stored all the same")
        return False
    if stored != winners[0].body:
        raise BrokenPromise(f"the put with {condition} that was answered 200 is not what is stored")
    return True


def _list_round(target: ProbeEndpoint, number: int) -> bool:
    def one(racer: int) -> bool:
        key = f"listed-{number}-{racer}"
        if target.put(key, key).status != 200:
            return False
        listed = target.list(f"listed-{number}")
        if listed is not None and key not in listed:
            raise BrokenPromise("a listing asked for after a put was answered did not show the key")
        return listed is not None

    return all(target.race(one))


def _delete_round(target: ProbeEndpoint, number: int) -> bool:
    def one(racer: int) -> bool:
        key = f"deleted-{number}-{racer}"
        if target.put(key, key).status != 200 or not target.get(key) or not target.delete(key):
            return False
        listed, content = target.list(f"deleted-{number}"), target.get(key)
        if content:
            raise BrokenPromise("a read asked for after a deletion was answered found the object")
        if listed is not None and key in listed:
            raise BrokenPromise("a listing asked for after a deletion was answered showed the key")
        return listed is not None and content is not None

    return all(target.race(one))


class ProbeReply(NamedTuple):
    """The answer to one put: HTTP status (0 for none), the ETag if accepted, and the content to be stored."""

    status: int
    etag: str
    body: bytes


class ProbeEndpoint:
    """The storage that all racers share, and the keys written to it, which are deleted on leaving the context.

    Entering it raises UsageError when the bucket does not exist or is not accessible, HarnessError without an answer.
    """

    def __init__(self, storage: S3Storage, bucket: str, racers: int) -> None:
        self._storage, self._bucket, self._racers = storage, bucket, racers
        self._written: dict[str, None] = {}
        self._guard = threading.Lock()
        self._pool = ThreadPoolExecutor(racers, thread_name_prefix="honesty")

    def __enter__(self) -> ProbeEndpoint:
        try:
            self._storage.check_bucket()
        except StorageError as error:
            self._end()
            status = _status(error)
            if status in (301, 400, 401, 403, 404):
                raise UsageError(
                    f"bucket {self._bucket} is not ours to use ({status}); check its name, keys and region"
                ) from error
            raise HarnessError(f"the S3 endpoint does not answer for bucket {self._bucket} ({error})") from error
        return self

    def __exit__(self, *_: object) -> None:
        left = [key for key in self._written if not self.delete(key) and not self.delete(key)]
        self._end()
        if left:
            raise HarnessError(f"{len(left)} objects could not be removed again, the first is {left[0]}")

    def _end(self) -> None:
        self._pool.shutdown()
        self._storage.close()

    def race(self, body: Callable[[int], T]) -> tuple[T, ...]:
        """The results of racers that start together; re-raises a BrokenPromise of one of them."""
        barrier = threading.Barrier(self._racers, timeout=MEETING_TIMEOUT_S)

        def run(racer: int) -> T:
            barrier.wait()
            return body(racer)

        return tuple(self._pool.map(run, range(self._racers)))

    def put(
        self, key: str, text: str, condition: Condition = Condition.NONE, expected: str | None = None
    ) -> ProbeReply:
        """The answer to a put, with or without a condition."""
        body = text.encode()
        with self._guard:
            self._written[key] = None
        try:
            return ProbeReply(200, self._storage.put(key, body, condition, expected), body)
        except StorageError as error:
            return ProbeReply(_status(error), "", body)

    def get(self, key: str) -> bytes | None:
        """The stored content: b"" for nothing, None when it could not be read."""
        try:
            return self._storage.get(key).data
        except NotFound:
            return b""
        except StorageError:
            return None

    def list(self, start: str) -> tuple[str, ...] | None:
        """The keys with a prefix, None when the listing failed."""
        try:
            return self._storage.list(start)
        except StorageError:
            return None

    def delete(self, key: str) -> bool:
        """Whether a deletion was confirmed."""
        try:
            self._storage.delete(key)
        except NotFound:
            return True
        except StorageError:
            return False
        return True


def _status(error: StorageError) -> int:
    """The HTTP status in an error, 0 when no complete answer came."""
    match error:
        case StoreAnswered():
            return error.status
        case NotFound():
            return 404
        case PreconditionFailed():
            return 412
        case Conflicted():
            return 409
    return 0

"""The timeline server's requests and replies, checked at the edge: Hudi's paths and parameters, our `requestid`.

    /create            markerdirpath markername [basepath] [requestid]   true: newly created, false: it was there
    /all               markerdirpath      names
    /create-and-merge  markerdirpath      names that do not end in APPEND
    /append            markerdirpath      names that end in APPEND
    /dir/exists        markerdirpath      bool
    /dir/delete        markerdirpath      bool

Source: Hudi 0.15.0 MarkerOperation and RequestHandler. Status: 400 refused and nothing changed, 404 no such path,
503 storage throttles, 500 storage failed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from marker_sim.markers.store import Created, MarkerStore
from marker_sim.names import is_append, parse_directory
from marker_sim.seams import Reply, Request, StorageError, Throttled

Creates = Callable[[str, str], Created]
CREATED, EXISTS = Reply(200, True), Reply(200, False)


def handle(request: Request, store_of: Callable[[str], MarkerStore], create: Callable[[str], Creates]) -> Reply:
    """Answer one request. store_of: the store of a marker directory; create: its create with a request identity."""
    route = _ROUTES.get(request.path)
    if route is None:
        return Reply(404, f"{request.path!r} is none of {', '.join(_ROUTES)}")
    directory = request.parameters.get("markerdirpath", "")
    try:
        parse_directory(directory)
        if request.path == "/create":
            name = request.parameters.get("markername", "")
            return create_reply(create(directory)(name, request.parameters.get("requestid", "")))
        return Reply(200, route(store_of(directory)))
    except (ValueError, StorageError, RuntimeError) as error:
        return _failed(error)


def create_reply(result: Created | Exception) -> Reply:
    """The HTTP reply to a create with this result."""
    if isinstance(result, Exception):
        return _failed(result)
    return CREATED if result is Created.CREATED else EXISTS


def _failed(error: Exception) -> Reply:
    match error:
        case ValueError():  # Includes `Rejected`.
            return Reply(400, str(error))
        case Throttled():
            return Reply(503, f"storage throttles: {error}")
        case _:
            return Reply(500, f"storage failed: {error!r}")


def create_with_identity(store: MarkerStore) -> Creates:
    """The store's create, which gets the request identity if there is one and the store supports it."""
    create: Any = store.create
    identified = takes_identity(type(store))
    return lambda name, request: create(name, request) if request and identified else create(name)


@cache
def takes_identity(store: type) -> bool:
    """Whether create accepts more than the name; cached by class, because it costs as much as ten steps."""
    return len(inspect.signature(store.create).parameters) > 2  # type: ignore[attr-defined]


_ROUTES: dict[str, Callable[[MarkerStore], object]] = {
    "/create": lambda store: None,
    "/all": lambda store: list(store.list_all()),
    "/create-and-merge": lambda store: [name for name in store.list_all() if not is_append(name)],
    "/append": lambda store: [name for name in store.list_all() if is_append(name)],
    "/dir/exists": lambda store: store.exists(),
    "/dir/delete": lambda store: store.delete(),
}

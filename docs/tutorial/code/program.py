"""A program that speaks docs/command.md: each call is a generator that yields operations and is sent their outcomes."""

import json
import sys
from collections.abc import Callable, Generator
from typing import Any

Line = dict[str, Any]
Call = Generator[Line, Line, Line]  # Yields operations, is sent the lines that say how each ended, returns the answer.

TRIES = 8


class Failed(Exception):
    """What storage answered, and what the kit is told: "throttled", "timeout", ..."""


def say(**fields: Any) -> None:
    print(json.dumps(fields))


def steadily(storage: Line, **operation: Any) -> Call:
    """An operation, again while storage fails. Who was not answered waits until nothing of it can come any more."""
    for _ in range(TRIES):
        done = yield operation
        if done.get("error") not in ("throttled", "conflicted", "failed", "timeout", "disk-full"):
            break
        yield {"do": "sleep", "ms": 200 + storage["late_effect_ms"]}
    if "error" in done:
        raise Failed(done["error"])
    return done


def serve(name: str, parts: list[str], calls: Callable[[Line, Line], Call]) -> None:
    """Answer the lines of the kit until it closes standard input."""
    storage: Line = {}
    waiting: dict[int, tuple[int, Call]] = {}
    ids = 0

    def go_on(call: int, body: Call, done: Any) -> None:
        nonlocal ids
        try:
            operation = body.send(done)
        except StopIteration as end:
            say(do="answer", call=call, **end.value)
        except Failed as failed:
            say(do="answer", call=call, error=str(failed), message="storage failed")
        else:
            ids += 1
            waiting[ids] = (call, body)
            say(id=ids, call=call, **operation)

    for text in sys.stdin:
        line = json.loads(text)
        match line["event"]:
            case "hello":
                say(do="hello", protocol=1, name=name, modes=["direct", "timeline"], reset=True, write=parts)
            case "start":
                storage = line
                waiting.clear()
            case "call":
                go_on(line["call"], calls(line, storage), None)
            case "done":
                go_on(*waiting.pop(line["id"]), line)
        print('{"do":"wait"}', flush=True)

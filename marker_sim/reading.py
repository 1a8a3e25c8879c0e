"""Dataclasses from parsed JSON or TOML: every field is checked, and an error is one sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from marker_sim.errors import UsageError

T = TypeVar("T")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def read_as(kind: type[T], raw: Any, origin: str) -> T:
    """A dataclass with the values of a JSON object. UsageError names the field, its value and what is accepted.

    A key that no field has is refused as well. Refusals of a `__post_init__` keep their own message.
    """
    try:
        value = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        steps = [name or int(number) for name, number in _STEP.findall(place)]
        given: Any = raw
        for step in steps:
            given = given[step]
        raise UsageError(f"{origin}: {_path(steps)} {given!r}; {_accepted(kind, steps) or said}") from error
    for where, key, accepted in _strange(raw, value, ""):
        raise UsageError(f"{origin}: {where or 'it'} has a key {key!r}; accepted are {', '.join(accepted)}")
    return value


def read_command(option: str, text: str, empty: str) -> list[str]:
    """The words of a command line given by an option. UsageError; empty: what it says of a command without a word."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is not a valid command line: {error}") from error
    if not words:
        raise UsageError(f"{option} {empty}")
    return words


def _path(steps: list[str | int]) -> str:
    """The path of a field, as in "ops[3].name is"."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"{words.removeprefix('.')} is" if words else "it is"


def _accepted(kind: Any, steps: list[str | int]) -> str:
    """The words that a field accepts, "" when it accepts any value of its type."""
    for step in steps:
        kind = get_args(kind)[0] if NoneType in get_args(kind) else kind
        kind = get_args(kind)[0] if isinstance(step, int) else get_type_hints(kind)[step]
    words = [each.value for each in kind] if isinstance(kind, type) and issubclass(kind, Enum) else get_args(kind)
    return f"accepted are {', '.join(words)}" if words and all(isinstance(word, str) for word in words) else ""


def _strange(raw: Any, value: object, where: str) -> Iterator[tuple[str, str, list[str]]]:
    """The unknown keys in objects, with each object's path and its known keys."""
    if is_dataclass(value):
        names = [each.name for each in fields(value)]
        yield from ((where.removeprefix("."), key, names) for key in raw if key not in names)
        for name in names:
            if name in raw:
                yield from _strange(raw[name], getattr(value, name), f"{where}.{name}")
    elif isinstance(value, tuple):
        for number, (given, made) in enumerate(zip(raw, value, strict=True)):
            yield from _strange(given, made, f"{where}[{number}]")


def either(accepted: Iterable[object]) -> str:
    """What is accepted, as the words of a sentence: "a, b or c"."""
    *most, last = map(str, accepted)
    return f"{', '.join(most)} or {last}"

"""What a program prints, a JSON object a line, checked field by field."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from marker_sim.errors import HarnessError

PROTOCOL = 1
MODES = ("direct", "timeline")
WRITE = "write"  # The mode of a process that writes.
PARTS = ("attempt", "finalize", "commit", "rollback")  # The parts of a write that a program may do.
# The required and the optional fields of each message.
_OPERATION: dict[str, type] = {"id": int}
_MAYBE: dict[str, type] = {"call": int}
FIELDS: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "hello": (
        {"protocol": int, "name": str, "modes": list},
        {"version": str, "identity": bool, "reset": bool, "write": list},
    ),
    "put": (_OPERATION | {"path": str, "data": str}, _MAYBE | {"if_absent": bool, "if_version": str}),
    "overwrite": (_OPERATION | {"path": str, "data": str}, _MAYBE),
    "get": (_OPERATION | {"path": str}, _MAYBE),
    "list": (_OPERATION | {"prefix": str}, _MAYBE),
    "delete": (_OPERATION | {"path": str}, _MAYBE),
    "sleep": (_OPERATION | {"ms": int}, _MAYBE),
    "lock": (_OPERATION | {"name": str}, _MAYBE),
    "unlock": (_OPERATION | {"name": str}, _MAYBE),
    "marker": (_OPERATION | {"call": int, "name": str}, {}),
    "markers": (_OPERATION | {"call": int}, {}),
    "answer": ({"call": int}, {"result": bool, "names": list, "error": str, "message": str}),
    "wait": ({}, {}),
}
_WORDS = {int: "a whole number", str: "a string", bool: "true or false", list: "an array of strings"}
_NUMBER_MAX = 1 << 40


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """One line that a program printed, parsed.

    do: which message it is.
    fields: the others, with `data` as bytes.
    """

    do: str
    fields: dict[str, Any]

    @property
    def id(self) -> int:
        """The identifier of an operation."""
        number: int = self.fields["id"]
        return number

    @property
    def call(self) -> int:
        """The call that the line answers or belongs to, 0 for none."""
        number: int = self.fields.get("call", 0)
        return number


class Hello(NamedTuple):
    """A program's first answer: its name, version, marker modes and abilities.

    identity: creates honour the identity of a request.
    reset: another `start` makes it forget everything, so it can be used for one process after another.
    parts: of a write, that are its own.
    """

    name: str
    version: str
    modes: tuple[str, ...]
    identity: bool
    reset: bool
    parts: tuple[str, ...]


def read_line(line: bytes) -> ProgramLine:
    """The message in a line; HarnessError says what is wrong with it."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise HarnessError(
            f"it printed {shown(line)}, which is no JSON object; standard output is for the protocol alone, so print"
            " everything else to standard error"
        )
    do = raw.pop("do", None)
    if do not in FIELDS:
        raise HarnessError(f'it printed {shown(line)}; "do" has to be one of {", ".join(FIELDS)}')
    needed, more = FIELDS[do]
    for wrong in _wrong(do, raw, needed, needed | more):
        raise HarnessError(f"it printed {shown(line)}: {wrong}")
    if "data" in raw:
        try:
            raw["data"] = base64.b64decode(raw["data"], validate=True)
        except (binascii.Error, ValueError):
            raise HarnessError(f'it printed {shown(line)}: "data" is not base64') from None
    return ProgramLine(do, raw)


def _wrong(do: str, raw: dict[str, Any], needed: dict[str, type], known: dict[str, type]) -> Iterator[str]:
    for name in needed:
        if name not in raw:
            yield f'"{name}" is missing'
    for name, value in raw.items():
        if name not in known:
            yield f'"{do}" has no field "{name}"; it has {", ".join(known) or "none"}'
        elif type(value) is not known[name] or (isinstance(value, list) and {*map(type, value)} - {str}):
            yield f'"{name}" has to be {_WORDS[known[name]]}'
        elif type(value) is int and not 0 <= value <= _NUMBER_MAX:
            yield f'"{name}" is out of bounds'
    for name in ("path", "prefix", "name"):
        try:
            str(raw.get(name, "")).encode()
        except UnicodeEncodeError:
            yield f'"{name}" is not Unicode'


def read_hello(said: list[ProgramLine]) -> Hello:
    """A program's answer to the first line; HarnessError when it is no hello of this protocol."""
    if len(said) != 1 or said[0].do != "hello":
        raise HarnessError(f'it answered the first line with {[each.do for each in said]}; print "hello", then "wait"')
    fields = said[0].fields
    if fields["protocol"] != PROTOCOL:
        raise HarnessError(f"it speaks protocol {fields['protocol']}, this version of the kit protocol {PROTOCOL}")
    modes = tuple(mode for mode in MODES if mode in fields["modes"])
    if not modes or {*fields["modes"]} - {*MODES}:
        raise HarnessError(f'it has the modes {fields["modes"]}; "modes" names one or both of {", ".join(MODES)}')
    parts = tuple(part for part in PARTS if part in fields.get("write", ()))
    if {*fields.get("write", ())} - {*PARTS}:
        raise HarnessError(f'it has the parts {fields["write"]} of a write; "write" names some of {", ".join(PARTS)}')
    return Hello(
        name=fields["name"],
        version=fields.get("version", ""),
        modes=modes,
        identity=fields.get("identity", False),
        reset=fields.get("reset", False),
        parts=parts,
    )


def shown(line: bytes) -> str:
    """A line shortened and escaped for a sentence."""
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 200 else f"{text[:200]}...")

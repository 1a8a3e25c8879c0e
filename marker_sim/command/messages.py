"""What a program prints, a JSON object a line, checked field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Union

import msgspec

from marker_sim.errors import HarnessError

PROTOCOL = 1
MODES = ("direct", "timeline")
WRITE = "write"  # The mode of a process that writes.
PARTS = ("attempt", "finalize", "commit", "rollback")  # The parts of a write that a program may do.
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
_OPERATION: dict[str, Any] = {"id": Number}
_MAYBE: dict[str, Any] = {"call": Number}
# The required and the optional fields of each message; bytes are base64.
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "hello": (
        {"protocol": Number, "name": str, "modes": list[str]},
        {"version": str, "identity": bool, "reset": bool, "write": list[str]},
    ),
    "put": (_OPERATION | {"path": str, "data": bytes}, _MAYBE | {"if_absent": bool, "if_version": str}),
    "overwrite": (_OPERATION | {"path": str, "data": bytes}, _MAYBE),
    "get": (_OPERATION | {"path": str}, _MAYBE),
    "list": (_OPERATION | {"prefix": str}, _MAYBE),
    "delete": (_OPERATION | {"path": str}, _MAYBE),
    "sleep": (_OPERATION | {"ms": Number}, _MAYBE),
    "lock": (_OPERATION | {"name": str}, _MAYBE),
    "unlock": (_OPERATION | {"name": str}, _MAYBE),
    "marker": (_OPERATION | {"call": Number, "name": str}, {}),
    "markers": (_OPERATION | {"call": Number}, {}),
    "answer": ({"call": Number}, {"result": bool, "names": list[str], "error": str, "message": str}),
    "wait": ({}, {}),
}


def _kind(do: str, needed: dict[str, Any], more: dict[str, Any]) -> type[msgspec.Struct]:
    optional = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in more.items()]
    return msgspec.defstruct(do, [*needed.items(), *optional], tag_field="do", tag=do, forbid_unknown_fields=True)


_KINDS: Any = Union[tuple(_kind(do, *fields) for do, fields in FIELDS.items())]  # noqa: UP007
_LINES = msgspec.json.Decoder[Any](_KINDS)


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """One line that a program printed, parsed.

    do: the kind of message.
    fields: its other fields, with `data` as bytes.
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

    identity: whether creates honour the identity of a request.
    reset: whether another `start` makes it forget everything, so that it can be used for one process after another;
    None if
        it does not say.
    parts: the parts of a write that it implements.
    """

    name: str
    version: str
    modes: tuple[str, ...]
    identity: bool
    reset: bool | None
    parts: tuple[str, ...]


def read_line(line: bytes) -> ProgramLine:
    """The message in a line; HarnessError says what is wrong with it."""
    try:
        read = _LINES.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        if not isinstance(error, msgspec.ValidationError) or not line.lstrip().startswith(b"{"):
            raise HarnessError(
                f"it printed {shown(line)}, which is no JSON object; standard output is for the protocol alone, so"
                f" print everything else to standard error ({error})"
            ) from None
        known = f"; it is one of {', '.join(FIELDS)}" if str(error).endswith("`$.do`") else ""
        raise HarnessError(f"it printed {shown(line)}: {error}{known}") from None
    given = {name: value for name, value in msgspec.structs.asdict(read).items() if value is not msgspec.UNSET}
    return ProgramLine(type(read).__name__, given)


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
        reset=fields.get("reset"),
        parts=parts,
    )


def shown(line: bytes) -> str:
    """A line, shortened and escaped for messages."""
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 200 else f"{text[:200]}...")

"""What a request over raw bytes asks for, and whether a server must accept or refuse it; none of it is code of the kit.

A query is split at "&", a parameter at its first "=", "+" is a space, a percent sign with two hexadecimal digits is a
byte, any other percent sign is itself, and the bytes must be UTF-8. A request is ACCEPTed when nothing about it is
odd, REFUSEd when a guarantee forbids what it asks for, and EITHER otherwise: then the answer decides, and what was
answered true must be stored under one of the names that the bytes can mean.
"""

from __future__ import annotations

import os
import re
import unicodedata
from enum import Enum
from typing import NamedTuple

BASE = b"/v1/hoodie/marker"
METHODS = {
    "/create": b"POST",
    "/all": b"GET",
    "/create-and-merge": b"GET",
    "/append": b"GET",
    "/dir/exists": b"GET",
    "/dir/delete": b"POST",
}
SEGMENT_MAX_BYTES = 255
NAME_MAX_BYTES = 4096
TARGET_MAX_BYTES = 8000
_MARKER = re.compile(r"[^/]+\.marker\.(?:CREATE|MERGE|APPEND)\Z", re.DOTALL)
_PLAIN_TARGET = re.compile(rb"/[A-Za-z0-9._~:/@!$&'()*+,;=%?-]*\Z")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"\A(?:file:(?://(?:localhost)?(?=/))?(?=/)|s3[an]?:/(?=/[^/]))", re.IGNORECASE)
_TEMP = "/.hoodie/.temp/"


class Due(Enum):
    """What a server owes a request."""

    ACCEPT = "accept"
    REFUSE = "refuse"
    EITHER = "either"


class Base(NamedTuple):
    """Where tables may be. uri: as requests spell it. path: without its scheme, "/bucket/prefix" of an object store."""

    uri: str
    path: str


class Asked(NamedTuple):
    """One request as its bytes say. directories, names: everything the parameters can mean, paths without scheme."""

    method: bytes
    route: str
    due: Due
    directories: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


def asked(method: bytes, target: bytes, base: Base, plain: bool) -> Asked:
    """Judge a request line. plain: nothing else about the request is odd."""
    tidy = plain and is_tidy(target)
    path, _, query = target.partition(b"#")[0].partition(b"?")
    route = path[len(BASE) :].decode("latin-1") if path.startswith(BASE) else ""
    given = _parameters(query)
    raw_directories, raw_names = given.get(b"markerdirpath", []), given.get(b"markername", [])
    spelled = frozenset(text for raw in raw_directories if (text := text_of(raw)) is not None)
    directories = frozenset(resolved(without_scheme(text)) for text in spelled)
    names = frozenset(text for raw in raw_names if (text := text_of(raw)) is not None)
    if route not in METHODS:
        return Asked(method, lenient_route(path), _unknown_path(path, method), directories, names)
    if method != METHODS[route]:
        writes = METHODS[route] == b"POST" or route == "/dir/delete"
        return Asked(method, route, Due.REFUSE if writes else Due.EITHER, directories, names)
    verdicts = [_due_to_all({directory_due(d, base.path, route) for d in map(without_scheme, spelled)})]
    if route == "/create":
        verdicts.append(_due_to_all({name_due(n) for n in names}))
    if plain and Due.REFUSE not in verdicts:
        plain = tidy and len(raw_directories) == 1 and not _bad_escape(query)
        plain = plain and (route != "/create" or len(raw_names) == 1)
        plain = plain and all(text.startswith(base.uri + "/") for text in spelled)
        plain = plain and given.keys() <= {b"markerdirpath", b"markername", b"basepath"}
    due = (
        Due.REFUSE if Due.REFUSE in verdicts else Due.ACCEPT if plain and set(verdicts) == {Due.ACCEPT} else Due.EITHER
    )
    return Asked(method, route, due, directories, names)


def is_tidy(target: bytes) -> bool:
    """Whether a target is a path and a query of letters that HTTP allows there, and no longer than servers take."""
    return _PLAIN_TARGET.match(target) is not None and len(target) <= TARGET_MAX_BYTES


def text_of(raw: bytes) -> str | None:
    """What a parameter's bytes mean; None when they are no text."""
    data = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), raw.replace(b"+", b" "))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def lenient_route(path: bytes) -> str:
    """The route that a careless server may take a path for, "" for none."""
    text = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), path).decode("latin-1").lower()
    for route in sorted(METHODS, key=len, reverse=True):
        if route in re.sub(r"/+", "/", text.replace("\\", "/")):
            return route
    return ""


def name_due(name: str) -> Due:
    """Whether a marker name must be accepted (guarantees G4 and G12)."""
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in name):
        return Due.REFUSE
    parts = name.split("/")
    if len(name.encode()) > NAME_MAX_BYTES or any(len(part.encode()) > SEGMENT_MAX_BYTES for part in parts):
        return Due.REFUSE
    fine = _MARKER.match(parts[-1]) and not any(part in ("", ".", "..") for part in parts)
    return Due.ACCEPT if fine else Due.REFUSE


def directory_due(path: str, base: str, route: str) -> Due:
    """Whether a marker directory must be accepted; what leads below the base in a roundabout way may be."""
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in path):
        return Due.REFUSE
    direct = resolved(path)
    table, found, instant = direct.rpartition(_TEMP)
    if not found or not instant or "/" in instant or not (table + "/").startswith(base + "/") or _TEMP in table + "/":
        return Due.REFUSE
    parts = path.split("/")
    if any(len(part.encode()) > SEGMENT_MAX_BYTES for part in parts) or len(path.encode()) > NAME_MAX_BYTES - 300:
        return Due.REFUSE if route == "/create" else Due.EITHER
    usual = re.fullmatch(r"[0-9]{14,17}", instant) and re.fullmatch(
        r"[\w=%-]+(/[\w=%-]+)*", table[len(base) + 1 :] or "x"
    )
    return Due.ACCEPT if usual and direct == path and not _has_link(path, base) else Due.EITHER


def resolved(path: str) -> str:
    """Where a path leads when links are followed and dots and double slashes resolved; what is no path as it is."""
    try:
        return "/" + os.path.realpath(path).lstrip("/") if path.startswith("/") else path
    except (OSError, ValueError):
        return path


def _parameters(query: bytes) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for pair in query.split(b"&"):
        key, _, value = pair.partition(b"=")
        if key:
            found.setdefault(_ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()), key), []).append(value)
    return found


def without_scheme(path: str) -> str:
    """The path of a local URI or of one of an object store in any of its spellings, every other text as it is."""
    return _SCHEME.sub("", path, count=1)


def _has_link(path: str, base: str) -> bool:
    parts = path[len(base) + 1 :].split("/")
    try:
        return any(os.path.islink("/".join((base, *parts[: count + 1]))) for count in range(len(parts)))
    except (OSError, ValueError):
        return True


def _due_to_all(dues: set[Due]) -> Due:
    """What is owed when any of several meanings may be taken, and when there is none."""
    if not dues or dues == {Due.REFUSE}:
        return Due.REFUSE
    return Due.ACCEPT if dues == {Due.ACCEPT} else Due.EITHER


def _unknown_path(path: bytes, method: bytes) -> Due:
    return Due.EITHER if lenient_route(path) or method not in (b"GET", b"POST") else Due.REFUSE


def _bad_escape(query: bytes) -> bool:
    return b"%" in _ESCAPE.sub(b"", query)

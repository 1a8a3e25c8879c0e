"""What a request over raw bytes asks for, and whether a server must accept or refuse it; none of it is code of the kit.

A query is split at "&", a parameter at its first "=", "+" is a space, a percent sign with two hexadecimal digits is a
byte, any other percent sign is itself, and the bytes must be UTF-8. A request is ACCEPTed when nothing about it is
odd, REFUSEd when a guarantee forbids what it asks for, and EITHER otherwise.
"""

from __future__ import annotations

import os
import re
import unicodedata
from enum import Enum
from typing import NamedTuple

from scenarios.fuzz.http_inputs import INSTANTS, TABLES

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
_SCHEME = re.compile(r"\A(?:file:(?://(?:localhost)?(?=/))?(?=/))", re.IGNORECASE)
_TEMP = "/.hoodie/.temp/"
_PARAMETERS = {b"markerdirpath", b"markername", b"basepath"}


class Due(Enum):
    """What a server owes a request."""

    ACCEPT = "accept"
    REFUSE = "refuse"
    EITHER = "either"


class Asked(NamedTuple):
    """One request as its bytes say. directories, names: everything the parameters can mean. requests: its ids."""

    route: str
    due: Due
    directories: frozenset[str]
    names: frozenset[str]
    requests: frozenset[str]


def asked(method: bytes, target: bytes, base: str, plain: bool) -> Asked:
    """Judge a request line. base: where tables may be. plain: nothing but the target is odd."""
    path, _, query = target.partition(b"#")[0].partition(b"?")
    route = path[len(BASE) :].decode("latin-1") if path.startswith(BASE) else ""
    given = _parameters(query)
    spelled = _texts(given.get(b"markerdirpath", []))
    directories = frozenset(resolved(_SCHEME.sub("", text, count=1)) for text in spelled)
    names = _texts(given.get(b"markername", []))
    due = Due.EITHER
    if route in METHODS and method != METHODS[route]:
        due = Due.REFUSE if METHODS[route] == b"POST" else Due.EITHER
    elif route in METHODS:
        known = any(good_directory(path, base) for path in directories)
        named = route != "/create" or any(map(good_name, names))
        due = Due.EITHER if known and named else Due.REFUSE
        once = all(len(values) == 1 for values in given.values()) and given.keys() <= _PARAMETERS
        fine = plain and once and is_tidy(target) and b"%" not in _ESCAPE.sub(b"", target)
        due = Due.ACCEPT if due is Due.EITHER and fine and spelled <= usual_directories(base) else due
    return Asked(route, due, directories, names, _texts(given.get(b"requestid", [])))


def usual_directories(base: str) -> set[str]:
    """Marker directories that nothing is odd about."""
    return {f"{base}/{table}/.hoodie/.temp/{instant}" for table in TABLES for instant in INSTANTS}


def good_name(name: str) -> bool:
    """Whether a marker name must be accepted (guarantees G4 and G12); every other one must be refused."""
    parts = name.split("/")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in name):
        return False
    if len(name.encode()) > NAME_MAX_BYTES or any(len(part.encode()) > SEGMENT_MAX_BYTES for part in parts):
        return False
    return _MARKER.match(parts[-1]) is not None and not any(part in ("", ".", "..") for part in parts)


def good_directory(path: str, base: str) -> bool:
    """Whether a path that leads nowhere else is that of a marker directory below the base."""
    table, found, instant = path.rpartition(_TEMP)
    below = (table + "/").startswith(base + "/")
    return bool(found and instant) and "/" not in instant and below and _TEMP not in table + "/"


def is_tidy(target: bytes) -> bool:
    """Whether a target is a path and a query of letters that HTTP allows there, and no longer than servers take."""
    return _PLAIN_TARGET.match(target) is not None and len(target) <= TARGET_MAX_BYTES


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
            found.setdefault(_ESCAPE.sub(_byte, key), []).append(value)
    return found


def _texts(values: list[bytes]) -> frozenset[str]:
    """What the bytes of a parameter mean, without those that are no text."""
    found = set()
    for raw in values:
        try:
            found.add(_ESCAPE.sub(_byte, raw.replace(b"+", b" ")).decode("utf-8"))
        except UnicodeDecodeError:
            continue
    return frozenset(found)


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode())

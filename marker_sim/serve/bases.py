"""The marker directories that a server serves, and their paths on the storage.

    given                          stored under             base
    /data/t, file:/data, file:///  <name of base>/...       a directory of this host, links resolved
    s3://b/k, s3a://b/k, s3n://b   k/...                    a bucket, below a prefix

A base is a table or a directory of tables. Percent signs are not decoded here; `..`, `//` and a trailing slash are
resolved before anything is compared. Hudi writes all these forms (Path.toString of its storage path).
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import NamedTuple

from marker_sim.errors import UsageError
from marker_sim.names import NAME_SIZE_MAX_BYTES, SEGMENT_SIZE_MAX_BYTES, parse_directory

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_OBJECT_STORES = ("s3", "s3a", "s3n")
FORMS = "an absolute path, file:/path or s3://bucket/prefix"


class Address(NamedTuple):
    """A path or URI in parts: bucket and path.

    bucket: "" for this host.
    path: absolute on this host, a key without slashes around it.
    """

    bucket: str
    path: str


class Refusal(Exception):
    """The refusal of a directory. status: 400 when it is no marker directory, 403 when it is outside of all bases."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Located(NamedTuple):
    """A base or a marker directory by its place: the storage root that holds it, and its path there.

    root: the directory of this host, or the bucket, that storage paths begin in.
    """

    local: bool
    root: str
    directory: str


def parse_base(text: str) -> Located:
    """A base from the command line; UsageError says what is accepted."""
    try:
        address = _address(text)
    except ValueError as error:
        raise UsageError(f"--base {text!r}: {error}; write {FORMS}") from None
    if address.bucket:
        return Located(False, address.bucket, address.path)
    parent, name = os.path.split(address.path)
    if not name:
        raise UsageError("--base / would serve every file of this host; write the directory of the tables")
    return Located(True, parent, name)


def locate(text: str, bases: tuple[Located, ...]) -> Located:
    """The marker directory that a request names; Refusal when it is none, or lies outside all bases."""
    if not text:
        raise Refusal(400, "markerdirpath is missing; write the whole path <table>/.hoodie/.temp/<instant>")
    try:
        address = _address(text)
        parse_directory(address.path if not address.bucket else f"/{address.path}")
    except ValueError as error:
        raise Refusal(400, f"markerdirpath is refused: {error}") from None
    for base in bases:
        inside = _inside(address, base)
        if inside is not None:
            try:
                parse_directory(inside)
            except ValueError as error:
                raise Refusal(400, f"markerdirpath is refused: {error}") from None
            return Located(base.local, base.root, inside)
    raise Refusal(403, f"{text!r} lies outside the base paths that this server was given")


def _inside(address: Address, base: Located) -> str | None:
    """The storage path of an address below a base, None when it lies elsewhere."""
    if base.local:
        if address.bucket:
            return None
        start = base.root.rstrip("/") + "/"
        path = address.path[len(start) :] if address.path.startswith(start) else ""
    else:
        path = address.path if address.bucket == base.root else ""
    below = not base.directory or path.startswith(base.directory + "/")
    return path if path and below else None


def _address(text: str) -> Address:
    """The parts of a path or URI with links resolved; ValueError when it is malformed."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("it has a zero byte or a lone surrogate")
    if ".." in text.partition("/.hoodie/")[2].split("/"):
        raise ValueError(f"{text[:200]!r} climbs out of its table")
    found = _SCHEME.fullmatch(text)
    scheme, rest = (found[1].lower(), found[2]) if found else ("file", text)
    if scheme in _OBJECT_STORES:
        bucket, _, key = rest.removeprefix("//").partition("/")
        if not rest.startswith("//") or not bucket:
            raise ValueError(f"{text[:200]!r} names no bucket")
        return Address(bucket, _checked(posixpath.normpath(f"/{key}").lstrip("/")))
    if scheme != "file":
        raise ValueError(f"the scheme {scheme!r} is not served")
    if rest.startswith("//") and found:
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValueError(f"{text[:200]!r} names another host")
        rest = slash + path
    if not rest.startswith("/"):
        raise ValueError(f"{text[:200]!r} is not an absolute path")
    _checked(rest)
    return Address("", _checked("/" + os.path.realpath(rest).lstrip("/")))


def _checked(path: str) -> str:
    """A path that storage can hold; ValueError for one that is too long."""
    if len(path.encode("utf-8", "surrogatepass")) > NAME_SIZE_MAX_BYTES:
        raise ValueError(f"the path is longer than {NAME_SIZE_MAX_BYTES} bytes")
    if any(len(part.encode("utf-8", "surrogatepass")) > SEGMENT_SIZE_MAX_BYTES for part in path.split("/")):
        raise ValueError(f"a segment of the path is longer than {SEGMENT_SIZE_MAX_BYTES} bytes")
    return path

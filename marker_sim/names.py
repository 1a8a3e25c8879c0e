"""Names and bytes of Hudi's markers: marker directories, marker names, the MARKERS<n> codec. Pure functions.

    marker directory  <table>/.hoodie/.temp/<instant>
    marker name       [<partition path>/]<data file>.marker.<CREATE|MERGE|APPEND>
    direct            one empty file <marker directory>/<marker name>
    batched           MARKERS.type ("TIMELINE_SERVER_BASED") and MARKERS0 .. MARKERS<n-1>, each name ended by "\\n"

Partition paths are opaque: nothing is decoded, encoded or normalised (`a%2Fb`, `dt=2020-01-01` and `größe` are kept
byte for byte). Source: Hudi 0.15.0 MarkerUtils, WriteMarkers, MarkerDirState; limits are our decision.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from posixpath import commonprefix
from typing import NamedTuple

TYPE_FILE = "MARKERS.type"
TYPE_BATCHED = b"TIMELINE_SERVER_BASED"
NAME_SIZE_MAX_BYTES = 4096
SEGMENT_SIZE_MAX_BYTES = 255
TEMP = "/.hoodie/.temp/"

_MARKER_FILE = re.compile(r"MARKERS(0|[1-9][0-9]*)\Z")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LONG_WORD = re.compile(r"\S{160,}")
_INFIX = ".marker."


class MarkerType(Enum):
    """The operation that a task is about to perform on the data file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


_KINDS = frozenset(MarkerType.__members__)


class MarkerDirectory(NamedTuple):
    """The marker directory of one instant of one table."""

    table: str
    instant: str

    @property
    def path(self) -> str:
        """The storage path, without a trailing slash."""
        return f"{self.table}{TEMP}{self.instant}"


@lru_cache(maxsize=1024)
def parse_directory(path: str) -> MarkerDirectory:
    """Split `<table>/.hoodie/.temp/<instant>`; ValueError says why a path is not a marker directory."""
    table, found, instant = path.rpartition(TEMP)
    if not found or not table:
        raise ValueError(f"{path!r} is not <table>/.hoodie/.temp/<instant>")
    if not instant or "/" in instant or instant in (".", ".."):
        raise ValueError(f"{path!r} does not end in an instant")
    if _CONTROL.search(path):
        raise ValueError("the path has control characters")
    if any(part in ("", ".", "..") for part in path.lstrip("/").split("/")):
        raise ValueError(f"{path!r} has empty, '.' or '..' segments")
    if TEMP in f"{table}/":
        raise ValueError(f"{path!r} lies inside another marker directory, which would list and delete it")
    return MarkerDirectory(table, instant)


def place_of(path: str) -> str:
    """The marker directory that a path or prefix lies in, else its first part."""
    table, found, inner = path.partition(TEMP)
    return f"{table}{found}{inner.partition('/')[0]}" if found else path.partition("/")[0]


def marker_name(partition_path: str, data_file: str, kind: MarkerType) -> str:
    """The name of a marker; a non-partitioned table has no leading slash (Hudi P 4112)."""
    prefix = f"{partition_path}/" if partition_path else ""
    return f"{prefix}{data_file}{_INFIX}{kind.value}"


@lru_cache(maxsize=4096)
def check_marker_name(name: str) -> None:
    """Accept a marker name or raise ValueError with the reason; what is accepted is stored byte for byte."""
    if _CONTROL.search(name):
        raise ValueError("the marker name has control characters or lone surrogates")
    if len(name.encode("utf-8")) > NAME_SIZE_MAX_BYTES:
        raise ValueError(f"the marker name is longer than {NAME_SIZE_MAX_BYTES} bytes")
    segments = name.split("/")
    if any(part in ("", ".", "..") for part in segments):
        raise ValueError("the marker name has empty, '.' or '..' segments")
    if segments[0] == ".hoodie":
        raise ValueError("the marker name names a file of the table's own below .hoodie, which is no data file")
    if any(len(part.encode("utf-8")) > SEGMENT_SIZE_MAX_BYTES for part in segments):
        raise ValueError(f"a segment of the marker name is longer than {SEGMENT_SIZE_MAX_BYTES} bytes")
    if not is_marker_name(segments[-1]):
        raise ValueError("the marker name does not end in .marker.CREATE, .marker.MERGE or .marker.APPEND")


def is_marker_name(path: str) -> bool:
    """Whether the last part of a path reads <data file>.marker.<TYPE>."""
    data_file, found, kind = path.rpartition("/")[2].rpartition(_INFIX)
    return bool(found and data_file) and kind in _KINDS


def data_path(name: str) -> str:
    """The path of the data file, relative to the table, that a marker names."""
    return name.rpartition(_INFIX)[0]


def is_append(name: str) -> bool:
    """Whether a marker names a log file."""
    return name.endswith(f"{_INFIX}{MarkerType.APPEND.value}")


def marker_file(index: int) -> str:
    """The file name of one batch file."""
    return f"MARKERS{index}"


def marker_file_index(file_name: str) -> int | None:
    """The index of MARKERS<n>, None for every other file (MARKERS.type, .MARKERS3.crc, MARKERS03, temporary files)."""
    match = _MARKER_FILE.match(file_name)
    return int(match[1]) if match else None


def checksum_file(path: str) -> str:
    """The file beside a local one where Hadoop keeps its checksums, without which it cannot be read or written."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def legible(text: str) -> str:
    """A text with its words printable, different for different names, and none longer than a line.

    A combining letter is escaped, because a letter with an accent has two spellings; a very long word is replaced by
    its head, its length, a digest and its tail.
    """
    shown = "".join(c.encode("unicode_escape").decode("ascii") if unicodedata.combining(c) else c for c in text)
    return _LONG_WORD.sub(_shortened, shown)


def _shortened(word: re.Match[str]) -> str:
    text = word[0]
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[:60]}…({len(text)} letters, {digest})…{text[-40:]}"


def most_like(name: str, others: Iterable[str]) -> str | None:
    """The name among others most similar to a given one, by common beginning and end; None under half in common."""
    unlike, found = min(((_unlike(name, other), other) for other in others), default=(0, ""))
    return found if found and 2 * unlike <= max(len(name), len(found)) else None


def _unlike(one: str, other: str) -> int:
    short, length = sorted((len(one), len(other)))
    alike = len(commonprefix((one, other))) + len(commonprefix((one[::-1], other[::-1])))
    return length - min(short, alike)


def encode_names(names: Iterable[str]) -> bytes:
    """The content of a marker file."""
    return "".join(f"{name}\n" for name in names).encode("utf-8")


def decode_names(data: bytes, *, torn: bool = False) -> tuple[str, ...]:
    """The names in a marker file, in order; an unterminated last line is no marker (a torn write), unless asked for.

    Bytes that are not UTF-8 survive as surrogates, so that a reader never fails on a damaged file.
    """
    whole = data if torn else data[: data.rfind(b"\n") + 1]
    return tuple(line for line in whole.decode("utf-8", "surrogateescape").split("\n") if line)


def stored_names(directory: str, files: Mapping[str, bytes]) -> frozenset[str]:
    """The markers stored in a directory, given every file below it by full path: batched and direct, their union.

    The type file decides nothing here: it may be missing or empty after a crash (Hudi I 5591, I 9023).
    """
    found: set[str] = set()
    start = len(directory) + 1
    for path, data in files.items():
        if not path.startswith(directory + "/"):
            continue
        relative = path[start:]
        if marker_file_index(relative) is not None:
            found.update(decode_names(data))
        elif is_marker_name(relative):
            found.add(relative)
    return frozenset(found)

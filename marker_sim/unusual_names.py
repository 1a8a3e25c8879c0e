"""Partition paths, marker directories and marker names that are unusual, nearly equal, or invalid."""

from __future__ import annotations

import random
import unicodedata
from urllib.parse import quote, unquote

from marker_sim.names import TYPE_FILE, MarkerDirectory, marker_file

PARTITIONS = (
    "",
    "2020/01/01",
    "dt=2020-01-01",
    "dt=2020-01-01/region=eu",
    "a%2Fb",
    "a%2fb",
    "größe/日本",
    "with space",
    "plus+and&more",
    "MARKERS0",
    "x,y",
    "q?r#s",
    "UPPER",
    "upper",
    " lead",
    "back\\slash",
    "gro\u0308ße",
    "odd.marker.CREATE/x",
    "APPEND",
    ".hidden",
    "001/002",
    "emoji/\U0001f600",
    "quo\"te's",
    "glob[1]*",
    "nbsp\u00a0bom\ufeff",
    "dot./trail ",
    "a:b~$x{y};<z>|",
    "long/" + "x" * 240,  # A name of more than 255 bytes, of which no part is longer.
)
DIRECTORIES = (
    "t/.hoodie/.temp/001",
    "t/.hoodie/.temp/002",
    "t/.hoodie/.temp/0010",
    "u/.hoodie/.temp/001",
    "lake/große tafel/.hoodie/.temp/20240101000000000",
)
NEIGHBOURS = ("t/.hoodie/.temp/001", "t/.hoodie/.temp/0010")  # The path of one begins with that of the other.
HOSTILE_NAMES = (
    "",
    "/leading.parquet.marker.CREATE",
    "../escape.parquet.marker.CREATE",
    "a/../../b.parquet.marker.CREATE",
    "line\nbreak.parquet.marker.CREATE",
    "return\rhere.parquet.marker.CREATE",
    "nul\x00.parquet.marker.MERGE",
    "next\x85line.parquet.marker.CREATE",
    "line\u2028separator.parquet.marker.CREATE",
    "/".join(["d" * 200] * 21) + "/x.marker.CREATE",
    "a//b.parquet.marker.CREATE",
    "a/./b.parquet.marker.CREATE",
    "no-suffix.parquet",
    "MARKERS.type",
    "x.parquet.marker.DELETE",
    "n" * 5000 + ".marker.CREATE",
)


# Names that servers must refuse; bytes that are no UTF-8 are surrogates, one a byte.
_CONTROLS = "".join(map(chr, (*range(32), 0x7F, 0x85)))
_NO_TEXT = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")
STEM = "f0_0-0-0_001.parquet.marker.CREATE"
REFUSED = (
    "",
    *(f"dt=1/a{ord(letter):02x}{letter}b{ord(letter):02x}/{STEM}" for letter in _CONTROLS),
    f"dt=1/a0d0a\r\nb0d0a/{STEM}",
    *(f"dt=1/a{number}{piece.decode('utf-8', 'surrogateescape')}b/{STEM}" for number, piece in enumerate(_NO_TEXT)),
    "../../../../escaped.parquet.marker.CREATE",
    "dt=1/../../escaped.parquet.marker.CREATE",
    f"/{STEM}",
)
# Names that they may refuse, or else have to store and list byte for byte.
KEPT = (
    f"dt=1/a\u2028b/{STEM}",
    f"dt=1/a\u2029b/{STEM}",
    f"\ufeffdt=1/{STEM}",
    TYPE_FILE,
    marker_file(0),
    f"{marker_file(0)}/{STEM}",
    f"dt=1//{STEM}",
    "no-suffix.parquet",
    f"long/{'x' * 240}/{STEM}",
    f"long/{'y' * 300}/{STEM}",
    f"{'/'.join(['d' * 200] * 12)}/{STEM}",
    f"{'/'.join(['e' * 200] * 24)}/{STEM}",
)


def written(place: MarkerDirectory, address: str, spelled: str) -> tuple[str, str]:
    """The form in which a request writes a directory, and the path of what it names.

    What is malformed names a directory that is none of markers, in a table of the run or beside it. On an object store
    a doubled slash would name other objects, so there is none. address: the usual way to write it.
    """
    table = address.removesuffix(place.path.removeprefix(place.table))
    match spelled:
        case "slash-at-end":
            return f"{address}/", place.path
        case "double-slash" if "://" not in address:
            return address.replace("/.hoodie/", "/.hoodie//"), place.path
        case "outside-hoodie":
            return f"{table}/loose/{place.instant}", f"{place.table}/loose/{place.instant}"
        case "outside-temp":
            return f"{table}/.hoodie/{place.instant}", f"{place.table}/.hoodie/{place.instant}"
        case "climbing":
            aside = f"aside/.hoodie/.temp/{place.instant}"
            return f"{table}/.hoodie/.temp/../../../{aside}", f"{place.table.rpartition('/')[0]}/{aside}"
    return address, place.path


def must_be_refused(name: str) -> bool:
    """Whether every server must refuse a name: it is empty, leaves its directory, or has a control character."""
    controls = any(ord(letter) < 0x20 or ord(letter) in (0x7F, 0x85) for letter in name)
    return not name or name.startswith("/") or ".." in name.split("/") or controls


def folded(name: str) -> str:
    """A key that is equal for names that look alike, such as those of `twins`."""
    plain = unicodedata.normalize("NFKC", unquote(name)).casefold()
    return "".join(letter for letter in plain if letter not in " +.")


def twins(rng: random.Random, name: str, forms: bool) -> tuple[str, str]:
    """Two valid marker names that servers must distinguish, made of one: they differ in case, in Unicode form, in how a
    character is encoded, or by a space or a dot at the end of a part. forms: whether Unicode forms are among them.
    """
    partition, slash, file = name.rpartition("/")
    stem, dot, ending = file.partition(".")
    match rng.choice((*(("form", "form") if forms else ()), "case", "percent", "plus", "end", "start")):
        case "case":
            return name, f"{partition.swapcase()}{slash}{stem.swapcase()}{dot}{ending}"
        case "form":
            odd = f"{partition}{slash}\u00e9{file}"
            return unicodedata.normalize("NFC", odd), unicodedata.normalize("NFD", odd)
        case "percent":
            decoded = unquote(partition)
            decoded = "a b" if quote(decoded, safe="") == decoded else decoded
            return f"{decoded}/{file}", f"{quote(decoded, safe='')}/{file}"
        case "plus":
            return f"x+y/{file}", f"x y/{file}"
        case "end":
            return f"end/{file}", f"end{rng.choice((' ', '.'))}/{file}"
        case _:
            return f"start/{file}", f"{rng.choice((' ', '.'))}start/{file}"

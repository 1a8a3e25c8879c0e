"""Partition paths, marker directories and marker names that are odd, near-twins of each other, or to be refused."""

from __future__ import annotations

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
    "no-suffix.parquet",
    "MARKERS.type",
    "x.parquet.marker.DELETE",
    "n" * 5000 + ".marker.CREATE",
)

"""hoodie.properties: what a table says about itself. Source: HoodieTableConfig of Hudi 0.15.0 and 1.2.0."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = ".hoodie/hoodie.properties"
BACKUP = f"{NAME}.backup"
LAYOUT_2_FROM = 8
VERSIONS = range(5, 10)
_KEY_GENERATORS = ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """What decides how a table is read.

    version: of the table, 0 when it is not said.
    kind: COPY_ON_WRITE or MERGE_ON_READ, "" when it is not said.
    timeline, archives: folders relative to the table.
    metadata_partitions: of its metadata table.
    metadata: whether it is a metadata table itself.
    bootstrapped: whether it shows files that were there before it.
    trouble: why the file cannot be trusted, "" when it can.
    """

    name: str
    version: int
    kind: str
    timeline: str
    archives: tuple[str, ...]
    metadata_partitions: frozenset[str]
    metadata: bool
    bootstrapped: bool
    trouble: str

    @property
    def named(self) -> bool:
        """Whether the file names its table, as every whole one does."""
        return self.name != ""

    @property
    def layout(self) -> int:
        """Of the timeline: 1 up to table version 7, 2 from 8."""
        return 2 if self.version >= LAYOUT_2_FROM else 1


def parse_properties(content: bytes, folders: frozenset[str] = frozenset()) -> TableProperties:
    """What the file says. folders: those below .hoodie, which decide the layout when no version is said."""
    values: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, found, value = line.strip().partition("=")
        if found and not key.startswith(("#", "!")):
            values[_plain(key.strip())] = _plain(value.strip())
    said = values.get("hoodie.table.version", "")
    version = int(said) if said.isdigit() else LAYOUT_2_FROM if "timeline" in folders else 0
    timeline = ".hoodie"
    archive = values.get("hoodie.archivelog.folder", "archived").strip("/")
    archives = [".hoodie/archived", f".hoodie/{archive}".rstrip("/")]
    if version >= LAYOUT_2_FROM:
        timeline = f".hoodie/{values.get('hoodie.timeline.path', 'timeline').strip('/')}".rstrip("/")
        history = values.get("hoodie.timeline.history.path", "history").strip("/")
        archives = [f"{timeline}/{history}", ".hoodie/archived"]
    partitions = values.get("hoodie.table.metadata.partitions", "")
    return TableProperties(
        name=values.get("hoodie.table.name", ""),
        version=version,
        kind=values.get("hoodie.table.type", ""),
        timeline=timeline,
        archives=tuple(dict.fromkeys(archives)),
        metadata_partitions=frozenset(part for part in partitions.split(",") if part),
        metadata=any("metadata" in values.get(key, "").lower() for key in _KEY_GENERATORS),
        bootstrapped=bool(values.get("hoodie.bootstrap.base.path")),
        trouble=_trouble(values, said),
    )


def _trouble(values: dict[str, str], version: str) -> str:
    if not values.get("hoodie.table.name"):
        return "is missing, empty or names no table"
    known = version.isdigit() and int(version) in VERSIONS
    return "" if known else f"says table version {version or 'nothing'}, which is not one of 5 to 9"


def _plain(text: str) -> str:
    """Text without the escapes of Java's properties."""
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else m[1], text)

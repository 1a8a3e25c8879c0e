"""Small tables that real versions of Hudi wrote, packed: properties/audit/tables/README.md says how they were made.

    python -m properties.audit.real_tables DIR 1.0.2/cow-archived 0.15.0/mor-logs ...     packs these of DIR

An archive is a tar file compressed by xz, its entries sorted and without times, owners and permissions: the same table
gives the same bytes. Tables are unpacked with the time of now, as one that has just been copied.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent / "tables"


def names() -> tuple[str, ...]:
    """The tables that are packed, as <version>-<kind>."""
    return tuple(sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz")))


def pack(table: Path, archive: Path) -> None:
    """Pack a table; what lies beside its folder and belongs to a bootstrap comes along."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(path for path in table.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(table).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    archive.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def unpack(name: str, folder: Path) -> Path:
    """Unpack a table below a folder; where it is."""
    table = folder / name
    with tarfile.open(FOLDER / f"{name}.tar.xz") as tar:
        for entry in tar:
            file = tar.extractfile(entry)
            assert file is not None, entry
            path = table / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read())
    return table


def main(made: Path, wanted: list[str]) -> None:
    """Pack tables that `python -m benchmarks.audit_tables make --out` made."""
    FOLDER.mkdir(exist_ok=True)
    for each in wanted:
        archive = FOLDER / f"{each.replace('/', '-')}.tar.xz"
        pack(made / each, archive)
        print(f"{archive.name}: {archive.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

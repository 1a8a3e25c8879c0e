"""Mutants of the codec: names, their bytes in a marker file, the names of marker files (names.py)."""

from __future__ import annotations

from marker_sim.mutants.mutant import Mutant

CODEC = (
    Mutant(
        name="leading-slash",
        record="P 4112: non-partitioned markers carried a leading slash",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(f"{name}\\n" if "/" in name else f"/{name}\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="decoded-names",
        record="plausible: names are URL-decoded on their way to storage",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(name.replace("%2F", "/") + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="line-break-accepted",
        record="plausible: control characters are not refused, a line break makes two names of one",
        module="names",
        before="    if _CONTROL.search(name):\n",
        after="    if False:\n",
        kills="G12",
    ),
    Mutant(
        name="stripped-names",
        record="plausible: names are stripped of white space on their way to storage",
        module="names",
        before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n',
        after='    return "".join(name.strip() + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    Mutant(
        name="append-by-substring",
        record="HUDI-1517, P 4913: a log file's marker is told by something in its name instead of its type",
        module="names",
        before='    return name.endswith(f"{_INFIX}{MarkerType.APPEND.value}")\n',
        after='    return "APPEND" in name\n',
        kills="G4",
    ),
)

"""Names of data files of any release: base files of every format, log files, change logs.

    base file  <file id>_<write token>_<instant>.<parquet|orc|hfile|...>
    log file   .<file id>_<instant>.log.<version>[_<write token>][.cdc]

`marker_sim.timeline` knows those that the reference writes; those of old releases, of the metadata table and of
other formats are more. Source: FSUtils of Hudi 0.5.3 to 1.2.0.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BASE = re.compile(r"([^/]+?)_([0-9]+-[0-9]+-[0-9]+)_([0-9]+)(?:\.([A-Za-z0-9]+))\Z")
_LOG = re.compile(r"\.([^/]+)_([0-9]+)\.log\.([0-9]+)(?:_([0-9]+-[0-9]+-[0-9]+))?((?:\.[A-Za-z]+)*)\Z")


class TableFileName(NamedTuple):
    """The parts of a name. instant: of the write, or of a log file's base file; form: parquet, log, cdc."""

    partition: str
    file_id: str
    instant: str
    log: bool
    form: str


def parse_file_name(path: str) -> TableFileName | None:
    """What a path relative to the table says, None when it is no data file's."""
    partition, _, name = path.rpartition("/")
    if name.startswith("."):
        log = _LOG.match(name)
        if log is None:
            return None
        return TableFileName(partition, log[1], log[2], True, "cdc" if log[5].endswith(".cdc") else "log")
    base = _BASE.match(name)
    return TableFileName(partition, base[1], base[3], False, base[4].lower()) if base else None

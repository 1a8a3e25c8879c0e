"""What a run of a plan comes to, so that the simulated and the real arm can be compared.

Instants are numbered in their order and stages counted from 0: the clock of a real run is not that of a simulated one.
Data files are compared by the rows in them, for the arms write different formats.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.names import decode_names, marker_file_index
from marker_sim.timeline import decode_commit, parse_data_file, parse_entry
from properties.faces.worlds import PARQUET
from properties.faces.writer import LINES, RowFormat

_INSTANT = re.compile(r"(?<!\d)\d{17}(?!\d)")


class Outcome(NamedTuple):
    """files: every stored path with what it holds. rows: what a reader finds. verdicts: guarantees with breaches."""

    files: tuple[tuple[str, Any], ...]
    rows: tuple[tuple[str, Any], ...]
    verdicts: tuple[str, ...]


def sound(history: History) -> bool:
    """Whether a run was judged and nothing objects: no breach, nothing undecided, the last write to each table there.

    The last write is the probe's: a run in which nobody could write any more says nothing by its silence.
    """
    tables = {str(e.table) for e in history.events if e.operation == "begin" and e.table}
    probed = {str(e.table) for e in history.events if e.operation == "rows" and _has_probe(e.value)}
    findings = judge(history)
    return tables == probed and not any(finding.breaches or finding.undecided for finding in findings)


def _has_probe(rows: Any) -> bool:
    return isinstance(rows, tuple) and any(row.startswith("/probe/") for row in rows)


def outcome(history: History) -> Outcome:
    """The comparable part of a finished run."""
    rows_as = LINES if history.header.world == "simulated" else PARQUET
    files = {e.path: e.value for e in history.events if e.kind == "observe" and e.operation == "file" and e.path}
    instants = sorted({found for path in files for found in _INSTANT.findall(path)})
    names = {instant: f"<{number}>" for number, instant in enumerate(instants)}
    plain = {_renamed(path, names): _content(path, data, rows_as, names) for path, data in files.items()}
    rows = [(str(e.table), e.value or e.error) for e in history.events if e.operation == "rows"]
    broken = {finding.guarantee for finding in judge(history) if finding.breaches}
    return Outcome(tuple(sorted(plain.items())), tuple(rows), tuple(sorted(broken)))


def _renamed(path: str, names: dict[str, str]) -> str:
    file = None if "/.hoodie/" in path else parse_data_file(path)
    if file is not None:
        # The stage number contains the instant's time of day.
        token, whole = str(file.token), f"{file.token.task}-{file.token.stage % 100}-{file.token.attempt}"
        path = path.replace(f"_{token}", f"_{whole}")
    return _INSTANT.sub(lambda found: names.get(found[0], "<other>"), path)


def _content(path: str, data: Any, rows_as: RowFormat, names: dict[str, str]) -> Any:
    assert isinstance(data, bytes), path
    entry = parse_entry(path)
    if entry is not None and entry.action != "rollback" and data:
        return tuple(_renamed(stat.path, names) for stat in decode_commit(data))
    if marker_file_index(path.rpartition("/")[2]) is not None:
        return tuple(sorted(_renamed(name, names) for name in decode_names(data)))
    if "/.hoodie/" in path or not data:
        return _INSTANT.sub(lambda found: names.get(found[0], "<other>"), data.decode())
    return tuple(sorted(rows_as.decode(data).items()))

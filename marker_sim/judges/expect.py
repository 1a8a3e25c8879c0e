"""A baseline lists the violations that are known, so that only what differs from it counts.

The file is JSON: {"schema": 1, "known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "restart"}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges.guarantees import parse_guarantees

if TYPE_CHECKING:
    from marker_sim.judges.profiles import Profile
    from marker_sim.judges.tally import Row

SCHEMA = 1
_MODES = ("direct", "timeline", "both")
_KEYS = ("guarantee", "mode", "storage", "under")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Known:
    """A violation by where it shows: its guarantee (id), mode, storage and fault class."""

    guarantee: str
    mode: str
    storage: str
    under: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """unexpected: promised, violated and not in the baseline. stale: in the baseline, judged here and not violated."""

    unexpected: tuple[Known, ...] = ()
    stale: tuple[Known, ...] = ()


def load_baseline(path: Path | str) -> frozenset[Known]:
    """Read a baseline; UsageError says what is wrong with it."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"baseline {path} cannot be read: {error}") from error
    return parse_baseline(raw, str(path))


def parse_baseline(raw: Any, origin: str) -> frozenset[Known]:
    """A baseline from parsed JSON."""
    entries = raw.get("known") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        raise UsageError(f'{origin} is not a baseline; write {{"schema": 1, "known": [{{...}}]}} with keys {_KEYS}')
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise UsageError(f"{origin} has schema {raw['schema']}, this version reads {SCHEMA}")
    known = set()
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or sorted(entry) != sorted(_KEYS):
            raise UsageError(f"{origin}, entry {number} is {entry!r}; each has exactly the keys {_KEYS}")
        ids = parse_guarantees(str(entry["guarantee"]))
        if len(ids) != 1 or entry["mode"] not in _MODES or entry["under"] not in FAULT_CLASSES:
            raise UsageError(
                f"{origin}, entry {number} is {entry!r}; it names one guarantee, its mode is one of"
                f" {', '.join(_MODES)}, and under is one of {', '.join(FAULT_CLASSES)}"
            )
        known.add(Known(guarantee=min(ids), mode=entry["mode"], storage=str(entry["storage"]), under=entry["under"]))
    return frozenset(known)


def format_baseline(rows: Iterable[Row]) -> str:
    """The baseline that makes everything these rows show known."""
    seen = sorted({known for row in rows for known in _seen(row)})
    return json.dumps({"schema": SCHEMA, "known": [asdict(known) for known in seen]}, indent=1) + "\n"


def compare(rows: Iterable[Row], baseline: frozenset[Known], profile: Profile) -> Differences:
    """What differs from a baseline. An entry for a mode or storage that was not judged in these rows is not stale."""
    rows = tuple(rows)
    seen = {known for row in rows for known in _seen(row)}
    judged = {(row.id, row.mode, row.storage) for row in rows if row.judged or row.violations}
    unexpected = {
        known
        for known in seen - baseline
        if profile.promise(known.guarantee, known.mode, known.storage, known.under).promised
    }
    stale = {known for known in baseline - seen if (known.guarantee, known.mode, known.storage) in judged}
    return Differences(unexpected=tuple(sorted(unexpected)), stale=tuple(sorted(stale)))


def _seen(row: Row) -> set[Known]:
    return {
        Known(guarantee=row.id, mode=row.mode, storage=row.storage, under=under)
        for under, count in row.under.items()
        if count and row.verdict != "not-applicable"
    }

"""A baseline lists the violations that are known, so that only what differs from it counts.

The file is JSON, an entry a defect: {"schema": 1, "known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3",
"under": "restart", "cause": "glued"}]}. A cause is a word of causes.py. A field that is left out stands for all of its
values: an entry of a guarantee and a cause is about every mode, storage and class of faults. Such entries are what
`--write-baseline` writes, because the places in which a defect shows differ from seed to seed.

An entry is stale when it was judged and not seen although a fault of its class occurred, so the defect may have been
fixed. An entry with `"sometimes": true` does not show in every run and is never stale. `"story"` names the document
that says how to reproduce it without the kit. Baselines of released systems are shipped in `baselines/` and selected by
name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASS, FAULT_CLASSES
from marker_sim.faults.row import ANY_STORAGE
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.reading import read_as

if TYPE_CHECKING:
    from marker_sim.judges.promises.profiles import Profile
    from marker_sim.judges.verdict_row import VerdictRow

SCHEMA = 1
_MODES = ("direct", "timeline", "both", "")
_KEYS = ("guarantee", "mode", "storage", "under", "cause")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Known:
    """A known violation: guarantee, place and cause; two of them are equal when these are.

    guarantee: its id.
    mode, storage, under (the fault class), cause: "" for any.
    sometimes: it does not show in every run.
    story: the document that explains it, "" for none.
    runs: of the campaign that wrote the entry, 0 where nobody counted them.
    """

    guarantee: str
    mode: str = ""
    storage: str = ""
    under: str = ""
    cause: str = ""
    sometimes: bool = field(default=False, compare=False)
    story: str = field(default="", compare=False)
    runs: int = field(default=0, compare=False)

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """What `outcome.failure.Kind` has."""
        return self.guarantee, self.mode, self.storage, self.cause

    def covers(self, other: object) -> bool:
        """Whether it stands for another one, which has all fields, or for a `Kind`, which has no fault class."""
        return all((own := getattr(self, key)) in ("", getattr(other, key, own)) for key in _KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences from a baseline. unexpected: promised, violated, not in it. stale: in it, judged, not violated.

    unmet: in the baseline, judged and not violated, but it does not show in every run, or no fault of its class
    occurred. It does not count. explained: as unexpected, but rare, and the stored run breaks what is known as well.
    """

    unexpected: tuple[Known, ...] = ()
    stale: tuple[Known, ...] = ()
    unmet: tuple[Known, ...] = ()
    explained: tuple[Known, ...] = ()


def shipped_baselines() -> tuple[str, ...]:
    """The names of the shipped baselines."""
    found = files("marker_sim.judges.baselines").iterdir()
    return tuple(sorted(entry.name.removesuffix(".json") for entry in found if entry.name.endswith(".json")))


def load_baseline(name_or_path: Path | str) -> frozenset[Known]:
    """A shipped baseline by name, one in a file, or what a verdict.json violates; UsageError says what is wrong."""
    name = str(name_or_path)
    shipped = shipped_baselines()
    source = files("marker_sim.judges.baselines") / f"{name}.json" if name in shipped else Path(name_or_path)
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
        if "failures" in raw:
            return frozenset(known_as(each["guarantee"], each["cause"], raw["runs"]) for each in raw["failures"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"baseline {name} cannot be read: {error}; give the path of a JSON file or one of {', '.join(shipped)}"
        ) from error
    return parse_baseline(raw, name)


def known_as(guarantee: str, cause: str, runs: int) -> Known:
    """The entry of a violation that was found in so many runs: of its guarantee and cause, wherever a run shows it."""
    return Known(guarantee=guarantee, cause=cause, sometimes=True, runs=runs)


def parse_baseline(raw: Any, origin: str) -> frozenset[Known]:
    """A baseline from parsed JSON."""
    entries = raw.get("known") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        raise UsageError(f'{origin} is not a baseline; write {{"schema": 1, "known": [{{...}}]}} with keys {_KEYS}')
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise UsageError(f"{origin} has schema {raw['schema']}, this version reads {SCHEMA}")
    known: set[Known] = set()
    for number, entry in enumerate(entries, start=1):
        where = f"{origin}, entry {number} is {entry!r}"
        one = _known(entry, where)
        if one in known:
            raise UsageError(f"{where}; an entry before it is about the same place and cause, so take one of them out")
        known.add(one)
    return frozenset(known)


def _known(entry: Any, where: str) -> Known:
    known = read_as(Known, entry, where)
    ids = parse_guarantees(known.guarantee)
    if len(ids) != 1 or known.mode not in _MODES or known.under not in ("", *FAULT_CLASSES):
        raise UsageError(
            f"{where}; it names one guarantee, its mode is one of {', '.join(_MODES[:3])}, and under is one of"
            f" {', '.join(FAULT_CLASSES)}"
        )
    if known.storage not in ("", *ANY_STORAGE):
        raise UsageError(f"{where}; its storage is one of {', '.join(ANY_STORAGE)}")
    return replace(known, guarantee=min(ids))


def counts_against(rows: Iterable[VerdictRow], baseline: frozenset[Known] | None, profile: Profile) -> bool:
    """Whether a promised guarantee is violated beyond the baseline, if there is one."""
    if baseline is None:
        return any(row.verdict == "violated" for row in rows)
    return bool(compare(rows, baseline, profile).unexpected)


def compare(
    rows: Iterable[VerdictRow], baseline: frozenset[Known], profile: Profile, fired: Iterable[str] | None = None
) -> Differences:
    """The differences from a baseline. fired: the operations of the faults in these runs, None for unknown.

    An entry for a mode or storage that was not judged in these rows is not stale, and neither is one for a class of
    faults of which none fired.
    """
    rows = tuple(rows)
    classes = None if fired is None else {"", "none", *(FAULT_CLASS.get(operation, "none") for operation in fired)}
    seen = {known for row in rows for known in seen_in(row)}
    judged = [
        Known(guarantee=row.id, mode=row.mode, storage=row.storage) for row in rows if row.judged or row.violations
    ]
    unexpected = {
        known
        for known in seen
        if not any(entry.covers(known) for entry in baseline)
        and profile.promise(known.guarantee, known.mode, known.storage, known.under).promised
    }
    missed = (entry for entry in sorted(baseline) if not any(map(entry.covers, seen)))
    missed_here = [entry for entry in missed if any(map(replace(entry, under="", cause="").covers, judged))]
    return Differences(
        unexpected=tuple(sorted(unexpected)),
        stale=tuple(known for known in missed_here if _tells(known, classes)),
        unmet=tuple(known for known in missed_here if not _tells(known, classes)),
    )


def _tells(known: Known, classes: set[str] | None) -> bool:
    """Whether it means something that a run does not show it."""
    return not known.sometimes and (classes is None or known.under in classes)


def seen_in(row: VerdictRow) -> set[Known]:
    """What a row breaks, promised or not."""
    return {
        Known(guarantee=row.id, mode=row.mode, storage=row.storage, under=under, cause=cause)
        for under, causes in row.breakdown.items()
        for cause in causes
        if row.verdict != "not-applicable"
    }

"""Violations as replay files that later versions open, one for each guarantee and shrunk plan.

Two plans are the same when they differ only in their seed. Plans that break the same guarantee in the same mode and on
the same storage by the same cause with the same kinds of faults and operations are alike; `ALIKE_MAX` of them are kept,
the others, mostly the same defect, are counted with the first. A file is a function of the ledger, so a lost one is
written again; it moves to `failures/fixed/` when a replay no longer reproduces it, and back when it occurs again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.outcome.failure import FIXED, SERVER, VIOLATED, FailureRecord
from marker_sim.plan import Plan
from marker_sim.reading import read_as
from marker_sim.surroundings.files import replacing
from marker_sim.targets.target import ServerOptions

SCHEMA = 1
FOLDER = "failures"
ALIKE_MAX = 3
SEEDS_MAX = 20
OF_A_FILE = ("sut", "profile", "kit_version", "first_seen", "last_seen", "night")


@dataclass(slots=True)
class Failures:
    """Every failure of a directory by name, in the order they were found."""

    by_name: dict[str, FailureRecord] = field(default_factory=dict)

    @property
    def open(self) -> tuple[FailureRecord, ...]:
        """The failures that are not fixed."""
        return tuple(failure for failure in self.by_name.values() if not failure.fixed)

    def see(self, record: FailureRecord, **where: Any) -> FailureRecord:
        """Count a violation: as another occurrence of a stored or similar failure, or as a new one.

        where: sut, profile, kit_version, night, at (a time of day); server, where it is one. Returns what it was
        counted with.
        """
        name = name_of(record)
        known = self.by_name.get(name)
        if known is None:
            alike = [other for other in self.open if _alike(other, record)]
            if len(alike) >= ALIKE_MAX or (alike and not record.shrunk):
                first = alike[0]
                self.by_name[first.name] = replace(first, alike=first.alike + 1, last_seen=where["at"])
                return self.by_name[first.name]
            at = where.pop("at")
            self.by_name[name] = replace(record, name=name, first_seen=at, last_seen=at, seeds=(record.seed,), **where)
            return self.by_name[name]
        seeds = known.seeds if record.seed in known.seeds else (*known.seeds, record.seed)[:SEEDS_MAX]
        self.by_name[name] = replace(known, seen=known.seen + 1, seeds=seeds, last_seen=where["at"])
        if known.fixed:
            self.by_name[name] = replace(self.by_name[name], fixed="", status=VIOLATED)
        return self.by_name[name]

    def replayed(self, name: str, status: str, at: str) -> None:
        """Record the status of a replay."""
        known = self.by_name.get(name)
        if known is not None:
            self.by_name[name] = replace(known, status=status, fixed=at if status == FIXED else "")

    def write(self, directory: Path, names: Iterable[str] | None = None) -> None:
        """Write the files of all failures or of some."""
        folder = directory / FOLDER
        make_folder(folder / FIXED)
        for name in self.by_name if names is None else names:
            failure = self.by_name[name]
            here, there = folder / f"{name}.json", folder / FIXED / f"{name}.json"
            if failure.fixed:
                here, there = there, here
            data = json.dumps({"schema": SCHEMA, **asdict(failure)}, indent=1, ensure_ascii=False)
            write_whole(here, data.encode("utf-8", "surrogatepass") + b"\n")
            there.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically; one with equal content is left alone."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    try:
        with replacing(path) as beside:
            beside.write_bytes(data)
    except OSError as error:
        raise HarnessError(f"{path} cannot be written: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Make a directory with its parents; HarnessError when it cannot be made, or something else has its name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"{folder} cannot be made: {error.strerror or error}") from error


def name_of(record: FailureRecord) -> str:
    """The name of a failure: its guarantee, and a digest of where it happened and of its plan without the seed."""
    plan = _without_empty({key: value for key, value in record.plan.items() if key not in ("seed", "schema")})
    where = plan or [record.storage, record.cause]  # Without a plan, a failure is identified by its cause.
    canonical = json.dumps([record.guarantee, record.mode, record.world, where], sort_keys=True)
    return f"{record.guarantee}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def read_stored(path: Path) -> FailureRecord:
    """The failure in a file; UsageError when it holds none, or one of a newer schema."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a stored failure: {error}") from error
    if not is_stored(raw):
        raise UsageError(f"{path} is not a stored failure; `marker-sim chaos` stores them in {FOLDER}/")
    if raw["schema"] > SCHEMA:
        raise UsageError(
            f"{path} has schema {raw['schema']}, this version reads up to {SCHEMA}; use the marker-sim that wrote it"
            f" ({raw.get('kit_version', 'unknown')}) or a later one"
        )
    for name in OF_A_FILE:
        if name not in raw:
            raise UsageError(f"{path} is no whole stored failure: {name!r} is missing; give the file as it was written")
    known = {each.name for each in fields(FailureRecord)}
    return read_as(FailureRecord, {name: value for name, value in raw.items() if name in known}, str(path))


def is_stored(raw: Any) -> bool:
    """Whether parsed JSON is a stored failure of some schema."""
    return isinstance(raw, dict) and isinstance(raw.get("schema"), int) and {"guarantee", "plan", "name"} <= raw.keys()


def read_record(raw: Mapping[str, Any]) -> FailureRecord:
    """The violation in a line of the ledger; UsageError when there is none."""
    return read_as(FailureRecord, raw, "a violation in the ledger")


def _without_empty(value: Any) -> Any:
    """A value without empty parts, so that a field added by a later version does not change the name."""
    if isinstance(value, dict):
        return {key: _without_empty(part) for key, part in value.items() if part not in ("", [], None)}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value


def _alike(one: FailureRecord, other: FailureRecord) -> bool:
    same_kind = (one.kind, one.world) == (other.kind, other.world)
    # A plan that was not shrunk has faults of many kinds, so it is similar to any failure of the same kind.
    return same_kind and (not other.shrunk or not one.shrunk or signature(one) == signature(other))


def signature(record: FailureRecord) -> tuple[frozenset[str], ...]:
    """The kinds of faults, operations and tasks in its plan."""
    plan = record.plan
    tasks = [task.get("kind", "CREATE") for write in plan.get("writes", ()) for task in write.get("tasks", ())]
    return (
        frozenset(str(fault["kind"] if "kind" in fault else fault.get("fault")) for fault in plan.get("faults", ())),
        frozenset(str(op.get("kind")) for op in plan.get("ops", ())),
        frozenset(tasks),
    )


def stored_plan(failure: FailureRecord, file: Path | None = None) -> StoredPlan:
    """The failure to run again; UsageError when this version cannot read its plan. file: from which it was read."""
    name = failure.name if file is None else file.name
    return StoredPlan.parse(
        asdict(failure),
        f", {name}",
        plan=Plan.from_dict(failure.plan, str(file or name)) if failure.plan else None,
        hint=f"it was found in rounds that cannot be repeated; look again: marker-sim verify --sut {failure.sut}",
        profile=load_profile(failure.profile),
        server=ServerOptions.from_dict(failure.server) if failure.world == SERVER else None,
    )

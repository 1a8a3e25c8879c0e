"""A plan is a small immutable value that determines a run: workload, schedule and faults, and nothing else.

`entries` counts what a reader of a shrunk plan must understand. A plan is stored as JSON and opens in later versions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind

SCHEMA = 1
MODES = ("direct", "timeline")
STORAGES = ("s3", "s3-unconditional", "local", "hdfs")
OPERATIONS = ("create", "list", "list-data", "list-log", "exists", "delete", "hostile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation of a client, after those it has before it in the plan; "hostile" is a create that must be refused.

    directory: index into `Plan.directories`. request: identity, equal in a resend, "" for none.
    after_ms: how long the client waits first. server: 0, or 1 for the second server while it lives.
    """

    actor: str
    kind: str
    directory: int = 0
    name: str = ""
    request: str = ""
    after_ms: int = 0
    server: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A misfortune that arms at the `step`-th seam call of `actor` (a client name, or "server")."""

    kind: FaultKind
    actor: str
    step: int
    duration_ms: int = 0
    value: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Determines one run. jitter: 0 for uniform latencies, else the number that all latencies are derived from."""

    mode: str = "timeline"
    storage: str = "s3"
    num_threads: int = 2
    interval_ms: int = 50
    directories: tuple[str, ...] = ("t/.hoodie/.temp/001",)
    ops: tuple[Op, ...] = ()
    faults: tuple[Fault, ...] = ()
    jitter: int = 0
    seed: int = 0

    @property
    def entries(self) -> int:
        """Operations and faults, the length that shrinking reduces first."""
        return len(self.ops) + len(self.faults)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, defaults left out of the entries so that it reads well."""
        out: dict[str, Any] = {name: getattr(self, name) for name in _PLAN_FIELDS}
        out["schema"] = SCHEMA
        out["directories"] = list(self.directories)
        out["ops"] = [
            {name: value for name, default in _OP_DEFAULTS if (value := getattr(op, name)) != default}
            for op in self.ops
        ]
        out["faults"] = [
            {name: getattr(fault, name) for name in _FAULT_FIELDS} | {"kind": fault.kind.value} for fault in self.faults
        ]
        return out

    @staticmethod
    def from_dict(raw: dict[str, Any], origin: str = "plan") -> Plan:
        """The inverse of `to_dict`; UsageError says what is wrong with a plan written by hand."""
        try:
            if raw.get("schema", SCHEMA) > SCHEMA:
                raise UsageError(f"{origin} has schema {raw['schema']}, this version reads up to {SCHEMA}")
            known = {k: v for k, v in raw.items() if k != "schema"}
            known["directories"] = tuple(raw.get("directories", ("t/.hoodie/.temp/001",)))
            known["ops"] = tuple(Op(**op) for op in raw.get("ops", ()))
            known["faults"] = tuple(Fault(**{**f, "kind": FaultKind(f["kind"])}) for f in raw.get("faults", ()))
            plan = Plan(**known)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise UsageError(f"{origin} is not a plan: {error}; `marker-sim verify` writes one as plan.json") from error
        plan.check(origin)
        return plan

    def check(self, origin: str = "plan") -> None:
        """Refuse what no world could run."""
        problems = [f"mode {self.mode!r} is none of {MODES}"] if self.mode not in MODES else []
        if self.storage not in STORAGES:
            problems.append(f"storage {self.storage!r} is none of {STORAGES}")
        if not self.directories:
            problems.append("it names no marker directory")
        for op in self.ops:
            if op.kind not in OPERATIONS:
                problems.append(f"operation {op.kind!r} is none of {OPERATIONS}")
            if not 0 <= op.directory < len(self.directories):
                problems.append(f"operation directory {op.directory} is not one of {len(self.directories)}")
        if self.num_threads < 1 or self.interval_ms < 1:
            problems.append("num_threads and interval_ms must be at least 1")
        if problems:
            raise UsageError(f"{origin} cannot run: " + "; ".join(sorted(set(problems))))


_PLAN_FIELDS = tuple(f.name for f in fields(Plan))
_OP_DEFAULTS = tuple((f.name, f.default) for f in fields(Op))
_FAULT_FIELDS = tuple(f.name for f in fields(Fault))


def write_plan(plan: Plan, path: Path) -> None:
    """Store a plan as indented JSON."""
    path.write_text(json.dumps(plan.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_plan(path: Path) -> Plan:
    """Read a plan; UsageError when it is not one."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a plan: {error}") from error
    return Plan.from_dict(raw, str(path))

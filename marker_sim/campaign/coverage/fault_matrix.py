"""Faults by phase: which pairs a campaign reached, which it could have reached, and why the others are impossible.

The phases are those of outcome/process_phase.py; the row of a kind has its targets and calls.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.faults import FaultKind, drawable
from marker_sim.faults.row import READ_CALLS, in_batches
from marker_sim.outcome.result import MatrixRow
from marker_sim.outcome.statistics import Statistics

_BY_ROLE = {
    "server": (
        "idle",
        "listing",
        "deleting",
        "recovering",
        "batch pending",
        "written and not answered",
        "between replies",
    ),
    "driver": (
        "idle",
        "begin",
        "rollback",
        "rollback: listing",
        "rollback: markers",
        "sweep",
        "stage",
        "finalize: listing",
        "finalize: deleting",
        "commit: before the entry",
        "commit: after the entry",
        "marker deletion",
    ),
    "executor": ("between tasks", "marker asked for", "between marker and data", "writing", "after the data"),
    "client": ("idle", "create", "list", "exists", "delete", "hostile"),
    "request": ("create", "list", "exists", "delete", "hostile"),
    "kit": ("idle", "markers asked for"),
}
PHASES = tuple(f"{role}: {phase}" for role, phases in _BY_ROLE.items() for phase in phases)
# Phases with only some calls on storage: these calls, and why faults of others are impossible.
_CALLS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        ("server: idle", "driver: stage", "executor: between tasks", "client: idle", "client: hostile"),
        (),
        "no storage call is made there",
    ),
    (
        ("server: listing", "driver: rollback: listing", "driver: finalize: listing", "client: list", "client: exists"),
        READ_CALLS,
        "only reads there; this fault needs a write or delete",
    ),
    (
        (
            "server: deleting",
            "driver: rollback: markers",
            "driver: sweep",
            "driver: finalize: deleting",
            "driver: marker deletion",
            "client: delete",
        ),
        (*READ_CALLS, "delete"),
        "only deletes there; this fault needs a write",
    ),
)


def fault_rows(statistics: Statistics, combinations: Iterable[tuple[str, str]]) -> tuple[MatrixRow, ...]:
    """One row for each kind that the searched modes and storages allow, or that happened, in the order of the table."""
    pairs = tuple(combinations)
    batched = any(in_batches(*pair) for pair in pairs)
    rows = []
    for kind in FaultKind:
        reached = statistics.phases_of(kind.value)
        if not any(kind in drawable(*pair) for pair in pairs) and (kind.row.drawn or not reached):
            continue
        cells = [phase for phase in PHASES if batched or phase.partition(":")[0] not in ("server", "request", "kit")]
        reasons = {phase: why for phase in cells if (why := why_not(kind, phase)) and phase not in reached}
        rows.append(
            MatrixRow(
                kind=kind.value,
                met={phase: reached[phase] for phase in sorted(reached)},
                unmet=tuple(phase for phase in cells if phase not in reached and phase not in reasons),
                impossible={phase: why for phase, why in reasons.items() if phase.startswith(kind.row.phases)},
            )
        )
    return tuple(rows)


def why_not(kind: FaultKind, phase: str) -> str:
    """Why a fault cannot happen in a phase, "" when it can."""
    row = kind.row
    if not phase.startswith(row.phases):
        return f"a {phase.partition(':')[0]} cannot have this fault"
    if row.family != "storage" or row.conditional:  # Workers of a server make conditional puts during its deletions.
        return ""
    return next((why for phases, calls, why in _CALLS if phase in phases and not set(calls) & set(row.operations)), "")

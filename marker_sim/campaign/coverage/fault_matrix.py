"""Fault by phase: which cells a campaign could fill, which it did, and why the others are impossible.

The phases are those of campaign/coverage/process_phase.py. A kind of fault that no table below names is possible
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.campaign.result import FaultRow
from marker_sim.campaign.statistics import Statistics
from marker_sim.faults import PROCESS_FAULTS, STORAGE_FAULTS, TASK_FAULTS, WIRE_FAULTS, FaultKind
from marker_sim.plan import BATCHED_STORAGES
from marker_sim.search.swarm import possible_in_writes

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
_WRITING = frozenset({FaultKind.TORN_WRITE, FaultKind.DISK_FULL})
_CHANGING = _WRITING | {FaultKind.ORPHANED, FaultKind.TIMEOUT_LATE}
_ANY_STORAGE = frozenset(STORAGE_FAULTS)
_NO_CALL = "whoever is there calls no storage"
_NO_CHANGE = "it only reads there, and this fault needs a change on its way"
_NO_CONTENT = "it only deletes there, and this fault needs content"
# What cannot be, by kinds and phases, and why.
_IMPOSSIBLE: tuple[tuple[frozenset[FaultKind], tuple[str, ...], str], ...] = (
    (
        _ANY_STORAGE,
        ("server: idle", "driver: stage", "executor: between tasks", "client: idle", "client: hostile"),
        _NO_CALL,
    ),
    (
        _CHANGING,
        (
            "server: listing",
            "driver: rollback: listing",
            "driver: finalize: listing",
            "client: list",
            "client: exists",
        ),
        _NO_CHANGE,
    ),
    (
        _WRITING,
        (
            "server: deleting",
            "driver: rollback: markers",
            "driver: sweep",
            "driver: finalize: deleting",
            "driver: marker deletion",
            "client: delete",
        ),
        _NO_CONTENT,
    ),
)


def fault_rows(statistics: Statistics, combinations: Iterable[tuple[str, str]]) -> tuple[FaultRow, ...]:
    """One row for each kind that the searched modes and storages allow, in the order of the faults' table."""
    pairs = tuple(combinations)
    batched = any(mode == "timeline" and storage in BATCHED_STORAGES for mode, storage in pairs)
    rows = []
    for kind in FaultKind:
        if not any(possible_in_writes(kind, *pair) for pair in pairs):
            continue
        struck = statistics.struck(kind.value)
        cells = [phase for phase in PHASES if batched or phase.partition(":")[0] not in ("server", "request", "kit")]
        reasons = {phase: why for phase in cells if (why := why_not(kind, phase)) and phase not in struck}
        rows.append(
            FaultRow(
                kind=kind.value,
                met={phase: struck[phase] for phase in sorted(struck)},
                unmet=tuple(phase for phase in cells if phase not in struck and phase not in reasons),
                impossible={phase: why for phase, why in reasons.items() if _aimed_at(kind, phase)},
            )
        )
    return tuple(rows)


def why_not(kind: FaultKind, phase: str) -> str:
    """Why a fault cannot strike in a phase, "" when it can."""
    if not _aimed_at(kind, phase):
        return f"this fault is none of a {phase.partition(':')[0]}"
    return next((why for kinds, phases, why in _IMPOSSIBLE if kind in kinds and phase in phases), "")


_ROLES: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.TYPE_DAMAGED: ("kit",),
    FaultKind.PLACEHOLDER: ("kit",),
    FaultKind.SLOW_LINK: ("request", "driver", "executor", "client"),
    FaultKind.CUT_LINK: ("request", "driver", "executor", "client"),
    FaultKind.OVERLOADED: ("server",),
    FaultKind.CLOCK_JUMPED: ("driver", "client"),
}


def _aimed_at(kind: FaultKind, phase: str) -> bool:
    role = phase.partition(":")[0]
    if kind in _ROLES:
        return role in _ROLES[kind]
    if kind is FaultKind.SECOND_SERVER:
        return phase == "server: idle"  # It is counted where the second one is: just started.
    if kind is FaultKind.STAGE_RETRIED:
        return role == "executor" or phase.startswith(("driver: finalize", "driver: commit", "driver: marker"))
    if kind is FaultKind.SPECULATIVE:
        return role == "executor" or phase == "driver: stage"
    if kind in TASK_FAULTS:
        return role == "executor"
    if kind in WIRE_FAULTS:
        return role == "request"
    if kind in PROCESS_FAULTS or kind in STORAGE_FAULTS:
        return role in ("server", "driver", "executor", "client")
    return True

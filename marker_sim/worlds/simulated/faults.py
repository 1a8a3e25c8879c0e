"""The faults that the simulated world lacks; scheduler.py, storage.py, wire.py and host.py have the others."""

from __future__ import annotations

from marker_sim.faults import Call, Fault

# Families of faults that do not exist in the simulated world.
FOREIGN = {"proxy": "no proxy stands between these processes", "job": "these executors are not Spark's"}


def why_not(fault: Fault) -> str:
    """The reason why simulated processes cannot have a fault, "" when they can."""
    if isinstance(fault.trigger, Call):
        return "it is due at a call on storage, for real processes alone; give it a step or a site"
    return FOREIGN.get(fault.kind.row.family, "")

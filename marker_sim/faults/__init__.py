"""The faults that can be injected into a run.

table.py    the kinds of faults, one row each
row.py      the columns of that table
model.py    one fault of a plan, and its trigger
sites.py    named places at which faults can be injected
"""

from marker_sim.faults.model import Call, Fault, FaultSettings, Site, Step, Trigger, When, by_target
from marker_sim.faults.row import FaultRow
from marker_sim.faults.table import FAULT_CLASS, FAULT_CLASSES, FaultKind, drawable

__all__ = [
    "FAULT_CLASS",
    "FAULT_CLASSES",
    "Call",
    "Fault",
    "FaultKind",
    "FaultRow",
    "FaultSettings",
    "Site",
    "Step",
    "Trigger",
    "When",
    "by_target",
    "drawable",
]

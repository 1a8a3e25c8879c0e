"""What can go wrong in a run.

table.py    the kinds of faults: one row each
row.py      what a row says
model.py    one fault of a plan, and when it arms
sites.py    named places at which it may
"""

from marker_sim.faults.model import Call, Fault, FaultSettings, Site, Step, Trigger, When
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
    "drawable",
]

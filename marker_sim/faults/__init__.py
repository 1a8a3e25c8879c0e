"""What can go wrong in a run.

table.py    the kinds of faults: one row each
row.py      what a row says
model.py    one fault of a plan
trigger.py  when it arms
sites.py    named places at which it may
"""

from marker_sim.faults.model import Fault, FaultSettings
from marker_sim.faults.row import FaultRow
from marker_sim.faults.table import FAULT_CLASS, FAULT_CLASSES, FaultKind, drawable
from marker_sim.faults.trigger import Call, Site, Step, Trigger, When

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

"""What can go wrong in a run.

table.py  the kinds of faults and their properties
sites.py  named places in a run at which a fault can be injected
"""

from marker_sim.faults.table import FAULT_CLASS, FAULT_CLASSES, FaultKind, FaultRow, drawable

__all__ = ["FAULT_CLASS", "FAULT_CLASSES", "FaultKind", "FaultRow", "drawable"]

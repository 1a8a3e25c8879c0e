"""What can go wrong in a run.

table.py  the kinds of faults and their properties
sites.py  named places in a run at which a fault can be injected
"""

from marker_sim.faults.table import (
    CONDITIONAL_ONLY,
    FAULT_CLASS,
    FAULT_CLASSES,
    LINK_FAULTS,
    LOCAL_ONLY,
    OBJECT_STORE_ONLY,
    PROCESS_FAULTS,
    REMOTE_ONLY,
    STORAGE_FAULTS,
    TASK_FAULTS,
    WIRE_FAULTS,
    FaultKind,
)

__all__ = [
    "CONDITIONAL_ONLY",
    "FAULT_CLASS",
    "FAULT_CLASSES",
    "LINK_FAULTS",
    "LOCAL_ONLY",
    "OBJECT_STORE_ONLY",
    "PROCESS_FAULTS",
    "REMOTE_ONLY",
    "STORAGE_FAULTS",
    "TASK_FAULTS",
    "WIRE_FAULTS",
    "FaultKind",
]

"""Names of `marker_sim.faults` that tests use."""

from marker_sim.faults.model import FaultSettings
from marker_sim.faults.row import ANY_CALL, CHANGES
from marker_sim.faults.sites import (
    ANSWER_HANDED_OVER,
    LOCK_ASKED,
    REPLY,
    REQUEST_QUEUED,
    SITES,
    WORKER_STARTED,
    SiteRow,
)

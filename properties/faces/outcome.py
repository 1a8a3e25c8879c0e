"""Names of `marker_sim.outcome` that tests use."""

from marker_sim.outcome.conditions import ONE_REFUSED, POWER_LOST, REFUSED, conditions_met
from marker_sim.outcome.curve import CurvePoint, LikelihoodCurve, likelihood_curve
from marker_sim.outcome.failure import (
    FIXED,
    NO_TIME,
    NOT_REPRODUCED,
    VIOLATED,
    Failure,
    FailureRecord,
    Kind,
    defects_least,
    failures_in,
    stories,
)
from marker_sim.outcome.process_phase import PhaseWalk
from marker_sim.outcome.result import (
    KEPT,
    NO_ANSWER,
    NOT_MET,
    OF_STORY,
    UNCONFIRMED,
    Campaign,
    Canary,
    CoverageGap,
    Deciding,
    MatrixRow,
    RunRow,
    WalkedCall,
)
from marker_sim.outcome.statistics import Statistics, overall

"""Names of `marker_sim.campaign` that tests use."""

from marker_sim.campaign.coverage.canary import PLANTS, find_false_statement
from marker_sim.campaign.coverage.fault_matrix import PHASES, fault_rows, why_not
from marker_sim.campaign.coverage.gaps import RUNS_LEAST, THRESHOLDS, below_thresholds, reached, too_few
from marker_sim.campaign.coverage.goals import CHANGED, GOALS, LAID_OUT, LOOK_EVERY, SURE, CoverageGoal
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.hunts import COMBINATIONS, SEARCHES, Found, Kill, Limit, kill, swarm_of
from marker_sim.campaign.machines.machine import JudgedExample, attack, machine_for
from marker_sim.campaign.machines.operations import MarkerMachine
from marker_sim.campaign.machines.rules import WritePathMachine
from marker_sim.campaign.nightly.failures import ALIKE_MAX, Failures, name_of, read_record, read_stored, signature
from marker_sim.campaign.nightly.ledger import NAME, read_lines, writing
from marker_sim.campaign.nightly.opening import SHARES, parse_stages, request_on, schedule
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.parquet import COVERAGE, FOLDER, SCHEMAS, sweep, write_tables
from marker_sim.campaign.nightly.spark_pool import answer_of, kit
from marker_sim.campaign.nightly.summary import exit_code, failure_lines, gaps, headline, night_rows, verdict_of
from marker_sim.campaign.nightly.totals import NO_END, NightTotals, Ranges, Totals
from marker_sim.campaign.nightly.units import ROWS, NightlyTask, do, exhaustive, processes, stored
from marker_sim.campaign.pieces import (
    PIECE,
    Piece,
    PieceResult,
    SearchSettings,
    SearchState,
    explore,
    worth_shrinking,
)
from marker_sim.campaign.planned_runs import FAULT_ONE_IN, PlannedRuns, differ_elsewhere
from marker_sim.campaign.played_runs import PlayedRuns, numbered, share_of
from marker_sim.campaign.played_shrinking import PlayedShrinker, SmallPlan
from marker_sim.campaign.replay import ShrinkingSoFar, with_processes
from marker_sim.campaign.runs import (
    MODES_AGREE,
    broken_in,
    comparable,
    compare_modes,
    digest,
    execute,
    failure_of,
    findings_in,
    findings_of,
    lacking,
    promised_breach,
)
from marker_sim.campaign.simulated_failure import curve_of, make_small, with_curve
from marker_sim.campaign.sources.exhaustive import COVERED, Case, Crashes, Space
from marker_sim.campaign.sources.swarm import WRITES_EVERY, Processes, Swarm
from marker_sim.campaign.stored_plan import StoredPlan

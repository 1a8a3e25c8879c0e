"""Names of `marker_sim.campaign` that tests use."""

from marker_sim.campaign.coverage.canary import PLANTS, find_false_statement
from marker_sim.campaign.coverage.fault_matrix import PHASES, fault_rows, why_not
from marker_sim.campaign.coverage.gaps import RUNS_LEAST, THRESHOLDS, below_thresholds, reached, too_few
from marker_sim.campaign.coverage.goals import CHANGED, GOALS, LAID_OUT, LOOK_EVERY, SURE, CoverageGoal
from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.hunts import COMBINATIONS, SEARCHES, Found, Kill, Limit, kill, swarm_of
from marker_sim.campaign.machine import JudgedExample, attack, machine_for
from marker_sim.campaign.machine_operations import MarkerMachine
from marker_sim.campaign.machine_rules import WritePathMachine
from marker_sim.campaign.nightly.failures import ALIKE_MAX, Failures, name_of, read_record, read_stored, signature
from marker_sim.campaign.nightly.ledger import NAME, read_lines, writing
from marker_sim.campaign.nightly.opening import SHARES, parse_stages, schedule
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.parquet import COVERAGE, FOLDER, SCHEMAS, sweep, write_tables
from marker_sim.campaign.nightly.spark_pool import answer_of, kit
from marker_sim.campaign.nightly.summary import columns, exit_code, failure_lines, gaps, night_row, verdict_of
from marker_sim.campaign.nightly.totals import NO_END, NightTotals, Ranges, Totals
from marker_sim.campaign.nightly.units import ROWS, NightlyTask, do, exhaustive, processes, stored, worth_shrinking
from marker_sim.campaign.pieces import PIECE, NumberedRun, Piece, PieceResult, SearchSettings, SearchState, explore
from marker_sim.campaign.planned_runs import FAULT_ONE_IN, PlannedRuns, differ_elsewhere
from marker_sim.campaign.played_runs import PlayedRuns, numbered, share_of
from marker_sim.campaign.played_shrinking import PlayedShrinker, SmallPlan
from marker_sim.campaign.replay import ShrinkingSoFar, StoredPlan, with_processes
from marker_sim.campaign.runs import (
    MODES_AGREE,
    broken_in,
    comparable,
    compare_modes,
    curve_of,
    digest,
    execute,
    failure_of,
    findings_in,
    findings_of,
    lacking,
    make_small,
    promised_breach,
    reusing,
    with_curve,
)
from marker_sim.campaign.sources.exhaustive import COVERED, Case, Crashes, Space
from marker_sim.campaign.sources.played import Processes, request_on
from marker_sim.campaign.sources.swarm import WRITES_EVERY, Swarm

__all__ = [
    "ALIKE_MAX",
    "CHANGED",
    "COMBINATIONS",
    "COVERAGE",
    "COVERED",
    "FAULT_ONE_IN",
    "FOLDER",
    "GOALS",
    "LAID_OUT",
    "LOOK_EVERY",
    "MODES_AGREE",
    "NAME",
    "NO_END",
    "PHASES",
    "PIECE",
    "PLANTS",
    "ROWS",
    "RUNS_LEAST",
    "SCHEMAS",
    "SEARCHES",
    "SHARES",
    "SURE",
    "THRESHOLDS",
    "WRITES_EVERY",
    "Case",
    "CoverageGoal",
    "Crashes",
    "Failures",
    "Found",
    "JudgedExample",
    "Kill",
    "Limit",
    "MarkerMachine",
    "NightTotals",
    "NightlyTask",
    "NumberedRun",
    "Piece",
    "PieceResult",
    "PlannedRuns",
    "PlayedRuns",
    "PlayedShrinker",
    "Processes",
    "Ranges",
    "SearchSettings",
    "SearchState",
    "ShrinkingSoFar",
    "SmallPlan",
    "Space",
    "StoredPlan",
    "Swarm",
    "Totals",
    "WritePathMachine",
    "answer_of",
    "attack",
    "below_thresholds",
    "broken_in",
    "columns",
    "comparable",
    "compare_modes",
    "curve_of",
    "differ_elsewhere",
    "digest",
    "do",
    "execute",
    "exhaustive",
    "exit_code",
    "explore",
    "failure_lines",
    "failure_of",
    "fault_rows",
    "find_false_statement",
    "findings_in",
    "findings_of",
    "gaps",
    "kill",
    "kit",
    "lacking",
    "machine_for",
    "make_small",
    "name_of",
    "night_row",
    "numbered",
    "parse_stages",
    "processes",
    "promised_breach",
    "reached",
    "read_lines",
    "read_record",
    "read_stored",
    "request_on",
    "reusing",
    "run_campaign",
    "schedule",
    "share_of",
    "signature",
    "stored",
    "swarm_of",
    "sweep",
    "too_few",
    "verdict_of",
    "why_not",
    "with_curve",
    "with_processes",
    "worth_shrinking",
    "write_summary",
    "write_tables",
    "writing",
]

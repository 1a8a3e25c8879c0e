"""Names of `marker_sim.cli` that tests use."""

from marker_sim.cli.app import COMMANDS, PAGES, TOP, build_app, main
from marker_sim.cli.doctor import Check
from marker_sim.cli.handing_over import failure_description
from marker_sim.cli.judge import read_history
from marker_sim.cli.output import Progress
from marker_sim.cli.replay import Wanted, run_again
from marker_sim.cli.request import SECRET_OPTION, SEED_MAX, parse_duration, parse_number, parse_request
from marker_sim.cli.stored import failures_at
from marker_sim.cli.verify import (
    BY_PROCESSES,
    CONFIRMED,
    HELD,
    NOT_BY_PROCESSES,
    NOT_PLAYED,
    NOT_REPRODUCED,
    SIMULATED_ONLY,
    UNDECIDED,
    carry_out,
    confirm,
    confirm_by_script,
)

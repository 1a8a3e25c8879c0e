"""Names of `marker_sim.judges` that tests use."""

from marker_sim.judges.baselines.baseline import (
    Differences,
    Known,
    compare,
    counts_against,
    load_baseline,
    parse_baseline,
    shipped_baselines,
)
from marker_sim.judges.black_box import JUDGES, OF_FUTURES
from marker_sim.judges.black_box.futures import leaves
from marker_sim.judges.findings import Breach, Finding, split_impact
from marker_sim.judges.guarantees import ALL, BY_ID, GUARANTEES
from marker_sim.judges.promises.profiles import SHIPPED, Profile, load_profile, parse_profile, unshipped
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.judges.violations import VIOLATIONS, GuaranteeViolation, format_event, violation

"""Names of `marker_sim.targets` that tests use."""

from marker_sim.targets.http import HttpTarget
from marker_sim.targets.http_plans import (
    NAMELESS,
    OF_STORAGE,
    PLANS_DECIDE,
    THEMES,
    ServerPlans,
    decided_by,
    kind_of,
    plan_for_servers,
)
from marker_sim.targets.hudi_java import HudiJavaTarget
from marker_sim.targets.hudi_java_runs import AS_BEFORE, CONFIRMED, NOT_CONFIRMED, PROCESSES_S, DrawnPoint, JavaRuns
from marker_sim.targets.hudi_java_walk import FAILED, KILLED, TableWalk, draw_deaths, table_of
from marker_sim.targets.hudi_spark import HudiSparkTarget
from marker_sim.targets.hudi_spark_runs import open_runs
from marker_sim.targets.jvm.bundles import ADAPTER, CLIENT, REPOSITORY_VARIABLE, SERVICE, Jars
from marker_sim.targets.jvm.java_start import ARCHIVE, archived, quick_start
from marker_sim.targets.python import EVERY_CALL, served, try_every_call
from marker_sim.targets.run_environment import open_ground, wires_on
from marker_sim.targets.server_settings import INTERVALS_MS, THREADS, THREADS_MAX, batching, check_keys
from marker_sim.targets.table import NAMES, PLANNED, TARGETS, parse_target
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions

__all__ = [
    "ADAPTER",
    "ARCHIVE",
    "AS_BEFORE",
    "CLIENT",
    "CONFIRMED",
    "EVERY_CALL",
    "FAILED",
    "INTERVALS_MS",
    "KILLED",
    "NAMELESS",
    "NAMES",
    "NOT_CONFIRMED",
    "OF_STORAGE",
    "PLANNED",
    "PLANS_DECIDE",
    "PROCESSES_S",
    "REPOSITORY_VARIABLE",
    "SERVICE",
    "TARGETS",
    "THEMES",
    "THREADS",
    "THREADS_MAX",
    "CampaignRequest",
    "DrawnPoint",
    "HttpTarget",
    "HudiJavaTarget",
    "HudiSparkTarget",
    "Jars",
    "JavaRuns",
    "RealRuns",
    "ServerOptions",
    "ServerPlans",
    "TableWalk",
    "archived",
    "batching",
    "check_keys",
    "decided_by",
    "draw_deaths",
    "kind_of",
    "open_ground",
    "open_runs",
    "parse_target",
    "plan_for_servers",
    "quick_start",
    "served",
    "table_of",
    "try_every_call",
    "wires_on",
]

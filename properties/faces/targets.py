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
from marker_sim.targets.jvm.hudi_java_orders import OF, OrderRuns, faults_of, ordered, touched
from marker_sim.targets.jvm.hudi_java_writers import SCENARIOS, SHORT_MS, Race, WriterRuns, steps_of_writers
from marker_sim.targets.jvm.hudi_java_writers import SHAPE as WRITERS_SHAPE
from marker_sim.targets.jvm.java_start import ARCHIVE, archived, quick_start
from marker_sim.targets.jvm.reference_spark import BOTH, ReferenceSparkTarget, on_spark
from marker_sim.targets.python import EVERY_CALL, LoadedTarget, served, try_every_call
from marker_sim.targets.run_environment import open_ground, wires_on
from marker_sim.targets.server_settings import INTERVALS_MS, THREADS, THREADS_MAX, batching, check_keys
from marker_sim.targets.table import NAMES, PLANNED, TARGETS, parse_target
from marker_sim.targets.target import CampaignRequest, RealRuns, ServerOptions
from marker_sim.worlds.spark.hudi.java_driver import HEARTBEAT_OVER_MS
from marker_sim.worlds.spark.hudi.writers import ROLLS

"""Names of `marker_sim.surroundings` that tests use."""

from marker_sim.surroundings.files import CACHE_VARIABLE, replacing
from marker_sim.surroundings.requirements import REQUIREMENTS, find_java, spark_home
from marker_sim.surroundings.spark_session import said_by, ship
from marker_sim.surroundings.supervisor import StartedProgram, end_process
from marker_sim.surroundings.time_limit import TimeLimit
from marker_sim.surroundings.worker_pool import VARIABLE, Answer, TaskPool, in_order, portable, workers

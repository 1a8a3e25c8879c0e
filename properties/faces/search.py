"""Names of `marker_sim.search` that tests use."""

from marker_sim.search.hostile_plans import make_hostile_plan
from marker_sim.search.merged_plans import CONFINED_FAULTS, NAME_IN_FORMS_MAX, ODD_TABLES, make_merged_plan
from marker_sim.search.numbered_calls import CHANGES, FATES, WalkPoint, fates_of, numbered, shown
from marker_sim.search.orders.partial_orders import OpenOrder, OrderedStep, PartialOrders
from marker_sim.search.power_plans import KEEPS
from marker_sim.search.scenarios import Scenario
from marker_sim.search.scenarios_of_operations import OF_OPERATIONS
from marker_sim.search.scenarios_of_writes import OF_WRITES
from marker_sim.search.seeds import BITS, Draws, plan_seed
from marker_sim.search.shrinking.by_history import of_calls
from marker_sim.search.shrinking.candidates import without_one
from marker_sim.search.shrinking.jobs import candidates as job_candidates
from marker_sim.search.shrinking.jobs import smaller
from marker_sim.search.shrinking.shrinker import Fails, shrink
from marker_sim.search.swarm import make_plan
from marker_sim.search.walks import BASES, PAIRS, STARTING, Walk, asked_again, workload
from marker_sim.search.wire_plans import HELD_UP, draw, kinds_of, make_wire_plan
from marker_sim.search.writes import make_write_plan, with_earlier_life, with_strays

"""Names of `marker_sim.serve` that tests use."""

from marker_sim.serve.app import decode, parse_query
from marker_sim.serve.bases import Refusal, locate, parse_base
from marker_sim.serve.server import WAITING_MAX

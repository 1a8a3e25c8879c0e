"""Names of `marker_sim.interface` that tests use."""

from marker_sim.interface.conformance import judge_place, parse_judging

"""Names of `marker_sim.command` that tests use."""

from marker_sim.command.programs import ProgramPool, pool_of

__all__ = [
    "ProgramPool",
    "pool_of",
]

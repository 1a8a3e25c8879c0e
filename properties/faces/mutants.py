"""Names of `marker_sim.mutants` that tests use."""

from marker_sim.mutants.load import MODULES, MUTANTS, Mutant, find_mutant, load_mutant, source_of

"""The catalogue: every mutant, by the part of the reference it is in."""

from __future__ import annotations

from marker_sim.mutants.codec import CODEC
from marker_sim.mutants.found import FOUND
from marker_sim.mutants.mutant import Mutant
from marker_sim.mutants.rolling_back import ROLLING_BACK
from marker_sim.mutants.serving import SERVING
from marker_sim.mutants.storing import STORING
from marker_sim.mutants.writing import WRITING

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = (*CODEC, *SERVING, *STORING, *WRITING, *ROLLING_BACK, *FOUND)

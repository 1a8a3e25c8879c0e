"""Names of `marker_sim.history` that tests use."""

from marker_sim.history.index.calls import life_from_effects
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import PresenceIndex

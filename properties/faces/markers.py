"""Names of `marker_sim.markers` that tests use."""

from marker_sim.markers.choice import choose_mode
from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.direct import DirectMarkers, direct_markers
from marker_sim.markers.files import delete_directory
from marker_sim.markers.server import ServedMarkers, served_markers
from marker_sim.markers.store import Context, Created, Factory, MarkerStore, Rejected

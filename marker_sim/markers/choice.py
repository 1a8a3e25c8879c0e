"""The marker mode of a write, and the reason when it is not the requested one.

Source: Hudi 0.15.0 WriteMarkersFactory (HDFS and a switched-off embedded server fall back to direct markers);
the rule for object stores without conditional replace is ours (docs/guarantees.md, two live servers).
"""

from __future__ import annotations

from typing import NamedTuple

from marker_sim.options import MarkerOptions
from marker_sim.seams import Capabilities


class Choice(NamedTuple):
    """The chosen marker mode. mode: "direct" or "timeline"; reason: empty for the requested mode."""

    mode: str
    reason: str


def choose_mode(options: MarkerOptions, capabilities: Capabilities) -> Choice:
    """The marker mode for these options on this storage."""
    if options.markers_type == "DIRECT":
        return Choice("direct", "")
    if not capabilities.batched_markers:
        return Choice("direct", f"timeline-server markers are not supported on {capabilities.scheme}: direct markers")
    if not options.embed_timeline_server:
        return Choice("direct", "hoodie.embed.timeline.server is false: direct markers")
    if not (capabilities.put_if_unchanged or capabilities.host_lock):
        return Choice("direct", f"{capabilities.scheme} cannot replace a file only if unchanged: direct markers")
    return Choice("timeline", "")

"""The hoodie.* options have Hudi's defaults and refuse what they do not know, in one sentence."""

from __future__ import annotations

import pytest

from marker_sim.errors import UsageError
from marker_sim.options import KEYS, MarkerOptions, format_options, parse_options
from properties.faces.markers import choose_mode
from properties.faces.worlds import CAPABILITIES


def test_no_options_are_hudis_defaults() -> None:
    assert parse_options({}) == MarkerOptions()
    assert format_options(MarkerOptions())["hoodie.markers.timeline_server_based.batch.interval_ms"] == "50"


def test_every_option_survives_being_written_and_parsed() -> None:
    options = MarkerOptions(markers_type="DIRECT", batch_num_threads=3, rollback_using_markers=False)
    written = format_options(options)
    assert set(written) == set(KEYS)
    assert parse_options(written) == options


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hoodie.write.marker.type", "DIRECT", "nearest one is 'hoodie.write.markers.type'"),
        ("hoodie.write.markers.type", "BOTH", "DIRECT, TIMELINE_SERVER_BASED"),
        ("hoodie.markers.timeline_server_based.batch.num_threads", "0", "whole number of at least 1"),
        ("hoodie.markers.timeline_server_based.batch.interval_ms", "fast", "whole number of at least 1"),
        ("hoodie.embed.timeline.server", "yes", "true or false"),
    ],
)
def test_wrong_options_are_refused_with_what_is_accepted(key: str, value: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_options({key: value})


@pytest.mark.parametrize(
    ("storage", "changes", "mode", "reason"),
    [
        ("s3", {}, "timeline", ""),
        ("local", {}, "timeline", ""),
        ("hdfs", {}, "direct", "not supported on hdfs"),
        ("s3-unconditional", {}, "direct", "only if unchanged"),
        ("s3", {"embed_timeline_server": False}, "direct", "embed.timeline.server is false"),
        ("hdfs", {"markers_type": "DIRECT"}, "direct", ""),
    ],
)
def test_the_mode_falls_back_and_says_why(storage: str, changes: dict[str, object], mode: str, reason: str) -> None:
    choice = choose_mode(MarkerOptions(**changes), CAPABILITIES[storage])  # type: ignore[arg-type]
    assert choice.mode == mode
    assert reason in choice.reason and bool(choice.reason) == bool(reason)

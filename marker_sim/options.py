"""The hoodie.* options that markers depend on, with Hudi's defaults, parsed once at the edge.

Source: Hudi 0.15.0 HoodieWriteConfig and FileSystemViewStorageConfig; 0.9.0 defaulted to DIRECT markers.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from marker_sim.errors import UsageError

_TYPES = ("DIRECT", "TIMELINE_SERVER_BASED")
_POLICIES = ("EAGER", "LAZY", "NEVER")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerOptions:
    """Options of one write, each under its Hudi key in `KEYS`."""

    markers_type: str = "TIMELINE_SERVER_BASED"
    batch_num_threads: int = 20
    batch_interval_ms: int = 50
    delete_parallelism: int = 100
    finalize_parallelism: int = 200
    rollback_parallelism: int = 100
    rollback_using_markers: bool = True
    embed_timeline_server: bool = True
    remote_timeout_secs: int = 300
    failed_writes_policy: str = "EAGER"


KEYS = {
    "hoodie.write.markers.type": "markers_type",
    "hoodie.markers.timeline_server_based.batch.num_threads": "batch_num_threads",
    "hoodie.markers.timeline_server_based.batch.interval_ms": "batch_interval_ms",
    "hoodie.markers.delete.parallelism": "delete_parallelism",
    "hoodie.finalize.write.parallelism": "finalize_parallelism",
    "hoodie.rollback.parallelism": "rollback_parallelism",
    "hoodie.rollback.using.markers": "rollback_using_markers",
    "hoodie.embed.timeline.server": "embed_timeline_server",
    "hoodie.filesystem.view.remote.timeout.secs": "remote_timeout_secs",
    "hoodie.clean.failed.writes.policy": "failed_writes_policy",
}
_CHOICES = {"markers_type": _TYPES, "failed_writes_policy": _POLICIES}


def parse_options(given: Mapping[str, str]) -> MarkerOptions:
    """Options from hoodie.* keys; UsageError names the key, the value and what is accepted."""
    defaults = MarkerOptions()
    values: dict[str, object] = {}
    for key, text in given.items():
        field = KEYS.get(key)
        if field is None:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0)[0]
            raise UsageError(f"option {key!r} is not known; the nearest one is {near!r}")
        values[field] = _value(key, field, text, getattr(defaults, field))
    return MarkerOptions(**values)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _formatted(options: MarkerOptions) -> tuple[tuple[str, str], ...]:
    values = ((key, getattr(options, field)) for key, field in KEYS.items())
    return tuple((key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in values)


def format_options(options: MarkerOptions) -> dict[str, str]:
    """The inverse of `parse_options`, every key written out."""
    return dict(_formatted(options))


def _value(key: str, field: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{key} was given {text!r}; write true or false")
        return text.lower() == "true"
    if isinstance(default, int):
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise UsageError(f"{key} was given {text!r}; write a whole number of at least 1")
        return int(text)
    choices = _CHOICES[field]
    if text.upper() not in choices:
        raise UsageError(f"{key} was given {text!r}; write one of {', '.join(choices)}")
    return text.upper()

"""Which places and troubles decide which guarantee of Hudi's write path. docs/hudi-spark.md has the same table.

A guarantee holds in a mode when each step that decides it was met in that mode at least once; otherwise its row is
inconclusive and names those that were not. G25 is decided by the writes between the steps, so every run has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from marker_sim.outcome.result import Deciding


class Decides(NamedTuple):
    """A step, the guarantees it decides, and where there is one: "" for both modes, for both storages."""

    step: str
    guarantees: tuple[str, ...]
    mode: str = ""
    storage: str = ""


TABLE = (
    Decides("driver killed at requested", ("G19",)),
    Decides("driver killed at inflight", ("G19",)),
    Decides("driver killed at marker", ("G13", "G15"), mode="direct"),
    Decides("driver killed at flush", ("G13", "G15"), mode="timeline"),
    Decides("driver killed at rewrite", ("G13", "G15"), mode="timeline", storage="local"),
    Decides("driver killed at type-file", ("G15", "G18"), mode="timeline"),
    Decides("driver killed at data-file", ("G13", "G15", "G19", "G24")),
    Decides("driver killed at metadata", ("G15", "G24")),
    Decides("driver killed at before-commit", ("G14", "G24")),
    Decides("driver killed at after-commit", ("G14", "G18", "G24")),
    Decides("driver killed at marker-deletion", ("G18",)),
    Decides("driver killed at rollback-requested", ("G16",)),
    Decides("driver killed at rollback-inflight", ("G16",)),
    Decides("driver killed at rollback-deletion", ("G15", "G16")),
    Decides("driver killed at rollback-before-completion", ("G16", "G24")),
    Decides("driver killed at rollback-after-completion", ("G16", "G18")),
    Decides("driver killed at rollback-marker-deletion", ("G16", "G18")),
    Decides("executor killed", ("G14",)),
    Decides("executor paused", ("G14",)),
    Decides("driver killed at reconcile", ("G14", "G15")),
    Decides("attempt failed after its file was put", ("G14",), storage="s3"),
    Decides("puts refused", ("G19",), storage="s3"),
    Decides("puts slow", (), storage="s3"),
    Decides("requests throttled", ("G19",), storage="s3"),
    Decides("reads refused", ("G19",), storage="s3"),
    Decides("storage failed in a rollback", ("G16",), storage="s3"),
)


def places_of(mode: str, storage: str) -> tuple[Decides, ...]:
    """What there is to meet in a mode on a storage."""
    return tuple(each for each in TABLE if each.mode in ("", mode) and each.storage in ("", storage))


def deciding(
    modes: tuple[str, ...],
    storage: str,
    names: tuple[str, ...],
    armed: Mapping[tuple[str, str], int],
    met: Mapping[tuple[str, str], int],
) -> tuple[Deciding, ...]:
    """What a campaign tried and met of it. names: the only steps it took, empty for all."""
    return tuple(
        Deciding(
            name=each.step,
            guarantees=each.guarantees,
            mode=mode,
            tried=armed.get((mode, each.step), 0),
            met=met.get((mode, each.step), 0),
        )
        for mode in modes
        for each in places_of(mode, storage)
        if not names or each.step in names
    )

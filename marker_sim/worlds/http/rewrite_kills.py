"""Kills aimed at how a marker file is written again: before it is opened, and while it is cut (file_rewrites.py)."""

from __future__ import annotations

from marker_sim.faults import FaultKind
from marker_sim.worlds.file_permissions import CUT, OPEN
from marker_sim.worlds.http.file_rewrites import CUT_KILL, CUT_LATE, CUT_SEEN, MARKER_FILES, NEVER_CUT, UNSEEN
from marker_sim.worlds.http.round_stage import RoundStage
from marker_sim.worlds.interceptor import Trigger

OPEN_KILL = "kill before an open of a marker file"
_BESIDE_TOO = r"MARKERS\d+[^/]*$"  # Also what is renamed to it, and its checksum, which Hudi opens when it has cut it.
NTH_MAX = 6
TRIES = 3


def kill_in_a_cut(stage: RoundStage) -> bool:
    """Kill the server in a cut, and once more where it was too late; whether one died and is to be started again."""
    injector, rewrites = stage.injector, stage.world.rewrites
    assert rewrites is not None
    rewrites.seen.clear()
    for turn in range(TRIES):
        trigger = Trigger(
            kind=FaultKind.KILL, pattern=MARKER_FILES, operations=(CUT,), nth=stage.rng.randint(1, NTH_MAX)
        )
        rewrites.struck = ""
        hit = injector.strike(trigger, hopeless=rewrites.is_cutting_nothing)
        if hit is None:
            break
        injector.bury(hit, stage.places)
        if rewrites.stayed_short():
            injector.note(CUT_KILL)
            return True
        injector.note(CUT_LATE)
        if turn < TRIES - 1:
            injector.restart()
            injector.wait(stage.rng.uniform(0.2, 0.5))
    seen = rewrites.seen
    if seen[CUT]:
        injector.note(CUT_SEEN, seen[CUT])
    elif seen["in place"] > seen["replaced"] and not rewrites.exact:
        injector.note(UNSEEN)
    elif seen["in place"] or seen["replaced"]:
        injector.note(NEVER_CUT)
    injector.note(CUT_KILL, 0)
    return hit is not None


def kill_before_an_open(stage: RoundStage) -> bool:
    """Kill the server when it is about to open a marker file; whether one died. Not every server opens one."""
    injector = stage.injector
    nth = stage.rng.randint(1, NTH_MAX)
    hit = injector.strike(Trigger(kind=FaultKind.KILL, pattern=_BESIDE_TOO, operations=(OPEN,), nth=nth))
    injector.note(OPEN_KILL, int(hit is not None))
    if hit is not None:
        injector.bury(hit, stage.places)
    return hit is not None

"""What happens in each kind of round while clients ask: a function of the stage, until a time, whatever the storage.

crash          SIGKILL at random moments, at answers and, where calls are seen, right before or after a request
               to storage, and while a file is cut (rewrites.py); restart on the same storage, go on; several cycles
churn          a marker directory is deleted again and again while others create in it
pause          SIGSTOP and SIGCONT, first right before a kill, then at requests to storage and at random
storage        storage fails in every way it can, each healed; sometimes a restart after it
directory      storage fails below one marker directory, and nothing else happens until the end, so that whoever asks
               for another directory and is not answered can only have been harmed by that
hostile        names and directories that must be refused or kept as they are, through restarts (hostile_rounds.py)
second-server  another server on the same storage, first alone under load and then both
storage-wire   the connections between server and object store fail (storage_wire.py)
wire           the connections between clients and server fail in every way a proxy can make them (wire_rounds.py)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from marker_sim.faults import FaultKind
from marker_sim.names import TYPE_FILE
from marker_sim.real.gate import Aim, When
from marker_sim.real.hostile_rounds import HOSTILE, hostile
from marker_sim.real.permissions import CUT, OPEN
from marker_sim.real.rewrites import CUT_KILL, MARKER_FILES, NTH_MAX, kill_before_an_open, kill_in_a_cut
from marker_sim.real.storage_wire import STORAGE_WIRE, storage_wire
from marker_sim.real.wire_rounds import WIRE, wire

if TYPE_CHECKING:
    from marker_sim.real.rounds import Stage

ANY_FILE = ""


def crash(stage: Stage, until: float) -> None:
    """Kills and restarts; where calls are seen, each place to aim at once before chance decides."""
    nemesis, rng = stage.nemesis, stage.rng
    aims = _aimed_kills(stage)
    while True:
        nemesis.wait(rng.uniform(0.1, 0.9))
        aimed = bool(aims) and aims.pop()()
        if not aimed:
            nemesis.kill(nemesis.first, stage.places, at_ack=rng.random() < 0.5)
        nemesis.restart()
        nemesis.wait(rng.uniform(0.3, 0.8))
        if not aimed and not aims and time.monotonic() > until:
            return


def churn(stage: Stage, until: float) -> None:
    """Deletions while others create."""
    stage.load.deletions = True
    while True:
        stage.nemesis.wait(stage.rng.uniform(0.2, 0.5))
        stage.ask_once("delete", stage.churned, "")
        if time.monotonic() > until:
            break
    stage.load.deletions = False


def pause(stage: Stage, until: float) -> None:
    """A kill that follows a pause, then pauses that the server lives through: it is probed for what they broke."""
    nemesis, rng = stage.nemesis, stage.rng
    nemesis.pause(nemesis.first, rng.uniform(0.1, 0.4))
    nemesis.kill(nemesis.first, stage.places, at_ack=rng.random() < 0.5)
    nemesis.restart()
    for when in nemesis.world.whens:
        aim = Aim(kind=FaultKind.PAUSE, pattern=_files(stage), operations=("put",), nth=rng.randint(1, 3), when=when)
        nemesis.pause_at(aim, f"pause {when} a put of a marker file", rng.uniform(0.1, 1.0))
        nemesis.wait(rng.uniform(0.2, 0.5))
    while time.monotonic() < until:
        nemesis.pause(nemesis.first, rng.uniform(0.1, 1.5))
        nemesis.wait(rng.uniform(0.2, 0.8))


def storage(stage: Stage, until: float) -> None:
    """The storage knows how it fails."""
    nemesis = stage.nemesis
    nemesis.world.fail(stage, until)
    if stage.spec.number % 3 == 2:  # Not always: what hangs since storage failed is judged only while it hangs.
        nemesis.kill(nemesis.first, stage.places)
        nemesis.restart()
    nemesis.wait(0.3)


def directory(stage: Stage, until: float) -> None:
    """Storage fails below one marker directory alone."""
    stage.nemesis.world.fail_below(stage, stage.failing, until)
    stage.nemesis.wait(0.3)


def second_server(stage: Stage, until: float) -> None:
    """Another server comes and goes, and then the first one dies."""
    nemesis, rng, load = stage.nemesis, stage.rng, stage.load
    while True:
        first = nemesis.first
        load.servers = ()  # The second server comes up in silence and is then the only one asked.
        second = nemesis.second_begins()
        if second is not None:
            load.servers = (second,)
            nemesis.wait(rng.uniform(0.4, 0.9))
            load.servers = (first, second)
            nemesis.wait(rng.uniform(0.6, 1.5))
            nemesis.second_ends(second)
        load.servers = (first,)
        nemesis.wait(rng.uniform(0.4, 0.8))
        if second is None or time.monotonic() > until:
            break
    nemesis.kill(first, stage.places, at_ack=rng.random() < 0.5)
    nemesis.restart()
    nemesis.wait(0.3)


def _files(stage: Stage) -> str:
    """Where to aim: at marker files of Hudi's format; a format of somebody's own has files that nobody knows."""
    return MARKER_FILES if stage.nemesis.world.describe()["layout"] == "hudi" else ANY_FILE


def _aimed_kills(stage: Stage) -> list[Callable[[], bool]]:
    """Each kills a server and says whether one died: last comes first, and what the campaign has not met comes last.

    The directory whose type file is aimed at is new until then.
    """
    whens = stage.nemesis.world.whens
    if not whens:
        return []
    type_file = f"^{re.escape(stage.failing.path)}/{re.escape(TYPE_FILE)}$"
    rows = [(_files(stage), when) for when in stage.rng.sample(whens, len(whens))]
    if _files(stage) == MARKER_FILES:
        rows.append((type_file, stage.rng.choice(whens)))
    kills: list[Callable[[], bool]] = [
        partial(_killed_at, stage, pattern, when, 1 if pattern == type_file else stage.rng.randint(1, NTH_MAX))
        for pattern, when in rows
    ]
    rewrites = stage.world.rewrites
    known = rewrites.operations if rewrites is not None else ()
    if OPEN in known:
        kills.insert(stage.rng.randint(0, len(kills)), partial(kill_before_an_open, stage))
    if CUT in known:
        tried = CUT_KILL in stage.spec.met
        kills.insert(stage.rng.randint(0, len(kills)) if tried else len(kills), partial(kill_in_a_cut, stage))
    return kills


def _killed_at(stage: Stage, pattern: str, when: When, nth: int) -> bool:
    aim = Aim(kind=FaultKind.KILL, pattern=pattern, operations=("put",), nth=nth, when=when)
    if pattern in (MARKER_FILES, ANY_FILE):
        return stage.nemesis.kill_at(aim, f"kill {when} a put of a marker file", stage.places)
    return stage.nemesis.kill_at(aim, f"kill {when} a put of the type file", stage.places, armed=stage.release)


PLAYS: dict[str, Callable[[Stage, float], None]] = {
    "crash": crash,
    "churn": churn,
    "storage": storage,
    "directory": directory,
    "pause": pause,
    "second-server": second_server,
    HOSTILE: hostile,
    WIRE: wire,
    STORAGE_WIRE: storage_wire,
}

# The guarantees that each kind decides: none of them holds before a round of it was played (docs/foreign-servers.md).
DECIDES = {
    "crash": ("G1", "G2", "G3", "G4", "G6", "G9"),
    "churn": ("G10", "G11"),
    "storage": ("G2", "G3", "G6", "G11"),
    "directory": ("G7",),
    "pause": ("G3", "G6"),
    "second-server": ("G1", "G2", "G3", "G4"),
    HOSTILE: ("G12",),
    WIRE: ("G4", "G5", "G6"),
    STORAGE_WIRE: ("G3", "G6"),
}

# Seconds of a round with the shortest misfortunes, from the start of its server to the last look, on a quiet machine
# and for a server that starts at once: what a budget is planned with.
LEAST_S = {
    "crash": 8.0,
    "churn": 5.0,
    "storage": 7.0,
    "directory": 5.0,
    "pause": 7.0,
    "second-server": 7.0,
    HOSTILE: 7.0,
    WIRE: 8.0,
    STORAGE_WIRE: 8.0,
}

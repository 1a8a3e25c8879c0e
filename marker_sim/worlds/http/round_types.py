"""What happens in each kind of round while clients ask: a function of the stage, until a time, whatever the storage.

crash          SIGKILL at random moments, at answers and, where calls are seen, right before or after a request
               to storage, and while a file is cut (rewrite_kills.py); restart on the same storage, go on;
               several cycles
churn          a marker directory is deleted again and again while others create in it
pause          SIGSTOP and SIGCONT, first right before a kill, then at requests to storage and at random
storage        storage fails in every way it can, each healed; sometimes a restart after it
directory      storage fails below one marker directory, and nothing else happens until the end, so that whoever asks
               for another directory and is not answered can only have been harmed by that
hostile        names and directories that must be refused or kept as they are, through restarts (hostile_rounds.py)
second-server  another server on the same storage, first alone under load and then both
storage-wire   the connections between server and object store fail (storage_wire_rounds.py)
wire           the connections between clients and server fail in every way a proxy can make them (wire_rounds.py)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

from marker_sim.faults import FaultKind
from marker_sim.names import TYPE_FILE
from marker_sim.worlds.file_permissions import CUT, OPEN
from marker_sim.worlds.http.file_rewrites import CUT_KILL, MARKER_FILES
from marker_sim.worlds.http.hostile_rounds import HOSTILE, hostile
from marker_sim.worlds.http.rewrite_kills import NTH_MAX, kill_before_an_open, kill_in_a_cut
from marker_sim.worlds.http.round_stage import RoundStage
from marker_sim.worlds.http.storage_wire_rounds import STORAGE_WIRE, storage_wire
from marker_sim.worlds.http.wire_rounds import WIRE, wire
from marker_sim.worlds.interceptor import Trigger, When

ANY_FILE = ""


def crash(stage: RoundStage, until: float) -> None:
    """Kills and restarts; where calls are seen, each place to aim at once before chance decides."""
    injector, rng = stage.injector, stage.rng
    triggers = _aimed_kills(stage)
    while True:
        injector.wait(rng.uniform(0.1, 0.9))
        aimed = bool(triggers) and triggers.pop()()
        if not aimed:
            injector.kill(injector.first, stage.places, at_ack=rng.random() < 0.5)
        injector.restart()
        injector.wait(rng.uniform(0.3, 0.8))
        if not aimed and not triggers and time.monotonic() > until:
            return


def churn(stage: RoundStage, until: float) -> None:
    """Deletions while others create."""
    stage.load.deletions = True
    while True:
        stage.injector.wait(stage.rng.uniform(0.2, 0.5))
        stage.ask_once("delete", stage.churned, "")
        if time.monotonic() > until:
            break
    stage.load.deletions = False


def pause(stage: RoundStage, until: float) -> None:
    """A kill that follows a pause, then pauses that the server lives through: it is probed for what they broke."""
    injector, rng = stage.injector, stage.rng
    injector.pause(injector.first, rng.uniform(0.1, 0.4))
    injector.kill(injector.first, stage.places, at_ack=rng.random() < 0.5)
    injector.restart()
    for when in injector.world.whens:
        trigger = Trigger(
            kind=FaultKind.PAUSE, pattern=_files(stage), operations=("put",), nth=rng.randint(1, 3), when=when
        )
        injector.pause_at(trigger, f"pause {when} a put of a marker file", rng.uniform(0.1, 1.0))
        injector.wait(rng.uniform(0.2, 0.5))
    while time.monotonic() < until:
        injector.pause(injector.first, rng.uniform(0.1, 1.5))
        injector.wait(rng.uniform(0.2, 0.8))


def storage(stage: RoundStage, until: float) -> None:
    """The storage knows how it fails."""
    injector = stage.injector
    stage.world.fail(stage, until)
    if stage.spec.number % 3 == 2:  # Not always: what hangs since storage failed is judged only while it hangs.
        injector.kill(injector.first, stage.places)
        injector.restart()
    injector.wait(0.3)


def directory(stage: RoundStage, until: float) -> None:
    """Storage fails below one marker directory alone."""
    stage.world.fail_below(stage, stage.failing, until)
    stage.injector.wait(0.3)


def second_server(stage: RoundStage, until: float) -> None:
    """Another server comes and goes, and then the first one dies."""
    injector, rng, load = stage.injector, stage.rng, stage.load
    while True:
        first = injector.first
        load.servers = ()  # The second server comes up in silence and is then the only one asked.
        second = injector.second_begins()
        if second is not None:
            load.servers = (second,)
            injector.wait(rng.uniform(0.4, 0.9))
            load.servers = (first, second)
            injector.wait(rng.uniform(0.6, 1.5))
            injector.second_ends(second)
        load.servers = (first,)
        injector.wait(rng.uniform(0.4, 0.8))
        if second is None or time.monotonic() > until:
            break
    injector.kill(first, stage.places, at_ack=rng.random() < 0.5)
    injector.restart()
    injector.wait(0.3)


def _files(stage: RoundStage) -> str:
    """Where to aim: at marker files of Hudi's format; a format of somebody's own has files that nobody knows."""
    return MARKER_FILES if stage.injector.world.describe()["layout"] == "hudi" else ANY_FILE


def _aimed_kills(stage: RoundStage) -> list[Callable[[], bool]]:
    """Each kills a server and says whether one died: last comes first, and what the campaign has not met comes last.

    The directory whose type file is aimed at is new until then.
    """
    whens = stage.injector.world.whens
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


def _killed_at(stage: RoundStage, pattern: str, when: When, nth: int) -> bool:
    trigger = Trigger(kind=FaultKind.KILL, pattern=pattern, operations=("put",), nth=nth, when=when)
    if pattern in (MARKER_FILES, ANY_FILE):
        return stage.injector.kill_at(trigger, f"kill {when} a put of a marker file", stage.places)
    return stage.injector.kill_at(trigger, f"kill {when} a put of the type file", stage.places, armed=stage.release)


PLAYS: dict[str, Callable[[RoundStage, float], None]] = {
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

# Seconds of a round with the shortest faults, from the start of its server to the last look, on a quiet machine
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

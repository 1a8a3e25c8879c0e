"""The canary: before a campaign is believed it must detect a known defect, one mutant drawn by the seed.

The mutant is treated like the system under test: plans of the same generators, one of the campaign's own modes and
storages, the same judges and profile. Every canary is killed by few plans wherever the table below lists it
(docs/mutants.md says how that was measured), so a campaign that misses it cannot be trusted.

    world         the known defect
    simulated     a mutant of the reference, found by the campaign's own search
    any other     a false statement in a copy of the last history (campaign/coverage/tampered_history.py)
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.judges.promises.profiles import Profile
from marker_sim.mutants.load import find_mutant
from marker_sim.mutants.mutant import Mutant

PLANS_MAX = 200

_DIRECT = ("direct/s3", "direct/s3-unconditional", "direct/local", "direct/hdfs")
_TIMELINE = ("timeline/s3", "timeline/local")
_FALLS_BACK = ("timeline/s3-unconditional", "timeline/hdfs")
_EVERYWHERE = (*_DIRECT, *_TIMELINE, *_FALLS_BACK)

# Found in at most 25 plans of the mix in that place, from each of six starts.
CANARIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ack-before-flush", _TIMELINE),
    ("only-the-new-names", _TIMELINE),
    ("leading-slash", _TIMELINE),
    ("two-creators", _TIMELINE),
    ("file-for-every-batch", _TIMELINE),
    ("one-file-too-many", _TIMELINE),
    ("delete-answered-early", _TIMELINE),
    ("list-fails-during-creates", _TIMELINE),
    ("deleted-and-put", ("timeline/s3",)),
    ("rewritten-in-place-seen", ("timeline/local",)),
    ("batched-on-hdfs", ("timeline/hdfs",)),
    ("silent-fallback", ("timeline/hdfs",)),
    ("batched-without-conditions", ("timeline/s3-unconditional",)),
    ("direct-fire-and-forget", ("direct/s3", "direct/local", "direct/hdfs", "timeline/hdfs")),
    ("direct-without-condition", ("direct/s3", "direct/local", "direct/hdfs", "timeline/hdfs")),
    ("direct-marker-has-content", ("direct/s3", "direct/local", "direct/hdfs", "timeline/hdfs")),
    ("direct-flat", (*_DIRECT, *_FALLS_BACK)),
    ("delete-forgets-one", _EVERYWHERE),
    ("file-before-marker", _EVERYWHERE),
    ("no-reconcile", _EVERYWHERE),
    ("markers-deleted-before-commit", _EVERYWHERE),
    ("instant-used-again", _EVERYWHERE),
)


class CanaryPlace(NamedTuple):
    """The mode and storage in which a canary runs."""

    mode: str
    storage: str


def draw(
    seed: int, places: Iterable[tuple[str, str]], guarantees: frozenset[str] | None, profile: Profile
) -> tuple[Mutant, CanaryPlace] | None:
    """The canary that a seed draws, with its place; None when no promised guarantee is broken by a canary there.

    It breaks a judged guarantee, if there is such a canary; otherwise any, to test worlds and generators.
    """
    open_to = {f"{mode}/{storage}" for mode, storage in places}
    fitting = [
        (mutant, CanaryPlace(*where.split("/", 1)))
        for name, homes in CANARIES
        for mutant in (find_mutant(name),)
        for where in homes
        if where in open_to and _promised(profile, mutant.kills, CanaryPlace(*where.split("/", 1)))
    ]
    judged = [(mutant, place) for mutant, place in fitting if guarantees is None or mutant.kills in guarantees]
    chosen = judged or fitting
    return random.Random(f"canary/1/{seed}").choice(chosen) if chosen else None


def _promised(profile: Profile, guarantee: str, place: CanaryPlace) -> bool:
    """Whether a guarantee is promised under every class of faults under which the profile promises any."""

    def kept(one: str, under: str) -> bool:
        return profile.promise(one, place.mode, place.storage, under).promised

    return kept(guarantee, "none") and all(
        kept(guarantee, under) for under in FAULT_CLASSES if any(kept(other.id, under) for other in GUARANTEES)
    )

"""Kills a server while a marker file is cut: while it holds fewer bytes than it did, before it is written again.

A server that is killed there has lost answered markers. Many servers have no such place:
they write a new file and rename it, or append. The file events while a fault is armed at it show it:

    a file was cut                          the place is there, and has to be met if it is in as many runs as it is not:
                                            a server that appends cuts only what a dead one left torn
    files changed as other files alone      there is none: each content came under a new inode
    the same file grew, and was never cut   there is none if its writers were held (file_permissions.py); else unknown
    no file changed                         nothing is known, so the place was not met
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from marker_sim.worlds.file_permissions import CUT

if TYPE_CHECKING:
    from marker_sim.worlds.file_watch import Watch

CUT_KILL = "kill while a marker file is cut"
CUT_LATE = "kill while a marker file is cut, too late: it was whole again"
CUT_SEEN = "marker file cut before it is written again"
NEVER_CUT = "no marker file is cut here: each is replaced or appended to"
UNSEEN = "marker files were written in place, and nobody could see whether they were cut before"
MARKER_FILES = r"/MARKERS\d+$"


class Rewrites:
    """Observes how the marker files of a run change.

    operations: those at which a fault can be armed.
    root: of the watch.
    """

    def __init__(self, root: Path, watch: Watch) -> None:
        self.struck = ""
        self.seen: Counter[str] = Counter()
        self._root = root
        self._watch = watch
        self._inodes: dict[str, int] = {}

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations at which faults may be armed besides put."""
        return self._watch.operations

    @property
    def exact(self) -> bool:
        """Whether no cut stays unseen while a fault is at it."""
        return self._watch.exact

    def put(self, path: str) -> bool:
        """Note that a file was put, in place or replaced; returns whether it has any content."""
        try:
            stat = (self._root / path).stat()
        except OSError:
            return False
        if not stat.st_size:
            return False
        before = self._inodes.get(path)
        self._inodes[path] = stat.st_ino
        if before is not None and re.search(MARKER_FILES, path):
            self.seen["in place" if before == stat.st_ino else "replaced"] += 1
        return True

    def cut(self, path: str, struck: bool) -> None:
        """A file was cut, and perhaps a server was killed for it."""
        self.seen[CUT] += re.search(MARKER_FILES, path) is not None
        if struck:
            self.struck = path

    def found(self) -> str:
        """The word under which the way that files changed is counted; "" when none did."""
        if self.seen[CUT]:
            return CUT_SEEN
        if self.seen["in place"] > self.seen["replaced"] and not self.exact:
            return UNSEEN
        return NEVER_CUT if self.seen["in place"] or self.seen["replaced"] else ""

    def stayed_short(self) -> bool:
        """Whether a server killed at a cut left the file shorter than it was; call it when the server is dead."""
        return bool(self.struck) and self._watch.stayed_short(self.struck)


def missed(reached: Mapping[str, int]) -> tuple[str, ...]:
    """The place that was armed in a campaign and not met, though it may be there."""
    armed = CUT_KILL in reached and not reached[CUT_KILL]
    seen, never = reached.get(CUT_SEEN, 0), reached.get(NEVER_CUT, 0)
    excused = seen < never or (not seen and reached.get(UNSEEN))
    return (CUT_KILL,) if armed and not excused else ()


def unknown(reached: Mapping[str, int]) -> tuple[str, ...]:
    """The fault that could not strike, because the cuts of files were not seen, or seldom; () for none."""
    seen, never = reached.get(CUT_SEEN, 0), reached.get(NEVER_CUT, 0)
    if reached.get(CUT_KILL):
        return ()
    if seen:
        return (f"{CUT_KILL}: seen in {seen} of {seen + never} runs, too few to strike",) if seen < never else ()
    return (f"{CUT_KILL}: {UNSEEN}",) if reached.get(UNSEEN) else ()

"""The write that made each log file of timeline layout 1, where every effect is known.

Such a file bears the instant of its base file. But a table has one writer, so a log file that a driver puts during a
write, after the requested entry of that write's instant, is of that instant. Before the requested entry, and after any
later entry of a rollback, it may be the command block of a rollback and stays unknown. So do files of drivers that went
on after a write of theirs had failed, because its tasks may still run.
Source: BaseHoodieWriteClient.startCommit of 0.15.0 and 1.0.2, which rolls back and then requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.timeline import parse_data_file

_HOODIE = ".hoodie/"
_REQUESTED = re.compile(r"\.hoodie/([0-9]+)\.(?:delta)?commit\.requested\Z")
_ROLLBACK = re.compile(r"\.hoodie/[0-9]+\.rollback(?:\.[a-z]+)?\Z")


def writers(events: Iterable[Event], table: str, writes: Iterable[TableWrite]) -> dict[str, str]:
    """The instants of log files, by path relative to the table; files of unknown writes are left out."""
    began = {write.invoke: write.process for write in writes if write.table == table}
    ended = {write.done: write for write in writes if write.table == table}
    now: dict[str, str] = {}
    failed: set[str] = set()
    found: dict[str, str] = {}
    for event in events:
        if event.index in began:
            now[event.process] = ""
        elif event.index in ended:
            now.pop(event.process, None)
            if ended[event.index].outcome != "ok":
                failed.add(event.process)
        elif event.kind == "effect" and event.value is not None and (event.path or "").startswith(f"{table}/"):
            relative = (event.path or "")[len(table) + 1 :]
            requested = _REQUESTED.match(relative)
            if event.process in now and requested is not None:
                now[event.process] = requested[1]
            elif event.process in now and _ROLLBACK.match(relative):
                now[event.process] = ""
            elif not relative.startswith(_HOODIE):
                file = parse_data_file(relative)
                instant = "" if event.process in failed else now.get(event.process, "")
                if file is not None and file.version is not None:
                    found[relative] = instant if found.get(relative, instant) == instant else ""
    return {path: instant for path, instant in found.items() if instant}

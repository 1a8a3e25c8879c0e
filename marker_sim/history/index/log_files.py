"""Which write made a log file of timeline layout 1, where every effect is known.

Such a file bears the instant of its base file. But a table has one writer, so a log file that a driver puts during a
write, after the requested entry of that write's instant, is of that instant. Before the requested entry, and after any
later entry of a rollback, it may be the command block of a rollback and stays unknown. So do files of drivers that went
on after a write of theirs had failed, because its tasks may still run.
Source: BaseHoodieWriteClient.startCommit of 0.15.0 and 1.0.2, which rolls back and then requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from marker_sim.history import Event
from marker_sim.history.index.calls import TableWrite
from marker_sim.timeline import HOODIE, ROLLBACK, WRITES, State, parse_data_file, table_entry


def writers(events: Iterable[Event], table: str, writes: Iterable[TableWrite]) -> dict[str, str]:
    """The instants of log files, by path relative to the table; unknown ones are left out."""
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
            folder, _, name = relative.rpartition("/")
            entry = table_entry(name) if folder == HOODIE and event.process in now else None
            if entry is not None and entry.action in WRITES and entry.state is State.REQUESTED:
                now[event.process] = entry.instant
            elif entry is not None and entry.action == ROLLBACK:
                now[event.process] = ""
            elif not relative.startswith(f"{HOODIE}/"):
                file = parse_data_file(relative)
                instant = "" if event.process in failed else now.get(event.process, "")
                if file is not None and file.log:
                    found[relative] = instant if found.get(relative, instant) == instant else ""
    return {path: instant for path, instant in found.items() if instant}

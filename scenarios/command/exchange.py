"""The exchange that docs/command.md shows, and a program that plays the program's side of it.

    python exchange.py DOCUMENT     plays; a line of the kit that is not the next one of the document ends it

Nothing of the kit is imported before `perform`, so that the program starts fast.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marker_sim.command.pool import ProgramPool

NAME = "dt=1/f1_0-0-0_001.parquet.marker.CREATE"


def lines_of(document: Path) -> list[str]:
    """The lines of the blocks of an exchange, in order: "> " from the kit, "< " from the program."""
    blocks = re.findall(r"```jsonl\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line[:2] in ("> ", "< ")]


def main() -> None:
    """Play."""
    expected = lines_of(Path(sys.argv[1]))
    while expected:
        line = sys.stdin.readline()
        if not line:
            return
        shown = expected.pop(0)
        if shown[:2] != "> " or json.loads(line) != json.loads(shown[2:]):
            sys.exit(f"the document has {shown!r}, the kit sent {line!r}")
        while expected and expected[0][:2] == "< ":
            print(expected.pop(0)[2:])
        sys.stdout.flush()
    if sys.stdin.readline():
        sys.exit("the kit sent more than the document has")


def perform(pool: ProgramPool) -> list[object]:
    """The kit's side: one process of a timeline server on a local file system, four calls one after another."""
    from marker_sim.command.session import make_factory
    from marker_sim.command.system import ProgramsOutside
    from marker_sim.markers.store import Context, Rejected
    from marker_sim.options import MarkerOptions
    from marker_sim.seams import Reply, Request
    from marker_sim.worlds.simulated.runtime import SimHostLocks, SimRuntime
    from marker_sim.worlds.simulated.scheduler import ActorState, Process, Scheduler
    from marker_sim.worlds.simulated.storage import SimStorage, Store
    from marker_sim.worlds.simulated.wire import SimWire

    def nobody(_server: Process, _request: Request) -> Reply:
        raise AssertionError

    scheduler = Scheduler(lambda *_: None, lambda _: None)
    process = Process("server#1", "timeline-server", ActorState("server", (), 0))
    context = Context(
        storage=SimStorage(Store(scheduler, "local"), process),
        runtime=SimRuntime(scheduler, process, SimHostLocks(scheduler)),
        wire=SimWire(scheduler, process, lambda _: None, nobody),
        directory="lake/.hoodie/.temp/20240101000000000",
        options=MarkerOptions(),
    )
    markers = make_factory(pool, "timeline")(context)
    results: list[object] = []

    def body() -> None:
        results.append(markers.create(NAME))
        results.append(markers.list_all())
        try:
            markers.create("../f1_0-0-0_001.parquet.marker.CREATE")
        except Rejected as error:
            results.append(str(error))
        results.append(markers.exists())
        results.append(markers.delete())

    try:
        scheduler.spawn(process, body)
        scheduler.run_until_stop(10**10)
    finally:
        scheduler.close()
        outside = ProgramsOutside(pool)
        outside.ended(context.process)
        outside.check()
    return results


if __name__ == "__main__":
    main()

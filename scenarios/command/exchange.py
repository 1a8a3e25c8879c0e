"""The exchange that docs/command.md shows, and a program that plays the program's side of it.

    python exchange.py DOCUMENT     plays; a line of the kit that is not the next one of the document ends it

Nothing of the kit is imported before `perform`, so that the program starts fast.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from marker_sim.command.programs import ProgramPool
    from marker_sim.command.session import ProgramSession

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
    """The kit's side: a process of a timeline server on a local file system and five calls, then one that writes."""
    from marker_sim.command.messages import WRITE
    from marker_sim.command.session import make_factory, session_of
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
        outside.ended(context.process)
        context.process.clear()
        results.extend(perform_parts(session_of(pool, WRITE, context)))

    outside = ProgramsOutside(pool)
    try:
        scheduler.spawn(process, body)
        scheduler.run_until_stop(10**10)
    finally:
        scheduler.close()
        outside.ended(context.process)
        outside.check()
    return results


def perform_parts(session: ProgramSession) -> Iterator[object]:
    """The kit's side of two parts of a write: the names of markers asked for, and the answers."""
    where = {"table": "lake", "instant": "20240101000000000"}
    file = f"lake/{NAME.removesuffix('.marker.CREATE')}"
    asked: list[str] = []

    def marker(line: dict[str, Any]) -> dict[str, Any]:
        asked.append(line["name"])
        return {}

    answer = session.call("attempt", {"marker": marker}, **where, name=NAME, path=file, data="UEFSMQ==")
    yield from (*asked, answer)
    names = [NAME, NAME.replace("f1_0-0-0", "f1_0-0-1")]
    yield session.call("finalize", {"markers": lambda _: {"names": names}}, **where, files=[file])


if __name__ == "__main__":
    main()

"""The state machine of the marker store alone: what clients ask, in which order, and what goes wrong meanwhile.

A client performs its operations one after another, and all clients run at once, so the order of steps is the order of
requests only within a client. An example is run as a whole when its steps are over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, initialize

from marker_sim.campaign.machines.machine import DrawnFault, JudgedExample, step
from marker_sim.campaign.runs import execute
from marker_sim.faults import Fault, Step
from marker_sim.faults.row import in_batches
from marker_sim.plan import MALFORMED, Op, Plan
from marker_sim.unusual_names import DIRECTORIES, HOSTILE_NAMES, PARTITIONS

CLIENTS_MAX = 4
_CLIENT = st.integers(0, CLIENTS_MAX)
_DIRECTORY = st.integers(0, 2)
_PAUSE_MS = st.sampled_from((0, 0, 0, 20, 150, 700))
_SERVER = st.sampled_from((0, 0, 0, 1))
_AHEAD = st.integers(1, 14) | st.integers(1, 90)


class MarkerMachine(JudgedExample):
    """The machine of marker store operations; `machine_for` makes a subclass for a system, a mode and a storage."""

    key, writes = "store_", False
    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self._plan = Plan(mode=self.mode, storage=self.storage, directories=())
        self._clients: tuple[str, ...] = ("driver",)

    @initialize(
        directories=st.lists(st.sampled_from(DIRECTORIES), min_size=1, max_size=3, unique=True),
        clients=st.integers(1, CLIENTS_MAX),
        num_threads=st.sampled_from((1, 2, 4, 20)),
        restart_threads=st.sampled_from((0, 0, 0, 1)),
        interval_ms=st.sampled_from((50, 10, 200)),
        jitter=st.integers(0, 1 << 30),
    )
    def the_clients_are(self, directories: list[str], clients: int, **changes: Any) -> None:
        """Start with a driver, some executors and a few marker directories."""
        self._clients = ("driver", *(f"executor-{number}" for number in range(clients)))
        self._plan = replace(self._plan, directories=tuple(directories), **changes)

    # Requests of clients.

    @step(
        target=asked,
        client=_CLIENT,
        directory=_DIRECTORY,
        after_ms=_PAUSE_MS,
        server=_SERVER,
        partition=st.sampled_from(PARTITIONS[:4]) | st.sampled_from(PARTITIONS),
        number=st.integers(0, 5),
        kind=st.sampled_from(("CREATE", "CREATE", "MERGE", "APPEND")),
    )
    def create(self, client: int, partition: str, number: int, kind: str, **where: int) -> Op:
        """A client asks for a marker."""
        file = f".f{number}_001.log.1_0-1-0" if kind == "APPEND" else f"f{number}_0-1-0_001.parquet"
        name = f"{partition}/{file}.marker.{kind}".removeprefix("/")
        request = f"r{len(self._plan.ops)}"
        return self._ask(client, kind="create", name=name, request=request, **where)

    @step(op=asked, after_ms=_PAUSE_MS)
    def resend(self, op: Op, after_ms: int) -> None:
        """The same client sends the same request again."""
        self._add(replace(op, after_ms=after_ms))

    @step(op=asked, client=_CLIENT, after_ms=_PAUSE_MS, server=_SERVER)
    def ask_for_the_same_name(self, op: Op, client: int, **where: int) -> None:
        """A client asks for a name that was requested before, perhaps deleted since."""
        where |= {"directory": op.directory}
        self._ask(client, kind="create", name=op.name, request=f"r{len(self._plan.ops)}", **where)

    @step(op=asked, after_ms=_PAUSE_MS, server=_SERVER)
    def delete_and_ask_again(self, op: Op, after_ms: int, server: int) -> None:
        """The driver deletes a directory, and the client that had asked for a name in it asks anew."""
        self._ask(0, kind="delete", directory=op.directory, server=server)
        self._add(replace(op, request=f"r{len(self._plan.ops)}", after_ms=after_ms))

    @step(
        client=_CLIENT,
        kind=st.sampled_from(("list", "list", "list-data", "list-log", "exists")),
        directory=_DIRECTORY,
        after_ms=_PAUSE_MS,
        server=_SERVER,
    )
    def look(self, client: int, kind: str, **where: int) -> None:
        """A client lists markers, or asks whether there are any."""
        self._ask(client, kind=kind, **where)

    @step(directory=_DIRECTORY, after_ms=_PAUSE_MS, server=_SERVER)
    def delete(self, **where: int) -> None:
        """The driver deletes a marker directory."""
        self._ask(0, kind="delete", **where)

    @step(
        client=_CLIENT,
        directory=_DIRECTORY,
        name=st.sampled_from(HOSTILE_NAMES),
        spelled=st.sampled_from(("", "", *MALFORMED)),
    )
    def ask_for_what_must_be_refused(self, client: int, directory: int, name: str, spelled: str) -> None:
        """A client asks for an invalid name or directory."""
        self._ask(client, kind="hostile", directory=directory, name=name, spelled=spelled)

    # Faults.

    @step("process", data=st.data(), ahead=_AHEAD)
    def strike_a_process(self, fault: DrawnFault, ahead: int) -> None:
        """A client or a server is killed or paused, or a second server starts."""
        self._strike(fault, ahead)

    @step("storage", data=st.data(), ahead=_AHEAD)
    def strike_storage(self, fault: DrawnFault, ahead: int) -> None:
        """A call on storage is refused, lost, late or applied without an answer."""
        self._strike(fault, ahead)

    @step("wire", data=st.data(), ahead=_AHEAD)
    def strike_the_wire(self, fault: DrawnFault, ahead: int) -> None:
        """A request or a reply is lost, delayed or doubled, or the link is cut."""
        self._strike(fault, ahead)

    def _strike(self, fault: DrawnFault, ahead: int) -> None:
        row, served = fault.kind.row, in_batches(self.mode, self.storage)
        servers = ("server", "server", "second") if served and row.family != "wire" else ()
        anybody = servers if row.roles == ("server",) else (*servers, *self._clients)
        who = fault.data.draw(st.sampled_from(anybody), label="who")
        made = Fault(kind=fault.kind, target=who, trigger=Step(ahead), settings=fault.settings)
        self._plan = replace(self._plan, faults=(*self._plan.faults, made))

    def _ask(self, client: int, *, directory: int, **changes: Any) -> Op:
        actor = self._clients[client % len(self._clients)]
        return self._add(Op(actor=actor, directory=directory % len(self._plan.directories), **changes))

    def _add(self, op: Op) -> Op:
        self._plan = replace(self._plan, ops=(*self._plan.ops, op))
        return op

    def teardown(self) -> None:
        """Run and judge the example; raises the violation of the first broken promise."""
        if self._plan.ops:
            history, steps = execute(self._plan, self.system)
            self.seen.examples += 1
            self.seen.steps += steps
            self.judge_whole(self._plan, history, steps)

"""The rules of the state machine of the write path: tasks, and faults with their target and step.

A rule adds a piece to the open write; `finish` and `give_up` run it. A write is always open, because Hypothesis
switches whole rules off and no piece may depend on another rule. Fault rules are disabled where system, mode and
storage cannot have the fault. `ahead` counts the target's own steps from the beginning of the write, rollbacks of
earlier writes included, so a fault may also fall in a later write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from marker_sim.campaign.machine import counted, draw_fault
from marker_sim.campaign.machine_example import Example, Group
from marker_sim.faults import FaultKind
from marker_sim.plan import TASK_KINDS
from marker_sim.search.writes import TABLES
from marker_sim.unusual_names import PARTITIONS

# Rules for faults: families of kinds and targets. Kinds and settings are drawn from the table.
FAULT_RULES: dict[str, tuple[tuple[str, ...], str]] = {
    "strike_an_executor": (("process", "task"), "executor"),
    "strike_the_driver": (("process", "task"), "driver"),
    "strike_the_server": (("process",), "server"),
    "crash_the_server_and_restart_it_late": (("process",), "server"),
    "strike_storage": (("storage",), ""),
    "strike_the_wire": (("wire",), "executor"),
}
_AHEAD = st.integers(1, 24)
# A first write begins in five steps; the steps from finalize to marker deletion get as many draws.
_DRIVER_AHEAD = st.integers(1, 9) | st.integers(6, 16) | st.integers(10, 40)
_SLOT = st.integers(0, 3)
_ANYBODY = st.sampled_from(("driver", "driver", "executor-0", "executor-1", "server"))
_BACK_MS = st.sampled_from((0, 20, 100, 400))


def _step(**drawn: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of a rule: its uses are counted, and one that makes a fault is disabled where none can happen."""

    def decorate(body: Callable[..., Any]) -> Any:
        as_rule: Callable[[Any], Any] = rule(**drawn)
        made = as_rule(counted(body))
        if body.__name__ not in FAULT_RULES:
            return made
        shut: Callable[[Any], Any] = precondition(lambda self: self.possible(body.__name__))
        return shut(made)

    return decorate


class WritePathMachine(Example):
    """The machine of the write path; `machine_for` makes a subclass for a system, a mode and a storage."""

    file_groups = Bundle("file_groups")

    @classmethod
    def declared(cls) -> tuple[str, ...]:
        """The rules that must fire sooner or later, without faults that cannot happen here."""
        return tuple(name for name in super().declared() if name not in FAULT_RULES or cls.possible(name))

    @classmethod
    def possible(cls, rule_name: str) -> tuple[FaultKind, ...]:
        """The fault kinds that a rule can draw here."""
        families, role = FAULT_RULES[rule_name]
        return cls.kinds(*families, role=role)

    @initialize(
        tables=st.sampled_from(TABLES[2:]),
        merge_on_read=st.booleans(),
        executors=st.integers(1, 4),
        embedded=st.sampled_from((True, True, True, False)),
        num_threads=st.sampled_from((1, 2, 4, 20)),
        interval_ms=st.sampled_from((50, 10, 200)),
        jitter=st.integers(0, 1 << 30),
        faults_a_write=st.integers(1, 5),
    )
    def the_cluster_is(
        self,
        tables: tuple[str, ...],
        merge_on_read: bool,
        executors: int,
        embedded: bool,
        num_threads: int,
        interval_ms: int,
        jitter: int,
        faults_a_write: int,
    ) -> None:
        """Start with an empty cluster."""
        self.start(
            faults_a_write,
            tables=tables,
            merge_on_read=merge_on_read,
            executors=executors,
            embedded=embedded,
            num_threads=num_threads,
            interval_ms=interval_ms,
            jitter=jitter,
        )

    # The write.

    @_step(table=st.integers(0, 1), markers=st.sampled_from(("", "direct", "timeline")))
    def begin_a_write(self, table: int, markers: str) -> None:
        """Finish the open write; the next one is to this table, in the plan's marker mode or in another."""
        if self.pieces:
            self.play(abandon=False)
        self.change_write(table=table, markers=markers)

    @precondition(lambda self: self.left_behind and not self.write.markers)
    @_step(markers=st.sampled_from(("direct", "timeline")))
    def change_the_marker_mode_after_a_failure(self, markers: str) -> None:
        """The write that rolls back the previous one has another marker mode (Hudi HUDI-2305)."""
        self.change_write(markers=markers)

    @_step(target=file_groups, partition=st.sampled_from(PARTITIONS[:4]) | st.sampled_from(PARTITIONS), number=_SLOT)
    def insert(self, partition: str, number: int) -> Group:
        """A task makes the first file of a group; in a group that is there already it becomes an update."""
        return self.add_task((partition, f"f{number}"))

    @_step(group=file_groups)
    def update(self, group: Group) -> None:
        """A task rewrites the base file of a group."""
        self.add_task(group, kind="MERGE")

    @_step(group=file_groups)
    def append(self, group: Group) -> None:
        """A task adds a log file to a group, on a merge-on-read table."""
        self.add_task(group, kind="APPEND")

    @_step(group=file_groups, kind=st.sampled_from(TASK_KINDS), copies=st.integers(2, 3))
    def run_speculative_copies(self, group: Group, kind: str, copies: int) -> None:
        """Several attempts of a task start at once, and more than one may succeed."""
        self.add_task(group, kind=kind, copies=copies)

    @_step(group=file_groups, kind=st.sampled_from(TASK_KINDS), slow_ms=st.sampled_from((10, 60, 900)))
    def slow_down(self, group: Group, kind: str, slow_ms: int) -> None:
        """The attempts of a task take their time between marker and file."""
        self.add_task(group, kind=kind, slow_ms=slow_ms)

    @precondition(lambda self: not self.write.after_ms)
    @_step(after_ms=st.sampled_from((40, 500, 3500)))
    def let_time_pass(self, after_ms: int) -> None:
        """Time passes before the next write: batches are flushed, late requests arrive, zombies continue."""
        self.change_write(after_ms=after_ms)

    @precondition(lambda self: self.pieces)
    @_step()
    def finish(self) -> None:
        """Run the tasks, finalize, commit."""
        self.play(abandon=False)

    @precondition(lambda self: self.pieces)
    @_step()
    def give_up(self) -> None:
        """Run the tasks and abandon the write; the next write rolls it back."""
        self.play(abandon=True)

    # Faults.

    @_step(data=st.data(), slot=_SLOT, ahead=_AHEAD)
    def strike_an_executor(self, data: st.DataObject, slot: int, ahead: int) -> None:
        """An executor or its attempt is killed, paused or duplicated, or the stage runs again."""
        self._strike(data, "strike_an_executor", f"executor-{slot}", ahead)

    @_step(data=st.data(), ahead=_DRIVER_AHEAD)
    def strike_the_driver(self, data: st.DataObject, ahead: int) -> None:
        """The driver is paused, its clock jumps, or its stage runs again after its results were counted.

        Source: Hudi I 19593.
        """
        self._strike(data, "strike_the_driver", "driver", ahead)

    @_step(ahead=_DRIVER_AHEAD, next_ms=_BACK_MS, executors_go_on_ms=st.sampled_from((0, 1, 30, 200, 2000, 6000)))
    def kill_driver(self, ahead: int, next_ms: int, executors_go_on_ms: int) -> None:
        """The driver dies in its begin, its tasks, finalize, commit, marker deletion or a rollback."""
        self.add_fault(FaultKind.KILL, "driver", ahead, restart_ms=next_ms, executors_ms=executors_go_on_ms)

    @_step(ahead=_DRIVER_AHEAD, later=st.integers(1, 14), next_ms=_BACK_MS)
    def kill_driver_and_its_successor(self, ahead: int, later: int, next_ms: int) -> None:
        """The next driver dies too, during its rollbacks."""
        self.add_fault(FaultKind.KILL, "driver", ahead, restart_ms=next_ms, executors_ms=0)
        self.add_fault(FaultKind.KILL, "driver", ahead + later, restart_ms=next_ms, executors_ms=0)

    @_step(data=st.data(), ahead=_AHEAD)
    def strike_the_server(self, data: st.DataObject, ahead: int) -> None:
        """The server is killed, paused, overloaded or joined by a second one, or its type files are damaged."""
        self._strike(data, "strike_the_server", "server", ahead)

    @_step(ahead=_AHEAD, back_ms=st.sampled_from((2000, 20_000)))
    def crash_the_server_and_restart_it_late(self, ahead: int, back_ms: int) -> None:
        """The server is killed, and restarts after clients gave up."""
        self.add_fault(FaultKind.KILL, "server", ahead, restart_ms=back_ms)

    @_step(data=st.data(), who=_ANYBODY, ahead=_AHEAD)
    def strike_storage(self, data: st.DataObject, who: str, ahead: int) -> None:
        """A call on storage is refused, lost, late or applied without an answer."""
        self._strike(data, "strike_storage", who, ahead)

    @_step(data=st.data(), slot=_SLOT, ahead=_AHEAD)
    def strike_the_wire(self, data: st.DataObject, slot: int, ahead: int) -> None:
        """A request or a reply is lost, delayed or doubled, or the link of an executor is cut."""
        self._strike(data, "strike_the_wire", f"executor-{slot}", ahead)

    def _strike(self, data: st.DataObject, rule_name: str, who: str, ahead: int) -> None:
        kind, settings = draw_fault(data, self.possible(rule_name))
        self.add_fault(kind, who, ahead, **settings)

"""The rules of the state machine of the write path: tasks, and faults with their target and step.

A rule adds a piece to the open write; `finish` and `give_up` run it. A write is always open, because Hypothesis
switches whole rules off and no piece may depend on another rule. Fault rules are disabled where system, mode and
storage cannot have the fault. `ahead` counts the target's own steps from the beginning of the write, rollbacks of
earlier writes included, so a fault may also fall in a later write. A rule for a fault is a row of `FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from marker_sim.campaign.machine import counted
from marker_sim.campaign.machine_example import Example, Group
from marker_sim.faults import FaultKind
from marker_sim.odd_names import PARTITIONS
from marker_sim.plan import TASK_KINDS
from marker_sim.search.writes import TABLES

Machine = TypeVar("Machine", bound=Example)
_AHEAD = st.integers(1, 24)
# A first write begins in five steps; those from finalize to marker deletion get as many draws.
_DRIVER_AHEAD = st.integers(1, 9) | st.integers(6, 16) | st.integers(10, 40)
_SLOT = st.integers(0, 3)
_ANYBODY = st.sampled_from(("driver", "driver", "executor-0", "executor-1", "server"))
_LINK_MS = st.sampled_from((100, 1500, 40_000))
_BACK_MS = st.sampled_from((0, 20, 100, 400))


class FaultRule(NamedTuple):
    """A rule that adds a fault to the open write, disabled where it cannot happen.

    sentence: what goes wrong.
    who: whom it hits, the number of an executor or a name. ahead: how many of its steps ahead. settings: of the fault.
    What is a strategy is drawn.
    """

    sentence: str
    kind: FaultKind
    who: Any
    ahead: st.SearchStrategy[int]
    settings: Mapping[str, Any]


def _fault(
    kind: FaultKind, who: Any, sentence: str, ahead: st.SearchStrategy[int] = _AHEAD, **settings: Any
) -> FaultRule:
    return FaultRule(sentence, kind, who, ahead, settings)


FAULTS = {
    # Executors and driver.
    "kill_executor": _fault(
        FaultKind.KILL, _SLOT, "An executor dies with all its attempts; another takes its place later, or never.",
        restart_ms=_BACK_MS | st.just(-1),
    ),
    "kill_attempt": _fault(
        FaultKind.ATTEMPT_KILLED, _SLOT,
        "An attempt ends between two storage calls; the driver is notified and runs the task again.",
        late_ms=st.sampled_from((0, 20, 300)),
    ),
    "turn_attempt_into_a_zombie": _fault(
        FaultKind.ZOMBIE, _SLOT, "An attempt counts as dead, is paused and then continues.",
        for_ms=st.sampled_from((0, 10, 40, 150, 600, 4000)),
    ),
    "speculate": _fault(
        FaultKind.SPECULATIVE, _SLOT, "The driver starts more attempts of the task that an executor is busy with.",
        attempts=st.integers(1, 2),
    ),
    "retry_the_stage": _fault(
        FaultKind.STAGE_RETRIED, _SLOT, "What the stage has produced is lost: all its tasks run again."
    ),
    "retry_the_stage_while_the_driver_finishes": _fault(
        FaultKind.STAGE_RETRIED, "driver",
        "The stage is computed again when its results are not counted any more (Hudi I 19593).", _DRIVER_AHEAD,
    ),
    "kill_driver": _fault(
        FaultKind.KILL, "driver",
        "The driver dies in its begin, its tasks, finalize, commit, marker deletion or a rollback.", _DRIVER_AHEAD,
        restart_ms=_BACK_MS, executors_ms=st.sampled_from((0, 1, 30, 200, 2000, 6000)),
    ),
    "pause": _fault(
        FaultKind.PAUSE, st.sampled_from(("driver", "executor-0", "executor-1")),
        "A process stops for a while; its connections stay open.", for_ms=st.sampled_from((20, 1500)),
    ),
    # The timeline server, where there is one.
    "crash_timeline_server": _fault(
        FaultKind.KILL, "server", "The server dies somewhere in a batch and starts again on the same storage.",
        restart_ms=_BACK_MS,
    ),
    "crash_timeline_server_and_restart_it_late": _fault(
        FaultKind.KILL, "server", "The server dies, and clients give up before it is back.",
        restart_ms=st.sampled_from((2000, 20_000)),
    ),
    "pause_timeline_server": _fault(
        FaultKind.PAUSE, "server", "The server is paused at a step and resumed.",
        for_ms=st.sampled_from((20, 200, 1500, 4000)),
    ),
    "start_a_second_timeline_server": _fault(
        FaultKind.SECOND_SERVER, "server", "Another server lives on the same storage for a while.",
        for_ms=st.sampled_from((300, 1500, 5000)),
    ),
    # Storage.
    "throttle_storage": _fault(
        FaultKind.THROTTLED, _ANYBODY, "503 SlowDown for some calls in one marker directory.",
        calls=st.sampled_from((1, 2, 5, 12)),
    ),
    "fail_storage": _fault(FaultKind.SERVER_ERROR, _ANYBODY, "500, and the caller cannot know."),
    "apply_after_the_time_out": _fault(
        FaultKind.TIMEOUT_LATE, _ANYBODY, "A call without an answer is applied long after its caller stopped waiting.",
        late_ms=st.sampled_from((10, 300, 1900)),
    ),
    "slow_down_storage": _fault(
        FaultKind.SLOW_STORAGE, _ANYBODY, "One call takes longer.", late_ms=st.sampled_from((30, 120, 900))
    ),
    "tear_a_write": _fault(
        FaultKind.TORN_WRITE, _ANYBODY, "A process dies in the middle of a write to a local file.",
        restart_ms=_BACK_MS,
    ),
    "fill_the_disk": _fault(
        FaultKind.DISK_FULL, _ANYBODY, "No space left on the device, for a while.",
        for_ms=st.sampled_from((50, 500, 2000)),
    ),
    "answer_that_another_request_is_under_way": _fault(
        FaultKind.CONFLICT, _ANYBODY, "409 to a put under a condition."
    ),
    "make_placeholders": _fault(FaultKind.PLACEHOLDER, "driver", 'Keys that end in "/".'),
    "fail_input_and_output": _fault(
        FaultKind.IO_ERROR, _ANYBODY, "EIO, and the caller cannot know.", applied=st.booleans()
    ),
    # The wire to the timeline server, servers and hosts.
    "lose_a_request": _fault(FaultKind.REQUEST_LOST, _SLOT, "The server never sees a request of an executor."),
    "lose_a_reply": _fault(FaultKind.REPLY_LOST, _SLOT, "The server served the request, and its reply is lost."),
    "double_a_request": _fault(
        FaultKind.DUPLICATED, _SLOT, "The server sees a request twice.",
        late_ms=st.sampled_from((0, 5, 60, 400, 2500)),
    ),
    "delay_a_request": _fault(
        FaultKind.DELAYED, _SLOT, "A request is overtaken by others.",
        late_ms=st.sampled_from((5, 60, 400, 2500)),
    ),
    "slow_down_a_link": _fault(
        FaultKind.SLOW_LINK, _SLOT, "Everything between an executor and servers takes longer.",
        for_ms=_LINK_MS, late_ms=200,
    ),
    "overload_the_server": _fault(
        FaultKind.OVERLOADED, "server", "The server takes up one request after the other.",
        for_ms=_LINK_MS, pace_ms=st.sampled_from((5, 300)),
    ),
    "turn_the_clock": _fault(
        FaultKind.CLOCK_JUMPED, "driver", "The driver's clock jumps; its successor has another.", _DRIVER_AHEAD,
        jump_ms=st.sampled_from((-3_600_000, -40, 3_600_000)),
    ),
}  # fmt: skip
# Rules that need a kind of fault to be possible; all others always are.
FAULT_RULES = {name: fault.kind for name, fault in FAULTS.items()} | {
    "kill_driver_and_its_successor": FaultKind.KILL,
    "time_out_storage": FaultKind.TIMEOUT_LOST,
    "die_with_a_request_on_its_way": FaultKind.ORPHANED,
    "damage_type_files": FaultKind.TYPE_DAMAGED,
    "reset_a_connection": FaultKind.RESET,
    "cut_a_link": FaultKind.CUT_LINK,
    # Where there is a server.
    "crash_timeline_server": FaultKind.SECOND_SERVER,
    "crash_timeline_server_and_restart_it_late": FaultKind.SECOND_SERVER,
    "pause_timeline_server": FaultKind.SECOND_SERVER,
}


def _step(**drawn: Any) -> Callable[[Callable[..., Any]], Any]:
    """A rule that is counted and, if it makes a fault, shut where that cannot be."""

    def decorate(body: Callable[..., Any]) -> Any:
        as_rule: Callable[[Any], Any] = rule(**drawn)
        made = as_rule(counted(body))
        kind = FAULT_RULES.get(body.__name__)
        if kind is None:
            return made
        shut: Callable[[Any], Any] = precondition(lambda self: self.can(kind))
        return shut(made)

    return decorate


def _rule_of(name: str, fault: FaultRule) -> Any:
    given = {"who": fault.who, "ahead": fault.ahead, **fault.settings}

    def strike(self: Example, **drawn: Any) -> None:
        made = given | drawn
        who = f"executor-{made['who']}" if fault.who is _SLOT else made["who"]
        self.add_fault(fault.kind, **made | {"who": who})

    strike.__name__, strike.__doc__ = name, fault.sentence
    return _step(**{each: how for each, how in given.items() if isinstance(how, st.SearchStrategy)})(strike)


def _with_fault_rules(machine: type[Machine]) -> type[Machine]:
    for name, fault in FAULTS.items():
        setattr(machine, name, _rule_of(name, fault))
    return machine


@_with_fault_rules
class WritePathMachine(Example):
    """One example of the machine; `machine_for` makes a class of it for a system, a mode and a storage."""

    file_groups = Bundle("file_groups")

    @classmethod
    def declared(cls) -> tuple[str, ...]:
        """Without those of faults that cannot happen here."""
        return tuple(name for name in super().declared() if name not in FAULT_RULES or cls.can(FAULT_RULES[name]))

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
    def the_cluster_is(self, faults_a_write: int, **drawn: Any) -> None:
        """Start with an empty cluster."""
        self.start(faults_a_write, **drawn)

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
        """Batches are flushed, late requests land, zombies go on, before the next write begins."""
        self.change_write(after_ms=after_ms)

    @precondition(lambda self: self.pieces)
    @_step()
    def finish(self) -> None:
        """Run the tasks, finalize, commit."""
        self.play(abandon=False)

    @precondition(lambda self: self.pieces)
    @_step()
    def give_up(self) -> None:
        """Run the tasks and leave the instant to the next write, which rolls it back."""
        self.play(abandon=True)

    # Faults that are no row of the table.

    @_step(ahead=_DRIVER_AHEAD, later=st.integers(1, 14), next_ms=_BACK_MS)
    def kill_driver_and_its_successor(self, ahead: int, later: int, next_ms: int) -> None:
        """The next driver dies too, during its rollbacks."""
        self.add_fault(FaultKind.KILL, "driver", ahead, restart_ms=next_ms, executors_ms=0)
        self.add_fault(FaultKind.KILL, "driver", ahead + later, restart_ms=next_ms, executors_ms=0)

    @_step(who=_ANYBODY, ahead=_AHEAD, applied=st.booleans(), calls=st.sampled_from((1, 2, 6, 40)))
    def time_out_storage(self, who: str, ahead: int, applied: bool, calls: int) -> None:
        """Silence: of one call that is applied, or of some that never are."""
        kind = FaultKind.TIMEOUT_APPLIED if applied else FaultKind.TIMEOUT_LOST
        self.add_fault(kind, who, ahead, **({} if applied else {"calls": calls}))

    @_step(who=_ANYBODY, ahead=_AHEAD, back_ms=_BACK_MS, lands_ms=st.sampled_from((5, 120, 900, 2500)))
    def die_with_a_request_on_its_way(self, who: str, ahead: int, back_ms: int, lands_ms: int) -> None:
        """A process dies after it sent a put or delete, which is applied later."""
        self.add_fault(FaultKind.ORPHANED, who, ahead, restart_ms=back_ms, late_ms=lands_ms)

    @_step(ahead=_AHEAD, value=st.integers(1, 2))
    def damage_type_files(self, ahead: int, value: int) -> None:
        """The type file of every marker directory is emptied (1) or removed (2), as a crash of Hudi's server can."""
        self.add_fault(FaultKind.TYPE_DAMAGED, "server", ahead, removed=value == 2)

    @_step(slot=_SLOT, ahead=_AHEAD, arrived=st.booleans())
    def reset_a_connection(self, slot: int, ahead: int, arrived: bool) -> None:
        """A connection breaks, when the server has the request or before."""
        self.add_fault(FaultKind.RESET, f"executor-{slot}", ahead, lost=not arrived)

    @_step(slot=_SLOT, ahead=_AHEAD, for_ms=_LINK_MS, how=st.sampled_from((1, 2)))
    def cut_a_link(self, slot: int, ahead: int, for_ms: int, how: int) -> None:
        """Nothing passes between an executor and servers: it waits (1) or is lost (2)."""
        self.add_fault(FaultKind.CUT_LINK, f"executor-{slot}", ahead, for_ms=for_ms, lost=how == 2)

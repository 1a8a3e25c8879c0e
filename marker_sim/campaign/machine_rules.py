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

from marker_sim.campaign.machine_example import Example, Group
from marker_sim.campaign.machine_judging import counted
from marker_sim.faults import FaultKind
from marker_sim.odd_names import PARTITIONS
from marker_sim.plan import TASK_KINDS
from marker_sim.search.writes import TABLES

# Rules that need a kind of fault to be possible; all others always are.
FAULT_RULES = {
    "kill_executor": FaultKind.KILL,
    "kill_attempt": FaultKind.ATTEMPT_KILLED,
    "turn_attempt_into_a_zombie": FaultKind.ZOMBIE,
    "speculate": FaultKind.SPECULATIVE,
    "retry_the_stage": FaultKind.STAGE_RETRIED,
    "retry_the_stage_while_the_driver_finishes": FaultKind.STAGE_RETRIED,
    "kill_driver": FaultKind.KILL,
    "kill_driver_and_its_successor": FaultKind.KILL,
    "pause": FaultKind.PAUSE,
    "crash_timeline_server": FaultKind.SECOND_SERVER,
    "crash_timeline_server_and_restart_it_late": FaultKind.SECOND_SERVER,
    "pause_timeline_server": FaultKind.SECOND_SERVER,
    "start_a_second_timeline_server": FaultKind.SECOND_SERVER,
    "damage_type_files": FaultKind.TYPE_DAMAGED,
    "throttle_storage": FaultKind.THROTTLED,
    "fail_storage": FaultKind.SERVER_ERROR,
    "time_out_storage": FaultKind.TIMEOUT_LOST,
    "apply_after_the_time_out": FaultKind.TIMEOUT_LATE,
    "die_with_a_request_on_its_way": FaultKind.ORPHANED,
    "slow_down_storage": FaultKind.SLOW_STORAGE,
    "tear_a_write": FaultKind.TORN_WRITE,
    "fill_the_disk": FaultKind.DISK_FULL,
    "lose_a_request": FaultKind.REQUEST_LOST,
    "lose_a_reply": FaultKind.REPLY_LOST,
    "double_a_request": FaultKind.DUPLICATED,
    "delay_a_request": FaultKind.DELAYED,
    "reset_a_connection": FaultKind.RESET,
    "slow_down_a_link": FaultKind.SLOW_LINK,
    "cut_a_link": FaultKind.CUT_LINK,
    "overload_the_server": FaultKind.OVERLOADED,
    "turn_the_clock": FaultKind.CLOCK_JUMPED,
    "answer_that_another_request_is_under_way": FaultKind.CONFLICT,
    "make_placeholders": FaultKind.PLACEHOLDER,
    "fail_input_and_output": FaultKind.IO_ERROR,
}

_AHEAD = st.integers(1, 24)
# A first write begins in five steps; those from finalize to marker deletion get as many draws.
_DRIVER_AHEAD = st.integers(1, 9) | st.integers(6, 16) | st.integers(10, 40)
_SLOT = st.integers(0, 3)
_ANYBODY = st.sampled_from(("driver", "driver", "executor-0", "executor-1", "server"))
_LINK_MS = st.sampled_from((100, 1500, 40_000))
_BACK_MS = st.sampled_from((0, 20, 100, 400))


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

    # Executors and driver.

    @_step(slot=_SLOT, ahead=_AHEAD, back_ms=_BACK_MS | st.just(-1))
    def kill_executor(self, slot: int, ahead: int, back_ms: int) -> None:
        """An executor dies with all its attempts; another takes its place later, or never."""
        self.add_fault(FaultKind.KILL, f"executor-{slot}", ahead, restart_ms=back_ms)

    @_step(slot=_SLOT, ahead=_AHEAD, heard_ms=st.sampled_from((0, 20, 300)))
    def kill_attempt(self, slot: int, ahead: int, heard_ms: int) -> None:
        """An attempt ends between two storage calls; the driver is notified and runs the task again."""
        self.add_fault(FaultKind.ATTEMPT_KILLED, f"executor-{slot}", ahead, late_ms=heard_ms)

    @_step(slot=_SLOT, ahead=_AHEAD, for_ms=st.sampled_from((0, 10, 40, 150, 600, 4000)))
    def turn_attempt_into_a_zombie(self, slot: int, ahead: int, for_ms: int) -> None:
        """An attempt counts as dead, is paused and then continues."""
        self.add_fault(FaultKind.ZOMBIE, f"executor-{slot}", ahead, for_ms=for_ms)

    @_step(slot=_SLOT, ahead=_AHEAD, more=st.integers(1, 2))
    def speculate(self, slot: int, ahead: int, more: int) -> None:
        """The driver starts more attempts of the task that an executor is busy with."""
        self.add_fault(FaultKind.SPECULATIVE, f"executor-{slot}", ahead, attempts=more)

    @_step(slot=_SLOT, ahead=_AHEAD)
    def retry_the_stage(self, slot: int, ahead: int) -> None:
        """What the stage has produced is lost: all its tasks run again."""
        self.add_fault(FaultKind.STAGE_RETRIED, f"executor-{slot}", ahead)

    @_step(ahead=_DRIVER_AHEAD)
    def retry_the_stage_while_the_driver_finishes(self, ahead: int) -> None:
        """The stage is computed again when its results are not counted any more (Hudi I 19593)."""
        self.add_fault(FaultKind.STAGE_RETRIED, "driver", ahead)

    @_step(ahead=_DRIVER_AHEAD, next_ms=_BACK_MS, executors_go_on_ms=st.sampled_from((0, 1, 30, 200, 2000, 6000)))
    def kill_driver(self, ahead: int, next_ms: int, executors_go_on_ms: int) -> None:
        """The driver dies in its begin, its tasks, finalize, commit, marker deletion or a rollback."""
        self.add_fault(FaultKind.KILL, "driver", ahead, restart_ms=next_ms, executors_ms=executors_go_on_ms)

    @_step(ahead=_DRIVER_AHEAD, later=st.integers(1, 14), next_ms=_BACK_MS)
    def kill_driver_and_its_successor(self, ahead: int, later: int, next_ms: int) -> None:
        """The next driver dies too, during its rollbacks."""
        self.add_fault(FaultKind.KILL, "driver", ahead, restart_ms=next_ms, executors_ms=0)
        self.add_fault(FaultKind.KILL, "driver", ahead + later, restart_ms=next_ms, executors_ms=0)

    @_step(
        who=st.sampled_from(("driver", "executor-0", "executor-1")), ahead=_AHEAD, for_ms=st.sampled_from((20, 1500))
    )
    def pause(self, who: str, ahead: int, for_ms: int) -> None:
        """A process stops for a while; its connections stay open."""
        self.add_fault(FaultKind.PAUSE, who, ahead, for_ms=for_ms)

    # The timeline server, where there is one.

    @_step(ahead=_AHEAD, back_ms=_BACK_MS)
    def crash_timeline_server(self, ahead: int, back_ms: int) -> None:
        """The server dies somewhere in a batch and starts again on the same storage."""
        self.add_fault(FaultKind.KILL, "server", ahead, restart_ms=back_ms)

    @_step(ahead=_AHEAD, back_ms=st.sampled_from((2000, 20_000)))
    def crash_timeline_server_and_restart_it_late(self, ahead: int, back_ms: int) -> None:
        """The server dies, and clients give up before it is back."""
        self.add_fault(FaultKind.KILL, "server", ahead, restart_ms=back_ms)

    @_step(ahead=_AHEAD, for_ms=st.sampled_from((20, 200, 1500, 4000)))
    def pause_timeline_server(self, ahead: int, for_ms: int) -> None:
        """The server is paused at a step and resumed."""
        self.add_fault(FaultKind.PAUSE, "server", ahead, for_ms=for_ms)

    @_step(ahead=_AHEAD, for_ms=st.sampled_from((300, 1500, 5000)))
    def start_a_second_timeline_server(self, ahead: int, for_ms: int) -> None:
        """Another server lives on the same storage for a while."""
        self.add_fault(FaultKind.SECOND_SERVER, "server", ahead, for_ms=for_ms)

    @_step(ahead=_AHEAD, value=st.integers(1, 2))
    def damage_type_files(self, ahead: int, value: int) -> None:
        """The type file of every marker directory is emptied (1) or removed (2), as a crash of Hudi's server can."""
        self.add_fault(FaultKind.TYPE_DAMAGED, "server", ahead, removed=value == 2)

    # Storage.

    @_step(who=_ANYBODY, ahead=_AHEAD, calls=st.sampled_from((1, 2, 5, 12)))
    def throttle_storage(self, who: str, ahead: int, calls: int) -> None:
        """503 SlowDown for some calls in one marker directory."""
        self.add_fault(FaultKind.THROTTLED, who, ahead, calls=calls)

    @_step(who=_ANYBODY, ahead=_AHEAD)
    def fail_storage(self, who: str, ahead: int) -> None:
        """500, and the caller cannot know."""
        self.add_fault(FaultKind.SERVER_ERROR, who, ahead)

    @_step(who=_ANYBODY, ahead=_AHEAD, applied=st.booleans(), calls=st.sampled_from((1, 2, 6, 40)))
    def time_out_storage(self, who: str, ahead: int, applied: bool, calls: int) -> None:
        """Silence: of one call that is applied, or of some that never are."""
        kind = FaultKind.TIMEOUT_APPLIED if applied else FaultKind.TIMEOUT_LOST
        self.add_fault(kind, who, ahead, **({} if applied else {"calls": calls}))

    @_step(who=_ANYBODY, ahead=_AHEAD, late_ms=st.sampled_from((10, 300, 1900)))
    def apply_after_the_time_out(self, who: str, ahead: int, late_ms: int) -> None:
        """A call without an answer is applied long after its caller stopped waiting."""
        self.add_fault(FaultKind.TIMEOUT_LATE, who, ahead, late_ms=late_ms)

    @_step(who=_ANYBODY, ahead=_AHEAD, back_ms=_BACK_MS, lands_ms=st.sampled_from((5, 120, 900, 2500)))
    def die_with_a_request_on_its_way(self, who: str, ahead: int, back_ms: int, lands_ms: int) -> None:
        """A process dies after it sent a put or delete, which is applied later."""
        self.add_fault(FaultKind.ORPHANED, who, ahead, restart_ms=back_ms, late_ms=lands_ms)

    @_step(who=_ANYBODY, ahead=_AHEAD, by_ms=st.sampled_from((30, 120, 900)))
    def slow_down_storage(self, who: str, ahead: int, by_ms: int) -> None:
        """One call takes longer."""
        self.add_fault(FaultKind.SLOW_STORAGE, who, ahead, late_ms=by_ms)

    @_step(who=_ANYBODY, ahead=_AHEAD, back_ms=_BACK_MS)
    def tear_a_write(self, who: str, ahead: int, back_ms: int) -> None:
        """A process dies in the middle of a write to a local file."""
        self.add_fault(FaultKind.TORN_WRITE, who, ahead, restart_ms=back_ms)

    @_step(who=_ANYBODY, ahead=_AHEAD, for_ms=st.sampled_from((50, 500, 2000)))
    def fill_the_disk(self, who: str, ahead: int, for_ms: int) -> None:
        """No space left on the device, for a while."""
        self.add_fault(FaultKind.DISK_FULL, who, ahead, for_ms=for_ms)

    # The wire to the timeline server.

    @_step(slot=_SLOT, ahead=_AHEAD)
    def lose_a_request(self, slot: int, ahead: int) -> None:
        """The server never sees a request of an executor."""
        self.add_fault(FaultKind.REQUEST_LOST, f"executor-{slot}", ahead)

    @_step(slot=_SLOT, ahead=_AHEAD)
    def lose_a_reply(self, slot: int, ahead: int) -> None:
        """The server served the request, and its reply is lost."""
        self.add_fault(FaultKind.REPLY_LOST, f"executor-{slot}", ahead)

    @_step(slot=_SLOT, ahead=_AHEAD, apart_ms=st.sampled_from((0, 5, 60, 400, 2500)))
    def double_a_request(self, slot: int, ahead: int, apart_ms: int) -> None:
        """The server sees a request twice."""
        self.add_fault(FaultKind.DUPLICATED, f"executor-{slot}", ahead, late_ms=apart_ms)

    @_step(slot=_SLOT, ahead=_AHEAD, by_ms=st.sampled_from((5, 60, 400, 2500)))
    def delay_a_request(self, slot: int, ahead: int, by_ms: int) -> None:
        """A request is overtaken by others."""
        self.add_fault(FaultKind.DELAYED, f"executor-{slot}", ahead, late_ms=by_ms)

    @_step(slot=_SLOT, ahead=_AHEAD, arrived=st.booleans())
    def reset_a_connection(self, slot: int, ahead: int, arrived: bool) -> None:
        """A connection breaks, when the server has the request or before."""
        self.add_fault(FaultKind.RESET, f"executor-{slot}", ahead, lost=not arrived)

    @_step(slot=_SLOT, ahead=_AHEAD, for_ms=_LINK_MS)
    def slow_down_a_link(self, slot: int, ahead: int, for_ms: int) -> None:
        """Everything between an executor and servers takes longer."""
        self.add_fault(FaultKind.SLOW_LINK, f"executor-{slot}", ahead, for_ms=for_ms, late_ms=200)

    @_step(slot=_SLOT, ahead=_AHEAD, for_ms=_LINK_MS, how=st.sampled_from((1, 2)))
    def cut_a_link(self, slot: int, ahead: int, for_ms: int, how: int) -> None:
        """Nothing passes between an executor and servers: it waits (1) or is lost (2)."""
        self.add_fault(FaultKind.CUT_LINK, f"executor-{slot}", ahead, for_ms=for_ms, lost=how == 2)

    # Servers and hosts.

    @_step(ahead=_AHEAD, for_ms=_LINK_MS, pace_ms=st.sampled_from((5, 300)))
    def overload_the_server(self, ahead: int, for_ms: int, pace_ms: int) -> None:
        """The server takes up one request after the other."""
        self.add_fault(FaultKind.OVERLOADED, "server", ahead, for_ms=for_ms, pace_ms=pace_ms)

    @_step(ahead=_DRIVER_AHEAD, by_ms=st.sampled_from((-3_600_000, -40, 3_600_000)))
    def turn_the_clock(self, ahead: int, by_ms: int) -> None:
        """The driver's clock jumps; its successor has another."""
        self.add_fault(FaultKind.CLOCK_JUMPED, "driver", ahead, jump_ms=by_ms)

    @_step(who=_ANYBODY, ahead=_AHEAD)
    def answer_that_another_request_is_under_way(self, who: str, ahead: int) -> None:
        """409 to a put under a condition."""
        self.add_fault(FaultKind.CONFLICT, who, ahead)

    @_step(ahead=_AHEAD)
    def make_placeholders(self, ahead: int) -> None:
        """Keys that end in "/"."""
        self.add_fault(FaultKind.PLACEHOLDER, "driver", ahead)

    @_step(who=_ANYBODY, ahead=_AHEAD, applied=st.booleans())
    def fail_input_and_output(self, who: str, ahead: int, applied: bool) -> None:
        """EIO, and the caller cannot know."""
        self.add_fault(FaultKind.IO_ERROR, who, ahead, applied=applied)

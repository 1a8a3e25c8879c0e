"""Shared by the judges of writes: when they apply, and when a step must end ok."""

from __future__ import annotations

from collections.abc import Callable

from marker_sim.history import CallError
from marker_sim.history.index.calls import DEADLY, MS, WriteStep
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER
from marker_sim.judges.findings import Inquiry, Judge, judge_of
from marker_sim.names import TEMP


def judge_of_writes(guarantee: str) -> Callable[[Callable[[Inquiry], object]], Judge]:
    """Makes the judge of a guarantee of a check that fills an inquiry.

    Not applicable to a history in which no write began. Undecided where storage was only read now and then, because the
    order of its changes is not known.
    """

    def made(check: Callable[[Inquiry], object]) -> Judge:
        @judge_of(guarantee)
        def judged(case: Inquiry) -> None:
            case.applicable = case.view.stepped
            if case.applicable and case.view.header.witness != "effects":
                case.undecided = "storage was read now and then, so the order of its changes is not known"
            elif case.applicable:
                check(case)
                # The order of presence is that of sets of names, which differs between processes; a verdict's must not.
                case.sort()

        return judged

    return made


def ended_badly(case: Inquiry, step: WriteStep) -> None:
    """Add a breach when a step did not end ok and no fault explains it.

    At any time: an error that no seam raises, unless a call of the marker store inside the step, or a step inside it,
    ended with the same one. After the last fault: any end but `ok`, or none; a step that never ended was not answered
    and is shown by its invocation.
    """
    view, key = case.view, (step.table, step.instant)
    if step.outcome == "ok":
        return
    failed = (inner for inner in view.writes.steps if inner.outcome != "ok" and inner.operation != "attempt")
    if any(inner.process == step.process and step.surrounds(inner.invoke) for inner in failed):
        return  # The step inside is judged by itself.
    error = view.error_of(step)
    if of_its_own(view, step):
        what = f"the {step.operation} failed with an error of its own: {error}{_create_that_raised(view, step)}"
        case.about(key, what, step.invoke, step.done)
    elif why := _excuse(view, step):
        view.excuse(why)
    else:
        how = f"ended {step.outcome} ({error})" if step.done != NEVER else "never ended"
        case.about(key, f"the {step.operation} after the last fault {how}", step.invoke, step.done)


def _create_that_raised(view: HistoryIndex, step: WriteStep) -> str:
    """The end of a sentence: the create whose error ended a step."""
    directory = view.writes.directory((step.table, step.instant))
    for call in directory.creates if directory else ():
        if step.surrounds(call.invoke) and step.surrounds(call.done) and call.outcome != "ok":
            own = view.events[call.invoke].process == step.process
            if own and view.error_of(call) == view.error_of(step):
                return f"; its create of {call.name!r} had ended with it at event {call.done}"
    return ""


def of_its_own(view: HistoryIndex, step: WriteStep) -> bool:
    """Whether a step's error comes neither from a seam nor from the marker store in a call of the step."""
    error = view.error_of(step)
    return error.startswith(CallError.RAISED) and not _from_the_store(view, step, error)


def calm(view: HistoryIndex, low: int, high: int, process: str, directory: str) -> bool:
    """Whether no fault could affect a driver between two events, and a server that it needs was well."""
    begin_ns = view.time_ns(low) - view.rest_ns
    for fault in view.faults:
        lasts = fault.end >= low or (fault.storage and view.time_ns(fault.end) >= begin_ns)
        if fault.begin <= high and lasts and (fault.cls != "client" or fault.process == process):
            return False
    return view.mode_of(directory) == "direct" or any(life.well(low, high) for life in view.lives.values())


def _from_the_store(view: HistoryIndex, step: WriteStep, error: str) -> bool:
    """Whether a call of the marker store by this step ended with the step's error, so that the store is at fault."""
    return any(
        step.surrounds(call.invoke)
        and view.error_of(call) == error
        and view.events[call.invoke].process == step.process
        for directory in view.directories.values()
        for call in (*directory.listings, *directory.deletes, *directory.others)
    ) and view.excuse("store-error")


def _excuse(view: HistoryIndex, step: WriteStep) -> str:
    """The reason why a step may end badly or not at all, "" for none."""
    if step.done == NEVER and any(fault.process == step.process and fault.kind in DEADLY for fault in view.faults):
        return "driver-died"
    if step.operation == "attempt":
        return "another-attempt"  # When all attempts fail, the write is given up, which G25 judges.
    if step.invoke < view.phase("probe"):
        return "faults-not-over"
    until = min(step.done, view.end - 1)
    if any(view.phase("probe") < fault.begin <= until and fault.end >= step.invoke for fault in view.faults):
        return "fault-in-probe"
    lives = [life for life in view.lives.values() if life.start <= until]
    needed = lives and view.mode_of(f"{step.table}{TEMP}{step.instant}") != "direct"
    if needed and not any(life.end > until and not life.paused(step.invoke, until) for life in lives):
        return "server-unwell"
    waited_ns = view.time_ns(view.end - 1) - view.time_ns(step.invoke)
    return "run-ended" if step.done == NEVER and waited_ns < view.header.answer_bound_ms * MS else ""

"""The evidence of a breach shows the harm, the answer that promised otherwise, and the fault it is counted under."""

from __future__ import annotations

import pytest

from marker_sim.history import History
from marker_sim.judges import Breach, HistoryIndex, judge
from properties.faces.campaign import execute
from properties.faces.mutants import find_mutant, load_mutant
from properties.faces.search import make_plan, make_write_plan

COMPLETIONS = ("ok", "fail", "info")


def shows(history: History, breach: Breach) -> None:
    """The harm, the answers to what was asked for, and a fault of the class that it is counted under.

    At least one answer, unless a request shown was never answered, or the harm is the choice of a marker mode, or what
    readers find of a write that had none: the kit laid it out before the run, or its driver died at its end.
    """
    events = [history.events[index] for index in breach.evidence]
    answers = {event.caused_by: event.index for event in history.events if event.kind in COMPLETIONS}
    asked = {event.index for event in events if event.kind == "invoke"}
    assert {answers[index] for index in asked if index in answers} <= set(breach.evidence)
    answered = any(event.kind in COMPLETIONS for event in events)
    assert answered or asked - answers.keys() or events[-1].operation in ("mode", "rows"), breach
    assert answered or any(event.kind in ("invoke", "effect", "observe") for event in events), breach
    classes = {fault.cls for fault in HistoryIndex(history).faults if fault.begin in breach.evidence}
    started = any(event.operation in ("started", "second-server") for event in events)
    assert breach.under in classes or breach.under == "none" or (breach.under == "second-server" and started), breach


@pytest.mark.parametrize(
    "name",
    [
        "ack-before-flush",
        "every-second-write-dies",
        "file-before-marker",
        "file-for-every-batch",
        "leading-slash",
        "no-reconcile",
        "no-type-file",
        "older-rows-win",
        "prefix-deletes-neighbour",
        "two-creators",
    ],
)
def test_the_evidence_of_a_breach_has_the_fault_and_an_answer(name: str) -> None:
    """In the runs of 12 fixed seeds, so nothing here is left to chance."""
    mutant = find_mutant(name)
    system, judged = load_mutant(mutant), list[Breach]()
    for seed in range(12):
        for make in (make_plan, make_write_plan):
            history, _ = execute(make(seed, "timeline", "s3"), system)
            for finding in judge(history):
                for breach in finding.breaches:
                    shows(history, breach)
                    judged.append(breach)
    assert any(breach.under != "none" for breach in judged), "no breach under a fault"

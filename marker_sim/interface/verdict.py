"""The result of `marker_sim.verify`: what holds, what broke and with which plan, as data, text, files and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from marker_sim.history import History
from marker_sim.judges.findings import by_number
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.curve import LikelihoodCurve
from marker_sim.outcome.failure import Failure
from marker_sim.plan import Plan
from marker_sim.report.directory import open_report
from marker_sim.report.notes import notes
from marker_sim.report.pictures.picture import lane_picture
from marker_sim.report.table import as_text, print_outcome
from marker_sim.report.templates import render
from marker_sim.report.verdict import VerdictOutcome, judge_campaign
from marker_sim.report.words import event_lines, plan_sentences, printable
from marker_sim.report.write import write_outcome
from marker_sim.targets.target import CampaignRequest

Conclusion = Literal["holds", "violated", "inconclusive"]
TEXT_WIDTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A defect: the guarantee that shows it best, and a run that violates it.

    guarantee, slug: its id and name, "G2" and "exists-is-durable". sentence: what is promised.
    message: what happened instead. mode, storage: where.
    also: the ids of other guarantees that most likely break for the same reason.
    plan: repeats the run, None where a plan does not determine it; steps: the plan in sentences.
    history: of the run. evidence: the indices of the events that prove it.
    curve: the probability of the violation along the run, for the first defect only.
    """

    guarantee: str
    slug: str
    sentence: str
    message: str
    mode: str
    storage: str
    also: tuple[str, ...]
    plan: Plan | None = field(repr=False)
    steps: tuple[str, ...]
    history: History = field(repr=False)
    evidence: tuple[int, ...]
    curve: LikelihoodCurve | None = field(repr=False)

    @property
    def evidence_lines(self) -> tuple[str, ...]:
        """The events that prove it as lines, "[3] 0.0 ms  executor-1#1 invoke create t/002 a.marker.CREATE"."""
        return event_lines(self.history, self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `verify` found. `str` of it is what the command line prints; a notebook shows the picture of a failure.

    request: what was asked for. outcome: all counts, rows and failures.
    """

    request: CampaignRequest
    outcome: VerdictOutcome

    @property
    def conclusion(self) -> Conclusion:
        """The verdict in a word."""
        return cast(Conclusion, self.outcome.verdict)

    @property
    def holds(self) -> bool:
        """Whether every promised guarantee holds, and enough happened to say so."""
        return self.conclusion == "holds"

    @property
    def violated(self) -> bool:
        """Whether a promised guarantee is violated."""
        return self.conclusion == "violated"

    @property
    def inconclusive(self) -> bool:
        """Whether no promised guarantee is violated, but too little happened; `reasons` says what is missing."""
        return self.conclusion == "inconclusive"

    @property
    def violations(self) -> tuple[Defect, ...]:
        """The defects, as far as they can be told apart, the one to read first at the beginning."""
        return tuple(_promise(*story) for story in self.outcome.stories)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the defects, for `marker_sim.replay`."""
        return tuple(each.plan for each in self.violations if each.plan is not None)

    @property
    def guarantees(self) -> tuple[VerdictRow, ...]:
        """A row for each guarantee in each mode and storage."""
        return self.outcome.rows

    @property
    def reasons(self) -> tuple[str, ...]:
        """What qualifies the verdict, for example what was not reached in so few runs."""
        return tuple(line for note in notes(self.outcome) for line in note.lines)

    def write(self, directory: Path | str) -> Path:
        """Write a report as `marker-sim verify --report` does, and return its page; an earlier one is moved aside."""
        place, request = Path(directory), self.request
        extent = ("--runs", str(request.runs)) if request.runs is not None else ("--budget", f"{request.budget_s:g}s")
        argv = ("verify", "--sut", request.target.sut, *extent, "--seed", str(request.seed))
        judged = judge_campaign(self.outcome.campaign, request.profile, None, place, argv, request.guarantees)
        known = {each.kind: each.curve for each in self.outcome.failures}
        failures = tuple(replace(each, curve=known[each.kind]) for each in judged.failures)
        with open_report(place, argv):
            write_outcome(replace(judged, failures=failures), place)
        return place / "report.html"

    def __str__(self) -> str:
        return as_text(lambda console: print_outcome(self.outcome, console, "", stored=False), TEXT_WIDTH)

    def __repr__(self) -> str:
        return f"<Verdict {printable(self.outcome.headline)}>"

    def _repr_html_(self) -> str:
        """The headline, and the first failure with the picture of its run."""
        first = next(iter(self.violations), None)
        return render(
            "report/templates/verdict.html.j2",
            verdict=self,
            first=first,
            picture=first and lane_picture(first.history, first.evidence, first.curve),
        )


def _promise(failure: Failure, *others: Failure) -> Defect:
    known = BY_ID[failure.guarantee]
    return Defect(
        guarantee=known.id,
        slug=known.slug,
        sentence=known.sentence,
        message=failure.message,
        mode=failure.kind.mode,
        storage=failure.kind.storage,
        also=tuple(by_number({each.guarantee for each in others} - {known.id})),
        plan=failure.plan,
        steps=plan_sentences(failure.plan) if failure.plan is not None else (),
        history=failure.history,
        evidence=failure.evidence,
        curve=failure.curve,
    )

"""The content of verdict.json from a Campaign, and the exit code. Pure: nothing is written or printed here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim import __version__
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_VIOLATED
from marker_sim.judges.findings import by_number
from marker_sim.judges.promises.profiles import Profile, unshipped
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Failure, FailureRecord, defects_least, signature, stories
from marker_sim.outcome.result import Campaign
from marker_sim.outcome.statistics import overall
from marker_sim.report.words import counted
from marker_sim.system import System

if TYPE_CHECKING:
    from marker_sim.campaign.comparison import Comparison
    from marker_sim.judges.baselines.baseline import Differences, Known

SCHEMA = 1
OFTEN = 5  # Runs with a violation that as many runs before did not show: by chance in 1 of 70 campaigns.
SURELY = 3  # exp(-3): what is expected so often is missed once in twenty.
# Most severe first; a row of several modes and storages has the most severe verdict of its parts.
VERDICTS = ("violated", "inconclusive", "not-promised", "holds", "not-applicable")
MINUTES = (1, 2, 5, 10, 20, 60, 120, 480)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOutcome:
    """A campaign judged against a profile and, when there is one, a baseline.

    verdict: "violated", "inconclusive" or "holds".
    rows: with message, evidence and replay of the failure shown for them.
    differences: None without a baseline.
    failures: in the order found, those that count first; again: the command that shows each again.
    against: the same plans on another system, None without one.
    """

    campaign: Campaign
    profile: Profile
    verdict: str
    rows: tuple[VerdictRow, ...]
    differences: Differences | None
    failures: tuple[Failure, ...]
    again: tuple[str, ...]
    against: Comparison | None = None

    def exit_code(self) -> int:
        """The exit code of the first that applies: interruption, violation, trouble of the kit, inconclusive, holds.

        Violations of the system of `against` do not change it; an error of the kit in its campaign does.
        """
        campaigns = (self.campaign, self.against.second) if self.against else (self.campaign,)
        if any(each.interrupted for each in campaigns):
            return EXIT_INTERRUPTED
        if self.verdict == "violated":
            return EXIT_VIOLATED
        if any(each.trouble for each in campaigns):
            return EXIT_HARNESS
        return EXIT_INCONCLUSIVE if self.verdict == "inconclusive" else EXIT_HOLDS

    @property
    def headline(self) -> str:
        """The verdict as one sentence."""
        ids = {name: list(dict.fromkeys(row.id for row in self.rows if row.verdict == name)) for name in VERDICTS}
        many = counted(len({row.id for row in self.rows if row.verdict != "not-applicable"}), "guarantee")
        sut, broken, undecided = self.campaign.sut, ids["violated"], len(ids["inconclusive"])
        found = self.differences
        new = by_number(each.guarantee for each in found.unexpected) if found else broken
        match self.verdict:
            case "violated" if new:
                beyond = f"{many} beyond its baseline" if found else many
                return f"{sut} breaks {len(new)} of {beyond}: {', '.join(new)}; {defects_text(self.new)}"
            case "violated":
                return f"{sut} does not agree with its baseline"
            case "inconclusive":
                which = f"{undecided} of {many} are undecided" if undecided else "the campaign is incomplete"
                return f"{sut}: no promise was violated, but {which}"
        if broken:
            return f"{sut} has only violations that its baseline lists: {', '.join(broken)}"
        return f"{sut} keeps its promises: {len(ids['holds'])} of {many} promised, and none of them violated"

    def unfinished(self, failure: Failure) -> str:
        """The sentence that a failure's plan was not shrunk, why, and how to continue; "" for one that was."""
        how = "it may become smaller yet" if failure.entries_before else "it was not made small"
        command = self.command(failure).replace(" replay ", " shrink ", 1)
        return f"{how}: {failure.large}; `{command}` goes on" if failure.large and failure.plan else ""

    @property
    def new(self) -> tuple[tuple[Failure, ...], ...]:
        """The stories of failures that no baseline lists."""
        return stories(each for each in self.failures if not self.known(each))

    @property
    def stories(self) -> tuple[tuple[Failure, ...], ...]:
        """The failures grouped into stories, each led by the failure that represents it; what is known comes last."""
        return (*self.new, *stories(filter(self.known, self.failures)))

    def number(self, failure: Failure) -> int:
        """The position of a failure among all of them."""
        return next(number for number, each in enumerate(self.failures) if each is failure)

    def command(self, failure: Failure) -> str:
        """The command that shows a failure again."""
        return self.again[self.number(failure)]

    def row_of(self, failure: Failure) -> VerdictRow | None:
        """The row that a failure is counted in; None where its guarantee was not asked for."""
        return next((row for row in self.rows if (row.id, row.mode, row.storage) == failure.kind[:3]), None)

    def counts(self, row: VerdictRow) -> bool:
        """Whether a row's violation counts: it is not in the baseline, or there is no baseline."""
        found, where = self.differences, (row.id, row.mode, row.storage)
        return found is None or where in {known.kind[:3] for known in found.unexpected}

    def known(self, failure: Failure) -> bool:
        """Whether a baseline lists a failure, or its run breaks what one lists."""
        found = self.differences
        return found is not None and failure.kind not in {known.kind for known in found.unexpected}

    def to_dict(self) -> dict[str, Any]:
        """The JSON content of verdict.json."""
        campaign, statistics = self.campaign, self.campaign.statistics
        told = {self.number(each): self.number(story[0]) for story in self.stories for each in story}
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "sut": campaign.sut,
            "sut_version": campaign.sut_version,
            "profile": unshipped(self.profile) or {"name": self.profile.name},
            "kit_version": __version__,
            "seed": campaign.seed,
            "duration_s": round(campaign.duration_s, 3),
            "runs": campaign.runs,
            "guarantees": [row.to_dict() for row in self.rows],
            "failures": [
                as_stored(failure)
                | {"plan": plan_name(number, failure) if failure.plan else "", "replay": self.again[number]}
                | {"story": told[number]}
                for number, failure in enumerate(self.failures)
            ],
            "operations": dict(sorted(statistics.operations.items())),
            "faults": dict(sorted(statistics.faults.items())),
            "reached": dict(sorted(statistics.reached.items())),
            "not_reached": [*campaign.not_reached, *(f"left out: {what}" for what in campaign.left_out)],
            "too_rare": list(campaign.too_rare),
            "not_applicable": campaign.not_applicable,
            "reruns": {name: statistics.reruns[name] for name in ("passing", "failures", "elsewhere")}
            | {"differences": statistics.differences},
            "fault_phases": {
                row.kind: {"met": row.met, "unmet": list(row.unmet), "impossible": row.impossible}
                for row in campaign.fault_rows
            },
        }
        planted, against = campaign.canary, self.against
        optional = {
            "walk": [asdict(each) for each in campaign.walked] or None,
            "orders": campaign.orders or None,
            "canary": planted
            and {
                "mutant": planted.mutant,
                "caught_by": planted.guarantee if planted.caught else None,
                "plans": planted.plans,
            },
            "trouble": campaign.trouble or None,
            "against": against and against.to_dict(),
            "s3": campaign.s3,
            "batching": campaign.batching,
            "server": campaign.server,
        }
        return content | {name: found for name, found in optional.items() if found is not None}


def judge_campaign(
    campaign: Campaign,
    profile: Profile,
    baseline: frozenset[Known] | None,
    directory: Path,
    argv: Sequence[str],
    guarantees: frozenset[str] | None = None,
) -> VerdictOutcome:
    """The outcome of a campaign. directory and argv: for the replay commands; guarantees: None for all.

    A campaign without violations that missed a coverage goal is inconclusive. So is one that an error of the kit ended
    early, or whose canary was not caught.
    """
    judged = (row for row in campaign.statistics.rows(profile) if guarantees is None or row.id in guarantees)
    rows = tuple(_doubted(_decided(row, campaign), campaign) for row in judged)
    differences = None
    if baseline is not None:
        from marker_sim.judges.baselines.baseline import compare

        differences = _explained(compare(rows, baseline, profile, campaign.statistics.faults), campaign, baseline)
    verdict = overall(rows, differences)
    blind = campaign.canary is not None and not campaign.canary.caught
    if verdict == "holds" and (campaign.not_reached or campaign.trouble or blind):
        verdict = "inconclusive"
    failures = tuple(
        each for each in _ordered(campaign.failures, differences) if guarantees is None or each.guarantee in guarantees
    )
    again = shlex.join(_again(argv, campaign.seed, directory))
    commands = tuple(
        again if failure.plan is None else shlex.join(("marker-sim", "replay", str(directory / plan_name(n, failure))))
        for n, failure in enumerate(failures)
    )
    return VerdictOutcome(
        campaign=campaign,
        profile=profile,
        verdict=verdict,
        rows=tuple(_show(row, failures, commands, again) for row in rows),
        differences=differences,
        failures=failures,
        again=commands,
    )


def defects_text(told: Sequence[Sequence[Failure | FailureRecord]]) -> str:
    """How many defects stories show: "at least 2 defects"."""
    least, sure = defects_least(told)
    return f"{'most likely' if sure else 'at least'} {counted(least, 'defect')}"


def with_leading_curve(outcome: VerdictOutcome, system: System) -> VerdictOutcome:
    """The outcome with the curve of the failure that is shown first, if its plans are simulated by `system`."""
    leading = outcome.stories[0][0] if outcome.stories else None
    if leading is None or leading.plan is None:
        return outcome
    from marker_sim.campaign.simulated_failure import with_curve

    measured = with_curve(leading, system, outcome.profile)
    return replace(outcome, failures=tuple(measured if each is leading else each for each in outcome.failures))


def _decided(row: VerdictRow, campaign: Campaign) -> VerdictRow:
    """A row with the places that decide it; it is inconclusive until enough of them were reached."""
    own = campaign.decided_by(row.id, row.mode)
    met = {each.name: each.met for each in own if each.met}
    not_met = tuple(each.name for each in own if each.tried and not each.met)
    not_tried = tuple(each.name for each in own if not each.tried and not each.met)
    row = replace(row, met=met, not_met=not_met, not_tried=not_tried)
    if row.verdict not in ("holds", "inconclusive") or len(met) >= campaign.floor * len(own):
        return row
    parts = (
        row.message if row.verdict == "inconclusive" else "",
        f"{len(met)} of {len(own)} places met",
        not_met and f"not met: {', '.join(not_met)}",
        not_tried and f"not tried: {', '.join(not_tried)}",
    )
    return replace(row, verdict="inconclusive", message="; ".join(part for part in parts if part))


def would_do(rows: Iterable[VerdictRow], campaign: Campaign) -> str:
    """The budget in which enough of what decides undecided rows would be met, by measured rates; "" if unknown."""
    seconds = 0.0
    for row in rows:
        own = campaign.decided_by(row.id, row.mode) if row.verdict == "inconclusive" else ()
        unmet = sorted((each.expected for each in own if not each.met), reverse=True)
        short = len(unmet) - int((1 - campaign.floor) * len(own))
        if short > 0 and unmet[short - 1]:
            seconds = max(seconds, campaign.duration_s * SURELY / unmet[short - 1])
    return f"{next((each for each in MINUTES if each >= seconds / 60), 480)}m" if seconds else ""


def _doubted(row: VerdictRow, campaign: Campaign) -> VerdictRow:
    """The row, made inconclusive with a reason when it holds although a coverage goal was missed."""
    if row.verdict != "holds":
        return row
    for gap in campaign.gaps:
        if gap.concerns(row.id, row.mode, row.storage):
            return replace(row, verdict="inconclusive", message=f"coverage goal missed: {gap.sentence}")
    return row


def plan_name(number: int, failure: Failure) -> str:
    """The plan's file below the report directory; the first failure's is the contract's plan.json."""
    return "plan.json" if number == 0 else f"failures/{'-'.join(failure.kind)}.json"


def _explained(found: Differences, campaign: Campaign, baseline: Iterable[Known]) -> Differences:
    """The differences from a baseline without rare violations whose stored run breaks what is known as well.

    What is seen often, though the campaign that wrote the baseline had enough runs to see it and did not, is new.
    """
    new = {known.kind for known in found.unexpected}
    known = {signature(each) for each in campaign.failures if each.kind not in new}
    told = {each.kind for each in campaign.failures if known & each.also}
    runs = min(campaign.runs, min((each.runs for each in baseline), default=0))
    rare = {kind for kind in told if campaign.statistics.broke[kind[::3]] * runs < OFTEN * campaign.runs}
    explained = tuple(each for each in found.unexpected if each.kind in rare)
    return replace(
        found, unexpected=tuple(each for each in found.unexpected if each not in explained), explained=explained
    )


def _ordered(failures: Iterable[Failure], differences: Differences | None) -> tuple[Failure, ...]:
    """The failures, those that a baseline does not know and those that represent a story first: they are shown, in
    their order.
    """
    found, unexpected = tuple(failures), differences.unexpected if differences else ()
    new = {known.kind for known in unexpected}
    parts = ([each for each in found if (each.kind in new) is part] for part in (True, False))
    told = {story[0].kind for part in parts for story in stories(part)}
    return tuple(sorted(found, key=lambda each: (each.kind not in new, each.kind not in told, each.order)))


def as_stored(failure: Failure) -> dict[str, Any]:
    """The JSON form of a failure, but for its place among the others."""
    content = failure.kind._asdict() | {
        "message": failure.message,
        "evidence": list(failure.evidence),
        "confirmed": failure.confirmed,
        "large": failure.large,
        "entries_before": failure.entries_before,
    }
    return content | ({} if failure.curve is None else {"curve": failure.curve.to_dict()})


def _show(row: VerdictRow, failures: tuple[Failure, ...], commands: tuple[str, ...], again: str) -> VerdictRow:
    """The row with message and evidence of its stored failure, and the command that replays it."""
    for failure, command in zip(failures, commands, strict=True):
        if failure.kind[:3] == (row.id, row.mode, row.storage):
            return replace(row, message=failure.message, evidence=failure.evidence, replay=command)
    return replace(row, replay=again) if row.violations else row


def _again(argv: Sequence[str], seed: int, directory: Path) -> list[str]:
    """The command line of this run; a `verify` with its drawn seed, and with another report directory."""
    if list(argv[:1]) != ["verify"]:
        return ["marker-sim", *argv]
    kept = without_option(without_option(argv, "--report"), "--jobs")  # This option changes only the time.
    seeded = any(word == "--seed" or word.startswith("--seed=") for word in kept)
    beside = directory if directory.name not in ("", "..") else Path(os.path.abspath(directory))
    where = ["--report", str(beside.with_name(f"{beside.name}-again"))]
    return ["marker-sim", *kept, *([] if seeded else ["--seed", str(seed)]), *where]


def without_option(argv: Sequence[str], option: str) -> tuple[str, ...]:
    """The words of a command line without an option and its value."""
    kept: list[str] = []
    follows = False
    for word in argv:
        if not follows and word != option and not word.startswith(f"{option}="):
            kept.append(word)
        follows = not follows and word == option
    return tuple(kept)

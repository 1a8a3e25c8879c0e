"""The nights of a chaos directory as rows, sentences, summary.json and summary.md; page.py has summary.html."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Any

from marker_sim.campaign.nightly.opening import FOREIGN, SHARES, STREAMS
from marker_sim.campaign.nightly.totals import NightTotals, Totals
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_VIOLATED
from marker_sim.judges.findings import by_number
from marker_sim.outcome.failure import FailureRecord, breaks_besides, stories
from marker_sim.report.templates import render
from marker_sim.report.verdict import defects_text
from marker_sim.report.words import counted

Story = Sequence[FailureRecord]
SCHEMA = 1
NIGHTS_SHOWN = 30
_SHOWN = ("name", "guarantee", "mode", "storage", "world", "message", "night", "seen", "alike")
# A share of the swarm's units: a small unit often misses a threshold by chance, but not all of them do.
QUIET_SHARE = 0.75
_USUAL = tuple(name for stage in SHARES for name in STREAMS[stage])
_BARS = " ▁▂▃▄▅▆▇█"


def verdict_of(night: NightTotals) -> str:
    """The verdict of a night: violated, else inconclusive (for any of `gaps`, or trouble of the kit), else holds."""
    if night.kinds or night.still_violated:
        return "violated"
    return "inconclusive" if gaps(night) or night.trouble else "holds"


def exit_code(night: NightTotals) -> int:
    """The exit code of a night; a violation outranks trouble of the kit, which outranks an inconclusive verdict."""
    verdict = verdict_of(night)
    if verdict == "violated":
        return EXIT_VIOLATED
    if night.trouble:
        return EXIT_HARNESS
    return EXIT_INCONCLUSIVE if verdict == "inconclusive" else EXIT_HOLDS


def gaps(night: NightTotals) -> tuple[str, ...]:
    """The reasons why a night without violations is inconclusive."""
    found = [] if night.judged else ["nothing was judged"]
    if night.differences:
        found.append(f"{night.differences} units gave a different history when a run was repeated")
    if night.canary is None:
        found.append("no planted defect was searched for")
    elif not night.canary.get("mutant"):
        found.append("no defect could be planted: the profile promises no guarantee that a known defect breaks")
    elif not night.canary.get("caught"):
        found.append(
            f"the planted defect {night.canary.get('mutant')} was not detected, so other defects may have been missed"
        )
    if night.unsure:
        found.append(
            f"open failures for which no replay could decide whether they are fixed: {', '.join(sorted(night.unsure))}"
        )
    if len(night.quiet) > QUIET_SHARE * night.swarm_units:
        many = f"{len(night.quiet)} of {night.swarm_units} units of the swarm"
        found.append(f"{many} were below an activity threshold: {night.quiet[0]}")
    return (*found, *(f"coverage goal missed: {name}" for name in night.not_reached))


def summary_of(totals: Totals) -> dict[str, Any]:
    """The content of summary.json."""
    return {
        "schema": SCHEMA,
        "sut": totals.sut,
        "seed": totals.seed,
        "nights": [
            night.to_dict() | {"verdict": verdict_of(night), "doubts": list(gaps(night))} for night in totals.nights
        ],
        "failures": [
            {name: getattr(failure, name) for name in _SHOWN}
            | {
                "nights": [night.number for night in totals.nights if night.saw(failure.name)],
                "status": "fixed" if failure.fixed else failure.status or "new",
            }
            for failure in totals.failures.by_name.values()
        ],
    }


def all_stories(totals: Totals) -> list[Story]:
    """The stories of stored failures, open ones first; what is fixed comes last in each and leads one that is over."""
    told = (sorted(story, key=attrgetter("fixed")) for story in stories(totals.failures.by_name.values()))
    return sorted(told, key=lambda story: story[0].fixed)


def open_stories(totals: Totals) -> list[Story]:
    """The stories with an open failure."""
    return [story for story in all_stories(totals) if not story[0].fixed]


def headline(totals: Totals) -> str:
    """The last night in a sentence."""
    night, told = totals.night, open_stories(totals)
    broken = ", ".join(by_number(kind.partition("/")[0] for kind in night.kinds)) or "what it broke before"
    said = {
        "violated": f"breaks {broken}; open: {counted(len(told), 'story')}, {defects_text(told)}",
        "inconclusive": "was not seen to break a promise, but the night does not decide",
        "holds": "keeps its promises",
    }
    return f"night {night.number}: {totals.sut} {said[verdict_of(night)]}"


def night_rows(totals: Totals) -> list[dict[str, str]]:
    """The cells of the last nights by column: streams have runs and seconds of workers; new, still and fixed count
    stories.
    """
    told = [(min(each.night for each in story), {each.name for each in story}) for story in all_stories(totals)]
    foreign = any("foreign" in night.stages for night in totals.nights)
    rows = []
    for night in totals.nights[-NIGHTS_SHOWN:]:
        verdict, canary, still = verdict_of(night), night.canary or {}, set(night.still_violated)
        rows.append(
            {
                "night": str(night.number),
                "began": night.began[:16].replace("T", " "),
                "verdict": verdict if night.state == "ended" else f"{verdict}, {night.state}",
                "budget": f"{night.seconds:,.0f} of {night.budget_s:,.0f} s",
                **({"system": system_of(night)} if foreign else {}),
                **{
                    name: f"{night.stream_runs[name]:,} in {night.stream_s[name]:,.0f} s"
                    if night.stream_s[name]
                    else "-"
                    for name in (FOREIGN if foreign else _USUAL)
                },
                "runs": f"{night.runs:,}",
                "steps": f"{night.steps:,}",
                "judged": f"{night.judged.total():,}",
                "faults": f"{night.faults.total():,}",
                "again": f"{night.reruns['passing'] + night.reruns['failures']:,}",
                "new": str(sum(first == night.number for first, _ in told)),
                "still": str(sum(bool(names & still) for _, names in told)),
                "fixed": str(sum(names.isdisjoint(still) and bool(names & {*night.fixed}) for _, names in told)),
                "not reached": str(len(night.not_reached)),
                "canary": f"{canary['seconds']:.1f} s" if canary.get("caught") else "-",
            }
        )
    return rows


def trend(values: Sequence[float]) -> str:
    """A bar chart in text: a bar for each number, the largest one full."""
    most = max(values, default=0) or 1
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in values)


def failure_lines(totals: Totals, directory: Path) -> list[str]:
    """A sentence for each open story, with its smallest plan and the command that replays it."""
    lines = []
    for story in open_stories(totals):
        told, besides = story[0], breaks_besides(story, "stored failure")
        where = (
            f"{told.guarantee} in {told.mode} mode on {told.storage} ({told.world}), {told.cause}, night {told.night}"
        )
        runs = counted(told.seen, "run") + (f", {told.alike} more with the same cause" if told.alike else "")
        replay = f"marker-sim replay {quote(str(directory / 'failures' / f'{told.name}.json'))}"
        lines.append(f"{where}, {runs}: {told.message}{f'; {besides}' if besides else ''}: {replay}")
    return lines


def system_of(night: NightTotals) -> str:
    """The name of the system with its version, which is not repeated."""
    return night.sut if not night.version or night.version in night.sut else f"{night.sut} {night.version}"


def markdown(totals: Totals, directory: Path) -> str:
    """The content of summary.md."""
    rows = night_rows(totals)
    return render(
        "campaign/nightly/summary.md.j2",
        totals=totals,
        rows=rows,
        runs=trend([night.runs for night in totals.nights[-NIGHTS_SHOWN:]]),
        new=trend([int(row["new"]) for row in rows]),
        notes=remarks(totals.night),
        failures=failure_lines(totals, directory),
    )


def remarks(night: NightTotals) -> list[str]:
    """The notes on a night besides its numbers."""
    return [
        *gaps(night),
        *(f"left out: {what}" for what in night.missing),
        *(f"error of the kit: {what}" for what in night.trouble),
    ]

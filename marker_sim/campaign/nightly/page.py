"""summary.html: the nights as a trend, each story with its nights, versions side by side; like report.html one file.

Also puts it in place with summary.json and summary.md, each whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from marker_sim.campaign.nightly.failures import FOLDER, write_whole
from marker_sim.campaign.nightly.summary import (
    NIGHTS_SHOWN,
    Story,
    all_stories,
    headline,
    markdown,
    night_rows,
    open_stories,
    remarks,
    summary_of,
    system_of,
    verdict_of,
)
from marker_sim.campaign.nightly.totals import NightTotals, Totals
from marker_sim.judges.findings import by_number
from marker_sim.outcome.failure import FIXED, FailureRecord
from marker_sim.outcome.statistics import RunCounts
from marker_sim.report.pictures.charts import Chart, HeatCell, bar_chart, met_cell
from marker_sim.report.templates import render

CAUSES_MAX = 60
VERSIONS_MAX = 6


def write_summary(totals: Totals, directory: Path) -> None:
    """Write summary.json, summary.md and summary.html."""
    write_whole(directory / "summary.json", (json.dumps(summary_of(totals), indent=1) + "\n").encode())
    write_whole(directory / "summary.md", markdown(totals, directory).encode("utf-8", "replace"))
    write_whole(directory / "summary.html", render_nights(totals, directory).encode("utf-8", "replace"))


def render_nights(totals: Totals, directory: Path) -> str:
    """The page as text; every text from a system under test is escaped."""
    shown, groups, rows = totals.nights[-NIGHTS_SHOWN:], all_stories(totals), night_rows(totals)
    known = len(open_stories(totals))
    most = max((_seen(group, night) for group in groups for night in shown), default=1)
    causes = [
        {
            "story": group,
            "nights": _nights(group, totals.nights) or [group[0].night],
            "cells": [_cell(group, night, most) for night in shown],
        }
        for group in groups
    ]
    versions = _versions(totals.nights, groups)[-VERSIONS_MAX:]
    judged = {
        name for each in versions for name, count in (each.counts.judged + each.counts.violations).items() if count
    }
    return render(
        "campaign/nightly/page.html.j2",
        totals=totals,
        shown=shown,
        faults=sum(night.faults.total() for night in totals.nights),
        headline=headline(totals),
        notes=remarks(totals.night),
        charts=_charts(shown, groups, [int(row["new"]) for row in rows]),
        causes=causes[:known][:CAUSES_MAX],
        known=known,
        fixed=causes[known:][:CAUSES_MAX],
        replay=lambda failure: f"marker-sim replay {quote(str(directory / _file(failure)))}",
        file=_file,
        verdict_of=verdict_of,
        rows=rows,
        versions=versions,
        judged=[(name, [_judged(each.counts, name) for each in versions]) for name in by_number(judged)],
    )


def _charts(nights: Sequence[NightTotals], groups: Sequence[Story], new: list[int]) -> list[Chart]:
    """The charts of the trend: new and known stories, runs, judgements and faults by night."""
    seen = [sum(len(_nights(group, [night])) for group in groups) for night in nights]
    again = [count - first for count, first in zip(seen, new, strict=True)]
    parts = (
        ("Stories seen", (("new", "new", new), ("again", "seen before", again))),
        ("Runs", (("plain", "runs", [night.runs for night in nights]),)),
        ("Judged", (("plain", "judged", [night.judged.total() for night in nights]),)),
        ("Faults injected", (("plain", "faults", [night.faults.total() for night in nights]),)),
    )
    names = [f"night {night.number}" for night in nights]
    return [bar_chart(title, names, shown) for title, shown in parts]


def _cell(group: Story, night: NightTotals, most: int) -> HeatCell:
    if count := _seen(group, night):
        return met_cell(count, most, f"night {night.number}: seen {count:,} times")
    if _nights(group, [night]):
        return HeatCell(1, "✗", f"night {night.number}: a stored plan still broke it")
    return HeatCell(0, "0", f"night {night.number}: not seen")


class JudgedVersion(NamedTuple):
    """A version of system and kit with its nights. only: how many of its stories no other version has."""

    system: str
    kit: str
    nights: str
    verdict: str
    counts: RunCounts
    stories: int
    only: int


def _versions(nights: Sequence[NightTotals], groups: Sequence[Story]) -> list[JudgedVersion]:
    """Each version of system and kit, that of the last night at the end."""
    by: dict[tuple[str, str], list[NightTotals]] = {}
    for night in nights:
        by.setdefault((system_of(night), night.kit_version), []).append(night)
    found = {version: {at for at, group in enumerate(groups) if _nights(group, own)} for version, own in by.items()}
    made = []
    for version, own in sorted(by.items(), key=lambda each: each[1][-1].number):
        counts = RunCounts()
        for night in own:
            counts.merge(night)
        told = found[version]
        only = told.difference(*(others for other, others in found.items() if other != version))
        numbers = _numbers([night.number for night in own])
        made.append(JudgedVersion(*version, numbers, verdict_of(own[-1]), counts, len(told), len(only)))
    return made


def _judged(counts: RunCounts, guarantee: str) -> tuple[str, int, int]:
    """A guarantee over the nights of a version: its verdict, violations, and how often it was judged."""
    held, others, judged = (each[guarantee] for each in (counts.violations, counts.unpromised, counts.judged))
    verdict = "violated" if held else "not-promised" if others else "holds" if judged else "not-applicable"
    return verdict, held or others, judged


def _numbers(numbers: Sequence[int]) -> str:
    """Numbers with consecutive ones joined: "1 to 4, 6"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def _seen(group: Story, night: NightTotals) -> int:
    return sum(night.seen[failure.name] for failure in group)


def _nights(group: Story, nights: Sequence[NightTotals]) -> list[int]:
    """The numbers of the nights in which one of the failures occurred."""
    return [night.number for night in nights if any(night.saw(failure.name) for failure in group)]


def _file(failure: FailureRecord) -> str:
    return f"{FOLDER}/{f'{FIXED}/' if failure.fixed else ''}{failure.name}.json"

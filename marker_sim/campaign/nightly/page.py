"""summary.html: the nights as a trend, each cause with its nights, versions side by side; like report.html one file.

Also puts it in place with summary.json and summary.md, each whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from marker_sim.campaign.nightly.failures import FOLDER, StoredFailure, write_whole
from marker_sim.campaign.nightly.summary import (
    NIGHTS_SHOWN,
    STORED,
    columns,
    markdown,
    night_row,
    remarks,
    summary_of,
    system_of,
    verdict_of,
)
from marker_sim.campaign.nightly.totals import NightTotals, Totals
from marker_sim.judges.findings import by_number
from marker_sim.judges.guarantees import BY_ID
from marker_sim.outcome.failure import FIXED, breaks_besides, stories
from marker_sim.outcome.statistics import RunCounts
from marker_sim.report.pictures.charts import Chart, HeatCell, bar_chart, met_cell
from marker_sim.report.templates import render
from marker_sim.report.words import printable

CAUSES_MAX = 60
VERSIONS_MAX = 6
STORED_MAX = 5


def write_summary(totals: Totals, directory: Path) -> None:
    """Write summary.json, summary.md and summary.html."""
    write_whole(directory / "summary.json", (json.dumps(summary_of(totals), indent=1) + "\n").encode())
    write_whole(directory / "summary.md", markdown(totals, directory).encode("utf-8", "replace"))
    write_whole(directory / "summary.html", render_nights(totals, directory).encode("utf-8", "replace"))


def render_nights(totals: Totals, directory: Path) -> str:
    """The page as text; every text from a system under test is escaped."""
    shown = totals.nights[-NIGHTS_SHOWN:]
    known = stories(totals.failures.open)
    gone = stories(failure for failure in totals.failures.by_name.values() if failure.fixed)
    groups = (*known, *gone)
    most = max((_seen(group, night) for group in groups for night in shown), default=1)
    told = [_cause(group, totals, shown, most, directory) for group in groups]
    return render(
        "campaign/nightly/page.html.j2",
        sut=totals.sut,
        seed=totals.seed,
        nights=totals.nights,
        shown=shown,
        faults=sum(night.faults.total() for night in totals.nights),
        verdict=verdict_of(totals.night),
        headline=printable(_headline(totals)),
        notes=remarks(totals.night),
        open=len(totals.failures.open),
        charts=_charts(shown, groups),
        causes=told[: min(len(known), CAUSES_MAX)],
        more=max(0, len(known) - CAUSES_MAX),
        fixed=told[len(known) :][:CAUSES_MAX],
        columns=columns(totals),
        rows=[night_row(night, columns(totals)) for night in shown],
        **_versions(totals.nights, groups),
    )


def _headline(totals: Totals) -> str:
    night, where = totals.night, f"in night {totals.night.number}"
    broken = by_number(failure.partition("/")[0] for failure in night.kinds)
    match verdict_of(night):
        case "violated" if broken:
            return f"{totals.sut} breaks {', '.join(broken)} {where}"
        case "violated":
            return f"{totals.sut}: stored failures still occur {where}"
        case "holds":
            return f"{totals.sut} keeps its promises {where}"
    return f"{totals.sut}: nothing promised was seen to break {where}, but the night does not decide"


def _charts(nights: Sequence[NightTotals], groups: Sequence[Sequence[StoredFailure]]) -> list[Chart]:
    """The charts of the trend: new and known causes, runs, judgements and faults by night."""
    names = [f"night {night.number}" for night in nights]
    seen = [[group for group in groups if _in_night(group, night)] for night in nights]
    new = [sum(_first(group) == night.number for group in found) for night, found in zip(nights, seen, strict=True)]
    again = [len(found) - count for found, count in zip(seen, new, strict=True)]
    causes = (("new", "new", new), ("again", "seen before", again))
    plain = (
        ("Runs", [night.runs for night in nights], "runs"),
        ("Judged", [night.judged.total() for night in nights], "judged"),
        ("Faults injected", [night.faults.total() for night in nights], "faults"),
    )
    return [
        bar_chart("Causes seen", names, causes),
        *(bar_chart(title, names, (("plain", what, values),)) for title, values, what in plain),
    ]


def _cause(
    group: Sequence[StoredFailure], totals: Totals, shown: Sequence[NightTotals], most: int, directory: Path
) -> dict[str, Any]:
    """What the page shows of a story: a cell for each night shown, and the first few files that store it."""
    told = group[0]
    nights = [night.number for night in totals.nights if _in_night(group, night)] or [told.night]
    return {
        "name": told.name,
        "guarantee": BY_ID[told.guarantee],
        "where": f"{told.mode} mode on {told.storage}, {told.world}",
        "message": printable(told.message),
        "besides": breaks_besides(group, STORED),
        "often": sum(failure.seen + failure.alike for failure in group),
        "more": max(0, len(group) - STORED_MAX),
        "first": min(nights),
        "last": max(nights),
        "nights": len(nights),
        "cells": [_cell(group, night, most) for night in shown],
        "stored": [(failure.name, _file(failure)) for failure in group[:STORED_MAX]],
        "replay": f"marker-sim replay {quote(str(directory / _file(told)))}",
    }


def _cell(group: Sequence[StoredFailure], night: NightTotals, most: int) -> HeatCell:
    count = _seen(group, night)
    if count:
        return met_cell(count, most, f"night {night.number}: seen {count:,} times")
    if _in_night(group, night):
        return HeatCell(1, "✗", f"night {night.number}: a stored plan still broke it")
    return HeatCell(0, "0", f"night {night.number}: not seen")


def _versions(nights: Sequence[NightTotals], groups: Sequence[Sequence[StoredFailure]]) -> dict[str, Any]:
    """One column for each version of system and kit, the newest of too many; one row for each judged guarantee.

    only: causes that no other version had.
    """
    by: dict[tuple[str, str], list[NightTotals]] = {}
    for night in nights:
        by.setdefault((system_of(night), night.kit_version), []).append(night)
    found = {
        version: {group[0].name for group in groups if any(_in_night(group, night) for night in own)}
        for version, own in by.items()
    }
    shown = sorted(by, key=lambda version: by[version][-1].number)[-VERSIONS_MAX:]
    sums = {version: RunCounts() for version in shown}
    for version, summed in sums.items():
        for night in by[version]:
            summed.merge(night)
    made = [
        {
            "system": version[0],
            "kit": version[1],
            "nights": _numbers([night.number for night in by[version]]),
            "verdict": verdict_of(by[version][-1]),
            "runs": summed.runs,
            "causes": len(found[version]),
            "only": len(found[version].difference(*(found[other] for other in by if other != version))),
        }
        for version, summed in sums.items()
    ]
    judged = {name for each in sums.values() for name, count in (each.judged + each.violations).items() if count}
    return {
        "versions": made,
        "judged": [(BY_ID[name], [_judged(each, name) for each in sums.values()]) for name in by_number(judged)],
    }


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


def _seen(group: Sequence[StoredFailure], night: NightTotals) -> int:
    return sum(night.seen[failure.name] for failure in group)


def _in_night(group: Sequence[StoredFailure], night: NightTotals) -> bool:
    """Whether one of the failures occurred in a night."""
    return any(night.saw(failure.name) for failure in group)


def _first(group: Sequence[StoredFailure]) -> int:
    return min(failure.night for failure in group)


def _file(failure: StoredFailure) -> str:
    return f"{FOLDER}/{f'{FIXED}/' if failure.fixed else ''}{failure.name}.json"

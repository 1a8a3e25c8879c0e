"""The kill matrix for machines (mutants.json) and for people (mutants.txt). Pure: from values to text and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from marker_sim import __version__
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.report.templates import render

SCHEMA = 1


def matrix_dict(rows: Sequence[dict[str, Any]], settings: dict[str, Any], interrupted: bool) -> dict[str, Any]:
    """The content of mutants.json. rows: of the mutants; settings: of the command, as given or by default."""
    return {
        "schema": SCHEMA,
        "kit_version": __version__,
        **settings,
        "interrupted": interrupted,
        "guarantees": [guarantee.id for guarantee in GUARANTEES],
        "survivors": [row["name"] for row in rows if not row["killed"]],
        "summary": summary(rows),
        "mutants": rows,
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of all mutants: median and worst of their medians and worst times, by search, and of their plans."""
    searches: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row["searches"]):
        found = [row["searches"][name] for row in rows]
        medians, worst = ([each[key] for each in found if each[key] is not None] for key in ("median_s", "worst_s"))
        searches[name] = {
            "mutants_caught": sum(times["caught"] > 0 for times in found),
            "mutants_caught_always": len(worst),
            "median_of_medians_s": _median(medians),
            "worst_median_s": max(medians, default=None),
            "worst_s": max(worst, default=None),
        }
    entries = [row["entries"] for row in rows if row["entries"] is not None]
    return {
        "mutants": len(rows),
        "killed": sum(row["killed"] for row in rows),
        "searches": searches,
        "median_entries": _median(entries),
        "longest_entries": max(entries, default=None),
    }


def matrix_text(content: dict[str, Any]) -> str:
    """mutants.txt: a row a mutant, a column a guarantee, the named one in brackets, and the times beside them."""
    return render("report/templates/mutants.txt.j2", times=median_and_worst, closing=closing_lines(content), **content)


def closing_lines(content: dict[str, Any]) -> list[str]:
    """The summary as sentences."""
    summary = content["summary"]
    lines = [f"{summary['killed']} of {summary['mutants']} mutants killed by their guarantee"]
    for name, times in summary["searches"].items():
        lines.append(
            f"{name}: caught {times['mutants_caught']}, {times['mutants_caught_always']} of them from every seed;"
            f" median of medians {_seconds(times['median_of_medians_s'])}, worst median"
            f" {_seconds(times['worst_median_s'])}, worst {_seconds(times['worst_s'])}"
        )
    if summary["median_entries"] is not None:
        lines.append(
            f"shrunk plans: median {summary['median_entries']:g}, longest {summary['longest_entries']} entries"
        )
    lines += [f"survivor: {name}" for name in content["survivors"]]
    return lines


def median_and_worst(times: dict[str, Any] | None) -> str:
    """The median and the worst time of a search; of one that did not catch a mutant from every seed, how many did."""
    if times is None or not times["caught"]:
        return "-"
    worst = _seconds(times["worst_s"]) if times["worst_s"] is not None else f"{times['caught']}/{times['ranges']}"
    return f"{_seconds(times['median_s'])}/{worst}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}s"


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None

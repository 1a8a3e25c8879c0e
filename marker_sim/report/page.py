"""report.html: everything a person needs to believe or doubt a verdict, in one file without scripts or network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from marker_sim import __version__
from marker_sim.campaign.result import Failure
from marker_sim.judges.guarantees import BY_ID
from marker_sim.report.comparison import comparison_lines, comparison_rows, names
from marker_sim.report.table import merged, remarks, under_text
from marker_sim.report.verdict import VerdictOutcome, place, stories
from marker_sim.report.words import in_context, plan_sentences, printable

EVENTS_AROUND = 3


def render_page(outcome: VerdictOutcome) -> str:
    """The page as text; every text from a system under test is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("marker_sim.report") / "page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        outcome=outcome,
        campaign=outcome.campaign,
        kit_version=__version__,
        remarks=remarks(outcome),
        against=outcome.against and names(outcome.against),
        compared=outcome.against and comparison_rows(outcome.rows, outcome.against),
        compared_lines=outcome.against and [printable(line) for line in comparison_lines(outcome.against)],
        rows=[(row, BY_ID[row.id].sentence, under_text(row), printable(row.message)) for row in merged(outcome.rows)],
        stories=[
            (
                _failure(outcome, outcome.failures[story.told]),
                story.breaks_besides(outcome.failures),
                [_failure(outcome, outcome.failures[number]) for number in story.also],
            )
            for story in stories(outcome.failures)
        ],
        faults=sorted(outcome.campaign.statistics.faults.items()),
        reached=sorted(outcome.campaign.statistics.reached.items()),
        operations=sorted(outcome.campaign.statistics.operations.items()),
    )


def _failure(outcome: VerdictOutcome, failure: Failure) -> dict[str, Any]:
    _, mode, storage = place(failure)
    return {
        "guarantee": BY_ID[failure.guarantee],
        "mode": mode,
        "storage": storage,
        "message": printable(failure.message),
        "seed": failure.seed,
        "lines": in_context(failure.history, failure.evidence, around=EVENTS_AROUND),
        "events": len(failure.history.events),
        "plan": [printable(sentence) for sentence in plan_sentences(failure.plan)] if failure.plan else [],
        "entries": failure.plan.entries if failure.plan else 0,
        "entries_before": failure.entries_before,
        "confirmed": printable(failure.confirmed),
        "replay": next((row.replay for row in outcome.rows if (row.id, row.mode, row.storage) == place(failure)), ""),
    }

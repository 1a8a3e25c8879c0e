"""report.html: everything a person needs to believe or doubt a verdict, in one file that needs no network.

page.html.j2 is its text, page.css its look, picture.js draws the pictures of picture.py. A violation has the sentence
of the terminal, and its evidence as steps; where nothing was violated, the page begins with what was tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from marker_sim import __version__
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Failure
from marker_sim.plan import Plan
from marker_sim.report.notes import comparison_lines, comparison_rows, names, notes, under_text, walk_line
from marker_sim.report.pictures.charts import heat_map, load_charts
from marker_sim.report.pictures.picture import EVENTS_MAX, lane_picture, picture
from marker_sim.report.steps import steps_of
from marker_sim.report.table import merged
from marker_sim.report.templates import render
from marker_sim.report.verdict import VERDICTS, VerdictOutcome
from marker_sim.report.words import counted

EVENTS_OF_ALL = 8_000
_EVENTS_LEAST = 60
KINDS_SAID_MAX = 4
_SHOWN = ("violated", "inconclusive", "holds", "not-promised", "not-applicable")


class GuaranteeSummary(NamedTuple):
    """A guarantee over all its modes and storages. verdict: the worst of its rows."""

    id: str
    verdict: str
    rows: Sequence[VerdictRow]

    @property
    def places(self) -> dict[str, list[str]]:
        """The modes and storages of each verdict, the worst first."""
        found: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
        for row in self.rows:
            where = "" if row.storage == "all" else f" on {row.storage.replace(' ', ', ')}"
            found[row.verdict].append(f"{row.mode}{where}")
        return found


def render_page(outcome: VerdictOutcome) -> str:
    """The page as text; every text from a system under test is escaped."""
    campaign, stories, against = outcome.campaign, outcome.stories, outcome.against
    last = None if stories else campaign.last
    runs = [(failure.history, failure.evidence) for failure, *_ in stories] or ([(last, ())] if last else [])
    views = [HistoryIndex(history) for history, _ in runs]
    causes = [
        _evidence(failure, view) | {"story": story, "also": [_evidence(each) for each in others]}
        for (failure, *others), story, view in zip(stories, stories, views, strict=False)
    ]
    harms = [{step.index: step.harm for step in cause["steps"] if step.harm} for cause in causes] or [{}]
    most = max(_EVENTS_LEAST, min(EVENTS_MAX, EVENTS_OF_ALL // max(1, len(stories))))
    return render(
        "report/templates/page.html.j2",
        script="picture.js",
        kit_version=__version__,
        outcome=outcome,
        campaign=campaign,
        tried=_tried(outcome),
        notes=notes(outcome),
        causes=causes,
        last=last,
        last_plan=Plan.from_dict(last.header.plan, "the plan of a history") if last and last.header.plan else None,
        pictures=[
            picture(view, evidence, most, harm) for view, (_, evidence), harm in zip(views, runs, harms, strict=False)
        ],
        loads=[load_charts(view) for view in views],
        guarantees=summaries(outcome.rows),
        under_text=under_text,
        against=against and names(against),
        compared=against and comparison_rows(outcome.rows, against),
        compared_lines=against and comparison_lines(against),
        walk=walk_line(campaign.walked),
        fates=list(dict.fromkeys(fate for each in campaign.walked for fate in each.fates)),
        heat=heat_map(campaign.fault_rows),
    )


def _evidence(failure: Failure, view: HistoryIndex | None = None) -> dict[str, Any]:
    """A failure, its evidence as steps, and the picture of its run where the moment is known that decided it."""
    return {
        "failure": failure,
        "steps": steps_of(view or HistoryIndex(failure.history), failure.evidence, failure.message),
        "lanes": failure.curve
        and failure.curve.moves
        and lane_picture(failure.history, failure.evidence, failure.curve),
    }


def _tried(outcome: VerdictOutcome) -> str:
    """What the campaign did, as a sentence: runs, calls, faults, judgements."""
    campaign, rows = outcome.campaign, [row for row in outcome.rows if row.judged]
    calls = Counter({name: sum(counts.values()) for name, counts in campaign.statistics.operations.items()})
    modes = " and ".join(dict.fromkeys(row.mode for row in rows if row.mode != "both"))
    where = f" in {modes} mode on {', '.join(dict.fromkeys(row.storage for row in rows))}" if rows else ""
    made = f"{_most(calls, 'call')} and {_most(campaign.statistics.faults, 'injected fault')}"
    judged = f"{sum(row.judged for row in rows):,} judgements of {len({row.id for row in rows})} guarantees."
    canary = campaign.canary
    caught = f" {canary.guarantee} caught a planted defect, {canary.mutant}." if canary and canary.caught else ""
    orders = f" {campaign.orders}." if campaign.orders else ""
    return f"{counted(campaign.runs, 'run')}{where}, with {made}. {judged}{caught}{orders}"


def _most(counts: Counter[str], what: str) -> str:
    """A total with its most frequent kinds: "120 calls (create 100, list 20)"."""
    kinds = [f"{name} {count:,}" for name, count in counts.most_common() if count]
    more = [f"{len(kinds) - KINDS_SAID_MAX} more kinds"] if len(kinds) > KINDS_SAID_MAX else []
    said = ", ".join(kinds[:KINDS_SAID_MAX] + more)
    return counted(counts.total(), what) + (f" ({said})" if said else "")


def summaries(rows: Iterable[VerdictRow]) -> list[GuaranteeSummary]:
    """A summary of each guarantee, those with the worst verdict first; what was promised comes before the rest."""
    found = []
    for guarantee, same in groupby(merged(rows), key=lambda row: row.id):
        members = list(same)
        verdict = min((row.verdict for row in members), key=VERDICTS.index)
        found.append(GuaranteeSummary(guarantee, verdict, members))
    return sorted(found, key=lambda each: _SHOWN.index(each.verdict))


def render_curves(failures: Sequence[Failure]) -> str:
    """A page with the picture of each failing run, its curve and its plan."""
    pictures = [lane_picture(each.history, each.evidence, each.curve) for each in failures]
    return render("report/templates/curve.html.j2", failures=failures, pictures=pictures)

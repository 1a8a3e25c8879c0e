"""report.html: everything a person needs to believe or doubt a verdict, in one file that needs no network.

page.html.j2 is its text, page.css its look, picture.js draws the pictures of picture.py. A violation has the sentence
of the terminal, and its evidence as steps; where nothing was violated, the page begins with what was tried.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from marker_sim import __version__
from marker_sim.history import History
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.guarantees import BY_ID, Guarantee
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Failure, breaks_besides
from marker_sim.plan import Plan
from marker_sim.report.notes import comparison_lines, comparison_rows, names, notes, walk_line
from marker_sim.report.pictures.charts import heat_map
from marker_sim.report.pictures.lanes import LanePicture, lane_picture
from marker_sim.report.pictures.load import load_charts
from marker_sim.report.pictures.picture import EVENTS_MAX, picture
from marker_sim.report.steps import steps_of
from marker_sim.report.table import merged, under_text
from marker_sim.report.templates import render
from marker_sim.report.verdict import VerdictOutcome
from marker_sim.report.words import plan_sentences, printable

EVENTS_OF_ALL = 8_000
_EVENTS_LEAST = 60
SENTENCES_OF_RUN = 40
PLAN_OPEN_MAX = 20  # Entries; the plan of more is folded.
KINDS_SAID_MAX = 4
_EVENT = re.compile(r"\b(event (\d{1,18}))\b")
# Worlds whose failures can be shown without the kit: of a server, and of a job on Spark.
SCRIPTS = {"foreign": "show.sh", "spark": "show.py"}
# Most severe first; a row of several modes and storages has the most severe verdict of its parts.
VERDICTS = ("violated", "inconclusive", "not-promised", "holds", "not-applicable")
_SHOWN = ("violated", "inconclusive", "holds", "not-promised", "not-applicable")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeSummary:
    """A guarantee over all its modes and storages. verdict: the worst of its rows."""

    known: Guarantee
    verdict: str
    rows: tuple[VerdictRow, ...]

    @property
    def places(self) -> list[tuple[str, str]]:
        """Each verdict, the worst first, with its modes and storages in words; what does not apply is left out."""
        found: dict[str, list[str]] = {}
        for row in sorted(self.rows, key=lambda row: VERDICTS.index(row.verdict)):
            where = "" if row.storage == "all" else f" on {row.storage.replace(' ', ', ')}"
            if row.verdict != "not-applicable" or self.verdict == "not-applicable":
                found.setdefault(row.verdict, []).append(f"{row.mode}{where}")
        return [(verdict, "; ".join(places)) for verdict, places in found.items()]


def render_page(outcome: VerdictOutcome) -> str:
    """The page as text; every text from a system under test is escaped."""
    told = outcome.stories
    campaign = outcome.campaign
    most = max(_EVENTS_LEAST, min(EVENTS_MAX, EVENTS_OF_ALL // max(1, len(told))))
    pictured = [(failure.history, failure.evidence) for failure, *_ in told]
    if not told and campaign.last is not None:
        pictured = [(campaign.last, ())]
    views = [HistoryIndex(history) for history, _ in pictured]
    causes = [_story(outcome, story, views[at], f"story-{at + 1}") for at, story in enumerate(told)]
    harms = [{step.index: step.harm for step in cause["steps"] if step.harm} for cause in causes]
    return render(
        "report/templates/page.html.j2",
        script="picture.js",
        under=under_text,
        pictures=[
            picture(view, evidence, most, harm)
            for view, (_, evidence), harm in zip(views, pictured, harms or [{}], strict=False)
        ],
        loads=[load_charts(view) for view in views],
        run=None if told or campaign.last is None else _run(campaign.last),
        outcome=outcome,
        campaign=campaign,
        kit_version=__version__,
        headline=printable(headline(outcome)),
        tried=_tried(outcome),
        notes=notes(outcome),
        against=outcome.against and names(outcome.against),
        compared=outcome.against and comparison_rows(outcome.rows, outcome.against),
        compared_lines=outcome.against and [printable(line) for line in comparison_lines(outcome.against)],
        guarantees=summaries(outcome.rows),
        causes=causes,
        plan_open=PLAN_OPEN_MAX,
        walk=printable(walk_line(campaign.walked)),
        fates=list(dict.fromkeys(fate for each in campaign.walked for fate in each.fates)),
        heat=heat_map(campaign.fault_rows),
        faults=campaign.statistics.faults.most_common(),
        reached=sorted(campaign.statistics.reached.items()),
        operations=sorted(campaign.statistics.operations.items()),
    )


def _tried(outcome: VerdictOutcome) -> str:
    """What the campaign did, as a sentence: runs, calls, faults, judgements."""
    campaign, rows = outcome.campaign, [row for row in outcome.rows if row.judged]
    calls = Counter({name: sum(counts.values()) for name, counts in campaign.statistics.operations.items()})
    faults, judged = campaign.statistics.faults, sum(row.judged for row in rows)
    modes = " and ".join(dict.fromkeys(row.mode for row in rows if row.mode != "both"))
    places = ", ".join(dict.fromkeys(row.storage for row in rows))
    where = f" in {modes} mode on {places}" if rows else ""
    canary = campaign.canary
    caught = canary and canary.caught and f" {canary.guarantee} caught a planted defect, {canary.mutant}."
    return printable(
        f"{campaign.runs:,} run{'' if campaign.runs == 1 else 's'}{where}, with {_counted(calls, 'call')} and"
        f" {_counted(faults, 'injected fault')}. {judged:,} judgements of"
        f" {len({row.id for row in rows})} guarantees.{caught or ''}"
    )


def _counted(counts: Counter[str], what: str) -> str:
    """A total with its most frequent kinds: "120 calls (create 100, list 20)"."""
    total, more = counts.total(), len(+counts) - KINDS_SAID_MAX
    kinds = [f"{name} {count:,}" for name, count in counts.most_common(KINDS_SAID_MAX) if count]
    kinds += [f"{more} more kinds"] if more > 0 else []
    return f"{total:,} {what}{'' if total == 1 else 's'}" + (f" ({', '.join(kinds)})" if kinds else "")


def _run(history: History) -> dict[str, Any]:
    """The section about a run in which nothing was violated."""
    header = history.header
    plan = Plan.from_dict(header.plan, "the plan of a history") if header.plan else None
    sentences = [printable(sentence) for sentence in plan_sentences(plan)] if plan else []
    left = len(sentences) - SENTENCES_OF_RUN
    if left > 0:
        sentences[SENTENCES_OF_RUN:] = [f"And {left:,} more, in the header of history.parquet."]
    return {
        "mode": header.mode,
        "storage": header.storage,
        "events": len(history.events),
        "plan": sentences,
        "entries": plan.entries if plan else 0,
        "entries_before": 0,
        "seed": header.seed,
    }


def headline(outcome: VerdictOutcome) -> str:
    """The verdict as one sentence."""
    applicable = {row.id for row in outcome.rows if row.verdict != "not-applicable"}
    broken = [row.id for row in outcome.rows if row.verdict == "violated"]
    sut, many = outcome.campaign.sut, f"{len(applicable)} guarantee{'' if len(applicable) == 1 else 's'}"
    held = len({row.id for row in outcome.rows if row.verdict == "holds"})
    broken = list(dict.fromkeys(broken))
    match outcome.verdict:
        case "violated" if broken:
            return f"{sut} breaks {len(broken)} of {many}: {', '.join(broken)}{_stories(outcome)}"
        case "violated":
            return f"{sut} does not agree with its baseline"
        case "inconclusive":
            undecided = {row.id for row in outcome.rows if row.verdict == "inconclusive"}
            which = f"{len(undecided)} of {many} are undecided" if undecided else "the campaign is incomplete"
            return f"{sut}: no promise was violated, but {which}"
    if broken:
        return f"{sut} has only violations that its baseline lists: {', '.join(broken)}"
    return f"{sut} keeps its promises: {held} of {many} promised, and none of them violated"


def _stories(outcome: VerdictOutcome) -> str:
    """The number of defects, as far as can be told."""
    count = len(outcome.stories)
    return f"; most likely {count} defect{'' if count == 1 else 's'}" if count else ""


def summaries(rows: Iterable[VerdictRow]) -> list[GuaranteeSummary]:
    """A summary of each guarantee, those with the worst verdict first; what was promised comes before the rest."""
    found = []
    for guarantee, same in groupby(merged(rows), key=lambda row: row.id):
        members = tuple(same)
        gravest = min((row.verdict for row in members), key=VERDICTS.index)
        found.append(GuaranteeSummary(known=BY_ID[guarantee], verdict=gravest, rows=members))
    return sorted(found, key=lambda each: _SHOWN.index(each.verdict))


def _story(outcome: VerdictOutcome, story: Sequence[Failure], view: HistoryIndex, place: str) -> dict[str, Any]:
    """A cause: the failure that represents it, how often it was seen, and what else it breaks."""
    told, *others = story
    return _failure(outcome, told, view, place) | {
        "besides": breaks_besides(story),
        "also": [_failure(outcome, each, HistoryIndex(each.history), "") for each in others],
    }


def _failure(outcome: VerdictOutcome, failure: Failure, view: HistoryIndex, place: str) -> dict[str, Any]:
    """A failure. place: the section in which its events have a picture, "" for none."""
    replay, script = outcome.again[outcome.number(failure)], SCRIPTS.get(failure.history.header.world, "")
    message, row = printable(failure.message), outcome.row_of(failure)
    return {
        "guarantee": BY_ID[failure.guarantee],
        "mode": failure.kind.mode,
        "storage": failure.kind.storage,
        "brief": message.partition("; ")[0],
        "message": _linked(message, place),
        "often": row and row.causes.get(failure.kind.cause, 0),
        "judged": row and row.judged,
        "seed": failure.seed,
        "steps": steps_of(view, failure.evidence, failure.message),
        "plan": [printable(sentence) for sentence in plan_sentences(failure.plan)] if failure.plan else [],
        "entries": failure.entries,
        "entries_before": failure.entries_before,
        "besides": "",
        "confirmed": printable(failure.confirmed),
        "unfinished": printable(outcome.unfinished(failure)),
        "curve": None if failure.curve is None else drawn_curve(failure),
        "replay": replay,
        "script": f"{replay} --script {script}" if failure.plan and script else "",
    }


def _linked(message: str, place: str) -> Markup:
    """The sentence of a violation, its first clause strong, with links from its events to the picture."""
    made = []
    for number, part in enumerate(message.partition("; ")):
        words = _EVENT.split(part)
        text = Markup()
        for at in range(0, len(words), 3):
            text += escape(words[at])
            if at + 2 < len(words):
                link = Markup('<a href="#{}@{}">{}</a>') if place else Markup("{2}")
                text += link.format(place, words[at + 2], words[at + 1])
        made.append(text if number else Markup("<strong>{}</strong>").format(text))
    return Markup().join(made)


def drawn_curve(failure: Failure) -> tuple[LanePicture, str]:
    """The picture of a failing run with its curve, and the sentence below it."""
    sentence = failure.curve.sentence if failure.curve is not None else failure.message
    return lane_picture(failure.history, failure.evidence, failure.curve), printable(sentence)


def render_curves(failures: Sequence[Failure]) -> str:
    """A page with the picture of each failing run, its curve and its plan."""
    many = "" if len(failures) == 1 else f"; {len(failures)} failures"
    return render(
        "report/templates/curve.html.j2",
        headline=f"{failures[0].guarantee} {BY_ID[failures[0].guarantee].slug}: when it became likely{many}",
        curves=[(*drawn_curve(each), [*map(printable, plan_sentences(each.own_plan))]) for each in failures],
    )

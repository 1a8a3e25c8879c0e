"""What a reader has to know besides the guarantees: what was undecided, not reached, left out or in trouble.

For two systems on the same plans it is a row for each guarantee, a column for each system, and what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Kind
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET, OF_STORY, UNCONFIRMED, WalkedCall
from marker_sim.report.verdict import VerdictOutcome, would_do
from marker_sim.report.words import counted

if TYPE_CHECKING:
    from marker_sim.campaign.comparison import Comparison
    from marker_sim.judges.baselines.baseline import Differences, Known

REFERENCE = "reference"
SHOWN_MAX = 3  # Of coverage goals that were missed, and of calls of a walk that broke something.
OWN_DEFECT = (
    "the reference is marker-sim's own, so this violation is a defect of marker-sim: of the reference, of the judge or "
    "of the simulated world. Please report it: `marker-sim replay REPORT --markdown issue.md` writes the text of an "
    "issue (plan, evidence, version); attach verdict.json and the history"
)
# How the result of a death or a failure at a storage call begins, and the words after the number of such results.
_CAME = {
    KEPT: "kept every promise",
    "G": "broke {}",
    NOT_MET: "did not happen, for a run made other calls",
    NO_ANSWER: "hung and were not awaited, as their kinds of calls broke G6 before",
    OF_STORY: "broke one as another call of their kind did by the same fate, or a write without a fault",
    UNCONFIRMED: "broke one and not again in a process that was killed there",
}


class Note(NamedTuple):
    """Notes of one kind.

    title: the kind, in words that follow a number. lines: whole sentences, mostly one for each.
    brief: those on a terminal without `-v`. number: of things that they are about, 0 where each line is one.
    urgent: it is about the run itself, and always shown.
    """

    title: str
    lines: Sequence[str]
    brief: Sequence[str] = ()
    number: int = 0
    urgent: bool = False


def notes(outcome: VerdictOutcome) -> list[Note]:
    """All notes, without empty kinds."""
    campaign, rows = outcome.campaign, outcome.rows
    reasons = {row.message for row in rows if row.verdict == "inconclusive"}
    missed = [line for name in campaign.not_reached if (line := f"coverage goal missed: {name}") not in reasons]
    allowed = [row for row in rows if row.verdict in ("holds", "not-promised") and row.violations]
    baseline = _differences(outcome.differences) if outcome.differences else []
    rare = ", ".join(campaign.too_rare)
    left_out = [f"left out: {what}" for what in campaign.left_out]
    trouble = _trouble(outcome)
    found = (
        Note("undecided", _undecided(rows, True), _undecided(rows, False)),
        Note("violations that the profile allows", [_allowed(row) for row in allowed], _not_promised(allowed)),
        Note("differences from the baseline", baseline, baseline),
        Note("coverage goals missed", missed, missed if len(missed) <= SHOWN_MAX else [f"{len(missed)} goals missed"]),
        Note(
            "too rare for a campaign of this length",
            [f"not reached, and not required of a campaign of this length: {rare}"] if rare else [],
            number=len(campaign.too_rare),
        ),
        Note("assumptions", [f"{what}: {said}" for what, said in (campaign.batching or {}).items()]),
        Note("left out", left_out, left_out_lines(campaign.left_out)),
        Note("about this run", trouble, trouble, urgent=True),
    )
    return [note for note in found if note.lines]


def _differences(found: Differences) -> list[str]:
    """What a baseline does not have, wherever it was seen, and what of it did not occur: a line each."""

    def anywhere(seen: Iterable[Known]) -> set[Known]:
        return {replace(known, mode="", storage="", under="") for known in seen}

    lines = {
        "not in the baseline": anywhere(found.unexpected),
        "stale in the baseline, for it was judged and not violated; remove it": found.stale,
        "in the baseline, not seen this time": found.unmet,
        "not in the baseline, but in runs that break what is": anywhere(found.explained),
    }
    return [f"{what}: {'; '.join(map(known_text, sorted(which)))}" for what, which in lines.items() if which]


def _trouble(outcome: VerdictOutcome) -> list[str]:
    """What to know of the run itself: defects of the kit, a budget that would do, an early end."""
    campaign, canary = outcome.campaign, outcome.campaign.canary
    budget = would_do(outcome.rows, campaign)
    found = (
        OWN_DEFECT if outcome.verdict == "violated" and campaign.sut == REFERENCE else "",
        canary.failing if canary else "",
        budget and f"--budget {budget} would meet enough of what decides the undecided guarantees",
        campaign.trouble and f"the kit could not complete the campaign: {campaign.trouble}",
        "interrupted; these are the results so far" if campaign.interrupted else "",
    )
    return [line for line in found if line]


def _undecided(rows: Sequence[VerdictRow], whole: bool) -> list[str]:
    """One line for each reason, with the guarantees that it makes inconclusive.

    whole: with the modes and storages, the places that were not met, and guarantees that are violated elsewhere.
    """
    found: dict[str, dict[str, None]] = {}
    broken = {row.id for row in rows if row.verdict == "violated" and not whole}
    for row in rows:
        if row.verdict == "inconclusive" and row.id not in broken:
            which = f"{row.id} {row.slug}" + (f" ({row.mode} mode on {row.storage})" if whole else "")
            places = f"not every place that decides it was {'tried' if row.not_tried else 'met'}; -v has them"
            why = places if not whole and (row.not_tried or row.not_met) else row.message
            found.setdefault(why, {})[which] = None
    return [f"inconclusive: {', '.join(which)}: {why}" for why, which in found.items()]


def _allowed(row: VerdictRow) -> str:
    """The violations of a row that break no promise, by the faults under which nothing is promised."""
    where = f"{row.id} {row.slug}, {row.mode} mode on {row.storage}, {row.verdict}"
    return f"{where}: the profile does not promise it under {under_text(row, '{} ({:,})')}"


def under_text(row: VerdictRow, form: str = "{} {:,}") -> str:
    """Violations by fault class, "restart 2, wire 1"."""
    return ", ".join(form.format(under, count) for under, count in row.under.items() if count)


def _not_promised(rows: Iterable[VerdictRow]) -> list[str]:
    """One line with the violations that break no promise."""
    found: Counter[str] = Counter()
    for row in rows:
        found[f"{row.id} {row.slug}"] += row.violations
    said = ", ".join(f"{name} ({count:,})" for name, count in found.items())
    return [f"not promised, and violated: {said}"] if said else []


def left_out_lines(what: Iterable[str]) -> list[str]:
    """One line for each reason, with the places that it leaves out."""
    found: dict[str, list[str]] = {}
    for each in what:
        place, colon, why = each.partition(": ")
        found.setdefault(colon + why, []).append(place)
    return [f"left out: {', '.join(places)}{why}" for why, places in found.items()]


def walk_line(walked: Sequence[WalkedCall]) -> str:
    """What came of a walk, in a sentence; "" without one."""
    if not walked:
        return ""
    single, doubled = [each for each in walked if not each.pairs], [each for each in walked if each.pairs]
    came = [what for each in single for what in each.fates.values()]
    tried = [what for what in came if what]
    counts = {begin: sum(what.startswith(begin) for what in tried) for begin in _CAME}
    parts = [
        f"{count:,} {_CAME[begin].format(_broken(single))}" for begin, count in counts.items() if count or begin == KEPT
    ]
    left = len(came) - len(tried)
    rest = f"{left:,} not tried, for lack of time" if left else "that is all of them"
    if doubled:
        pairs, went = sum(each.pairs for each in doubled), sum(each.tried for each in doubled)
        rest += f"; of {pairs:,} pairs of a death and another one in what follows it {went:,} tried"
        rest += f", some broke {broken}" if (broken := _broken(doubled)) else ""
    return (
        f"walk: {len(single):,} storage calls of a short workload, {len(came):,} deaths and failures at them, "
        f"{len(tried):,} tried: {', '.join(parts)}; {rest}"
    )


def walk_share(walked: Sequence[WalkedCall]) -> str:
    """How much of a walk was tried, in a few words; "" without one."""
    came = [what for each in walked if not each.pairs for what in each.fates.values()]
    return f"{sum(map(bool, came)):,} of {len(came):,} failures at single storage calls tried" if came else ""


def _broken(walked: Iterable[WalkedCall]) -> str:
    """The first calls of a walk at which a guarantee broke, and by what."""
    broken = (
        f"{what} by {fate} at {each.call} ({each.base})"
        for each in walked
        for fate, what in each.fates.items()
        if what.startswith("G")
    )
    return "; ".join(islice(broken, SHOWN_MAX))


def known_text(known: Known) -> str:
    """An entry of a baseline in words."""
    place = known.mode and f"{known.mode} mode on {known.storage}"
    return ", ".join(filter(None, (known.guarantee, place, known.under and f"under {known.under}", known.cause)))


Place = tuple[str, str, str]


def comparison_rows(
    rows: Sequence[VerdictRow], comparison: Comparison
) -> Iterator[tuple[Place, tuple[VerdictRow | None, ...]]]:
    """For each guarantee, mode and storage the rows of both systems; those that apply to neither are left out.

    rows: of the system of `--sut`.
    """
    both = [{(row.id, row.mode, row.storage): row for row in each} for each in (rows, comparison.rows)]
    for place in sorted({*both[0], *both[1]}, key=lambda place: (int(place[0][1:]), place)):
        pair = tuple(each.get(place) for each in both)
        if any(row and row.verdict != "not-applicable" for row in pair):
            yield place, pair


def comparison_lines(comparison: Comparison) -> list[str]:
    """Lines: what one system alone breaks, what both break, and the results of each one's plans on the other."""
    first, second = names(comparison)
    several = len({each.kind[1:3] for each in comparison.violations}) > 1

    def words(kind: Kind) -> str:
        where = f", {kind.mode} on {kind.storage}" if several else ""
        return f"{kind.guarantee} ({kind.cause}{where})"

    lines = []
    for who, by in (
        (f"only {first} breaks", (True, False)),
        (f"only {second} breaks", (False, True)),
        ("both break", (True, True)),
    ):
        found = [f"{words(each.kind)} {each.counts[0]:,}:{each.counts[1]:,}" for each in comparison.broken_by(*by)]
        lines.append(f"{who}: {', '.join(found) or 'nothing'}")
    for each in comparison.crossed:
        there, here = (second, first) if each.on_second else (first, second)
        runs = counted(each.runs, "run")
        lines.append(f"the plan for {words(each.kind)} of {here} breaks it on {there} in {each.broke} of {runs}")
    if comparison.second.trouble:
        lines.append(f"the kit could not complete the campaign against {second}: {comparison.second.trouble}")
    return lines


def names(comparison: Comparison) -> tuple[str, str]:
    """Different names for the two systems; equal ones are numbered in the order of the command line."""
    one, other = comparison.first.sut, comparison.second.sut
    return (f"{one} (--sut)", f"{other} (--against)") if one == other else (one, other)

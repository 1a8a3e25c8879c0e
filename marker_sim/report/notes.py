"""What a reader has to know besides the guarantees: what was undecided, not reached, left out or in trouble.

For two systems on the same plans it is a row for each guarantee, a column for each system, and what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marker_sim.campaign.comparison import ComparedViolation, Comparison
from marker_sim.judges.baselines.baseline import Known
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.result import KEPT, NO_ANSWER, NOT_MET, OF_STORY, UNCONFIRMED, WalkedCall
from marker_sim.report.verdict import VerdictOutcome, would_do
from marker_sim.report.words import printable

REFERENCE = "reference"
BROKEN_MAX = 3
MISSED_MAX = 3
OWN_DEFECT = (
    "the reference is marker-sim's own, so this violation is a defect of marker-sim: of the reference, of the judge or "
    "of the simulated world. Please report it: `marker-sim replay REPORT --markdown issue.md` writes the text of an "
    "issue (plan, evidence, version); attach verdict.json and the history"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Notes of one kind.

    title: the kind, in words that follow a number.
    count: of what; lines: whole sentences, mostly one for each.
    brief: those on a terminal without `-v`.
    urgent: it is about the run itself, and always shown.
    """

    title: str
    lines: tuple[str, ...]
    count: int
    brief: tuple[str, ...] = ()
    urgent: bool = False


def notes(outcome: VerdictOutcome) -> tuple[Note, ...]:
    """All notes, without empty kinds."""
    campaign = outcome.campaign
    told = {row.message for row in outcome.rows if row.verdict == "inconclusive"}
    missed = [line for name in campaign.not_reached if (line := f"coverage goal missed: {name}") not in told]
    unheld = [row for row in outcome.rows if row.verdict in ("holds", "not-promised") and row.violations]
    allowed = [
        f"{row.id} {row.slug}, {row.mode} mode on {row.storage}, {row.verdict}: the profile does not promise it under "
        + ", ".join(f"{under} ({count:,})" for under, count in row.under.items() if count)
        for row in unheld
    ]
    baseline = []
    if outcome.differences is not None:
        baseline += [f"not in the baseline: {known_text(known)}" for known in outcome.differences.unexpected]
        baseline += [
            f"stale in the baseline: {known_text(known)} was judged and not violated; remove this entry"
            for known in outcome.differences.stale
        ]
        baseline += [f"in the baseline, not seen this time: {known_text(known)}" for known in outcome.differences.unmet]
    rare = ", ".join(campaign.too_rare)
    trouble = []
    if outcome.verdict == "violated" and campaign.sut == REFERENCE:
        trouble.append(OWN_DEFECT)
    if campaign.canary is not None and campaign.canary.failing:
        trouble.append(campaign.canary.failing)
    if budget := would_do(outcome.rows, campaign):
        trouble.append(f"--budget {budget} would meet enough of what decides the undecided guarantees")
    if campaign.trouble:
        trouble.append(f"the kit could not complete the campaign: {printable(campaign.trouble)}")
    if campaign.interrupted:
        trouble.append("interrupted; these are the results so far")
    found = (
        _note("undecided", *(_undecided(outcome.rows, whole) for whole in (True, False))),
        _note("violations that the profile allows", allowed, _not_promised(unheld)),
        _note("differences from the baseline", baseline, baseline),
        _note(
            "coverage goals missed", missed, missed if len(missed) <= MISSED_MAX else [f"{len(missed)} goals missed"]
        ),
        Note(
            title="too rare for a campaign of this length",
            lines=(f"not reached, and not required of a campaign of this length: {rare}",),
            count=len(campaign.too_rare),
        ),
        _note("assumptions", [f"{what}: {said}" for what, said in (campaign.batching or {}).items()]),
        _note("left out", [f"left out: {what}" for what in campaign.left_out], left_out_lines(campaign.left_out)),
        Note(title="about this run", lines=tuple(trouble), count=len(trouble), brief=tuple(trouble), urgent=True),
    )
    return tuple(note for note in found if note.count)


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
            why = places if not whole and (row.not_tried or row.not_met) else printable(row.message)
            found.setdefault(why, {})[which] = None
    return [f"inconclusive: {', '.join(which)}: {why}" for why, which in found.items()]


def _not_promised(rows: Iterable[VerdictRow]) -> list[str]:
    """One line with the violations that break no promise."""
    found: Counter[str] = Counter()
    for row in rows:
        found.update({f"{row.id} {row.slug}": row.violations})
    said = ", ".join(f"{name} ({count:,})" for name, count in found.items())
    return [f"not promised, and violated: {said}"] if said else []


def left_out_lines(what: Iterable[str]) -> list[str]:
    """One line for each reason, with the places that it leaves out."""
    found: dict[str, list[str]] = {}
    for each in what:
        place, _, why = each.partition(": ")
        found.setdefault(why, []).append(place)
    return [f"left out: {', '.join(places)}{f': {why}' if why else ''}" for why, places in found.items()]


def walk_line(walked: Sequence[WalkedCall]) -> str:
    """What came of a walk, in a sentence; "" without one."""
    if not walked:
        return ""
    single, doubled = [each for each in walked if not each.pairs], [each for each in walked if each.pairs]
    came = [(each, fate, what) for each in single for fate, what in each.fates.items()]
    tried = [each for each in came if each[2]]
    kept = sum(what == KEPT for _, _, what in tried)
    unmet = sum(what == NOT_MET for _, _, what in tried)
    broken = _broken(single)
    parts = [
        f"{kept:,} kept every promise",
        *([f"{len(broken)} broke {'; '.join(broken[:BROKEN_MAX])}"] if broken else []),
    ]
    parts += [f"{unmet} did not happen, for a run made other calls"] if unmet else []
    silent = sum(what == NO_ANSWER for _, _, what in tried)
    parts += [f"{silent} hung and were not awaited, as their kinds of calls broke G6 before"] if silent else []
    same = sum(what.startswith(OF_STORY) for _, _, what in tried)
    before = "as another call of their kind did by the same fate, or a write without a fault"
    parts += [f"{same} broke one {before}"] if same else []
    unsure = sum(what == UNCONFIRMED for _, _, what in tried)
    parts += [f"{unsure} broke one and not again in a process that was killed there"] if unsure else []
    left = len(came) - len(tried)
    rest = f"{left:,} not tried, for lack of time" if left else "that is all of them"
    if doubled:
        pairs, went = sum(each.pairs for each in doubled), sum(each.tried for each in doubled)
        rest += f"; of {pairs:,} pairs of a death and another one in what follows it {went:,} tried"
        rest += f", some broke {'; '.join(found[:BROKEN_MAX])}" if (found := _broken(doubled)) else ""
    return (
        f"walk: {len(single):,} storage calls of a short workload, {len(came):,} deaths and failures at them, "
        f"{len(tried):,} tried: {', '.join(parts)}; {rest}"
    )


def walk_share(walked: Sequence[WalkedCall]) -> str:
    """How much of a walk was tried, in a few words; "" without one."""
    came = [what for each in walked if not each.pairs for what in each.fates.values()]
    return f"{sum(map(bool, came)):,} of {len(came):,} failures at single storage calls tried" if came else ""


def _broken(walked: Iterable[WalkedCall]) -> list[str]:
    return [
        f"{what} by {fate} at {each.call} ({each.base})"
        for each in walked
        for fate, what in each.fates.items()
        if what[:1] == "G"
    ]


def _note(title: str, lines: Sequence[str], brief: Sequence[str] = ()) -> Note:
    return Note(title=title, lines=tuple(lines), count=len(lines), brief=tuple(brief))


def known_text(known: Known) -> str:
    """An entry of a baseline in words."""
    cause = f", {known.cause}" if known.cause else ""
    return f"{known.guarantee}, {known.mode} mode on {known.storage}, under {known.under}{cause}"


Cell = tuple[str, str]


def comparison_rows(rows: Sequence[VerdictRow], comparison: Comparison) -> tuple[tuple[str, str, Cell, Cell], ...]:
    """Rows of guarantee, mode and storage, and for each system its verdict and its violations or judgements.

    rows: of the system of `--sut`. Guarantees that apply to neither are left out.
    """
    places = list(dict.fromkeys((row.id, row.mode, row.storage) for row in (*rows, *comparison.rows)))
    places.sort(key=lambda place: (int(place[0][1:]), place))
    found = []
    for place in places:
        mine, other = (
            next((row for row in each if (row.id, row.mode, row.storage) == place), None)
            for each in (rows, comparison.rows)
        )
        known = mine or other
        assert known is not None
        if {row.verdict for row in (mine, other) if row is not None} == {"not-applicable"}:
            continue
        found.append((f"{known.id:<4}{known.slug}", f"{known.mode} on {known.storage}", _cell(mine), _cell(other)))
    return tuple(found)


def comparison_lines(comparison: Comparison) -> tuple[str, ...]:
    """Lines: what one system alone breaks, what both break, and the results of each one's plans on the other."""
    first, second = names(comparison)
    places = {each.kind[1:3] for each in comparison.violations}

    def words(kind: tuple[str, str, str, str]) -> str:
        guarantee, mode, storage, cause = kind
        where = f", {mode} on {storage}" if len(places) > 1 else ""
        return f"{guarantee} ({cause}{where})"

    def listed(found: Sequence[ComparedViolation]) -> str:
        return ", ".join(f"{words(each.kind)} {each.counts[0]:,}:{each.counts[1]:,}" for each in found) or "nothing"

    lines = [
        f"only {first} breaks: {listed(comparison.broken_by(True, False))}",
        f"only {second} breaks: {listed(comparison.broken_by(False, True))}",
        f"both break: {listed(comparison.broken_by(True, True))}",
    ]
    for each in comparison.crossed:
        there, here = (second, first) if each.on_second else (first, second)
        runs = f"{each.broke} of {each.runs} run{'' if each.runs == 1 else 's'}"
        lines.append(f"the plan for {words(each.kind)} of {here} breaks it on {there} in {runs}")
    if comparison.second.trouble:
        lines.append(f"the kit could not complete the campaign against {second}: {comparison.second.trouble}")
    return tuple(lines)


def names(comparison: Comparison) -> tuple[str, str]:
    """Different names for the two systems; equal ones are numbered in the order of the command line."""
    one, other = comparison.first.sut, comparison.second.sut
    return (f"{one} (--sut)", f"{other} (--against)") if one == other else (one, other)


def _cell(row: VerdictRow | None) -> Cell:
    if row is None:
        return "-", ""
    return row.verdict, f"{row.violations:,} violations" if row.violations else f"{row.judged:,} judged"

"""What `verify` and `judge` print for people: the table of guarantees, the failures, and one line that sums it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.report.comparison import comparison_lines, comparison_rows, names
from marker_sim.report.notes import remarks
from marker_sim.report.verdict import VerdictOutcome, place, stories
from marker_sim.report.words import in_context, plan_sentences, printable

STORIES_SHOWN_MAX = 3
PLAN_SHOWN_MAX, PLAN_ENDS = 30, 12  # Sentences; of a longer plan those at its beginning and those at its end.
WIDTH_OF_FILES = 140
STYLES = {
    "holds": "green",
    "violated": "bold red",
    "inconclusive": "yellow",
    "not-promised": "magenta",
    "not-applicable": "dim",
}


def output_console() -> Console:
    """Standard output, wide enough for the table where it is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_OF_FILES)


def guarantee_table(rows: Iterable[VerdictRow]) -> Table:
    """One line for each guarantee, mode and verdict."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("guarantee", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("storage", min_width=7)
    table.add_column("judged", justify="right", no_wrap=True)
    table.add_column("violations", justify="right", no_wrap=True)
    table.add_column("under", min_width=12)
    for row in merged(rows):
        table.add_row(
            f"{row.id:<4}{row.slug}",
            row.mode,
            Text(row.verdict, style=STYLES[row.verdict]),
            row.storage,
            f"{row.judged:,}",
            f"{row.violations:,}",
            under_text(row),
        )
    return table


def merged(rows: Iterable[VerdictRow]) -> Iterator[VerdictRow]:
    """A row for each guarantee, mode and verdict: storages that agree share it, what they counted added up."""
    for _, same in groupby(rows, key=lambda row: (row.id, row.mode)):
        lines: dict[str, list[VerdictRow]] = {}
        for row in same:
            lines.setdefault(row.verdict, []).append(row)
        for members in lines.values():
            shares = [row.read_at_ack_share for row in members if row.read_at_ack_share is not None]
            yield replace(
                next((row for row in members if row.message), members[0]),
                storage="all" if len(lines) == 1 and len(members) > 1 else " ".join(row.storage for row in members),
                judged=sum(row.judged for row in members),
                violations=sum(row.violations for row in members),
                under=_added(row.under for row in members),
                excused=_added(row.excused for row in members),
                read_at_ack_share=min(shares, default=None),
            )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    added: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            added[name] = added.get(name, 0) + count
    return added


def comparison_table(outcome: VerdictOutcome) -> Table:
    """A row for each guarantee, mode and storage; verdict, violations and what was judged of each system."""
    assert outcome.against is not None
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    first, second = names(outcome.against)
    for name in ("guarantee", "mode and storage", printable(first), "", printable(second), ""):
        table.add_column(escape(name), overflow="fold")
    for guarantee, where, *cells in comparison_rows(outcome.rows, outcome.against):
        words = [Text(word, style=STYLES.get(cell[0], "")) for cell in cells for word in cell]
        table.add_row(guarantee, where, *words)
    return table


def under_text(row: VerdictRow) -> str:
    """Violations by the fault class they came under, "restart 2, wire 1"."""
    return ", ".join(f"{under} {count:,}" for under, count in row.under.items() if count)


def print_outcome(outcome: VerdictOutcome, console: Console, where: str) -> None:
    """Print the stories of what broke, the table, the notes and the verdict."""
    told = stories(outcome.failures)
    for story in told[:STORIES_SHOWN_MAX]:
        print_failure(outcome, story.told, console, story.breaks_besides(outcome.failures))
        console.print()
    hidden = len(told) - STORIES_SHOWN_MAX
    if hidden > 0:
        console.print(f"{hidden} more with other causes in {escape(where)}\n")
    console.print(guarantee_table(outcome.rows))
    console.print()
    if outcome.against is not None:
        console.print(comparison_table(outcome))
        console.print()
        for line in comparison_lines(outcome.against):
            console.print(escape(printable(line)), highlight=False, soft_wrap=True)
        console.print()
    for line in remarks(outcome):
        console.print(escape(line), highlight=False, soft_wrap=True)
    campaign = outcome.campaign
    end = f"; {where}" if where else ""
    runs = f"{campaign.runs:,} run{'' if campaign.runs == 1 else 's'}"
    console.print(
        f"[{STYLES[outcome.verdict]}]{outcome.verdict}[/]: {escape(printable(campaign.sut))},"
        f" {runs} in {campaign.duration_s:.1f} s, seed {campaign.seed}{escape(end)}",
        highlight=False,
        soft_wrap=True,
    )


def print_failure(outcome: VerdictOutcome, number: int, console: Console, besides: str = "") -> None:
    """The guarantee's sentence, the message, the evidence, the plan as sentences, the replay command."""
    failure = outcome.failures[number]
    known = BY_ID[failure.guarantee]
    _, mode, storage = place(failure)
    head = f"[bold red]{known.id} {known.slug}[/] in {mode} mode on {escape(storage)}"
    console.print(f"{head}: {escape(known.sentence)}", highlight=False, soft_wrap=True)
    console.print(f"  {escape(printable(failure.message))}", highlight=False, soft_wrap=True)
    if besides:
        console.print(f"  {escape(besides)}", highlight=False, soft_wrap=True)
    console.print("  evidence:")
    for line in in_context(failure.history, failure.evidence, around=0):
        console.print(f"    {escape(line.text)}", highlight=False, soft_wrap=True)
    if failure.plan is not None:
        entries = f"{failure.plan.entries} entries"
        grown = f", {entries}, shrunk from {failure.entries_before}" if failure.entries_before else f", {entries}"
        console.print(f"  plan (seed {failure.seed}{grown}):")
        for sentence in _abridged(plan_sentences(failure.plan)):
            console.print(f"    {escape(printable(sentence))}", highlight=False, soft_wrap=True)
        if failure.confirmed:
            console.print(f"  {escape(printable(failure.confirmed))}", highlight=False, soft_wrap=True)
    row = next((row for row in outcome.rows if (row.id, row.mode, row.storage) == place(failure)), None)
    if row is not None:
        console.print(f"  replay: {escape(row.replay)}", highlight=False, soft_wrap=True)


def _abridged(sentences: Sequence[str]) -> Sequence[str]:
    """The sentences of a plan; of a long one its beginning and its end, where the faults are."""
    hidden = len(sentences) - 2 * PLAN_ENDS
    if len(sentences) <= PLAN_SHOWN_MAX:
        return sentences
    return (*sentences[:PLAN_ENDS], f"... {hidden} more, all in report.html ...", *sentences[-PLAN_ENDS:])

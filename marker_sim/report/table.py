"""What `verify` and `judge` print for people: a handful of lines, and with `-v` all that there is to know of a verdict.

A handful: the verdict in a sentence, a block for each story of failures, each reason for which something is undecided,
what is not promised, what was run and where the report is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from marker_sim.judges.findings import split_impact
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.outcome.failure import Failure, breaks_besides
from marker_sim.report.notes import comparison_lines, notes, under_text, walk_line, walk_share
from marker_sim.report.verdict import VerdictOutcome
from marker_sim.report.words import brief, clipped, counted, event_lines, plan_sentences, printable

STORIES_TOLD_MAX = 3  # As a block.
STORIES_SHOWN_MAX = 9  # As a block or a line.
PLAN_SHOWN_MAX = 8  # Sentences; the report has longer plans.
LINE_MAX = 240
WIDTH_OF_FILES = 140
WIDTH_OF_CLASSES = 100
STYLES = {
    "holds": "green",
    "violated": "bold red",
    "inconclusive": "yellow",
    "not-promised": "magenta",
    "not-applicable": "dim",
}


def output_console() -> Console:
    """The console on standard output, wide enough for the table where it is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_OF_FILES)


def as_text(show: Callable[[Console], None], width: int) -> str:
    """What a function prints, as plain text; a notebook or a terminal around it changes nothing."""
    console = Console(file=StringIO(), width=width, force_jupyter=False, force_terminal=False, color_system=None)
    with console.capture() as captured:
        show(console)
    return captured.get().rstrip()


def plain_table(*columns: str) -> Table:
    """A table of a terminal, with these columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a text as one line, without markup and without characters that a terminal would obey."""
    console.print(Text(printable(text), style=style), highlight=False, soft_wrap=True)


def print_lines(console: Console, text: str, indent: str = "") -> None:
    """Print a text as it is, each line indented."""
    for line in text.splitlines():
        print_line(console, indent + line)


def guarantee_table(rows: Iterable[VerdictRow], width: int) -> Table:
    """One line for each guarantee, mode and verdict; where there is room, with the faults of its violations."""
    wide = width >= WIDTH_OF_CLASSES
    table = plain_table()
    for name in ("guarantee", "mode", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("storage", min_width=7)
    for name in ("judged", "violations"):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("under", min_width=12)
    for row in merged(rows):
        verdict = Text(row.verdict, style=STYLES[row.verdict])
        counts = (f"{row.judged:,}", f"{row.violations:,}", under_text(row))
        table.add_row(f"{row.id:<4}{row.slug}", row.mode, verdict, row.storage, *counts[: 3 if wide else 2])
    return table


def merged(rows: Iterable[VerdictRow]) -> Iterator[VerdictRow]:
    """A row for each guarantee, mode and verdict: storages with the same verdict are joined, their counts added."""
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
                under=sum((Counter(row.under) for row in members), Counter()),
                excused=sum((Counter(row.excused) for row in members), Counter()),
                read_at_ack_share=min(shares, default=None),
            )


def print_outcome(
    outcome: VerdictOutcome, console: Console, where: str, verbose: bool = False, stored: bool = True
) -> None:
    """Print the verdict in a sentence, the stories of failures, what qualifies the verdict, and what was run.

    where: the place of the report, "" for none. verbose: with evidence, whole plans, the table and all notes.
    stored: whether there are files that the commands can read.
    """
    campaign, stories, decides = outcome.campaign, outcome.stories, outcome.campaign.deciding
    verdict, new = (outcome.verdict, STYLES[outcome.verdict]), len(outcome.new)
    _say(console, verdict, f": {outcome.headline}")
    for number, story in enumerate(stories[: None if verbose else new]):
        if verbose or number < (1 if story[0].hostile else STORIES_TOLD_MAX):
            console.print()
            print_failure(outcome, story, console, verbose, stored)
        elif number < STORIES_SHOWN_MAX:
            _say(console, clipped(f"{title(story[0])}: {story[0].message}", LINE_MAX))
    if not verbose and new > STORIES_SHOWN_MAX:
        _say(console, f"{new - STORIES_SHOWN_MAX} more stories, in {where or '-v'}")
    if stories:
        console.print()
    if known := ", ".join(title(story[0]) for story in stories[new:]):
        _say(console, clipped(f"{len(stories) - new} known: {known}", LINE_MAX))
    lines = [*comparison_lines(outcome.against)] if outcome.against else []
    if verbose:
        console.print(guarantee_table(outcome.rows, console.width))
        console.print()
        lines += [walk_line(campaign.walked)] if campaign.walked else []
    for note in notes(outcome):
        lines += note.lines if verbose else note.brief
    for line in lines:
        _say(console, line)
    met = f"{sum(each.met > 0 for each in decides)} of {len(decides)} deciding situations" if decides else ""
    tried = ", ".join(
        part for part in (walk_share(campaign.walked), campaign.orders, met, f"seed {campaign.seed}") if part
    )
    runs = f"{counted(campaign.runs, 'run')} in {campaign.duration_s:.1f} s"
    _say(console, verdict, f": {campaign.sut}, {runs}, {tried}", f"; {where}" if where else "")


def title(failure: Failure) -> str:
    """The name of what a failure breaks, and where."""
    return f"{failure.guarantee} {BY_ID[failure.guarantee].slug} in {failure.kind.mode} mode on {failure.kind.storage}"


def print_failure(
    outcome: VerdictOutcome, story: Sequence[Failure], console: Console, verbose: bool = False, stored: bool = True
) -> None:
    """Print whom a story's first failure harms and when, what it breaks, what happened instead, what else it breaks,
    plan and replay command.

    verbose: with the evidence, and however long the plan is. stored: as of `print_outcome`.
    """
    failure = story[0]
    impact, message = split_impact(failure.message)
    if impact:
        _say(console, (brief(f"impact: {impact}"), STYLES["violated"]))
    _say(console, (title(failure), STYLES["violated"]), f": {BY_ID[failure.guarantee].sentence}")
    lines = [brief(message), breaks_besides(story)]
    if verbose:
        events = event_lines(failure.history, failure.evidence)
        lines += ["evidence:", *(f"  {line}" for line in events)]
    if failure.plan is not None:
        before = f", shrunk from {failure.entries_before}" if failure.entries_before else ""
        sentences = plan_sentences(failure.plan)
        shown = verbose or len(sentences) <= PLAN_SHOWN_MAX
        plan = f"plan (seed {failure.seed}, {counted(failure.entries, 'entry')}{before})"
        lines.append(f"{plan}{':' if shown else ', in the report'}")
        lines += [f"  {brief(sentence)}" for sentence in sentences if shown]
        likely = failure.curve.sentence if failure.curve is not None else ""
        lines += [failure.confirmed, likely, outcome.unfinished(failure) if stored else ""]
    for line in filter(None, lines):
        _say(console, line.lstrip(), indent=4 if line.startswith("  ") else 2)
    if stored:
        print_line(console, f"  replay: {outcome.command(failure)}")  # On one line, for copying.


def _say(console: Console, *parts: str | tuple[str, str], indent: int = 0) -> None:
    """Print a line of texts, some with a style: broken between words on a terminal, whole elsewhere."""
    line = Text.assemble(*(printable(part) if isinstance(part, str) else part for part in parts))
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent), expand=False))
    else:
        console.print(Text(" " * indent) + line, soft_wrap=True)

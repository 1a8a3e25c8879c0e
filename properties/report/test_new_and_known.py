"""What a baseline does not list is told first and counted alone, what it lists is one line; often is not by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from properties.cli.campaigns import campaign, changed, history
from properties.faces.judges import Breach, Finding, Known, load_profile
from properties.faces.report import VerdictOutcome, judge_campaign, notes, print_outcome, render_page

REFERENCE = load_profile("reference")
KNOWN = frozenset({Known(guarantee="G1", cause="glued", sometimes=True, runs=100)})
PLACES = ("local", "s3", "s3-unconditional")


def judged(
    *found: tuple[str, str],
    beside: Sequence[str] = (),
    broke: int = 1,
    runs: int = 100,
    known: frozenset[Known] = KNOWN,
) -> VerdictOutcome:
    """A campaign of so many runs that breaks each guarantee by a cause in three storages, held against a baseline.

    beside: what the stored runs of all but the first break as well; broke: in how many runs they were seen.
    """
    made = campaign(violated=False)
    failures, statistics = [], made.statistics
    for number, (guarantee, cause) in enumerate(found):
        breach = Breach(message=f"{guarantee} broke by {cause}", evidence=(1,), under="none", cause=cause)
        for storage in PLACES:
            finding = Finding(guarantee=guarantee, applicable=True, judged=1, breaches=(breach,), eligible=1)
            statistics.add(history(storage), (finding,))
            one = changed(campaign().failures[0], guarantee, cause, message=breach.message)
            also = frozenset({f"{guarantee} {cause}", *(beside if number else ())})
            failures.append(replace(one, kind=one.kind._replace(storage=storage), also=also))
        statistics.broke[guarantee, cause] = broke
    statistics.runs = runs
    return judge_campaign(replace(made, failures=tuple(failures)), REFERENCE, known, Path("report"), ("verify",))


def text_of(outcome: VerdictOutcome, verbose: bool = False) -> list[str]:
    out = StringIO()
    print_outcome(outcome, Console(file=out, width=140), "", verbose)
    return out.getvalue().splitlines()


def test_the_new_story_is_the_headline_and_the_known_ones_are_one_line() -> None:
    outcome = judged(("G1", "glued"), ("G4", "unasked"))
    lines = text_of(outcome)
    assert "breaks 1 of" in lines[0] and "beyond its baseline: G4; " in lines[0]
    assert [line for line in lines if "G1" in line] == ["1 known: G1 flushed-before-ack in timeline mode on local"], (
        "what is known is folded"
    )
    assert [line for line in lines if "not in the baseline" in line] == ["not in the baseline: G4, unasked"]
    assert [story[0].guarantee for story in outcome.stories] == ["G4", "G1"] and outcome.failures[0].guarantee == "G4"
    assert any("G1 broke by glued" in line for line in text_of(outcome, verbose=True))
    page = render_page(outcome)
    cards = page[page.index('<nav class="cards"') : page.index("</nav>")]
    assert cards.index("G4") < cards.index("1 known") < cards.index("G1 flushed"), "known cards are folded"
    assert "2 stories, of which 1 known" in page


def test_without_anything_new_the_known_are_still_one_line() -> None:
    lines = text_of(judged(("G1", "glued")))
    assert "only violations that its baseline lists: G1" in lines[0]
    assert sum("G1" in line for line in lines) == 2 and not any("broke by" in line for line in lines)


@pytest.mark.parametrize(
    ("broke", "runs", "known_runs", "new"),
    [
        (4, 100, 100, False),
        (5, 100, 100, True),
        (5, 100, 1000, True),
        (5, 200, 100, False),
        (10, 200, 100, True),
        (90, 100, 0, False),
    ],
    ids=["rare", "often", "longer before", "shorter before", "often and shorter before", "nobody counted"],
)
def test_what_breaks_beside_the_known_is_new_if_as_many_runs_as_wrote_the_baseline_show_it_often(
    broke: int, runs: int, known_runs: int, new: bool
) -> None:
    # A file that was made of two has entries of both campaigns, and the shorter one decides.
    longer = Known(guarantee="G2", cause="glued", sometimes=True, runs=10 * known_runs)
    known = frozenset(replace(each, runs=known_runs) for each in KNOWN) | {longer}
    outcome = judged(("G1", "glued"), ("G4", "unasked"), beside=["G1 glued"], broke=broke, runs=runs, known=known)
    assert outcome.differences is not None
    assert {each.guarantee for each in outcome.differences.unexpected} == ({"G4"} if new else set())
    assert bool(outcome.differences.explained) is not new and outcome.verdict == ("violated" if new else "holds")
    (said,) = (line for note in notes(outcome) for line in note.lines if "G4" in line)
    assert said == f"not in the baseline{'' if new else ', but in runs that break what is'}: G4, unasked"


def test_runs_are_counted_and_not_the_breaches_of_one_run() -> None:
    made = campaign(violated=False).statistics
    breaches = tuple(Breach(message=f"it broke {n}", evidence=(1,), under="none", cause="glued") for n in range(9))
    for _ in range(2):
        made.add(history(), (Finding(guarantee="G1", applicable=True, judged=9, breaches=breaches, eligible=9),))
    assert made.broke == Counter({("G1", "glued"): 2})

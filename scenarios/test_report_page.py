"""report.html in a real Chromium: what a reader sees without scrolling, and what it does when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.history import History
from properties import tools
from properties.cli.campaigns import PLAN, campaign, changed
from properties.faces.judges import load_profile
from properties.faces.outcome import Campaign
from properties.faces.report import judge_campaign, render_page
from properties.judges.build import DIRECTORY, Story, marker
from scenarios.browser import Browser

pytestmark = [tools.needs(tools.browser()), pytest.mark.volume]

HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>\u2028'\""
IN_VIEW = """(selector) => [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect())
  .map((each) => each.width > 0 && each.top >= 0 && each.bottom <= innerHeight)"""
CHOOSE = """(label, value) => {
  const box = document.querySelector(`#story-1 select[aria-label="${label}"]`);
  box.value = value;
  box.dispatchEvent(new Event("change"));
  return pictures.values().next().value.matches?.size ?? DATA[0].events.length;
}"""
SETTLED = "new Promise((done) => setTimeout(done, 100))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def _lost(name: str) -> tuple[History, tuple[int, ...]]:
    """A marker that is answered, and gone after a kill; beside it calls of every outcome."""
    story = Story()
    story.start()
    asked = story.ask(name, process="executor-1")
    story.put(f"t/x{name[:9]}", b"")
    story.flush(name)
    answered = story.end(asked, "ok", "created")
    story.end(story.ask(marker("refused"), process="executor-2"), "fail", error="400 no")
    story.end(story.ask(marker("unknown"), process="executor-2"), "info", error="cut")
    killed = story.kill()
    gone = story.put(f"{DIRECTORY}/MARKERS0", b"", process="server#2")
    story.ask(marker("open"), process="executor-2")
    return story.history(), (answered, killed, gone)


def written(folder: Path, made: Campaign) -> str:
    """Where the page of a campaign is."""
    outcome = judge_campaign(made, load_profile("reference"), None, Path("r"), ("verify",))
    path = folder / "report.html"
    path.write_text(render_page(outcome), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report with two stories is; the second one has hostile names."""
    made = campaign()
    first, second = _lost(marker("a")), _lost(HOSTILE)
    failures = (
        replace(changed(made.failures[0], evidence=first[1], message="it is lost"), history=first[0]),
        replace(changed(made.failures[0], "G3", "other", evidence=second[1], message=HOSTILE), history=second[0]),
    )
    return written(tmp_path_factory.mktemp("report"), replace(made, failures=failures))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report on a plan of 30 operations is: a long name, 60 clients, and a marker that is overwritten."""
    story, name = Story(), marker(f"lost-{'a long part ' * 12}")
    story.start()
    asked = story.ask(name, process="executor-1")
    story.flush(name)
    answered = story.end(asked, "ok", "created")
    for number in range(60):
        calls = [story.ask(marker(f"m{number}-{each}"), process=f"client-{number}") for each in range(3)]
        for call in calls:
            story.end(call, "ok", "created")
    lost = story.put(f"{DIRECTORY}/MARKERS0", b"", process="server#2", how="overwrite-end")
    story.ask(marker("at-the-end"), process="probe#1")
    made = campaign()
    failure = changed(
        made.failures[0], evidence=(asked, answered, lost), message=f"it is gone; overwritten at event {lost}"
    )
    plan = replace(PLAN, ops=PLAN.ops * 30)
    failure = replace(failure, history=story.history(), plan=plan, large="there was no time left")
    made = replace(made, failures=(failure,))
    return written(tmp_path_factory.mktemp("large"), made)


@pytest.fixture(scope="module")
def holding(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report without failures is."""
    run = _lost(marker("a"))[0]
    real = History(replace(run.header, world="foreign", plan=None), run.events)
    made = replace(campaign(violated=False), last=real)
    return written(tmp_path_factory.mktemp("holding"), made)


def test_a_run_that_holds_has_the_picture_of_its_last_run_with_the_same_controls(
    browser: Browser, holding: str
) -> None:
    browser.errors.clear()
    browser.open(holding)
    assert browser.run("document.querySelectorAll('.card, .proofs li, .violated').length") == 0
    assert browser.run("document.querySelectorAll('#run .bar').length") == 4
    now = "document.querySelector('#run .now').textContent"
    assert "fault kill" in browser.run(now), "the cursor does not stand where the first fault began"
    browser.run("document.querySelector('#run svg').focus()")
    browser.press("Home")
    assert browser.run(now).startswith("At event 0")
    browser.press("f")
    assert "fault kill" in browser.run(now)
    assert "MARKERS0" in browser.run("document.querySelector('#run .panel').innerText")
    charts = browser.run("[...document.querySelectorAll('.load figcaption')].map((each) => each.innerText)")
    assert [chart.split("\n")[0].split("  ")[0][:7] for chart in charts] == ["Answers", "Latency"]
    assert browser.run("document.querySelectorAll('.load rect.window').length") == 2, "the kill is not in both charts"
    assert "1 unknown" in browser.run("document.querySelector('.load svg').getAttribute('aria-label')")
    browser.open(holding, width=390, height=844, dark=True)
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.errors == []


def test_verdict_cards_and_evidence_are_in_sight_without_scrolling(browser: Browser, page: str) -> None:
    browser.errors.clear()
    browser.open(page)
    assert browser.errors == []
    for selector, count in (("h1", 1), (".card", 2), ("#story-1 .proofs li", 3), ("#story-1 .proof-dot", 3)):
        assert browser.run(f"({IN_VIEW})({selector!r})") == [True] * count, selector
    assert browser.run("document.documentElement.scrollHeight") < 4_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report with 14 stories is, of which two need hostile input."""
    made, (run, evidence) = campaign(), _lost(marker("a"))
    shown = replace(changed(made.failures[0], evidence=evidence), history=run)
    causes = [*(f"cause {n}" for n in range(12)), "no-text", "empty-name"]
    failures = tuple(changed(shown, cause=cause, message=f"{'it is lost, ' * 20}{cause}") for cause in causes)
    return written(tmp_path_factory.mktemp("many"), replace(made, failures=failures))


def test_cards_of_a_dozen_causes_are_in_sight_with_their_words_and_hostile_ones_are_folded(
    browser: Browser, many: str
) -> None:
    browser.errors.clear()
    browser.open(many)
    shown = browser.run(f"({IN_VIEW})('nav > .card')")
    assert shown == [True] * 12
    assert browser.run("document.querySelector('.told').getBoundingClientRect().top") < 440
    words = browser.run(
        "[...document.querySelectorAll('nav > .card')].map((each) => each.innerText.split('\\n').length)"
    )
    assert words == [2] * 12, "also the one that is chosen"
    assert browser.run("document.querySelector('.cards summary').innerText").startswith("2 more stories by names")
    assert browser.run("document.querySelector('.cards details').open") is False
    browser.open(f"{many}#story-14")
    assert "empty-name" in browser.run("document.querySelector('#story-14 strong').innerText")
    for width in (1280, 390):
        browser.open(many, width=width, height=844)
        assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.errors == []


def test_every_operation_is_a_bar_whose_outcome_is_not_told_by_colour_alone(browser: Browser, page: str) -> None:
    browser.open(page)
    bars = browser.run("[...document.querySelectorAll('#story-1 .bar')].map((each) => each.classList[1])")
    assert sorted(bars) == ["fail", "info", "ok", "open"]
    dashes = browser.run(
        "['ok','fail','info'].map((each) => getComputedStyle(document.querySelector(`.bar.${each} rect`)))"
        ".map((each) => each.strokeDasharray + each.fill)"
    )
    assert len(set(dashes)) == 3


def test_a_card_and_a_deep_link_open_a_story(browser: Browser, page: str) -> None:
    shown = "[...document.querySelectorAll('.story')].filter((each) => !each.hidden).map((each) => each.id)"
    browser.open(page)
    assert browser.run(shown) == ["story-1"]
    browser.run("document.querySelectorAll('.card')[1].click()")
    browser.run(SETTLED)
    assert browser.run(shown) == ["story-2"]
    browser.open(f"{page}#story-2@3")
    assert browser.run(shown) == ["story-2"]
    assert browser.run("document.querySelector('#story-2 .now').textContent").startswith("At event 3")


def test_the_cursor_shows_what_was_answered_and_is_not_stored(browser: Browser, page: str) -> None:
    browser.open(page)
    panel = "document.querySelector('#story-1 .panel').innerText"
    assert "NOT stored" in browser.run(panel)
    browser.run("document.querySelector('#story-1 .proofs a').click()")
    browser.run(SETTLED)
    at_answer = browser.run(panel)
    assert "NOT stored" not in at_answer and "MARKERS0" in at_answer and at_answer.count(marker("a")) == 2
    browser.run("document.querySelector('#story-1 svg').focus()")
    browser.press("ArrowLeft")
    assert "no marker" in browser.run(panel)
    browser.press("f")
    assert "fault kill" in browser.run("document.querySelector('#story-1 .now').textContent")


def test_keys_work_at_once_and_after_a_card_was_chosen_and_the_address_follows_the_cursor(
    browser: Browser, page: str
) -> None:
    browser.open(page)
    address, now = "location.hash", "document.querySelector('.story:not([hidden]) p.now').textContent"
    assert browser.run(address) == "", "the address changes without a reader"
    browser.press("e")
    first = browser.run(address)
    event = int(first.removeprefix("#story-1@"))
    assert browser.run(now).startswith(f"At event {event} ")
    browser.press("ArrowRight")
    assert browser.run(address) == f"#story-1@{event + 1}"
    browser.run("{ const card = document.querySelectorAll('.card')[1]; card.focus(); card.click(); }")
    browser.run(SETTLED)
    browser.press("f")
    assert browser.run(address).startswith("#story-2@") and "fault kill" in browser.run(now)
    browser.press("Home")
    assert browser.run(address) == "#story-2@0"
    browser.press("ArrowDown")
    assert browser.run(address) != "#story-2@0"
    browser.open(f"{page}{first}")
    assert browser.run(now).startswith(f"At event {event} ")
    browser.press("/")
    browser.press("e")
    assert browser.run("document.activeElement.value") == "e" and browser.run(address) == first


def test_evidence_is_sentences_that_are_not_cut_and_each_moves_the_cursor(browser: Browser, large: str) -> None:
    whole = """[...document.querySelectorAll('#story-1 .proofs a')].every((each) => {
      const { right, bottom } = each.parentElement.getBoundingClientRect();
      return [...each.getClientRects()].every((one) => one.right <= right + 1 && one.bottom <= bottom + 1);
    })"""
    for width in (1280, 390):
        browser.open(large, width=width, height=844)
        said = browser.run("[...document.querySelectorAll('#story-1 .proofs li')].map((each) => each.innerText)")
        assert 'executor-1 was answered "created" for marker' in said[1] and "a long part " * 12 in said[1]
        assert "server#2 wrote MARKERS0 in place without 1 of its names" in said[2]
        assert browser.run(whole), width
        browser.run("document.querySelectorAll('#story-1 .proofs a')[1].click()")
        browser.run(SETTLED)
        chosen = browser.run("[...document.querySelectorAll('#story-1 .proofs li')].map((each) => each.ariaCurrent)")
        assert chosen == ["false", "true", "false"]


def test_a_large_plan_is_folded_and_only_lanes_of_the_evidence_are_open(
    browser: Browser, large: str, page: str
) -> None:
    lanes = "[...document.querySelectorAll('#story-1 .labels button')].map((one) => [one.innerText, one.ariaExpanded])"
    browser.open(large)
    assert browser.run("document.querySelector('#story-1 .plan').open") is False
    shown = dict(browser.run(lanes))
    assert [name for name, opened in shown.items() if opened == "true"] == ["executor-1", "server#2"]
    (clients,) = (name for name in shown if name.startswith("▸ 61 ×"))
    assert "▸ kit's probe" in shown
    tall = browser.run("current.height")
    place = list(shown).index(clients)
    browser.run(f"document.querySelectorAll('#story-1 .labels button')[{place}].click()")
    assert browser.run("current.height") > tall and browser.run(lanes)[place] == [clients.removeprefix("▸ "), "true"]
    browser.open(page)
    assert browser.run("document.querySelector('#story-1 .plan').open") is True


def test_what_did_the_harm_is_marked_in_the_evidence_and_on_the_picture(browser: Browser, large: str) -> None:
    browser.open(large)
    assert browser.run("document.querySelectorAll('#story-1 .proofs .harm').length") == 1
    assert browser.run("document.querySelector('#story-1 .harm-name').textContent").startswith("✗ wrote MARKERS0")
    assert browser.run("document.querySelectorAll('#story-1 .tick.harm, #story-1 .proof-dot.harm').length") == 2
    assert "NOT stored" in browser.run("document.querySelector('#story-1 .answered').innerText"), "not at the harm"


OVERLAPS = """['.time', '.fault-name', '.harm-name', '.proof-dot', '.labels button'].flatMap((kind) => {
  const shown = [...document.querySelectorAll(`.story:not([hidden]) ${kind}`)];
  const found = shown.map((one) => one.getBoundingClientRect());
  const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 1 && other.top < one.bottom - 1;
  return found.flatMap((one, n) => found.slice(n + 1).filter((other) => meet(one, other)).map(() => kind));
})"""
CUT = """[...document.querySelectorAll('.story:not([hidden]) .time, .story:not([hidden]) .harm-name')]
  .map((each) => each.getBBox()).filter((box) => box.x < -1 || box.x + box.width > current.width + 1).length"""


def test_labels_of_a_picture_do_not_overlap(browser: Browser, large: str, page: str, holding: str) -> None:
    for address in (large, page, holding):
        for width in (1280, 390):
            browser.open(address, width=width, height=844)
            for act in ("0", "current.scale(4)", "{ current.timed = true; current.redraw(); }"):
                browser.run(act)
                assert browser.run(OVERLAPS) == [], (address, width, act)
                assert browser.run(CUT) == 0, (address, width, act)


def test_an_operation_says_under_the_pointer_whether_its_marker_was_stored(browser: Browser, page: str) -> None:
    browser.open(page)
    bar = "document.querySelector('#story-1 .bar.ok rect')"
    browser.run(f"{bar}.dispatchEvent(new MouseEvent('mousemove', {{ bubbles: true }}))")
    assert "; then ✓ stored" in browser.run("current.tip.textContent")


def test_a_report_that_holds_begins_with_what_was_tried(browser: Browser, holding: str) -> None:
    browser.open(holding)
    order = browser.run("[...document.querySelectorAll('main > section')].map((each) => each.id)")
    assert order[0] == "counts" and order[-1] == "run"
    tried = browser.run("document.querySelector('#counts > p').innerText")
    assert tried.startswith("1 run in timeline mode on s3, with 2 calls (create 2) and 1 injected fault (kill 1).")
    assert browser.run("document.querySelectorAll('header .notes').length") == 0


def test_search_makes_the_rest_faint_and_shortens_the_table(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.run("document.querySelector('#story-1 .events').open = true")
    browser.run(SETTLED)
    rows = "[...document.querySelectorAll('#story-1 tbody tr')].filter((each) => !each.hidden).length"
    assert browser.run(rows) == browser.run("DATA[0].events.length")
    browser.run("document.querySelector('#story-1 input[type=search]').focus()")
    for letter in "REFUSED":
        browser.press(letter)
    assert browser.run(rows) == 2
    assert browser.run("document.querySelectorAll('#story-1 .bar:not(.faint)').length") == 1
    assert browser.run(f"({CHOOSE})('process', 'server#1')") == 0, "the server had no such event"


def test_process_kind_and_path_filter_the_events(browser: Browser, page: str) -> None:
    browser.open(page)
    every = browser.run("DATA[0].events.length")
    assert browser.run(f"({CHOOSE})('process', 'executor-1')") == 2
    assert browser.run(f"({CHOOSE})('process', '')") == every
    assert browser.run(f"({CHOOSE})('kind of event', 'effect')") == 4
    assert browser.run(f"({CHOOSE})('path', {DIRECTORY + '/MARKERS0'!r})") == 2


def test_hostile_names_are_text(browser: Browser, page: str) -> None:
    browser.errors.clear()
    browser.open(f"{page}#story-2")
    assert "<img src=x" in browser.run("document.querySelector('#story-2 .panel').innerText")
    browser.run("{ document.querySelector('#story-2 .events').open = true; }")
    assert browser.run("typeof hacked + document.querySelectorAll('img').length") == "undefined0"
    assert browser.errors == []


def test_a_narrow_window_and_a_dark_one_show_all_of_it(browser: Browser, page: str) -> None:
    browser.open(page, width=390, height=844, dark=True)
    assert browser.run("document.documentElement.scrollWidth") == 390
    light = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).every((each) => each > 200)"
    assert browser.run(light) is False
    browser.open(page)
    assert browser.run(light) is True

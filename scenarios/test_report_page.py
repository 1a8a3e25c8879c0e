"""report.html in a real Chromium: what a reader sees without scrolling, and what the page does when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.history import History
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.report.page import render_page
from marker_sim.report.verdict import judge_campaign
from properties.cli.campaigns import campaign
from properties.judges.build import DIRECTORY, Story, marker
from scenarios.browser import MISSING, Browser

pytestmark = [pytest.mark.skipif(MISSING != "", reason=MISSING), pytest.mark.xdist_group("browser")]

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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report with two stories is; the second one has hostile names."""
    made = campaign()
    first, second = _lost(marker("a")), _lost(HOSTILE)
    failures = (
        replace(made.failures[0], history=first[0], evidence=first[1], message="it is lost"),
        replace(
            made.failures[0], guarantee="G3", history=second[0], evidence=second[1], message=HOSTILE, cause="other"
        ),
    )
    outcome = judge_campaign(replace(made, failures=failures), load_profile("reference"), None, Path("r"), ("verify",))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_page(outcome), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def holding(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a report without failures is."""
    made = replace(campaign(violated=False), last=_lost(marker("a"))[0])
    outcome = judge_campaign(made, load_profile("reference"), None, Path("r"), ("verify",))
    path = tmp_path_factory.mktemp("holding") / "report.html"
    path.write_text(render_page(outcome), encoding="utf-8")
    return path.as_uri()


def test_a_run_that_holds_has_the_picture_of_its_last_run_with_the_same_controls(
    browser: Browser, holding: str
) -> None:
    browser.errors.clear()
    browser.open(holding)
    assert browser.run("document.querySelectorAll('.card, .proofs button, .violated').length") == 0
    assert browser.run("document.querySelectorAll('#run .bar').length") == 4
    assert browser.run(f"({IN_VIEW})('#run .stage')") == [True]
    now = "document.querySelector('#run .now').textContent"
    assert "fault kill" in browser.run(now), "the cursor does not stand where the first fault began"
    browser.run("document.querySelector('#run svg').focus()")
    browser.press("Home")
    assert browser.run(now).startswith("At event 0")
    browser.press("f")
    assert "fault kill" in browser.run(now)
    assert "MARKERS0" in browser.run("document.querySelector('#run .panel').innerText")
    browser.open(holding, width=390, height=844, dark=True)
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.errors == []


def test_verdict_cards_and_evidence_are_in_sight_without_scrolling(browser: Browser, page: str) -> None:
    browser.errors.clear()
    browser.open(page)
    assert browser.errors == []
    for selector, count in (("h1", 1), (".card", 2), ("#story-1 .proofs button", 3), ("#story-1 .proof-dot", 3)):
        assert browser.run(f"({IN_VIEW})({selector!r})") == [True] * count, selector
    assert browser.run("document.documentElement.scrollHeight") < 4_000


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
    browser.run("document.querySelector('#story-1 .proofs button').click()")
    at_answer = browser.run(panel)
    assert "NOT stored" not in at_answer and "MARKERS0" in at_answer and at_answer.count(marker("a")) == 2
    browser.run("document.querySelector('#story-1 svg').focus()")
    browser.press("ArrowLeft")
    assert "no marker" in browser.run(panel)
    browser.press("f")
    assert "fault kill" in browser.run("document.querySelector('#story-1 .now').textContent")


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

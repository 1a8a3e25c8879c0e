"""The page of nights in a real Chromium: causes by night, links to what is stored, hostile names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from properties import tools
from properties.cli.campaigns import history
from properties.faces.campaign import Totals, name_of, write_summary
from properties.faces.outcome import FIXED, VIOLATED, FailureRecord
from properties.faces.report import lane_picture
from scenarios.browser import Browser

pytestmark = [tools.needs(tools.browser()), pytest.mark.volume]

HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def _record(guarantee: str, cause: str, seed: int, message: str = "it broke") -> dict[str, Any]:
    where: dict[str, Any] = {"guarantee": guarantee, "mode": "timeline", "storage": "s3", "world": "server"}
    picture = lane_picture(history(), (1, 3))._asdict()
    about: dict[str, Any] = {"message": message, "text": "", "evidence": (), "plan": {}, "shrunk": True, "cause": cause}
    record = asdict(FailureRecord(**where, **about, seed=seed))
    return record | {"picture": json.loads(json.dumps(picture))}  # As the ledger has it.


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four nights of two versions: a cause in three of them, one that is fixed, and one with a hostile name."""
    lost, late = _record("G1", "lost", 1), _record("G6", "late", 2)
    bad = _record("G12", "bad", 3, HOSTILE)
    seen: tuple[list[dict[str, Any]], ...] = ([lost, lost, late], [], [lost], [bad] * 7)
    totals = Totals()
    totals.add({"kind": "chaos", "sut": "hudi:1.0", "profile": "hudi", "seed": 5})
    for number, sightings in enumerate(seen, start=1):
        version = "1.0" if number < 3 else "1.1"
        about = {"sut": f"hudi:{version}", "sut_version": version, "kit_version": "0", "missing": ["spark: no Java"]}
        begun = {
            "kind": "night",
            "night": number,
            "at": "2026-01-01T01:00",
            "budget_s": 60.0,
            "stages": {"foreign": 100},
        }
        totals.add(begun | about)
        unit: dict[str, Any] = {
            "kind": "unit",
            "night": number,
            "at": "now",
            "stream": "foreign-s3",
            "first": number,
            "count": 1,
        }
        counts: dict[str, Any] = {"runs": 40 * number, "judged": {"G1": 900, "G6": 50 * number}, "faults": {"kill": 3}}
        counts |= {"violations": {each["guarantee"]: 1 for each in sightings}, "seconds": 9.0}
        totals.add(unit | counts | {"sightings": sightings})
        if number in (2, 4):
            statuses = ((late, FIXED), (lost, VIOLATED)) if number == 2 else ()
            for record, status in statuses:
                name = name_of(FailureRecord(**record))
                totals.add({"kind": "replayed", "night": number, "name": name, "status": status, "at": "now"})
        totals.add({"kind": "end", "night": number, "clock_s": 55.0})
    directory = tmp_path_factory.mktemp("nights")
    totals.failures.write(directory)
    write_summary(totals, directory)
    return directory


def test_the_page_of_nights_shows_each_cause_with_its_nights_and_links_its_failures(
    browser: Browser, nights: Path
) -> None:
    browser.errors.clear()
    browser.open((nights / "summary.html").as_uri())
    assert "night 4: hudi:1.1 breaks G12; open: 2 stories" in browser.run("document.querySelector('h1').innerText")
    rows = browser.run(
        "[...document.querySelectorAll('.causes tbody tr')].map((row) => row.innerText.split(/[\\n\\t]+/))"
    )
    assert [row[-7:] for row in rows] == [
        ["night 1", "night 3", "3", "2", "✗", "1", "0"],
        ["night 4", "night 4", "1", "0", "0", "0", "7"],
        ["night 1", "night 1", "1", "1", "0", "0", "0"],
    ]
    assert rows[2][0].startswith("✓ fixed: G6")
    bars = browser.run("[...document.querySelectorAll('.chart rect title')].map((each) => each.textContent)")
    assert "night 1: 2 new" in bars and "night 3: 1 seen before" in bars and "night 4: 160 runs" in bars
    links = browser.run("[...document.querySelectorAll('article a')].map((each) => each.href)")
    assert len(links) == 2 and all(Path(unquote(urlsplit(link).path)).is_file() for link in links)
    pictures = browser.run("[...document.querySelectorAll('article .lanes-of-run')].map((each) => each.textContent)")
    assert len(pictures) == 2 and all("create" in each and "fault kill" in each for each in pictures), "of each cause"
    versions = browser.run("[...document.querySelectorAll('.versions thead th')].map((each) => each.firstChild?.data)")
    assert versions[1:] == ["hudi:1.0", "hudi:1.1"]
    assert browser.errors == []


def test_the_table_of_nights_fits_the_page_and_its_columns_are_explained(browser: Browser, nights: Path) -> None:
    for width in (1280, 390):
        browser.open((nights / "summary.html").as_uri(), width=width, height=844)
        right = browser.run(
            "Math.max(...[...document.querySelectorAll('.nights td')].map((td) => td.getBoundingClientRect().right))"
        )
        assert right <= width, width
    told = browser.run("[...document.querySelectorAll('.nights th')].map((each) => [each.textContent, each.title])")
    meant = browser.run(
        "[...document.querySelectorAll('dt')].map((each) => [each.textContent, each.nextSibling.textContent])"
    )
    assert told == meant and len(told) > 10 and all(title for _, title in told)


def test_the_page_of_nights_keeps_hostile_names_as_text_and_fits_a_telephone(browser: Browser, nights: Path) -> None:
    browser.errors.clear()
    for dark in (False, True):
        browser.open((nights / "summary.html").as_uri(), width=390, height=844, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") == 390
        assert browser.run("typeof hacked + document.querySelectorAll('img, script').length") == "undefined0"
    assert "<img src=x" in browser.run("document.body.innerText")
    assert browser.run("document.querySelectorAll('a:not([href])').length") == 0
    assert browser.errors == []

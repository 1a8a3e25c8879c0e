"""report.html for histories of 1,000 to a million events: bytes, and seconds until Chromium shows the picture.

The histories are made up: eight clients create markers, each effect is recorded, a server is paused now and then, and
what one create was answered is gone in the middle. `made_s` is what it takes to write the page.
`picture_s` is the median of some openings, from the begin of the navigation until the frame with the bars
of the first story is on the screen; `bars` are those it shows. The last row is a report of many stories.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from marker_sim.history import History
from properties import tools
from properties.cli.campaigns import campaign, changed
from properties.faces.judges import load_profile
from properties.faces.report import judge_campaign, render_page
from properties.judges.build import DIRECTORY, Story, marker
from scenarios.browser import Browser

FILES, CLIENTS, PAUSE_EVERY = 20, 8, 2_000
STORIES = 40
# The time of the frame after the one that was drawn with bars in it.
SHOWN = """new Promise((done) => {
  const wait = () => document.querySelector(".story:not([hidden]) .bar")
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))) : requestAnimationFrame(wait);
  wait();
})"""


class PageCost(NamedTuple):
    """One report. picture_s: median of the openings, by size of the window."""

    events: int
    stories: int
    made_s: float
    page_bytes: int
    picture_s: float
    narrow_s: float
    bars: int


def made_up(events: int) -> tuple[History, tuple[int, ...]]:
    """A history of about so many events, and the evidence of what is gone in its middle."""
    story = Story()
    story.start()
    contents = [b""] * FILES
    evidence: tuple[int, ...] = ()
    number = 0
    while story.last < events - 3:
        number += 1
        file, name = number % FILES, marker(f"m{number}")
        asked = story.ask(name, process=f"client-{number % CLIENTS}")
        contents[file] = contents[file][-2_000:] + f"u/{name}\n".encode()
        story.put(f"{DIRECTORY}/MARKERS{file}", contents[file])
        answered = story.end(asked, "ok", "created")
        if number % PAUSE_EVERY == 0:
            story.fault("pause", value="begin")
            story.fault("pause", value="end")
        if not evidence and story.last > events // 2:
            contents[file] = b""
            evidence = (asked, answered, story.put(f"{DIRECTORY}/MARKERS{file}", b""))
    return story.history(), evidence


def measured(events: int, stories: int, browser: Browser, folder: Path, openings: int) -> PageCost:
    """Write the page of so many stories over a history and open it."""
    history, evidence = made_up(events)
    made = campaign()
    failure = replace(made.failures[0], history=history)
    failures = tuple(
        changed(failure, cause=f"cause {number}", evidence=evidence, message="it is gone") for number in range(stories)
    )
    outcome = judge_campaign(replace(made, failures=failures), load_profile("reference"), None, Path("r"), ("verify",))
    page = folder / "report.html"
    with _timed() as made_s:
        page.write_text(render_page(outcome), encoding="utf-8")
    seconds: dict[int, float] = {}
    for width in (1280, 390):
        times = []
        for _ in range(openings):
            browser.open(page.as_uri(), width=width)
            times.append(browser.run(SHOWN) / 1_000)
        seconds[width] = median(times)
    assert browser.errors == []
    return PageCost(
        events=len(history.events),
        stories=stories,
        made_s=round(made_s[0], 2),
        page_bytes=page.stat().st_size,
        picture_s=round(seconds[1280], 2),
        narrow_s=round(seconds[390], 2),
        bars=browser.run("document.querySelectorAll('.story:not([hidden]) .bar').length"),
    )


@contextmanager
def _timed() -> Iterator[list[float]]:
    took: list[float] = []
    begun = time.perf_counter()
    yield took
    took.append(time.perf_counter() - begun)


def main() -> None:
    """Measure and print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", default="1000,100000,1000000", help="sizes of histories, separated by commas")
    parser.add_argument("--openings", type=int, default=5, help="how often each page is opened")
    given = parser.parse_args()
    if tools.browser():
        raise SystemExit(tools.browser())
    print("  ".join(PageCost._fields))
    with tempfile.TemporaryDirectory() as name:
        browser = Browser(Path(name) / "profile")
        sizes = [int(word) for word in given.events.split(",")]
        for events, stories in (*((size, 1) for size in sizes), (sizes[0], STORIES)):
            cost = measured(events, stories, browser, Path(name), given.openings)
            print("  ".join(f"{value:,}".rjust(len(field)) for field, value in cost._asdict().items()), flush=True)
        browser.close()


if __name__ == "__main__":
    main()

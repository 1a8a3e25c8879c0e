"""The published performance table as an experiment, in small: the row it is calibrated on, and what must follow."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from scenarios.performance.plot import MEASURES, plot
from scenarios.performance.table import CALIBRATED_S, CALIBRATION, READINGS, both, calibrated, predictions
from scenarios.performance.world import Figures, Setting, simulate

SMALL = 1_000
LATENCY_S = 0.1
DIRECT = Setting(mode="direct", files=SMALL, latency_ms=LATENCY_S * 1_000)


def _timeless(figures: Figures) -> Figures:
    return replace(figures, cpu_s=0.0)


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_every_reading_meets_the_row_it_is_calibrated_on(reading: Setting) -> None:
    direct = simulate(replace(calibrated(reading), mode="direct", files=SMALL))
    assert direct.delete_s == pytest.approx(CALIBRATED_S, rel=1e-4)


def test_batched_markers_take_fewer_files_and_are_deleted_sooner_but_made_later() -> None:
    direct, timeline = both(calibrated(CALIBRATION), SMALL)
    assert direct.marker_files == direct.puts == SMALL
    assert 1 <= timeline.marker_files <= CALIBRATION.num_threads
    assert timeline.requests < direct.requests / 10
    assert timeline.delete_s < direct.delete_s
    assert timeline.create_s > direct.create_s, "a batched create waits for its batch and then for a put"
    assert {published.what: predicted for published, predicted in predictions(direct, timeline)}


def test_as_many_markers_are_deleted_at_a_time_as_the_option_says() -> None:
    together = simulate(DIRECT)
    alone = simulate(replace(DIRECT, delete_parallelism=1))
    # A listing before and one after, and between them rounds of a hundred deletions, or of one.
    assert together.delete_s == pytest.approx((2 + SMALL / 100) * LATENCY_S, rel=1e-3)
    assert alone.delete_s == pytest.approx((2 + SMALL) * LATENCY_S, rel=1e-3)
    assert together.requests == alone.requests


def test_pages_and_looks_cost_what_they_should() -> None:
    one_page, two_pages = simulate(DIRECT), simulate(replace(DIRECT, files=SMALL + 1))
    assert one_page.list_s == pytest.approx(LATENCY_S, rel=1e-3)
    assert two_pages.list_s == pytest.approx(2 * LATENCY_S, rel=1e-3)
    looks = simulate(replace(DIRECT, looks_first=True))
    assert looks.create_s == pytest.approx(2 * one_page.create_s, rel=1e-3)


def test_writing_data_takes_no_time_of_the_markers() -> None:
    busy = simulate(replace(DIRECT, data_ms=700))
    assert busy.create_s == pytest.approx(simulate(DIRECT).create_s, rel=1e-3)


def test_equal_settings_give_equal_figures() -> None:
    setting = replace(DIRECT, mode="timeline", files=500, jitter=3)
    assert _timeless(simulate(setting)) == _timeless(simulate(setting))
    assert _timeless(simulate(setting)) != _timeless(simulate(replace(setting, jitter=4)))


def test_the_plot_has_a_panel_a_measure_and_interval_and_a_line_for_each_number_of_threads() -> None:
    figures = {"create_s": 2.0, "delete_s": 1.0, "marker_files": 3, "wrote_bytes": 4_000}
    points = [
        {"mode": mode, "files": files, "num_threads": threads, "interval_ms": interval, **figures}
        for mode, threads, interval in [
            ("direct", 20, 50),
            ("timeline", 1, 50),
            ("timeline", 20, 50),
            ("timeline", 1, 10),
        ]
        for files in (1_000, 10_000)
    ]
    drawn = ElementTree.fromstring(plot(points))
    space = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{space}rect")) == 1 + len(MEASURES) * 2
    # Two lines at 50 ms, one at 10 ms, and the direct markers in both columns; two points each.
    assert len(drawn.findall(f"{space}circle")) == len(MEASURES) * (3 + 2) * 2

"""Hudi's published performance table of markers beside what the simulated reference predicts from one of its rows.

The latency of a request is set so that 1,000 direct markers are deleted in the published 5.4 s; everything else follows
from default options and from what is documented (world.py). docs/performance-table.md discusses it.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from scenarios.performance.plot import plot
from scenarios.performance.world import Figures, Setting, simulate

SOURCE = "https://hudi.apache.org/blog/2021/08/18/improving-marker-mechanism/ (section Performance)"
CALIBRATION = Setting(mode="direct", files=1_000, latency_ms=100.0)
CALIBRATED_S = 5.4
LARGE = 165_000
FILES = (1_000, 10_000, 100_000, LARGE)
THREADS = (1, 5, 20, 100)
INTERVALS_MS = (10, 50, 200)
GRID_FILES_MAX = LARGE  # Above it only default options: a million files take minutes, and gigabytes are copied.
DEFAULTS = (CALIBRATION.interval_ms, CALIBRATION.num_threads)
DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A figure of Hudi's table as it is printed there, in seconds or files."""

    what: str
    printed: str
    value: float


DIRECT_LARGE = Published(what="direct, 165k files: deletion", printed="15min", value=900.0)
TIMELINE_LARGE = Published(what="timeline server, 165k files: deletion", printed="~3s", value=3.0)
TIMELINE_FILES = Published(what="timeline server, 165k files: marker files", printed="20", value=20.0)
DIFFERENCE = Published(what="165k files: whole write, direct - timeline server", printed="55min - 38min", value=1_020.0)

# Readings of what the table leaves open, each calibrated on the same row.
READINGS: dict[str, Setting] = {
    "the reference, equal latencies": CALIBRATION,
    "a direct create looks for its directory first, as Hudi 0.9.0 does": replace(CALIBRATION, looks_first=True),
    "latencies drawn from 0.25 to 3.25 times the mean": replace(CALIBRATION, jitter=1),
    "one deletion at a time instead of 100": replace(CALIBRATION, delete_parallelism=1),
}


def calibrated(setting: Setting) -> Setting:
    """The setting with the latency at which 1,000 direct markers are deleted in the published time."""
    trial = replace(setting, mode="direct", files=CALIBRATION.files)
    # All of a deletion is requests, so that its time is proportional to their latency.
    latency_ms = trial.latency_ms * CALIBRATED_S / simulate(trial).delete_s
    return replace(setting, latency_ms=latency_ms)


def both(setting: Setting, files: int) -> tuple[Figures, Figures]:
    """Direct and timeline-server markers of one write."""
    direct = simulate(replace(setting, mode="direct", files=files))
    return direct, simulate(replace(setting, mode="timeline", files=files))


def predictions(direct: Figures, timeline: Figures) -> Iterator[tuple[Published, float]]:
    """What is published for 165k files beside what came out; data are written in the same time in both modes."""
    yield DIRECT_LARGE, direct.delete_s
    yield TIMELINE_LARGE, timeline.delete_s
    yield TIMELINE_FILES, timeline.marker_files
    yield DIFFERENCE, sum(s(direct) - s(timeline) for s in (_created, _listed, _deleted))


def _created(figures: Figures) -> float:
    return figures.create_s


def _listed(figures: Figures) -> float:
    return figures.list_s


def _deleted(figures: Figures) -> float:
    return figures.delete_s


def print_table() -> None:
    """Every reading: its latency, the published figures, the predictions and their errors."""
    for name, reading in READINGS.items():
        setting = calibrated(reading)
        sizes = FILES if reading == CALIBRATION else (LARGE,)
        print(f"\n{name}: {setting.latency_ms:.2f} ms a request")
        print("files    mode      create s   list s  delete s  marker files  requests        MB     steps  CPU s")
        for files in sizes:
            pair = both(setting, files)
            for mode, f in zip(("direct", "timeline"), pair, strict=True):
                print(
                    f"{files:7,}  {mode:8} {f.create_s:9.1f} {f.list_s:8.1f} {f.delete_s:9.1f} {f.marker_files:13,}"
                    f" {f.requests:9,} {f.wrote_bytes / 1e6:9.1f} {f.steps:9,} {f.cpu_s:6.1f}",
                    flush=True,
                )
        for published, predicted in predictions(*pair):
            error = (predicted / published.value - 1) * 100
            print(f"  {published.what:52} published {published.printed:13} predicted {predicted:7.1f} ({error:+.0f} %)")


def sweep(sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Both modes over files, batch intervals and threads; latencies vary, for slots that move in step hide much."""
    setting = calibrated(replace(CALIBRATION, jitter=1))
    points: list[dict[str, object]] = []
    for files in sizes:
        grid = (DEFAULTS,) if files > GRID_FILES_MAX else tuple(itertools.product(INTERVALS_MS, THREADS))
        settings = [replace(setting, mode="direct", files=files)]
        for interval_ms, num_threads in grid:
            batched = replace(setting, mode="timeline", interval_ms=interval_ms, num_threads=num_threads)
            settings.append(replace(batched, files=files))
        for point in settings:
            figures = asdict(simulate(point))
            cpu_s = figures.pop("cpu_s")  # Of this machine and this hour; all else is the same everywhere.
            points.append(asdict(point) | figures)
            print(f"{cpu_s:6.1f} CPU s  {json.dumps(points[-1])}", flush=True)
    return points


def main() -> None:
    """Parse the command line; print the table, or perform the sweep and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweep", type=int, nargs="+", metavar="FILES", help="perform and draw these sizes")
    parser.add_argument("--plot-only", action="store_true", help="draw the stored points again")
    arguments = parser.parse_args()
    stored, picture = DOCS / "performance-table.json", DOCS / "performance-table.svg"
    if arguments.sweep:
        points = sweep(tuple(arguments.sweep))
        stored.write_text("[\n" + ",\n".join(json.dumps(point) for point in points) + "\n]\n", encoding="utf-8")
    elif not arguments.plot_only:
        print(f"published: {SOURCE}")
        print_table()
        return
    picture.write_text(plot(json.loads(stored.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()

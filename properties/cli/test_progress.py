"""What a long command says meanwhile: in place on a terminal, now and then elsewhere, never on standard output."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from properties.faces.cli import Progress
from properties.volume import CI_ONLY

ROOT = Path(__file__).parent.parent.parent
VERIFY = ("verify", "--mode", "direct", "--storage", "local", "--runs", "40", "--jobs", "1", "--seed", "1")
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])[;m]")


def said(folder: Path, *words: str, terminal: bool, **environment: str) -> tuple[str, str]:
    """Standard output and standard error of a `verify`; with a terminal both are one, but for JSON."""
    env = {name: word for name, word in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")}
    env |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"} | environment
    master, slave = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "marker_sim", *VERIFY, *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=slave if terminal and "--json" not in words else subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    heard = bytearray()
    try:
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # The end of a terminal.
                break
            if not part:
                break
            heard += part
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(master)
    return (out or b"").decode(), heard.decode()


def test_a_terminal_shows_how_far_it_is_and_json_is_alone_on_standard_output(tmp_path: Path) -> None:
    out, shown = said(tmp_path, "--json", terminal=True)
    assert json.loads(out)["runs"] == 40
    line = r"\d+ s: 40 of 40 runs; [\d.,]+ runs/s, [\d.,]+ steps/s; [\d,]+ faults; none violated"
    assert re.search(line, shown) and "\x1b[2K" in shown, "the line is drawn in place, and taken away in the end"


@pytest.mark.parametrize(
    ("terminal", "environment"),
    [(False, {}), pytest.param(True, {"TERM": "dumb"}, marks=CI_ONLY)],
    ids=["no terminal", "dumb terminal"],
)
def test_without_a_terminal_nothing_is_drawn(terminal: bool, environment: dict[str, str], tmp_path: Path) -> None:
    out, shown = said(tmp_path, terminal=terminal, **environment)
    assert "\x1b" not in out + shown and "holds: " in out + shown
    assert len(re.findall("runs/s", shown)) <= 60 / 5, "at most a line in five seconds"


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colours", "NO_COLOR"])
def test_no_color_leaves_colours_out_and_nothing_else(environment: dict[str, str], tmp_path: Path) -> None:
    shown = " ".join(said(tmp_path, "-v", terminal=True, **environment)[1].split())
    assert "runs/s" in shown and bool(COLOUR.search(shown)) == (not environment)
    verdict, table = shown.index(" keeps its promises"), shown.index("flushed-before-ack")
    assert verdict < table < shown.index("report: marker-sim-report/report.html"), "the verdict first"


def test_progress_that_no_terminal_shows_is_a_line_now_and_then() -> None:
    seconds = iter((0.0, 1.0, 5.0, 6.0, 9.9, 10.0))
    out = StringIO()
    show = Progress(Console(file=out), clock=lambda: next(seconds))
    for number in range(5):
        show(f"[b]{number} runs")
    assert out.getvalue().splitlines() == ["5 s: [b]1 runs", "10 s: [b]4 runs"]


def test_a_long_silence_is_broken_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.cli.output.LOOK_EVERY_S", 0.001)
    now, out = [0.0], StringIO()
    with Progress(Console(file=out), clock=lambda: now[0]) as show:
        show("shrinking G1")
        for seconds in (19.0, 20.0, 39.0, 41.0):
            now[0] = seconds
            until = time.monotonic() + (5.0 if seconds in (20.0, 41.0) else 0.05)
            while f"{seconds:.0f} s: shrinking G1\n" not in out.getvalue() and time.monotonic() < until:
                time.sleep(0.001)
    assert out.getvalue().splitlines() == ["20 s: shrinking G1", "41 s: shrinking G1"]

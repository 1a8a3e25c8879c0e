"""An SVG of small panels: a row for each measure, a column for each batch interval, both axes logarithmic. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

Point = dict[str, Any]

MEASURES: tuple[tuple[str, str, Callable[[Point], float]], ...] = (
    ("create_s", "making all markers, s", lambda p: p["create_s"]),
    ("delete_s", "deleting them, s", lambda p: p["delete_s"]),
    ("marker_files", "marker files", lambda p: p["marker_files"]),
    ("wrote_bytes", "written for markers, MB", lambda p: p["wrote_bytes"] / 1e6),
)
# Widths fall and dashes differ in the order of drawing, so that a line below another one still shows.
STYLES = (
    ("#d55e00", 7.0, ""),
    ("#e6ab02", 4.8, ""),
    ("#0072b2", 2.6, ""),
    ("#111111", 1.6, "2 3"),
)
DIRECT_STYLE = ("#009e73", 2.2, "7 4")
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 280, 170, 86, 96, 36, 50


def plot(points: Sequence[Point]) -> str:
    """The picture of a sweep; points are settings and figures in one."""
    intervals = sorted({p["interval_ms"] for p in points if p["mode"] == "timeline"})
    threads = sorted({p["num_threads"] for p in points if p["mode"] == "timeline"})
    width = LEFT + len(intervals) * (WIDTH + GAP_X) + 10
    height = TOP + len(MEASURES) * (HEIGHT + GAP_Y) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(LEFT, 24, "Markers of one write in virtual time: data files across, both axes logarithmic", size=15),
        *_legend(threads),
    ]
    for row, (_, title, measure) in enumerate(MEASURES):
        shown = [p for p in points if measure(p) > 0]
        box_y = _decades([measure(p) for p in shown])
        box_x = _decades([p["files"] for p in points])
        for column, interval in enumerate(intervals):
            x, y = LEFT + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y)
            lines = [
                *(
                    (style, [p for p in shown if p["interval_ms"] == interval and p["num_threads"] == count])
                    for count, style in zip(threads, STYLES, strict=False)
                ),
                (DIRECT_STYLE, [p for p in shown if p["mode"] == "direct"]),
            ]
            parts += _frame(x, y, box_x, box_y, label=column == 0)
            for number, (style, members) in enumerate(lines):
                batched = [p for p in members if (p["mode"] == "direct") is (number == len(lines) - 1)]
                parts += _line(x, y, box_x, box_y, style, [(p["files"], measure(p)) for p in batched])
            if row == 0:
                parts.append(_text(x + WIDTH / 2, y - 10, f"batch interval {interval} ms", anchor="middle", size=13))
        middle = TOP + row * (HEIGHT + GAP_Y) + HEIGHT / 2
        parts.append(
            f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle" font-size="13">'
            f"{escape(title)}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(threads: Sequence[int]) -> list[str]:
    names = [f"{count} batch thread{'s' if count > 1 else ''}" for count in threads]
    entries = [*zip(names, STYLES, strict=False), ("direct markers", DIRECT_STYLE)]
    parts = []
    for number, (name, (colour, thick, dash)) in enumerate(entries):
        x = LEFT + number * 172
        parts.append(_stroke(f"M{x} 50H{x + 34}", colour, thick, dash))
        parts.append(_text(x + 42, 54, name))
    return parts


def _decades(values: Iterable[float]) -> tuple[int, int]:
    found = list(values)
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    return low, max(high, low + 1)


def _at(value: float, box: tuple[int, int], length: float) -> float:
    return (math.log10(value) - box[0]) / (box[1] - box[0]) * length


def _frame(x: float, y: float, box_x: tuple[int, int], box_y: tuple[int, int], label: bool) -> list[str]:
    parts = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>']
    for power in range(box_x[0], box_x[1] + 1):
        at = x + _at(10.0**power, box_x, WIDTH)
        parts.append(_stroke(f"M{at:.1f} {y}V{y + HEIGHT}", "#ddd", 0.7))
        parts.append(_text(at, y + HEIGHT + 16, _short(power), anchor="middle"))
    step = 1 if box_y[1] - box_y[0] <= 5 else 2
    for power in range(box_y[0], box_y[1] + 1, step):
        at = y + HEIGHT - _at(10.0**power, box_y, HEIGHT)
        parts.append(_stroke(f"M{x} {at:.1f}H{x + WIDTH}", "#ddd", 0.7))
        if label:
            parts.append(_text(x - 8, at + 4, _short(power), anchor="end"))
    return parts


def _line(
    x: float,
    y: float,
    box_x: tuple[int, int],
    box_y: tuple[int, int],
    style: tuple[str, float, str],
    values: Sequence[tuple[float, float]],
) -> list[str]:
    colour, thick, dash = style
    places = [(x + _at(across, box_x, WIDTH), y + HEIGHT - _at(up, box_y, HEIGHT)) for across, up in sorted(values)]
    if not places:
        return []
    path = "M" + "L".join(f"{across:.1f} {up:.1f}" for across, up in places)
    dots = [
        f'<circle cx="{across:.1f}" cy="{up:.1f}" r="{thick / 2 + 0.6:.1f}" fill="{colour}"/>' for across, up in places
    ]
    return [_stroke(path, colour, thick, dash), *dots]


def _stroke(path: str, colour: str, thick: float, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{thick}"{dashed}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _short(power: int) -> str:
    """10 to a power as people write it: 0.01, 1, 100, 10k, 1M."""
    if power < 0:
        return f"{10.0**power:.{-power}f}"
    unit, rest = divmod(power, 3)
    return f"{10**rest}{('', 'k', 'M', 'G', 'T')[unit]}"
